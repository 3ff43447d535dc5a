#include "node/trace/trace.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/json_write.h"
#include "base/version.h"
#include "node/trace/trace_internal.h"

enum { REQUESTS_KEPT = 256 };

static const struct slice back = SLICE("]}]}]}");

/* --- ids ------------------------------------------------------------------------------------- */

static void put_hex(uint64_t bits, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < HTTP_SPAN_ID_HEX; i += 2, bits >>= 8) { /* any order will do */
        out[i] = digits[bits >> 4 & 15];
        out[i + 1] = digits[bits & 15];
    }
}

void trace_span_id(struct trace *t, char out[HTTP_SPAN_ID_HEX])
{
    uint64_t bits = prng_next(&t->random);
    put_hex(bits != 0 ? bits : 1, out); /* zeros alone are no id */
}

static void new_trace(struct trace *t, struct http_traceparent *out)
{
    trace_span_id(t, out->trace);
    trace_span_id(t, out->trace + HTTP_SPAN_ID_HEX);
}

bool trace_sample(struct trace *t, double share)
{
    return share >= 1 || prng_unit(&t->random) < share;
}

void trace_unsampled(struct trace *t, struct http_traceparent *out)
{
    new_trace(t, out);
    trace_span_id(t, out->span);
    out->sampled = false;
}

/* --- requests -------------------------------------------------------------------------------- */

struct trace_request *trace_request_new(struct trace *t)
{
    struct trace_request *r = t->free;
    if (r == NULL)
        return calloc(1, sizeof *r);
    t->free = r->next_free;
    t->free_count--;
    struct buf attempts = r->attempts, events = r->events;
    *r = (struct trace_request){.attempts = attempts, .events = events};
    buf_clear(&r->attempts);
    buf_clear(&r->events);
    return r;
}

static void request_free(struct trace_request *r)
{
    buf_free(&r->attempts);
    buf_free(&r->events);
    free(r);
}

void trace_drop(struct trace_request *r)
{
    struct trace *t = r->owner;
    if (t->free_count >= REQUESTS_KEPT ||
        r->attempts.cap + r->events.cap > TRACE_REQUEST_BYTES_MAX) {
        request_free(r);
        return;
    }
    r->next_free = t->free;
    t->free = r;
    t->free_count++;
}

struct trace_request *trace_begin(struct trace *t, const struct http_traceparent *parent,
                                  uint64_t now_ms)
{
    struct trace_request *r = trace_request_new(t);
    if (r == NULL) {
        t->dropped[TRACE_DROPPED_MEMORY]++;
        return NULL;
    }
    r->owner = t;
    r->began_ms = now_ms;
    r->wall_ahead_ms = t->wall_ahead_ms;
    r->has_parent = parent != NULL;
    if (parent != NULL) {
        memcpy(r->self.trace, parent->trace, sizeof r->self.trace);
        memcpy(r->parent, parent->span, sizeof r->parent);
    } else {
        new_trace(t, &r->self);
    }
    r->self.sampled = true;
    trace_span_id(t, r->self.span);
    return r;
}

void trace_traceparent(const struct trace_request *r, struct http_traceparent *out)
{
    *out = r->self;
}

/* --- batches --------------------------------------------------------------------------------- */

/* Keeps the batch's memory for the next batch, to save a large allocation for each. */
static void batch_free(struct trace *t, struct trace_batch *b)
{
    t->bytes -= b->text.len;
    buf_free(&t->spare);
    t->spare = b->text;
    buf_clear(&t->spare);
    free(b);
}

/* Returns an empty batch with room for `bytes` more, or NULL. */
static struct trace_batch *batch_new(struct trace *t, size_t bytes, uint64_t now_ms)
{
    struct trace_batch *b = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->text = t->spare;
    t->spare = (struct buf){0};
    if (buf_reserve(&b->text, t->front.len + bytes) != 0 ||
        buf_append_slice(&b->text, buf_slice(&t->front)) != 0) {
        t->spare = b->text;
        free(b);
        return NULL;
    }
    b->first_ms = now_ms;
    t->bytes += b->text.len;
    if (t->last != NULL)
        t->last->next = b;
    else
        t->first = b;
    t->last = b;
    return b;
}

void trace_put(struct trace *t, struct slice spans, unsigned count, uint64_t now_ms)
{
    struct trace_batch *b = t->last;
    if (count == 0)
        return;
    if (t->bytes + spans.len + t->front.len + 1 + back.len > TRACE_QUEUE_BYTES_MAX) {
        t->dropped[TRACE_DROPPED_FULL] += count;
        return;
    }
    if (b == NULL || b->sealed || b->spans >= TRACE_BATCH_SPANS)
        b = batch_new(t, spans.len + 1 + back.len, now_ms);
    if (b == NULL || buf_reserve(&b->text, spans.len + 1 + back.len) != 0) {
        t->dropped[TRACE_DROPPED_MEMORY] += count;
        return;
    }
    size_t before = b->text.len;
    if (b->spans > 0)
        b->text.at[b->text.len++] = ',';
    memcpy(b->text.at + b->text.len, spans.at, spans.len);
    b->text.len += spans.len;
    b->spans += count;
    t->bytes += b->text.len - before;
}

struct slice trace_batch(struct trace *t, uint64_t now_ms)
{
    struct trace_batch *b = t->first;
    bool ready =
        b != NULL && b->spans > 0 && !t->under_way &&
        (t->flushing || (now_ms >= t->again_ms && (b->sealed || b->spans >= TRACE_BATCH_SPANS ||
                                                   now_ms - b->first_ms >= TRACE_BATCH_MS)));
    if (!ready)
        return slice_of("", 0);
    if (!b->sealed) { /* trace_put() left room */
        memcpy(b->text.at + b->text.len, back.at, back.len);
        b->text.len += back.len;
        t->bytes += back.len;
        b->sealed = true;
    }
    t->under_way = true;
    b->tries++;
    return buf_slice(&b->text);
}

static bool may_pass(unsigned status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* Delays the next try to send by a random time, so that routers do not try at the same moment. */
static void back_off(struct trace *t, unsigned tries, uint64_t retry_after_s, uint64_t now_ms)
{
    uint64_t wait = (uint64_t)TRACE_BACK_OFF_MS << (tries - 1);
    wait = wait / 2 + prng_below(&t->random, wait);
    if (retry_after_s > TRACE_BACK_OFF_MAX_MS / 1000)
        retry_after_s = TRACE_BACK_OFF_MAX_MS / 1000;
    if (wait < retry_after_s * 1000)
        wait = retry_after_s * 1000;
    t->again_ms = now_ms + (wait < TRACE_BACK_OFF_MAX_MS ? wait : TRACE_BACK_OFF_MAX_MS);
}

enum trace_news trace_batch_ended(struct trace *t, const struct trace_answer *answer,
                                  uint64_t now_ms)
{
    CHECK(t->under_way);
    struct trace_batch *b = t->first;
    bool good = answer->status / 100 == 2;
    t->under_way = false;
    t->failures += !good;
    enum trace_news news = good == t->failing ? (good ? TRACE_WORKS : TRACE_FAILS) : TRACE_SAME;
    t->failing = !good;
    bool passes = may_pass(answer->status);
    if (!good && passes && b->tries < TRACE_TRIES_MAX && !t->flushing) {
        back_off(t, b->tries, answer->retry_after_s, now_ms);
        return news;
    }
    if (good)
        t->exported += b->spans;
    else
        t->dropped[passes ? TRACE_DROPPED_TRIES : TRACE_DROPPED_REFUSED] += b->spans;
    if (!good && passes) /* the next batch is not sent sooner than this batch would be */
        back_off(t, b->tries, answer->retry_after_s, now_ms);
    t->first = b->next;
    if (t->first == NULL)
        t->last = NULL;
    batch_free(t, b);
    return news;
}

void trace_flush(struct trace *t)
{
    t->flushing = true;
}

bool trace_is_empty(const struct trace *t)
{
    return t->first == NULL;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void attribute(struct json_writer *w, const char *key, const char *text)
{
    json_object_begin(w);
    json_put_cstr(w, "key", key);
    json_put_object(w, "value");
    json_put_cstr(w, "stringValue", text);
    json_object_end(w);
    json_object_end(w);
}

/* Writes t->front, the beginning of each batch. A router without peers has no name, so
 * service.instance.id is a random number. */
static int write_front(struct trace *t, const struct trace_config *config)
{
    char instance[HTTP_SPAN_ID_HEX + 1] = "";
    trace_span_id(t, instance);
    struct json_writer w = json_writer_of(&t->front);
    json_array_begin(&w);
    attribute(&w, "service.name", "grapevine");
    attribute(&w, "service.version", version_text);
    attribute(&w, "service.instance.id", config->router != NULL ? config->router : instance);
    if (config->router != NULL)
        attribute(&w, "grapevine.router", config->router);
    json_array_end(&w);
    struct buf list = {0};
    int err = json_writer_finish(&w);
    if (err == 0)
        err = buf_printf(&list,
                         "{\"resourceSpans\":[{\"resource\":{\"attributes\":%.*s},"
                         "\"scopeSpans\":[{\"scope\":{\"name\":\"grapevine\"},\"spans\":[",
                         SLICE_ARG(buf_slice(&t->front)));
    buf_free(&t->front);
    t->front = list;
    return err;
}

int trace_create(struct trace **out, const struct trace_config *config)
{
    struct trace *t = calloc(1, sizeof *t);
    if (t == NULL)
        return ERR_NOMEM;
    prng_seed(&t->random, config->seed[0]);
    for (unsigned i = 0; i < ARRAY_LEN(t->random.state); i++) /* all 128 bits count */
        t->random.state[i] ^= i % 2 == 0 ? config->seed[1] : 0;
    int err = write_front(t, config);
    if (err != 0) {
        trace_destroy(t);
        return err;
    }
    *out = t;
    return ERR_OK;
}

void trace_destroy(struct trace *t)
{
    if (t == NULL)
        return;
    while (t->first != NULL) {
        struct trace_batch *b = t->first;
        t->first = b->next;
        batch_free(t, b);
    }
    while (t->free != NULL) {
        struct trace_request *r = t->free;
        t->free = r->next_free;
        request_free(r);
    }
    buf_free(&t->front);
    buf_free(&t->spare);
    free(t);
}

void trace_wall(struct trace *t, uint64_t wall_ms, uint64_t now_ms)
{
    t->wall_ahead_ms = wall_ms - now_ms;
}

void trace_check(const struct trace *t)
{
    size_t bytes = 0;
    for (const struct trace_batch *b = t->first; b != NULL; b = b->next) {
        CHECK(b->spans > 0 || !b->sealed);
        CHECK((b->next == NULL) == (b == t->last));
        bytes += b->text.len;
    }
    CHECK(bytes == t->bytes && bytes <= TRACE_QUEUE_BYTES_MAX);
    CHECK(!t->under_way || (t->first != NULL && t->first->sealed));
}

void trace_metrics(const struct trace *t, struct prometheus *p)
{
    static const struct trace off;
    static const struct slice reasons[TRACE_DROPS] = {
        [TRACE_DROPPED_FULL] = SLICE("queue_full"),
        [TRACE_DROPPED_REFUSED] = SLICE("refused"),
        [TRACE_DROPPED_TRIES] = SLICE("unreachable"),
        [TRACE_DROPPED_MEMORY] = SLICE("memory"),
    };
    t = t != NULL ? t : &off;
    const struct prometheus_figure figures[] = {
        {"trace_spans_exported_total", "Spans that the collector took.", (double)t->exported},
        {"trace_export_failures_total", "POSTs of spans that failed.", (double)t->failures},
        {"trace_queue_bytes", "Spans that wait for the collector.", (double)t->bytes},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
    prometheus_family(
        p, "trace_spans_dropped_total",
        "Spans lost: queue_full, refused by the collector, unreachable after five tries, memory.");
    for (unsigned i = 0; i < TRACE_DROPS; i++) {
        prometheus_label(p, "reason", reasons[i]);
        prometheus_value(p, (double)t->dropped[i]);
    }
}
