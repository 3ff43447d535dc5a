#include "crdt/run.h"

#include "base/check.h"
#include "base/checkpoint.h"

enum { ID_BYTES = 6, HEAD_BYTES = 8, STARTS = CHECKPOINT_MAX + CHECKPOINT_CODE_BINDING + 1 };

struct piece {
    unsigned start;
    unsigned length;
};

static uint8_t code_of(uint64_t point)
{
    return (uint8_t)(point >> 48);
}

/* The longest piece for the codes of the first points. */
static struct piece next_piece(const uint64_t *points, unsigned count)
{
    const uint8_t code = code_of(points[0]);
    unsigned same = 1;
    while (same < count && code_of(points[same]) == code)
        same++;
    unsigned first = 0; /* the ordinals with this code are first .. end - 1 */
    while (first < CHECKPOINT_MAX && checkpoint_code(first) < code)
        first++;
    unsigned end = first;
    while (end < CHECKPOINT_MAX && checkpoint_code(end) == code)
        end++;
    if (end - first < same)
        return (struct piece){.start = CHECKPOINT_MAX + code, .length = same};
    /* Chooses ordinals so that the code changes where the points' code does. */
    unsigned start = end - same;
    unsigned length = same;
    while (length < count && start + length < CHECKPOINT_MAX &&
           checkpoint_code(start + length) == code_of(points[length]))
        length++;
    return (struct piece){.start = start, .length = length};
}

static void write_pieces(struct wire_writer *w, const uint64_t *points, unsigned count)
{
    for (unsigned i = 0; i < count;) {
        struct piece piece = next_piece(points + i, count - i);
        wire_write_varint(w, piece.start);
        wire_write_varint(w, piece.length);
        i += piece.length;
    }
}

/* True if the written bytes give the same points. */
static bool reads_back(const uint8_t *at, size_t len, const uint64_t *points, unsigned count)
{
    uint64_t ids[CRDT_RUN_MAX];
    uint8_t codes[CRDT_RUN_MAX];
    struct wire_reader r = wire_reader_of(at, len);
    struct crdt_run run;
    bool whole = wire_read_varint(&r) == wire_left(&r);
    crdt_run_read(&r, &run);
    if (!whole || r.bad || run.count != count)
        return false;
    crdt_run_unpack(&run, ids, codes);
    for (unsigned i = 0; i < count; i++)
        if (crdt_point(ids[i], codes[i]) != points[i])
            return false;
    return true;
}

unsigned crdt_run_write(struct wire_writer *w, uint32_t rkey, uint32_t generation,
                        const uint64_t *points, unsigned count)
{
    size_t room = wire_room(w);
    if (room < CRDT_RUN_OVERHEAD_MAX + ID_BYTES)
        return 0;
    unsigned fit = (unsigned)((room - CRDT_RUN_OVERHEAD_MAX) / ID_BYTES);
    if (count > CRDT_RUN_MAX)
        count = CRDT_RUN_MAX;
    count = fit < count ? fit : count;
    uint8_t pieces[CRDT_RUN_MAX * 5];
    struct wire_writer p;
    size_t bytes = 0;
    for (;; count--) {
        p = wire_writer_of(pieces, sizeof pieces);
        write_pieces(&p, points, count);
        CHECK(!p.bad);
        bytes = HEAD_BYTES + wire_written(&p) + (size_t)count * ID_BYTES;
        if (wire_varint_bytes(bytes) + bytes <= room)
            break;
        /* Each point left out saves at least the bytes of an id. */
        count -= (unsigned)((wire_varint_bytes(bytes) + bytes - room - 1) / ID_BYTES / 2);
    }
    const uint8_t *start = w->at;
    wire_write_varint(w, bytes);
    wire_write_u32(w, rkey);
    wire_write_u32(w, generation);
    wire_write_bytes(w, pieces, wire_written(&p));
    for (unsigned i = 0; i < count; i++)
        wire_write_u48(w, points[i]);
    CHECK(!w->bad);
    CHECK_SLOW(reads_back(start, (size_t)(w->at - start), points, count));
    return count;
}

static struct piece read_piece(struct wire_reader *r)
{
    struct piece piece;
    piece.start = (unsigned)wire_read_varint_max(r, STARTS - 1);
    piece.length = (unsigned)wire_read_varint_max(r, CRDT_RUN_MAX);
    if (piece.length == 0 ||
        (piece.start < CHECKPOINT_MAX && piece.start + piece.length > CHECKPOINT_MAX))
        r->bad = true;
    return piece;
}

void crdt_run_read(struct wire_reader *r, struct crdt_run *out)
{
    out->rkey = wire_read_u32(r);
    out->generation = wire_read_u32(r);
    const uint8_t *pieces = r->at;
    out->count = 0;
    while (!r->bad && (size_t)out->count * ID_BYTES < wire_left(r))
        out->count += read_piece(r).length;
    if (r->bad || out->count == 0 || out->count > CRDT_RUN_MAX ||
        (size_t)out->count * ID_BYTES != wire_left(r)) {
        r->bad = true;
        return;
    }
    out->pieces = slice_of((const char *)pieces, (size_t)(r->at - pieces));
    out->ids = wire_read_bytes(r, (size_t)out->count * ID_BYTES);
}

void crdt_run_unpack(const struct crdt_run *run, uint64_t ids[CRDT_RUN_MAX],
                     uint8_t codes[CRDT_RUN_MAX])
{
    struct wire_reader p = wire_reader_of(run->pieces.at, run->pieces.len);
    for (unsigned i = 0; i < run->count;) {
        struct piece piece = read_piece(&p);
        CHECK(!p.bad && i + piece.length <= run->count);
        for (unsigned n = 0; n < piece.length; n++, i++)
            codes[i] = piece.start < CHECKPOINT_MAX ? checkpoint_code(piece.start + n)
                                                    : (uint8_t)(piece.start - CHECKPOINT_MAX);
    }
    struct wire_reader r = wire_reader_of(run->ids.at, run->ids.len);
    for (unsigned i = 0; i < run->count; i++)
        ids[i] = wire_read_u48(&r);
}
