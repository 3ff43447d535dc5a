/* Any answer of an API server, in pieces: the first byte chooses the answer, the second the cuts.
 * Cuts must not matter, and the list stays whole in any case. */
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "node/discover/kubernetes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t hash; /* hash of the results */
    unsigned asked;
};

static void mix(struct outcome *o, struct slice text)
{
    static const struct hash_secret secret;
    o->hash = o->hash * 31 + hash64(&secret, text.at, text.len);
}

static void act(struct discover_kubernetes *k, uint64_t now_ms, struct outcome *o)
{
    uint64_t until;
    enum discover_kubernetes_action action;
    while ((action = discover_kubernetes_next(k, now_ms, &until)) != DISCOVER_KUBERNETES_WAIT) {
        discover_kubernetes_check(k);
        unsigned count;
        const struct discover_entry *e = discover_kubernetes_entries(k, &count);
        for (unsigned i = 0; i < count; i++)
            CHECK(e[i].name.len > 3 && e[i].name.len < DISCOVER_ENDPOINT_BYTES);
        if (action == DISCOVER_KUBERNETES_ASK) {
            o->asked++;
            CHECK(strlen(discover_kubernetes_target(k)) < 16 << 10);
        }
        if (action == DISCOVER_KUBERNETES_FAILED)
            CHECK(strlen(discover_kubernetes_why(k)) < DISCOVER_WHY_MAX);
    }
    CHECK(until > now_ms);
}

static void answer(struct discover_kubernetes *k, unsigned status, struct slice body, size_t piece,
                   struct outcome *o)
{
    uint64_t now_ms = 1;
    discover_kubernetes_answered(k, status, 0, now_ms);
    while (body.len > 0) {
        size_t len = body.len < piece ? body.len : piece;
        char *copy = malloc(len); /* a separate copy: ASan sees a read beyond the end */
        CHECK(copy != NULL);
        memcpy(copy, body.at, len);
        discover_kubernetes_received(k, slice_of(copy, len), now_ms);
        discover_kubernetes_check(k);
        free(copy);
        body = slice_skip(body, len);
    }
    discover_kubernetes_ended(k, NULL, now_ms);
    act(k, now_ms, o);
    /* The request after all waits, and the list at this time, must not depend on the cuts
     * either. */
    unsigned count;
    const struct discover_entry *e = discover_kubernetes_entries(k, &count);
    for (unsigned i = 0; i < count; i++)
        mix(o, e[i].name);
}

static struct outcome play(struct slice body, unsigned how, size_t piece)
{
    static const char list[] =
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"name\":\"a\"},"
        "\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"http\",\"port\":80}],\"endpoints\":["
        "{\"addresses\":[\"10.0.0.1\"]}]}]}";
    static const char *const services[] = {"ns/s", "ns/s:http", "ns/s:8000", "ns/s"};
    struct outcome o = {0};
    struct discover_service service;
    struct discover_kubernetes *k;
    CHECK(discover_service_parse(slice_of_cstr(services[how & 3]), &service) == NULL);
    CHECK(discover_kubernetes_create(&k, &service, 1, 1) == 0);
    act(k, 1, &o);
    if (how & 4) {
        answer(k, 200, SLICE(list), sizeof list, &o);
        answer(k, how & 8 ? 403 : 200, body, piece, &o);
    } else {
        answer(k, how & 8 ? 500 : 200, body, piece, &o);
    }
    discover_kubernetes_destroy(k);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct slice body = slice_of((const char *)data + 2, size - 2);
    struct outcome whole = play(body, data[0], size);
    struct outcome cut = play(body, data[0], (data[1] & 31) + 1u);
    CHECK(whole.hash == cut.hash && whole.asked == cut.asked);
    struct discover_service service;
    (void)discover_service_parse(body, &service);
    return 0;
}
