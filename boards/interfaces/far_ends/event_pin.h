// Somebody who watches a pin or an LED: the cycle of each change and the level then, 64 bits of each. Which of both a
// board's top has is known where the class is used. A level is 1 where the pin differs from what it was at first, since
// a board may have an LED that is lit by a low level.

#pragma once

#include "far_end.h"

namespace nnef_hw {

class LevelFarEnd : public FarEnd {
protected:
    void see(uint64_t pin, uint64_t cycle) {
        if (m_off > 1) m_off = pin;
        const uint64_t level = pin != m_off;
        if (level == m_level) return;
        m_level = level;
        for (const uint64_t word : {cycle, level})
            for (int shift = 0; shift < 64; shift += 8) bytes.push_back(word >> shift & 0xff);
    }

private:
    uint64_t m_level = 0, m_off = 2;
};

template <class Top>
class EventPinFarEnd final : public LevelFarEnd {
public:
    explicit EventPinFarEnd(const std::vector<double>&) {}

    void sample(const Top& top, uint64_t cycle) override { see(top.alert, cycle); }
};

template <class Top>
class EventLedFarEnd final : public LevelFarEnd {
public:
    explicit EventLedFarEnd(const std::vector<double>&) {}

    void sample(const Top& top, uint64_t cycle) override { see(top.leds, cycle); }
};

}  // namespace nnef_hw
