// The StreamModel of a Vtop. Its streams are named by the macros INPUTS(X) and OUTPUTS(X), which stand for X(stream) per
// stream. All that is compiled with every model, so there is as little as can be.

#include "stream_model.h"

#include "Vtop.h"

namespace {

Vtop* top;

// A port of up to 64 bits is an integer, a wider one an array of 32-bit words.
template <typename T> void put(T& port, const uint64_t* words) { port = static_cast<T>(words[0]); }
template <size_t N> void put(VlWide<N>& port, const uint64_t* words) {
    for (size_t k = 0; k < N; ++k) port[k] = static_cast<uint32_t>(words[k / 2] >> (32 * (k % 2)));
}
template <typename T> void get(const T& port, uint64_t* words) { words[0] = port; }
template <size_t N> void get(const VlWide<N>& port, uint64_t* words) {
    for (size_t k = 0; k < (N + 1) / 2; ++k) words[k] = 0;
    for (size_t k = 0; k < N; ++k) words[k / 2] |= static_cast<uint64_t>(port[k]) << (32 * (k % 2));
}

}  // namespace

StreamModel make_model(VerilatedContext* context) {
    top = new Vtop{context, "TOP"};
#define INPUT(stream) \
    {[](const uint64_t* words) { put(top->stream##___05Fpayload, words); }, &top->stream##___05Fvalid, \
     &top->stream##___05Fready},
#define OUTPUT(stream) \
    {[](uint64_t* words) { get(top->stream##___05Fpayload, words); }, &top->stream##___05Fvalid, \
     &top->stream##___05Fready},
    static const InputPort inputs[] = {INPUTS(INPUT)};
    static const OutputPort outputs[] = {OUTPUTS(OUTPUT)};
    return {
        &top->clk, &top->rst, [] { top->eval(); }, [] { top->final(); },
        []([[maybe_unused]] Trace* trace, [[maybe_unused]] int levels) {
#if IS_TRACED
            top->trace(trace, levels);
#endif
        },
        inputs, outputs, sizeof inputs / sizeof *inputs, sizeof outputs / sizeof *outputs,
    };
}
