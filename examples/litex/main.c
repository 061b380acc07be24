/* Feeds frames to the accelerator through its registers, and prints the class of each.
 *
 * Runs from ROM without any library; csr.h is LiteX's, frames.h is made by soc.py, model.h and
 * registers.h are the build's. */
#include <stdint.h>

#include "generated/csr.h"
#include "frames.h"
#include "generated/mem.h"
#include "model.h"
#include "registers.h"

#define REGISTER(name) (*(volatile uint32_t *)(ACCELERATOR_BASE + (name)))
#define WORDS(bytes) (((bytes) + 3) / 4)

__attribute__((naked, section(".start"))) void _start(void) {
    __asm__ volatile("mv sp, %0\n j main" ::"r"(MAIN_STACK));
}

static void print(const char *text) {
    for (; *text; text++) {
        while (uart_txfull_read()) {}
        uart_rxtx_write(*text);
    }
}

static void run(const uint32_t *frame, uint32_t *result) {
    for (unsigned n = 0; n < WORDS(MODEL_INPUT_BYTES); n++) {
        while (!REGISTER(NET_INPUT_FREE)) {}
        REGISTER(NET_INPUT) = frame[n];
    }
    while (!accelerator_ev_pending_read()) {}
    REGISTER(NET_INTERRUPT) = NET_INTERRUPT_DONE_MASK;
    for (unsigned n = 0; n < WORDS(MODEL_OUTPUT_BYTES); n++) {
        while (!REGISTER(NET_RESULT_READY)) {}
        result[n] = REGISTER(NET_RESULT);
    }
}

int main(void) {
    uint32_t result[WORDS(MODEL_OUTPUT_BYTES)];
    if (REGISTER(NET_ID) != NET_ID_INIT || REGISTER(NET_HASH) != NET_HASH_INIT) {
        print("another build\n");
    } else {
        REGISTER(NET_INTERRUPT_ENABLE) = NET_INTERRUPT_ENABLE_DONE_MASK;
        for (unsigned n = 0; n < FRAMES; n++) {
            const model_output_code *codes = (const model_output_code *)result;
            unsigned best = 0;
            run(frames[n], result);
            for (unsigned k = 1; k < MODEL_OUTPUT_CODES; k++) {
                if (codes[k] > codes[best]) best = k;
            }
            print((char[]){'c', 'l', 'a', 's', 's', ' ', '0' + best, '\n', 0});
        }
    }
    print("done\n");
    for (;;) {}
}
