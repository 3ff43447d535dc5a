/* Any bytes as a message of anti-entropy: a malformed message changes nothing, and another router
 * understands every answer. The first byte decides if all is settled. */
#include "base/err.h"
#include "tests/lib/fuzz_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct crdt_state *s = fuzz_state(1);
    struct crdt_state *peer = fuzz_state(2);
    fuzz_tell(s);
    fuzz_tell(peer);
    bool settled = data[0] % 2 == 1;
    crdt_state_cut_renew(s);
    crdt_state_cut_renew(peer);
    struct buf message = {0};
    struct buf reply = {0};
    struct crdt_reconciled r;
    struct crdt_digest before = fuzz_digest(s);
    int err =
        crdt_state_message(s, slice_of((const char *)data + 1, size - 1), settled, &reply, &r);
    struct crdt_digest after = fuzz_digest(s);
    CHECK(err == 0 || (err == ERR_SYNTAX && fuzz_same(&before, &after) && reply.len == 0));
    bool changed = !fuzz_same(&before, &after);
    struct crdt_state *at = peer;
    for (unsigned step = 0; step < 8 && reply.len > 0; step++) {
        CHECK(reply.len <= CRDT_MESSAGE_MAX);
        struct buf swap = message;
        message = reply;
        reply = swap;
        buf_clear(&reply);
        CHECK(crdt_state_message(at, buf_slice(&message), settled, &reply, &r) == 0);
        at = at == s ? peer : s;
        changed = true;
    }
    CHECK(reply.len == 0);
    if (changed) { /* the check is most of an input's time */
        crdt_state_check(s);
        crdt_state_check(peer);
    }
    buf_free(&message);
    buf_free(&reply);
    crdt_state_destroy(s);
    crdt_state_destroy(peer);
    return 0;
}
