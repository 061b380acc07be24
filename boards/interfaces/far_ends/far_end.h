// What is beyond a simulated board's pins. A far end's header defines a class of one of these two sorts, whose
// constructor takes a `const std::vector<double>&` of arguments. In every cycle the board is first driven, before the
// rising edge of its clock, then sampled, behind it. A pin is the top's port, a member of `Vtop` with its name.

#pragma once

#include "Vtop.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace nnef_hw {

class FarEnd {
public:
    virtual ~FarEnd() = default;
    virtual void drive(Vtop& top, uint64_t cycle) {}
    virtual void sample(const Vtop& top, uint64_t cycle) {}
    // What has come from the board and was not fetched yet.
    std::vector<uint8_t> bytes;
};

class LinkFarEnd : public FarEnd {
public:
    // Send bytes, one behind the other; only when all before them are done.
    virtual void send(std::vector<uint8_t> bytes) = 0;
    virtual bool done(uint64_t cycle) const = 0;
    // How many bytes the board has sent that do not keep the rules of the line.
    uint64_t broken = 0;
};

}  // namespace nnef_hw
