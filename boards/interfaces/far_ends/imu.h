// A sensor with registers behind two wires (I2C). Its arguments are how many readings it answers before it acknowledges
// nothing any more, its address, the register that tells what it is, what that holds, the register of its first number,
// how many numbers are read at once, and the numbers of one reading after the other; those of further readings are 0.
// The upper byte of a number comes first. What is written is acknowledged. A report is 64 bits of the cycle, and three
// bytes: its sort, then of sort 0 a register and its value that was written; of sort 1, the end of a reading, two of 0;
// of sort 2 the pin for errors, and a byte of 0.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class ImuFarEnd final : public FarEnd {
public:
    explicit ImuFarEnd(const std::vector<double>& given)
        : m_answered(given[0]), m_address(whole(given[1])), m_identity(whole(given[2])), m_value(whole(given[3])),
          m_first(whole(given[4])), m_words(whole(given[5])), m_numbers(given.begin() + 6, given.end()) {}

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
        if (top.imu_error != m_error) report(cycle, 2, m_error = top.imu_error, 0);
    }

private:
    static uint64_t whole(double value) { return static_cast<uint64_t>(value); }

    void report(uint64_t cycle, uint8_t sort, uint8_t first, uint8_t second) {
        for (int n = 0; n < 8; ++n) bytes.push_back(cycle >> 8 * n);
        for (const uint8_t byte : {sort, first, second}) bytes.push_back(byte);
    }

    // The clock falls: behind the eighth bit comes an acknowledgement, behind the ninth another byte.
    void falls(uint64_t cycle) {
        m_low = false;
        if (m_bit == 8 && !m_sends) {
            take(cycle);
            m_low = m_active;
        } else if (m_bit == 9) {
            m_bit = 0;
            if (m_sends) {
                ++m_register;
                if (!m_acknowledged) end(cycle);
            } else {
                m_sends = m_count == 1 && m_shift == (m_address << 1 | 1);
                m_begin = m_register;
            }
        }
        if (m_active && m_sends && m_bit < 8) m_low = !(byte() >> (7 - m_bit) & 1);
    }

    void end(uint64_t cycle) {
        m_active = false;
        if (m_begin != m_first) return;
        ++m_reading;
        report(cycle, 1, 0, 0);
    }

    void take(uint64_t cycle) {
        if (m_count == 0) m_active = m_shift >> 1 == m_address && static_cast<double>(m_reading) < m_answered;
        else if (m_count == 1) m_register = m_shift;
        else report(cycle, 0, m_register++, m_shift);
        ++m_count;
    }

    uint8_t byte() const {
        if (m_register == m_identity) return m_value;
        const uint64_t place = m_register - m_first, at = m_reading * m_words + place / 2;
        if (m_register < m_first || place >= 2 * m_words || at >= m_numbers.size()) return 0;
        const auto number = static_cast<int16_t>(m_numbers[at]);
        return static_cast<uint16_t>(number) >> (place % 2 ? 0 : 8);
    }

    double m_answered;
    uint64_t m_address, m_identity, m_value, m_first, m_words;
    std::vector<double> m_numbers;
    uint64_t m_reading = 0;
    int m_bit = 0, m_count = 0;
    uint8_t m_shift = 0, m_register = 0, m_begin = 0;
    bool m_scl = true, m_sda = true, m_active = false, m_sends = false, m_low = false, m_acknowledged = false;
    bool m_error = false;
};

}  // namespace nnef_hw
