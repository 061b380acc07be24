// A microphone with PDM whose channel is chosen by a pin at ground. It plays its arguments, 32 bits in each, the first
// one lowest, then silence. A bit is there while the clock is low; while it is high, the line has the opposite of it.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class PdmFarEnd final : public FarEnd {
public:
    explicit PdmFarEnd(const std::vector<double>& words) : m_words(words) {}

    void drive(Vtop& top, uint64_t) override { top.pdm_data = m_bit != m_clk; }

    void sample(const Vtop& top, uint64_t) override {
        if (m_clk && !top.pdm_clk) {
            const size_t word = m_next / 32;
            m_bit = word < m_words.size() ? static_cast<uint32_t>(m_words[word]) >> m_next % 32 & 1 : m_next & 1;
            ++m_next;
        }
        m_clk = top.pdm_clk;
    }

private:
    std::vector<double> m_words;
    size_t m_next = 0;
    bool m_clk = false, m_bit = false;
};

}  // namespace nnef_hw
