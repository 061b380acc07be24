// A sensor with registers behind two wires (I2C). Its arguments are its address, the register of its first number, how
// many numbers an instant has, and the numbers of one instant after the other; then all are 0. A reading is of the next
// instant, the upper byte of a number first. What is written is acknowledged. It reports 64 bits of the cycle and two
// bytes, of every register and value that is written.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class ImuFarEnd final : public FarEnd {
public:
    explicit ImuFarEnd(const std::vector<double>& given)
        : m_address(whole(given[0])), m_first(whole(given[1])), m_words(whole(given[2])),
          m_numbers(given.begin() + 3, given.end()) {}

    void drive(Vtop& top, uint64_t) override { top.imu_sda_far = m_low; }

    void sample(const Vtop& top, uint64_t cycle) override {
        const bool scl = top.imu_scl, sda = top.imu_sda;
        if (scl && m_scl && sda != m_sda) {
            m_active = !sda;
            m_sends = m_low = false;
            m_bit = m_count = 0;
        } else if (scl && !m_scl && m_active) {
            if (m_bit < 8) m_shift = m_shift << 1 | sda;
            else m_acknowledged = !sda;
            ++m_bit;
        } else if (!scl && m_scl && m_active) {
            falls(cycle);
        }
        m_scl = scl;
        m_sda = sda;
    }

private:
    static uint64_t whole(double value) { return static_cast<uint64_t>(value); }

    void falls(uint64_t cycle) {
        m_low = false;
        if (m_bit == 8 && !m_sends) {
            take(cycle);
            m_low = m_active;
        } else if (m_bit == 9) {
            m_bit = 0;
            if (m_sends && !m_acknowledged) m_active = false;
            if (m_sends) ++m_register;
            else m_sends = m_count == 1 && m_shift == (m_address << 1 | 1);
            if (m_sends && !m_begun) {
                m_begun = true;
                ++m_instant;
            }
        }
        if (m_active && m_sends && m_bit < 8) m_low = !(byte() >> (7 - m_bit) & 1);
        if (!m_sends) m_begun = false;
    }

    void take(uint64_t cycle) {
        if (m_count == 0) m_active = m_shift >> 1 == m_address;
        else if (m_count == 1) m_register = m_shift;
        else {
            for (int n = 0; n < 8; ++n) bytes.push_back(cycle >> 8 * n);
            bytes.push_back(m_register++);
            bytes.push_back(m_shift);
        }
        ++m_count;
    }

    uint8_t byte() const {
        const uint64_t place = m_register - m_first, at = (m_instant - 1) * m_words + place / 2;
        if (m_register < m_first || place >= 2 * m_words || at >= m_numbers.size()) return 0;
        const auto number = static_cast<int16_t>(m_numbers[at]);
        return static_cast<uint16_t>(number) >> (place % 2 ? 0 : 8);
    }

    uint64_t m_address, m_first, m_words;
    std::vector<double> m_numbers;
    uint64_t m_instant = 0;
    int m_bit = 0, m_count = 0;
    uint8_t m_shift = 0, m_register = 0;
    bool m_scl = true, m_sda = true, m_active = false, m_sends = false, m_begun = false;
    bool m_low = false, m_acknowledged = false;
};

}  // namespace nnef_hw
