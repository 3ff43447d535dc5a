#include "base/wire.h"

uint64_t wire_read_varint(struct wire_reader *r)
{
    uint64_t value = 0;
    const uint8_t *at = r->at;
    for (unsigned i = 0; !r->bad && at < r->end && i < WIRE_VARINT_MAX; i++) {
        uint8_t byte = *at++;
        bool overlong = (i > 0 && byte == 0) || (i == WIRE_VARINT_MAX - 1 && byte > 1);
        if (overlong)
            break;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            r->at = at;
            return value;
        }
    }
    r->bad = true;
    return 0;
}

void wire_write_varint(struct wire_writer *w, uint64_t value)
{
    uint8_t packed[WIRE_VARINT_MAX];
    unsigned len = 0;
    while (value >= 0x80) {
        packed[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    packed[len++] = (uint8_t)value;
    wire_write_bytes(w, packed, len);
}
