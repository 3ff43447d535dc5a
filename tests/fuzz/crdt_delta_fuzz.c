/* Any bytes as a delta: a malformed delta changes nothing; joining any other twice is the same as
 * once. */
#include "base/err.h"
#include "tests/lib/fuzz_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct crdt_state *s = fuzz_state(1);
    struct slice delta = slice_of((const char *)data, size);
    struct crdt_origin origin = {.router = 2, .epoch = 1, .seq = 7};
    struct crdt_digest before = fuzz_digest(s);
    int err = crdt_state_apply(s, &origin, delta);
    struct crdt_digest once = fuzz_digest(s);
    CHECK(err == 0 || (err == ERR_SYNTAX && fuzz_same(&before, &once)));
    if (!fuzz_same(&before, &once))
        crdt_state_check(s); /* the check is most of an input's time */
    if (err == 0 && fuzz_roomy(s)) {
        CHECK(crdt_state_apply(s, &origin, delta) == 0);
        struct crdt_digest twice = fuzz_digest(s);
        CHECK(fuzz_same(&once, &twice));
    }
    crdt_state_destroy(s);
    return 0;
}
