// A camera with a parallel port. Its arguments: whether it acknowledges, its address, bytes that have to be written to
// registers before it sends, data lines, VSYNC's level in pictures, rows, bytes of a line, cycles of a pixel clock,
// cycles from a line to the next one, lines from a picture to the next one, number of pictures, the cycle from which it sends
// them at the earliest, and their bytes. It sends them one after the other, and then none. What it reports, 64 bits
// of the cycle each, a sort and a byte: 0, a byte that was written to its registers; 1, a picture that it begins; 2,
// a level of the board's pin for errors that is another one.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class DvpFarEnd final : public FarEnd {
public:
    explicit DvpFarEnd(const std::vector<double>& given)
        : m_answers(given[0] != 0), m_address(whole(given[1])), m_writes(whole(given[2])),
          m_lines(whole(given[3])), m_in_frame(given[4] != 0), m_rows(whole(given[5])),
          m_bytes(whole(given[6])), m_period(whole(given[7])), m_line(whole(given[8])),
          m_all_lines(whole(given[9])), m_pictures(whole(given[10])),
          m_begin(whole(given[11])), m_data(given.begin() + 12, given.end()) {}

    void drive(Vtop& top, uint64_t) override {
        top.cam_pclk = m_pclk;
        top.cam_vsync = m_vsync;
        top.cam_href = m_href;
        top.cam_data = m_out;
        top.cam_sda_far = m_low;
    }

    void sample(const Vtop& top, uint64_t cycle) override {
        wires(top.cam_scl, top.cam_sda, cycle);
        picture(cycle);
        if (m_error != top.cam_error) report(cycle, 2, top.cam_error);
        m_error = top.cam_error;
    }

private:
    static uint64_t whole(double value) { return static_cast<uint64_t>(value); }

    void report(uint64_t cycle, uint8_t sort, uint8_t value) {
        for (int n = 0; n < 8; ++n) bytes.push_back(cycle >> 8 * n);
        bytes.push_back(sort);
        bytes.push_back(value);
    }

    // Registers: bytes of nine bits, of which the last one acknowledges, between a start and a stop.
    void wires(bool scl, bool sda, uint64_t cycle) {
        if (scl && m_scl && sda != m_sda) {
            m_active = !sda;
            m_bit = 0;
            m_first = true;
            m_low = false;
        } else if (scl && !m_scl && m_active) {
            if (m_bit < 8) m_shift = m_shift << 1 | sda;
            ++m_bit;
        } else if (!scl && m_scl && m_active && m_bit == 8) {
            acknowledge(cycle);
        } else if (!scl && m_scl && m_active && m_bit == 9) {
            m_active = m_low;
            m_low = false;
            m_bit = 0;
        }
        m_scl = scl;
        m_sda = sda;
    }

    void acknowledge(uint64_t cycle) {
        if (m_first) {
            m_low = m_answers && m_shift == (m_address << 1);
        } else {
            report(cycle, 0, m_shift);
            ++m_written;
            m_low = true;
        }
        m_first = false;
    }

    // Pictures: a byte, or each half of one, changes as the pixel clock falls.
    void picture(uint64_t cycle) {
        if (m_written < m_writes || m_number == m_pictures || cycle < m_begin) {
            m_vsync = !m_in_frame;
            return;
        }
        const uint64_t line = m_time / m_line, place = m_time % m_line;
        const uint64_t halves = m_lines == 4 ? 2 : 1, first = m_all_lines - m_rows;
        if (m_time == 0) report(cycle, 1, static_cast<uint8_t>(m_number));
        // before and behind the rows a few lines are blank
        const bool is_row = line >= first && place / m_period < m_bytes * halves;
        m_vsync = (line >= first / 2) == m_in_frame;
        m_href = is_row;
        m_pclk = is_row && place % m_period >= m_period / 2;
        m_out = 0;
        if (is_row) {
            const uint64_t item = place / m_period;
            const size_t at = (m_number * m_rows + line - first) * m_bytes + item / halves;
            const auto byte = static_cast<uint8_t>(m_data[at]);
            m_out = halves == 1 ? byte : item % 2 ? byte & 15 : byte >> 4;
        }
        if (++m_time == m_line * m_all_lines) {
            m_time = 0;
            ++m_number;
        }
    }

    bool m_answers;
    uint64_t m_address, m_writes, m_lines;
    bool m_in_frame;
    uint64_t m_rows, m_bytes, m_period, m_line, m_all_lines, m_pictures, m_begin;
    std::vector<double> m_data;
    uint64_t m_written = 0, m_time = 0, m_number = 0;
    int m_bit = 0;
    uint8_t m_shift = 0, m_out = 0;
    bool m_scl = true, m_sda = true, m_first = false, m_active = false, m_low = false;
    bool m_pclk = false, m_href = false, m_vsync = false, m_error = false;
};

}  // namespace nnef_hw
