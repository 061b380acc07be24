// The other end of a UART. Argument: cycles per bit, perhaps with a fraction.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class UartFarEnd final : public LinkFarEnd {
public:
    explicit UartFarEnd(const std::vector<double>& arguments) : m_bit_cycles(arguments.at(0)) {}

    void send(std::vector<uint8_t> bytes) override {
        m_sent = std::move(bytes);
        m_position = 0;
        m_send_bit = BITS;
        m_send_next = 0;
    }

    bool done(uint64_t cycle) const override {
        return m_position == m_sent.size() && m_send_bit == BITS && cycle >= m_send_next;
    }

    void drive(Vtop& top, uint64_t cycle) override { top.rx = level(cycle); }

    void sample(const Vtop& top, uint64_t cycle) override {
        const bool high = top.tx;
        if (m_bit == BITS) {
            // a line that stays low has sent one broken byte, not many
            if (!high && m_was_high) {
                m_begin = cycle;
                m_bit = 0;
                m_next = at(m_begin, 0.5);
            }
        } else if (cycle >= m_next) {
            m_frame = (m_frame & ~(1 << m_bit)) | high << m_bit;
            m_next = at(m_begin, ++m_bit + 0.5);
            if (m_bit == BITS) finish();
        }
        m_was_high = high;
    }

private:
    // Bits of a byte on the line: start, eight of data, stop.
    static constexpr int BITS = 10;

    // Where bit number `bit` of a byte that began in cycle `begin` is reached; half a bit further is its middle.
    uint64_t at(uint64_t begin, double bit) const { return begin + static_cast<uint64_t>(bit * m_bit_cycles + 0.5); }

    bool level(uint64_t cycle) {
        if (cycle < m_send_next) return m_level;
        if (m_send_bit == BITS) {
            if (m_position == m_sent.size()) return m_level = true;
            m_send_frame = 0x200 | m_sent[m_position++] << 1;
            m_send_begin = cycle;
            m_send_bit = 0;
        }
        m_level = m_send_frame >> m_send_bit & 1;
        m_send_next = at(m_send_begin, ++m_send_bit);
        return m_level;
    }

    void finish() {
        if ((m_frame & 0x201) == 0x200) bytes.push_back(m_frame >> 1 & 0xff);
        else ++broken;
    }

    double m_bit_cycles;

    std::vector<uint8_t> m_sent;
    size_t m_position = 0;
    int m_send_bit = BITS, m_send_frame = 0;
    uint64_t m_send_begin = 0, m_send_next = 0;
    bool m_level = true;

    int m_bit = BITS, m_frame = 0;
    uint64_t m_begin = 0, m_next = 0;
    bool m_was_high = true;
};

}  // namespace nnef_hw
