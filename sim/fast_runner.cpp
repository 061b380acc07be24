// Runs a stream accelerator over files of beats, with no interpreter in the loop.
//
// Arguments: INPUT OUTPUT WORDS_IN WORDS_OUT WIDTH_OUT STALL SEED BEATS FRAMES IDLE_LIMIT MAX_CYCLES DRAIN TRACE
// INPUT is beats of WORDS_IN 64-bit words. OUTPUT is eight words (status, cycles, beats accepted, beats
// delivered, seconds as a double, three spare), then the cycle of each accepted beat, the cycle of each
// delivered beat, and the delivered beats. A run ends after BEATS output beats or FRAMES beats with the top bit set.

#include "Vtop.h"

#include <chrono>

#if VM_TRACE_FST
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif VM_TRACE_VCD
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#endif

namespace {

enum Status : uint64_t { Done, Deadlock, CycleLimit, ValidDropped, PayloadChanged, ExtraBeat };

// A port of up to 64 bits is an integer, a wider one an array of 32-bit words.
template <typename T> void put(T& port, const uint64_t* words, size_t) { port = static_cast<T>(words[0]); }
template <size_t N> void put(VlWide<N>& port, const uint64_t* words, size_t) {
    for (size_t k = 0; k < N; ++k) port[k] = static_cast<uint32_t>(words[k / 2] >> (32 * (k % 2)));
}
template <typename T> void get(const T& port, uint64_t* words, size_t) { words[0] = port; }
template <size_t N> void get(const VlWide<N>& port, uint64_t* words, size_t count) {
    std::fill_n(words, count, 0);
    for (size_t k = 0; k < N; ++k) words[k / 2] |= static_cast<uint64_t>(port[k]) << (32 * (k % 2));
}

// One pause generator per end, so that neither end's pauses depend on the other's.
class Pauses {
public:
    Pauses(double probability, uint64_t seed)
        : m_threshold(static_cast<uint64_t>(probability * 4294967296.0)), m_state(seed * 2 + 1) {}
    bool next() {
        if (!m_threshold) return false;
        m_state = m_state * 6364136223846793005ull + 1442695040888963407ull;
        return (m_state >> 32) < m_threshold;
    }

private:
    uint64_t m_threshold;
    uint64_t m_state;
};

std::vector<uint64_t> read_words(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) {
        std::perror(path);
        std::exit(2);
    }
    std::fseek(file, 0, SEEK_END);
    std::vector<uint64_t> words(std::ftell(file) / sizeof(uint64_t));
    std::rewind(file);
    if (std::fread(words.data(), sizeof(uint64_t), words.size(), file) != words.size()) std::exit(2);
    std::fclose(file);
    return words;
}

void write_words(std::FILE* file, const std::vector<uint64_t>& words) {
    if (std::fwrite(words.data(), sizeof(uint64_t), words.size(), file) != words.size()) {
        std::perror("results");
        std::exit(2);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 14) return 2;
    const std::vector<uint64_t> beats = read_words(argv[1]);
    const size_t in_words = std::strtoull(argv[3], nullptr, 10);
    const size_t out_words = std::strtoull(argv[4], nullptr, 10);
    const size_t last_bit = std::strtoull(argv[5], nullptr, 10) - 1;
    const double stall = std::strtod(argv[6], nullptr);
    const uint64_t seed = std::strtoull(argv[7], nullptr, 10);
    const uint64_t wanted_beats = std::strtoull(argv[8], nullptr, 10);
    const uint64_t wanted_frames = std::strtoull(argv[9], nullptr, 10);
    const uint64_t idle_limit = std::strtoull(argv[10], nullptr, 10);
    const uint64_t max_cycles = std::strtoull(argv[11], nullptr, 10);
    const uint64_t drain = std::strtoull(argv[12], nullptr, 10);
    const size_t total = beats.size() / in_words;

    VerilatedContext context;
    context.traceEverOn(VM_TRACE);
    Vtop top{&context, "TOP"};
#if VM_TRACE
    Trace trace;
    const bool tracing = argv[13][0] != 0;
    if (tracing) {
        top.trace(&trace, 99);
        trace.open(argv[13]);
    }
#endif
    uint64_t half_cycles = 0;
    const auto step = [&](int clk) {
        top.clk = clk;
        top.eval();
#if VM_TRACE
        if (tracing) trace.dump(half_cycles);
#endif
        ++half_cycles;
    };

    top.rst = 1;
    step(0);
    step(1);
    top.rst = 0;

    Pauses source_pauses{stall, seed}, sink_pauses{stall, seed ^ 0x9e3779b97f4a7c15ull};
    std::vector<uint64_t> accepted, delivered, payloads, payload(out_words), held(out_words);
    accepted.reserve(total);
    Status status = Done;
    size_t position = 0;
    uint64_t cycle = 0, idle = 0, frames = 0, drained = 0;
    bool offered = false, waiting = false, finished = false;

    const auto begin = std::chrono::steady_clock::now();
    for (;; ++cycle) {
        // the rest of the input must be taken, and then for DRAIN cycles no output may come
        if (finished && (!drain || (position == total && drained++ == drain))) break;
        if (idle >= idle_limit || (max_cycles && cycle >= max_cycles)) {
            status = idle >= idle_limit ? Deadlock : CycleLimit;
            break;
        }

        if (!offered && position < total) {
            offered = !source_pauses.next();
            // while nothing is offered the payload is another beat's: nobody may look at it
            const size_t shown = offered ? position : (position * 7 + 3) % total;
            put(top.i___05Fpayload, &beats[shown * in_words], in_words);
        }
        top.i___05Fvalid = offered;
        top.o___05Fready = !sink_pauses.next();
        step(0);

        const bool in_fires = offered && top.i___05Fready;
        const bool out_valid = top.o___05Fvalid;
        const bool out_fires = out_valid && top.o___05Fready;
        if (out_valid) get(top.o___05Fpayload, payload.data(), out_words);
        if (waiting && !out_valid) status = ValidDropped;
        else if (waiting && payload != held) status = PayloadChanged;
        else if (finished && out_valid) status = ExtraBeat;
        if (status != Done) break;
        waiting = out_valid && !out_fires;
        if (waiting) held = payload;
        step(1);

        idle = in_fires || out_fires ? 0 : idle + 1;
        if (in_fires) {
            accepted.push_back(cycle);
            ++position;
            offered = false;
        }
        if (out_fires) {
            delivered.push_back(cycle);
            payloads.insert(payloads.end(), payload.begin(), payload.end());
            frames += payload[last_bit / 64] >> (last_bit % 64) & 1;
            finished = wanted_beats ? delivered.size() == wanted_beats : frames == wanted_frames;
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    top.final();
#if VM_TRACE
    if (tracing) trace.close();
#endif

    std::vector<uint64_t> header{status, cycle, accepted.size(), delivered.size(), 0, 0, 0, 0};
    std::memcpy(&header[4], &seconds, sizeof seconds);
    std::FILE* file = std::fopen(argv[2], "wb");
    if (!file) {
        std::perror(argv[2]);
        return 2;
    }
    write_words(file, header);
    write_words(file, accepted);
    write_words(file, delivered);
    write_words(file, payloads);
    return std::fclose(file) ? 2 : 0;
}
