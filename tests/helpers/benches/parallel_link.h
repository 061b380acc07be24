// The host's side of a parallel link. Argument: cycles from byte to byte.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class ParallelFarEnd final : public LinkFarEnd {
public:
    explicit ParallelFarEnd(const std::vector<double>& arguments) : m_spacing(arguments.at(0)) {}

    void send(std::vector<uint8_t> bytes) override {
        m_sent = std::move(bytes);
        m_position = 0;
    }
    bool done(uint64_t cycle) const override { return m_position == m_sent.size() && cycle >= m_next; }

    void drive(Vtop& top, uint64_t cycle) override {
        if (cycle < m_next || m_position == m_sent.size()) return;
        top.host_data = m_sent[m_position++];
        top.host_strobe = m_strobe = !m_strobe;
        m_next = cycle + m_spacing;
    }
    void sample(const Vtop& top, uint64_t) override {
        if (top.board_strobe == m_before) return;
        m_before = top.board_strobe;
        bytes.push_back(top.board_data);
    }

private:
    uint64_t m_spacing, m_next = 0;
    std::vector<uint8_t> m_sent;
    size_t m_position = 0;
    bool m_strobe = false, m_before = false;
};

}  // namespace nnef_hw
