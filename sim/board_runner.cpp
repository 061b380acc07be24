// Runs the top of a board cycle by cycle; the other end of its link is a pipe.
//
// Ahead of this text stands what is beyond the board's pins: `Link`, the other end of its link, and `make_others`, which
// makes those of sources and sinks of the numbers that each gets. Arguments: the frequency of the accelerator's own
// clock in that of the board's, with which OWN_CLOCK is defined, or 0; numbers for the link. Stdin begins with
// the numbers of each of the others: how many, a 64-bit word, and these. A command on stdin is two 64-bit words, COUNT and CYCLES, and COUNT bytes: these are sent, one behind the other;
// then the board runs until a byte has been received, but for no more than CYCLES. The answer on stdout is three words
// (cycles since power-on, bytes received with a broken frame since then, bytes received that have not been reported)
// and these bytes, then for each of the others the number of bytes that it has received, and these. The program ends
// with its input.

#include <unistd.h>

namespace {

bool read_all(void* data, size_t size) { return std::fread(data, 1, size, stdin) == size; }

}  // namespace

int main(int argc, char** argv) {
    // what the model itself prints must not get between the answers
    std::FILE* answers = fdopen(dup(STDOUT_FILENO), "wb");
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 2;

    std::vector<double> arguments;
    [[maybe_unused]] const double half_cycle = 0.5 / std::strtod(argv[1], nullptr);
    for (int n = 2; n < argc; ++n) arguments.push_back(std::strtod(argv[n], nullptr));
    VerilatedContext context;
    Vtop top{&context, "TOP"};
    Link link{arguments};
    std::vector<std::vector<double>> numbers(OTHERS);
    for (auto& given : numbers) {
        uint64_t count;
        if (!read_all(&count, sizeof count)) return 2;
        given.resize(count);
        if (!read_all(given.data(), count * sizeof(double))) return 2;
    }
    const auto others = make_others(numbers);
    uint64_t cycle = 0;
    // the edges of both clocks in the order of their times, in cycles of the board's
    [[maybe_unused]] double next_edge = half_cycle;
    const auto pass = [&]([[maybe_unused]] double time) {
#ifdef OWN_CLOCK
        for (; next_edge < time; next_edge += half_cycle) {
            top.core_clk = !top.core_clk;
            top.eval();
        }
#endif
    };
    const auto step = [&] {
        pass(static_cast<double>(cycle));
        top.clk = 0;
        link.drive(top, cycle);
        for (const auto& other : others) other->drive(top, cycle);
        top.eval();
        pass(static_cast<double>(cycle) + 0.5);
        top.clk = 1;
        top.eval();
        link.sample(top, cycle);
        for (const auto& other : others) other->sample(top, cycle);
        ++cycle;
    };

    uint64_t command[2];
    while (read_all(command, sizeof command)) {
        std::vector<uint8_t> bytes(command[0]);
        if (!read_all(bytes.data(), bytes.size())) return 2;
        link.send(std::move(bytes));
        while (!link.done(cycle)) step();
        for (const uint64_t end = cycle + command[1]; link.bytes.empty() && cycle < end;) step();

        const uint64_t answer[3] = {cycle, link.broken, link.bytes.size()};
        std::fwrite(answer, sizeof answer, 1, answers);
        std::fwrite(link.bytes.data(), 1, link.bytes.size(), answers);
        for (const auto& other : others) {
            const uint64_t size = other->bytes.size();
            std::fwrite(&size, sizeof size, 1, answers);
            std::fwrite(other->bytes.data(), 1, size, answers);
            other->bytes.clear();
        }
        if (std::fflush(answers)) return 2;
        link.bytes.clear();
    }
    top.final();
    return 0;
}
