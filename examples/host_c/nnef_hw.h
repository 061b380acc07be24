/* A host of an nnef-hw board for any C99 system: no allocation, no library but memmove and memcpy.
 * The packets are those of docs/protocol.md. */
#ifndef NNEF_HW_H
#define NNEF_HW_H

#include <stddef.h>
#include <stdint.h>

/* A link to one board. Fill in the first five members; the others are the link's own. */
typedef struct {
    /* Sends all bytes. */
    void (*write)(void *line, const uint8_t *bytes, size_t count);
    /* Receives a byte; -1 after so many milliseconds of silence. */
    int (*read)(void *line, unsigned milliseconds);
    void *line;
    unsigned reply_ms;   /* how long a reply may take: 200 */
    unsigned silence_ms; /* what makes the board forget an unfinished packet: 30 */
    uint8_t sequence;
    uint8_t packet[63];
} nnef_hw_link;

typedef enum {
    NNEF_HW_OK = 0,
    NNEF_HW_SILENT = -1,      /* nobody answers */
    NNEF_HW_REFUSED = -2,     /* the board does not know the request, or has lost its session */
    NNEF_HW_VERSION = -3,     /* it speaks another version of the protocol */
    NNEF_HW_OTHER_BUILD = -4, /* it runs another build */
    NNEF_HW_STALLED = -5      /* it takes no input or gives no result */
} nnef_hw_status;

/* Begin a session. hash: the 32 bytes of the build, or NULL to take any. */
nnef_hw_status nnef_hw_open(nnef_hw_link *link, const uint8_t *hash);

/* Run one frame. Its bytes and those of the result are in the order of the streams; of several inputs or
 * outputs one after the other, as in the manifest. */
nnef_hw_status nnef_hw_run(nnef_hw_link *link, const uint8_t *frame, size_t frame_bytes,
                           uint8_t *result, size_t result_bytes);

#endif
