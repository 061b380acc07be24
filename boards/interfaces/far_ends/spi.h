// The controller of a board that is an SPI peripheral, in mode 0. Argument: cycles of a period of sck, an even number.
//
// It clocks without a pause, bytes of 0 where it has nothing to say, but raises cs_n ahead of what is sent. Of what it
// gets it keeps the packets of docs/protocol.md: what is 0 between them says that the board has nothing to say.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class SpiFarEnd final : public LinkFarEnd {
public:
    explicit SpiFarEnd(const std::vector<double>& arguments) : m_half(static_cast<int>(arguments.at(0)) / 2) {}

    void send(std::vector<uint8_t> bytes) override {
        if (!bytes.empty()) m_place = m_size = 0, m_pause = PAUSE_CYCLES;
        m_sent = std::move(bytes);
        m_position = 0;
    }

    bool done(uint64_t) const override { return m_position == m_sent.size() && m_bit == 0 && m_phase == 0; }

    void drive(Vtop& top, uint64_t) override {
        const bool between = m_bit == 0 && m_phase == 0;
        top.cs_n = between && m_pause != 0;
        if (top.cs_n) return;
        if (between) m_byte = m_position < m_sent.size() ? m_sent[m_position++] : 0;
        top.sck = m_phase >= m_half;
        top.copi = m_byte >> (7 - m_bit) & 1;
    }

    void sample(const Vtop& top, uint64_t) override {
        if (top.cs_n) {
            --m_pause;
            return;
        }
        // the level before the rising edge
        if (m_phase == m_half - 1) m_received = m_received << 1 | (top.cipo & 1);
        if (++m_phase < 2 * m_half) return;
        m_phase = 0;
        if (++m_bit < 8) return;
        m_bit = 0;
        take(m_received & 0xff);
    }

private:
    static constexpr uint8_t START = 0xA5;
    static constexpr int PAUSE_CYCLES = 16, HEADER_BYTES = 5, CRC_BYTES = 2;

    void take(uint8_t byte) {
        if (m_place == 0 && byte == 0) return;
        bytes.push_back(byte);
        if (m_place == 0 && byte != START) return;
        if (++m_place == HEADER_BYTES) m_size = HEADER_BYTES + byte + CRC_BYTES;
        if (m_place == m_size) m_place = m_size = 0;
    }

    int m_half, m_phase = 0, m_bit = 0, m_pause = 0;
    std::vector<uint8_t> m_sent;
    size_t m_position = 0;
    int m_byte = 0, m_received = 0;
    // bytes of the packet that have come, and its size once that is known
    int m_place = 0, m_size = 0;
};

}  // namespace nnef_hw
