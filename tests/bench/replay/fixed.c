/* Bodies of equal size, as fast as answers come: for CPU per request and added latency.
 *
 *   {"model":..,"messages":[ system: the same for all | history: one of 64 conversations | new ]}
 *          about a quarter of the body                    nearly two thirds             an eighth
 *
 * All prompts differ. They share prefixes as in real conversations: prefix-aware routers have their
 * usual work. */
#include <stdlib.h>

#include "base/check.h"
#include "tests/bench/replay/run.h"
#include "tests/bench/replay/text.h"

enum { CONVERSATIONS = 64, BODY_BYTES_MIN = 512, WORD_BYTES = 4 };

struct lane {
    struct fixed *fixed;
    struct exchange ex;
    struct buf tail;
    char session[24];
};

struct fixed {
    struct run *run;
    struct buf prefixes[CONVERSATIONS];
    struct lane *lanes;
    size_t lane_count, busy;
};

static void append(struct buf *b, const char *text)
{
    CHECK(buf_append_cstr(b, text) == 0);
}

static void prefix_build(struct buf *b, const struct settings *s, size_t number)
{
    size_t body = s->fixed_bytes;
    append(b, "{\"model\":\"");
    text_escape(b, slice_of_cstr(s->model));
    append(b, s->stream ? "\",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "\"");
    append(b, ",\"max_tokens\":16,\"messages\":[{\"role\":\"system\",\"content\":\"");
    text_append(b, 1, body / 4 / WORD_BYTES);
    uint64_t seed = 1000 * (number + 1);
    while (b->len < body - body / 8 - 200) {
        size_t words = (body - body / 8 - 150 - b->len) / WORD_BYTES;
        append(b, seed % 2 == 0 ? "\"},{\"role\":\"user\",\"content\":\""
                                : "\"},{\"role\":\"assistant\",\"content\":\"");
        text_append(b, seed++, words > 1000 ? 1000 : words);
    }
    append(b, "\"},{\"role\":\"user\",\"content\":\"");
}

/* The new message of this request: exactly the bytes missing from the body. */
static void tail_build(struct buf *b, uint64_t seed, size_t bytes)
{
    static const char END[] = "\"}]}";
    buf_clear(b);
    CHECK(buf_printf(b, "%08llx", (unsigned long long)(seed & 0xffffffff)) == 0);
    CHECK(bytes > b->len + sizeof END + 8);
    size_t words = (bytes - b->len - sizeof END) / 8; /* no word is longer */
    while (words > 0) {
        text_append(b, seed++, words);
        words = (bytes - b->len - sizeof END) / 8;
    }
    while (b->len + sizeof END - 1 < bytes)
        CHECK(buf_append_char(b, 'e') == 0);
    append(b, END);
}

static void lane_send(struct lane *lane);

static void on_done(struct exchange *ex)
{
    struct lane *lane = CONTAINER_OF(ex, struct lane, ex);
    run_end(lane->fixed->run, ex);
    lane_send(lane);
}

static void lane_send(struct lane *lane)
{
    struct fixed *f = lane->fixed;
    struct run *r = f->run;
    size_t conversation = prng_below(&r->random, CONVERSATIONS);
    const struct buf *prefix = &f->prefixes[conversation];
    tail_build(&lane->tail, prng_next(&r->random), r->settings->fixed_bytes - prefix->len);
    (void)snprintf(lane->session, sizeof lane->session, "conversation-%zu", conversation);
    lane->ex.body[0] = uv_buf_init(prefix->at, (unsigned)prefix->len);
    lane->ex.body[1] = uv_buf_init(lane->tail.at, (unsigned)lane->tail.len);
    lane->ex.body_count = 2;
    lane->ex.session = r->settings->session_header ? lane->session : NULL;
    lane->ex.done = on_done;
    if (!run_begin(r, &lane->ex)) {
        if (--f->busy == 0)
            run_finish(r);
        return;
    }
    client_send(&r->client, &lane->ex, prng_below(&r->random, r->client.target_count));
}

int fixed_run(struct run *r)
{
    struct fixed f = {.run = r, .lane_count = r->settings->connections};
    for (size_t i = 0; i < CONVERSATIONS; i++)
        prefix_build(&f.prefixes[i], r->settings, i);
    f.lanes = calloc(f.lane_count, sizeof *f.lanes);
    CHECK(f.lanes != NULL);
    r->expected = r->settings->requests_max;
    f.busy = f.lane_count;
    run_start(r);
    for (size_t i = 0; i < f.lane_count; i++) {
        f.lanes[i].fixed = &f;
        lane_send(&f.lanes[i]);
    }
    CHECK(uv_run(&r->loop, UV_RUN_DEFAULT) == 0);
    for (size_t i = 0; i < f.lane_count; i++) {
        buf_free(&f.lanes[i].tail);
        exchange_free(&f.lanes[i].ex);
    }
    free(f.lanes);
    for (size_t i = 0; i < CONVERSATIONS; i++)
        buf_free(&f.prefixes[i]);
    return 0;
}
