// A microphone with I2S as a slave: it plays its arguments, samples of 16 bits, on the left channel, then silence.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class I2sFarEnd final : public FarEnd {
public:
    explicit I2sFarEnd(const std::vector<double>& samples) : m_samples(samples) {}

    void drive(Vtop& top, uint64_t) override { top.i2s_data = m_data; }

    void sample(const Vtop& top, uint64_t) override {
        if (m_bclk && !top.i2s_bclk) fall(top.i2s_ws);
        m_bclk = top.i2s_bclk;
    }

private:
    // With every falling edge comes a bit, the first one an edge behind that of the word select.
    void fall(bool ws) {
        m_data = m_left && m_bit < 24 ? m_word >> (23 - m_bit) & 1 : 0;
        ++m_bit;
        if (ws == m_ws) return;
        m_ws = ws;
        m_left = !ws;
        m_bit = 0;
        if (m_left) {
            const int sample = m_next < m_samples.size() ? static_cast<int>(m_samples[m_next]) : 0;
            m_word = static_cast<uint32_t>(sample) << 8 & 0xffffff;
            ++m_next;
        }
    }

    std::vector<double> m_samples;
    size_t m_next = 0;
    uint32_t m_word = 0;
    unsigned m_bit = 0;
    bool m_bclk = false, m_ws = false, m_left = false, m_data = false;
};

}  // namespace nnef_hw
