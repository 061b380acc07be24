/* Run frames through a board: host PORT [PATIENCE] <frames >results
 *
 * For one build, of whose board/model.h it has the hash, the baud rate and the sizes of frames:
 * cc -std=c99 -I BUILD/board nnef_hw.c main.c -o host
 * PATIENCE multiplies all waiting, for a simulated board: simulated_board.py starts one, and prints
 * its PORT and PATIENCE. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "model.h"
#include "nnef_hw.h"

/* The system's name of a rate: B3000000. Of others a board cannot be reached with termios. */
#define SPEED_OF(baud) B##baud
#define SPEED(baud) SPEED_OF(baud)

static void write_port(void *line, const uint8_t *bytes, size_t count) {
    while (count) {
        ssize_t n = write(*(int *)line, bytes, count);
        if (n <= 0) exit(2);
        bytes += n;
        count -= (size_t)n;
    }
}

static int read_port(void *line, unsigned milliseconds) {
    struct pollfd port = {*(int *)line, POLLIN, 0};
    uint8_t byte;
    if (poll(&port, 1, (int)milliseconds) <= 0 || read(port.fd, &byte, 1) != 1) return -1;
    return byte;
}

static int open_port(const char *name) {
    struct termios settings;
    int port = open(name, O_RDWR | O_NOCTTY);
    if (port < 0 || tcgetattr(port, &settings)) return -1;
    cfmakeraw(&settings);
    cfsetospeed(&settings, SPEED(MODEL_BAUD));
    cfsetispeed(&settings, SPEED(MODEL_BAUD));
    return tcsetattr(port, TCSANOW, &settings) ? -1 : port;
}

int main(int argc, char **argv) {
    static uint8_t frame[MODEL_INPUT_BYTES], result[MODEL_OUTPUT_BYTES];
    if (argc < 2) return fprintf(stderr, "usage: %s PORT [PATIENCE]\n", argv[0]), 2;
    int port = open_port(argv[1]);
    if (port < 0) return perror(argv[1]), 2;

    unsigned patience = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    nnef_hw_link link = {write_port, read_port, &port, 200 * patience, 30 * patience, 0, {0}};
    nnef_hw_status status = nnef_hw_open(&link, MODEL_HASH);
    while (!status && fread(frame, 1, sizeof frame, stdin) == sizeof frame) {
        status = nnef_hw_run(&link, frame, sizeof frame, result, sizeof result);
        if (!status) fwrite(result, 1, sizeof result, stdout);
    }
    if (status) fprintf(stderr, "board: status %d\n", status);
    return status ? 1 : 0;
}
