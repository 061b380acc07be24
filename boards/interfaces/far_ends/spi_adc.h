// A converter of 12 bits with SPI: bits of 0 before the code, which are there from the falling chip select on, and a
// further bit from every falling edge of the clock on. It plays its arguments, codes, then the middle of its range.

#pragma once

#include "far_end.h"

namespace nnef_hw {

template <unsigned leading>
class SpiAdcFarEnd final : public FarEnd {
public:
    explicit SpiAdcFarEnd(const std::vector<double>& codes) : m_codes(codes) {}

    void drive(Vtop& top, uint64_t) override { top.adc_data = m_data; }

    void sample(const Vtop& top, uint64_t) override {
        if (m_cs_n && !top.adc_cs_n) {
            m_bit = 0;
            m_code = m_next < m_codes.size() ? static_cast<unsigned>(m_codes[m_next]) : 2048;
            ++m_next;
        } else if (m_sck && !top.adc_sck && !top.adc_cs_n) {
            ++m_bit;
        }
        m_cs_n = top.adc_cs_n;
        m_sck = top.adc_sck;
        // behind the code come its bits once more, the lowest but one first
        const unsigned place = m_bit - leading;
        if (m_bit < leading) m_data = false;
        else if (place < 12) m_data = m_code >> (11 - place) & 1;
        else m_data = m_code >> (place - 11) & 1;
    }

private:
    std::vector<double> m_codes;
    size_t m_next = 0;
    unsigned m_bit = 0, m_code = 0;
    bool m_cs_n = true, m_sck = false, m_data = false;
};

}  // namespace nnef_hw
