// Runs the top of a board cycle by cycle; the other end of its UART is a pipe.
//
// Argument: cycles per bit, perhaps with a fraction. A command on stdin is two 64-bit words, COUNT and CYCLES, and
// COUNT bytes: these are sent, one behind the other; then the board runs until a byte has been received, but for no
// more than CYCLES. The answer on stdout is three words (cycles since power-on, bytes received with a broken frame
// since then, bytes received that have not been reported) and these bytes. The program ends with its input.

#include "Vtop.h"

#include <unistd.h>

namespace {

// Bits of a byte on the line: start, eight of data, stop.
constexpr int BITS = 10;

// Where bit number `bit` of a byte that began in cycle `begin` is reached; half a bit further is its middle.
class Clock {
public:
    explicit Clock(double bit_cycles) : m_bit_cycles(bit_cycles) {}
    uint64_t at(uint64_t begin, double bit) const { return begin + static_cast<uint64_t>(bit * m_bit_cycles + 0.5); }

private:
    double m_bit_cycles;
};

class Sender {
public:
    explicit Sender(Clock clock) : m_clock(clock) {}
    void send(std::vector<uint8_t> bytes) {
        m_bytes = std::move(bytes);
        m_position = 0;
        m_bit = BITS;
        m_next = 0;
    }
    bool done(uint64_t cycle) const { return m_position == m_bytes.size() && m_bit == BITS && cycle >= m_next; }
    bool level(uint64_t cycle) {
        if (cycle < m_next) return m_level;
        if (m_bit == BITS) {
            if (m_position == m_bytes.size()) return m_level = true;
            m_frame = 0x200 | m_bytes[m_position++] << 1;
            m_begin = cycle;
            m_bit = 0;
        }
        m_level = m_frame >> m_bit & 1;
        m_next = m_clock.at(m_begin, ++m_bit);
        return m_level;
    }

private:
    Clock m_clock;
    std::vector<uint8_t> m_bytes;
    size_t m_position = 0;
    int m_bit = BITS, m_frame = 0;
    uint64_t m_begin = 0, m_next = 0;
    bool m_level = true;
};

class Receiver {
public:
    explicit Receiver(Clock clock) : m_clock(clock) {}
    void sample(uint64_t cycle, bool level) {
        if (m_bit == BITS) {
            // a line that stays low has sent one broken byte, not many
            if (!level && m_was_high) {
                m_begin = cycle;
                m_bit = 0;
                m_next = m_clock.at(m_begin, 0.5);
            }
        } else if (cycle >= m_next) {
            m_frame = (m_frame & ~(1 << m_bit)) | level << m_bit;
            m_next = m_clock.at(m_begin, ++m_bit + 0.5);
            if (m_bit == BITS) finish();
        }
        m_was_high = level;
    }
    std::vector<uint8_t> bytes;
    uint64_t broken = 0;

private:
    void finish() {
        if ((m_frame & 0x201) == 0x200) bytes.push_back(m_frame >> 1 & 0xff);
        else ++broken;
    }
    Clock m_clock;
    int m_bit = BITS, m_frame = 0;
    uint64_t m_begin = 0, m_next = 0;
    bool m_was_high = true;
};

bool read_all(void* data, size_t size) { return std::fread(data, 1, size, stdin) == size; }

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    // what the model itself prints must not get between the answers
    std::FILE* answers = fdopen(dup(STDOUT_FILENO), "wb");
    if (!answers || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 2;

    const Clock clock{std::strtod(argv[1], nullptr)};
    VerilatedContext context;
    Vtop top{&context, "TOP"};
    Sender sender{clock};
    Receiver receiver{clock};
    uint64_t cycle = 0;
    const auto step = [&] {
        top.clk = 0;
        top.rx = sender.level(cycle);
        top.eval();
        top.clk = 1;
        top.eval();
        receiver.sample(cycle++, top.tx);
    };

    uint64_t command[2];
    while (read_all(command, sizeof command)) {
        std::vector<uint8_t> bytes(command[0]);
        if (!read_all(bytes.data(), bytes.size())) return 2;
        sender.send(std::move(bytes));
        while (!sender.done(cycle)) step();
        for (const uint64_t end = cycle + command[1]; receiver.bytes.empty() && cycle < end;) step();

        const uint64_t answer[3] = {cycle, receiver.broken, receiver.bytes.size()};
        std::fwrite(answer, sizeof answer, 1, answers);
        std::fwrite(receiver.bytes.data(), 1, receiver.bytes.size(), answers);
        if (std::fflush(answers)) return 2;
        receiver.bytes.clear();
    }
    top.final();
    return 0;
}
