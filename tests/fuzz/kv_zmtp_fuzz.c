/* The bytes of any peer of kv-events-listen, in pieces: the first byte is the pieces' length. */
#include "base/check.h"
#include "node/kv/zmtp.h"
#include "tests/lib/zmtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

/* False: the connection is over. */
static bool take(struct kv_zmtp *z, struct slice in, size_t all)
{
    while (in.len > 0) {
        size_t before = in.len;
        int event = kv_zmtp_take(z, &in);
        CHECK(event == ERR_SYNTAX || event == ERR_LIMIT || event >= 0);
        if (event < 0)
            return false;
        CHECK(in.len < before && kv_zmtp_held(z) <= 2 * all + 4096);
        if (event == KV_ZMTP_REPLY)
            CHECK(z->reply.len > 0 && z->reply.len <= KV_ZMTP_GREETING);
        CHECK(event != KV_ZMTP_ODD || kv_zmtp_is_ready(z));
        if (event != KV_ZMTP_MESSAGE)
            continue;
        struct slice payload = kv_zmtp_payload(z), topic = kv_zmtp_topic(z);
        CHECK(kv_zmtp_is_ready(z) && payload.len > 0 && payload.len <= KV_ZMTP_MESSAGE_MAX);
        CHECK(topic.len <= KV_TOPIC_MAX);
        sum += (unsigned char)payload.at[payload.len - 1] + kv_zmtp_number(z);
        sum += topic.len > 0 ? (unsigned char)topic.at[topic.len - 1] : 0;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kv_zmtp z;
    if (size == 0)
        return 0;
    kv_zmtp_begin(&z);
    size_t piece = 1 + data[0] % 128;
    bool goes_on = true;
    if (data[0] >= 128) { /* the peer has identified itself */
        CHECK(take(&z, slice_of(ZMTP_GREETING, ZMTP_GREETING_BYTES), size));
        CHECK(take(&z, ZMTP_READY, size) && kv_zmtp_is_ready(&z));
    }
    for (size_t at = 1; at < size && goes_on; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        goes_on = take(&z, slice_of((const char *)data + at, len), size);
    }
    kv_zmtp_free(&z);
    return 0;
}
