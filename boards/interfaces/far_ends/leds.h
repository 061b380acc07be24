// Somebody who looks at LEDs: the cycle of each change and the level of their pins then, 64 bits of each.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class LedsFarEnd final : public FarEnd {
public:
    explicit LedsFarEnd(const std::vector<double>&) {}

    void sample(const Vtop& top, uint64_t cycle) override {
        const uint64_t level = top.leds;
        if (level == m_level) return;
        m_level = level;
        for (const uint64_t word : {cycle, level})
            for (int shift = 0; shift < 64; shift += 8) bytes.push_back(word >> shift & 0xff);
    }

private:
    uint64_t m_level = 0;
};

}  // namespace nnef_hw
