/* Any bytes as a chunk of a snapshot: a malformed chunk changes nothing, others join; and the
 * result can be sent whole to a new router. */
#include "base/err.h"
#include "tests/lib/fuzz_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell_newcomer(const struct crdt_state *s)
{
    struct crdt_state *newcomer = fuzz_state(2);
    fuzz_tell(newcomer);
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 0);
    struct buf chunk = {0};
    while (crdt_snapshot_next(s, &c, &chunk) == 1) {
        CHECK(chunk.len <= CRDT_CHUNK_MAX);
        CHECK(crdt_snapshot_apply(newcomer, buf_slice(&chunk)) == 0);
        buf_clear(&chunk);
    }
    crdt_state_check(newcomer);
    buf_free(&chunk);
    crdt_state_destroy(newcomer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct crdt_state *s = fuzz_state(1);
    struct slice chunk = slice_of((const char *)data, size);
    struct crdt_digest before = fuzz_digest(s);
    int err = crdt_snapshot_apply(s, chunk);
    struct crdt_digest once = fuzz_digest(s);
    CHECK(err == 0 || (err == ERR_SYNTAX && fuzz_same(&before, &once)));
    if (!fuzz_same(&before, &once))
        crdt_state_check(s); /* the check is most of an input's time */
    if (err == 0 && fuzz_roomy(s)) {
        CHECK(crdt_snapshot_apply(s, chunk) == 0);
        struct crdt_digest twice = fuzz_digest(s);
        CHECK(fuzz_same(&once, &twice));
        tell_newcomer(s);
    }
    crdt_state_destroy(s);
    return 0;
}
