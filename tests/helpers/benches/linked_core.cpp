// A LinkedCore cycle by cycle, driven byte by byte: the other end of its UART, the switches of its
// accelerator, and all that a test wants to see of it, in cycles.
//
// A command on stdin is four 64-bit words, COUNT, CYCLES, ENABLE and PRESSED, and COUNT bytes, which are sent behind
// those that have not been yet. The core runs until it has sent a byte, but for no more than CYCLES. The answer on
// stdout is six words: cycles that it has run, the led, and how many there are of what follows, each in 64-bit words:
// bytes received, cycles in which bytes began to be sent and to be received, beats that the accelerator took.

#include "Vtop.h"

#include <deque>

namespace {

// Cycles per bit, and bits of a byte on the line: start, eight of data, stop.
constexpr uint64_t DIVIDER = BIT_CYCLES;
constexpr int BITS = 10;

using Words = std::vector<uint64_t>;

bool read_all(void* data, size_t size) { return std::fread(data, 1, size, stdin) == size; }
void write_all(const Words& words) { std::fwrite(words.data(), sizeof words[0], words.size(), stdout); }

}  // namespace

int main() {
    VerilatedContext context;
    Vtop top{&context, "TOP"};
    std::deque<uint8_t> outgoing;
    uint64_t cycle = 0, sent_at = 0, received_at = 0;
    int sent_bits = BITS, received_bits = BITS, sent = 0, received = 0;
    top.rst = 0;
    top.clk = 0;
    top.rx = 1;
    top.eval();
    bool parity = top.parity;

    uint64_t command[4];
    while (read_all(command, sizeof command)) {
        std::vector<uint8_t> bytes(command[0]);
        if (!read_all(bytes.data(), bytes.size())) return 2;
        outgoing.insert(outgoing.end(), bytes.begin(), bytes.end());
        Words incoming, request_starts, reply_starts, beats;
        for (const uint64_t end = cycle + command[1]; cycle < end && incoming.empty(); ++cycle) {
            if (cycle >= sent_at && sent_bits == BITS && !outgoing.empty()) {
                sent = 0x200 | outgoing.front() << 1;
                outgoing.pop_front();
                request_starts.push_back(cycle);
                sent_bits = 0;
                sent_at = cycle;
            }
            if (cycle == sent_at && sent_bits < BITS) {
                top.rx = sent >> sent_bits++ & 1;
                sent_at += DIVIDER;
            }
            top.enable = command[2];
            top.rst = command[3];
            top.clk = 0;
            top.eval();
            top.clk = 1;
            top.eval();
            if (top.parity != parity) {
                parity = top.parity;
                beats.push_back(top.beat);
            }
            if (received_bits == BITS && !top.tx) {
                reply_starts.push_back(cycle);
                received_bits = received = 0;
                received_at = cycle + DIVIDER / 2;
            }
            if (received_bits < BITS && cycle == received_at) {
                received |= top.tx << received_bits++;
                received_at += DIVIDER;
                // A byte without its stop bit is one that no byte is.
                if (received_bits == BITS) incoming.push_back(received & 0x200 ? received >> 1 & 0xff : 256);
            }
        }
        write_all({cycle, top.led, incoming.size(), request_starts.size(), reply_starts.size(), beats.size()});
        for (const Words* words : {&incoming, &request_starts, &reply_starts, &beats}) write_all(*words);
        if (std::fflush(stdout)) return 2;
    }
    top.final();
    return 0;
}
