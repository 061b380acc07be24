/* Run frames through a board: main PORT BAUD HASH FRAME_BYTES RESULT_BYTES [PATIENCE] <frames >results
 *
 * PATIENCE multiplies all waiting, for the simulated board. HASH is that of the build, in hex:
 * python -c "import sys, nnef_hw.manifest as m, pathlib as p;
 *            print(m.read_manifest(p.Path(sys.argv[1])).hash.hex())" BUILD */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "nnef_hw.h"

enum { MAX_FRAME = 65536 };

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

static int open_port(const char *name, long baud) {
    struct termios settings;
    int port = open(name, O_RDWR | O_NOCTTY);
    if (port < 0 || tcgetattr(port, &settings)) return -1;
    cfmakeraw(&settings);
    speed_t speed = baud == 3000000 ? B3000000 : baud == 1000000 ? B1000000 : B115200;
    cfsetospeed(&settings, speed);
    cfsetispeed(&settings, speed);
    return tcsetattr(port, TCSANOW, &settings) ? -1 : port;
}

int main(int argc, char **argv) {
    static uint8_t frame[MAX_FRAME], result[MAX_FRAME];
    uint8_t hash[32];
    if (argc < 6) return fprintf(stderr, "usage: %s PORT BAUD HASH FRAME RESULT\n", argv[0]), 2;
    for (int n = 0; n < 32; n++) {
        unsigned byte;
        if (sscanf(argv[3] + 2 * n, "%2x", &byte) != 1) return fprintf(stderr, "bad hash\n"), 2;
        hash[n] = (uint8_t)byte;
    }
    size_t frame_bytes = strtoul(argv[4], NULL, 10), result_bytes = strtoul(argv[5], NULL, 10);
    if (frame_bytes > MAX_FRAME || result_bytes > MAX_FRAME) return 2;
    int port = open_port(argv[1], atol(argv[2]));
    if (port < 0) return perror(argv[1]), 2;

    unsigned patience = argc > 6 ? (unsigned)atoi(argv[6]) : 1;
    nnef_hw_link link = {write_port, read_port, &port, 200 * patience, 30 * patience, 0, {0}};
    nnef_hw_status status = nnef_hw_open(&link, hash);
    while (!status && fread(frame, 1, frame_bytes, stdin) == frame_bytes) {
        status = nnef_hw_run(&link, frame, frame_bytes, result, result_bytes);
        if (!status) fwrite(result, 1, result_bytes, stdout);
    }
    if (status) fprintf(stderr, "board: status %d\n", status);
    return status ? 1 : 0;
}
