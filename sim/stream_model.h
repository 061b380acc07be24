// A stream accelerator as the runner sees it, whatever its ports are called and however wide they are.

#pragma once

#include "verilated.h"
#ifdef TRACE_FST
#define IS_TRACED true
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif defined(TRACE_VCD)
#define IS_TRACED true
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#else
#define IS_TRACED false
class Trace;
#endif

// The payload in 64-bit words, the lowest first.
struct InputPort {
    void (*put)(const uint64_t* words);
    CData* valid;
    const CData* ready;
};
struct OutputPort {
    void (*get)(uint64_t* words);
    const CData* valid;
    CData* ready;
};

struct StreamModel {
    CData *clk, *rst;
    void (*eval)();
    void (*final)();
    void (*trace)(Trace* trace, int levels);
    const InputPort* inputs;
    const OutputPort* outputs;
    int input_count, output_count;
};

// The only one there is; it stays until the program ends.
StreamModel make_model(VerilatedContext* context);
