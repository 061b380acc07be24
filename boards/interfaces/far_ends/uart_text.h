// Somebody who reads lines of text from a UART. Arguments: cycles per bit. For each line: the cycle in which its first
// character began, how many characters it has, 64 bits of each, and these.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class UartTextFarEnd final : public FarEnd {
public:
    explicit UartTextFarEnd(const std::vector<double>& arguments) : m_bit_cycles(arguments.at(0)) {}

    void sample(const Vtop& top, uint64_t cycle) override {
        const bool high = top.text;
        if (m_bit == BITS) {
            if (!high && m_was_high) {
                m_begin = cycle;
                m_bit = 0;
                if (m_line.empty()) m_first = cycle;
            }
        } else if (cycle >= m_begin + static_cast<uint64_t>((m_bit + 0.5) * m_bit_cycles)) {
            m_frame = (m_frame & ~(1 << m_bit)) | high << m_bit;
            if (++m_bit == BITS) finish();
        }
        m_was_high = high;
    }

private:
    static constexpr int BITS = 10;

    // A character that breaks the rules of the line is a question mark.
    void finish() {
        const uint8_t character = (m_frame & 0x201) == 0x200 ? m_frame >> 1 & 0xff : '?';
        if (character != '\n') {
            m_line.push_back(character);
            return;
        }
        for (const uint64_t word : {m_first, static_cast<uint64_t>(m_line.size())})
            for (int shift = 0; shift < 64; shift += 8) bytes.push_back(word >> shift & 0xff);
        bytes.insert(bytes.end(), m_line.begin(), m_line.end());
        m_line.clear();
    }

    double m_bit_cycles;
    std::vector<uint8_t> m_line;
    uint64_t m_first = 0, m_begin = 0;
    int m_bit = BITS, m_frame = 0;
    bool m_was_high = true;
};

}  // namespace nnef_hw
