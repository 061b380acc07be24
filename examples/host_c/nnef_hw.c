#include "nnef_hw.h"

#include <string.h>

enum { START = 0xA5, HEADER = 5, CRC = 2, MAX_PAYLOAD = 56, VERSION = 1 };
enum { IDENTIFY = 0x01, ABORT = 0x02, DATA = 0x04, DATA_END = 0x05, READ = 0x06 };
enum { ACK = 0x80, NAK = 0x81, BUSY = 0x82, IDENTITY = 0x83, RESULT = 0x84 };
enum { DAMAGED = 1, ATTEMPTS = 11, MAX_GARBAGE = 1024, MAX_POLLS = 1000000 };

static uint16_t crc16(const uint8_t *bytes, size_t count) {
    uint16_t crc = 0xFFFF;
    while (count--) {
        crc ^= (uint16_t)(*bytes++ << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

/* Receive the reply to the last request into link->packet; 0 if none comes. */
static int receive(nnef_hw_link *link) {
    uint8_t *packet = link->packet;
    size_t have = 0;
    for (int total = 0; total < MAX_GARBAGE; total++) {
        int byte = link->read(link->line, link->reply_ms);
        if (byte < 0) return 0;
        packet[have++] = (uint8_t)byte;
        for (;;) {
            size_t drop = 0, length = have >= HEADER ? packet[4] + HEADER + CRC : 0;
            while (drop < have && packet[drop] != START) drop++;
            if (!drop) {
                if (have < HEADER) break;
                if (packet[4] > MAX_PAYLOAD) drop = 1;
                else if (have < length) break;
                else if (crc16(packet + 1, length - 1)) drop = 1; /* noise that looked like a start */
                else if (packet[2] == link->sequence || (packet[1] == NAK && packet[3] == DAMAGED))
                    return 1;
                else drop = length; /* the reply to an earlier request */
            }
            have -= drop;
            memmove(packet, packet + drop, have);
        }
    }
    return 0;
}

/* Send a request until its reply, of one of two types, is in link->packet. */
static nnef_hw_status request(nnef_hw_link *link, uint8_t type, const uint8_t *payload, size_t count,
                              uint8_t expected, uint8_t also) {
    uint8_t packet[HEADER + MAX_PAYLOAD + CRC];
    packet[0] = START;
    packet[1] = type;
    packet[2] = ++link->sequence;
    packet[3] = 0;
    packet[4] = (uint8_t)count;
    if (count) memcpy(packet + HEADER, payload, count);
    uint16_t crc = crc16(packet + 1, HEADER - 1 + count);
    packet[HEADER + count] = (uint8_t)(crc >> 8);
    packet[HEADER + count + 1] = (uint8_t)crc;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        link->write(link->line, packet, HEADER + count + CRC);
        if (receive(link)) {
            if (link->packet[1] == expected || link->packet[1] == also) return NNEF_HW_OK;
            if (link->packet[1] == NAK && link->packet[3] != DAMAGED) return NNEF_HW_REFUSED;
        }
        for (int n = 0; n < MAX_GARBAGE && link->read(link->line, link->silence_ms) >= 0; n++) {}
    }
    return NNEF_HW_SILENT;
}

nnef_hw_status nnef_hw_open(nnef_hw_link *link, const uint8_t *hash) {
    for (int n = 0; n < MAX_GARBAGE && link->read(link->line, link->silence_ms) >= 0; n++) {}
    nnef_hw_status status = request(link, IDENTIFY, NULL, 0, IDENTITY, IDENTITY);
    if (status) return status;
    const uint8_t *identity = link->packet + HEADER;
    if (link->packet[4] < 40 || identity[0] != VERSION) return NNEF_HW_VERSION;
    if (hash && memcmp(identity + 8, hash, 32)) return NNEF_HW_OTHER_BUILD;
    return request(link, ABORT, NULL, 0, ACK, ACK);
}

/* Take the results that are ready: at most `room` bytes, added to `*have`. */
static nnef_hw_status take(nnef_hw_link *link, uint8_t *result, size_t room, size_t *have) {
    nnef_hw_status status = request(link, READ, NULL, 0, RESULT, RESULT);
    if (status) return status;
    size_t count = link->packet[4];
    if (count > room - *have) return NNEF_HW_OTHER_BUILD; /* more than a result of this build */
    memcpy(result + *have, link->packet + HEADER, count);
    *have += count;
    return NNEF_HW_OK;
}

nnef_hw_status nnef_hw_run(nnef_hw_link *link, const uint8_t *frame, size_t frame_bytes,
                           uint8_t *result, size_t result_bytes) {
    size_t have = 0;
    nnef_hw_status status;
    for (size_t sent = 0; sent < frame_bytes;) {
        size_t count = frame_bytes - sent < MAX_PAYLOAD ? frame_bytes - sent : MAX_PAYLOAD;
        uint8_t type = sent + count == frame_bytes ? DATA_END : DATA;
        long polls = 0;
        while ((status = request(link, type, frame + sent, count, ACK, BUSY)) == NNEF_HW_OK
               && link->packet[1] == BUSY) {
            if (++polls > MAX_POLLS) return NNEF_HW_STALLED;
            if ((status = take(link, result, result_bytes, &have))) return status;
        }
        if (status) return status;
        sent += count;
    }
    for (long polls = 0; have < result_bytes; polls++) {
        if (polls > MAX_POLLS) return NNEF_HW_STALLED;
        if ((status = take(link, result, result_bytes, &have))) return status;
    }
    return NNEF_HW_OK;
}
