// Somebody who has set switches. Argument: their positions.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class SwitchesFarEnd final : public FarEnd {
public:
    explicit SwitchesFarEnd(const std::vector<double>& arguments) : m_positions(arguments.at(0)) {}
    void drive(Vtop& top, uint64_t) override { top.switches = m_positions; }

private:
    uint8_t m_positions;
};

}  // namespace nnef_hw
