#include "tests/engine-sim/journal.h"

#include <string.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"

static void put_begin(struct buf *out, uint64_t now_ns, const char *what)
{
    sim_put(out, "{\"t\":%lu.%06lu,\"f\":\"%s\",\"value\":{", now_ns / 1000000000,
            now_ns % 1000000000 / 1000, what);
}

static void put_entry(struct buf *out, const struct sim_entry *e)
{
    sim_put(out, "\"request\":%lu,\"op\":", e->number);
    sim_put_json(out, *e->op == '\0' ? slice_of(NULL, 0) : slice_of_cstr(e->op));
}

static void put_end(struct sim_journal *j, struct buf *out)
{
    sim_put(out, "}}\n");
    j->write(j->context, buf_slice(out));
    buf_free(out);
}

void sim_journal_event(struct sim_journal *j, uint64_t now_ns, const char *what)
{
    struct buf out = {.at = NULL};
    if (j->write == NULL)
        return;
    put_begin(&out, now_ns, what);
    put_end(j, &out);
}

static bool for_output(struct slice path)
{
    static const char *const paths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                        "/v1/messages", "/generate"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (slice_equal(path, slice_of_cstr(paths[i])))
            return true;
    return false;
}

void sim_entry_request(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                       const struct http_head *head)
{
    struct buf out = {.at = NULL};
    struct slice op = http_head_find(head, SLICE("x-jepsen-op"));
    *e = (struct sim_entry){.number = 0};
    if (j->write == NULL || (op.len == 0 && !for_output(head->path)))
        return;
    e->number = ++j->last;
    e->fingerprint = j->fingerprint;
    (void)slice_to_cstr(op, e->op, sizeof e->op);
    CHECK(crypto_hash_sha256_init(&e->body.hash) == 0);
    CHECK(crypto_hash_sha256_init(&e->plain.hash) == 0);
    put_begin(&out, now_ns, "request");
    put_entry(&out, e);
    sim_put(&out, ",\"method\":");
    sim_put_json(&out, head->method_text);
    sim_put(&out, ",\"path\":");
    sim_put_json(&out, head->path);
    put_end(j, &out);
}

void sim_entry_first(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                     uint64_t prompt_tokens, uint64_t cached_tokens)
{
    struct buf out = {.at = NULL};
    if (e->number == 0)
        return;
    e->prompt_tokens = prompt_tokens;
    e->cached_tokens = cached_tokens;
    put_begin(&out, now_ns, "first");
    put_entry(&out, e);
    sim_put(&out, ",\"prompt_tokens\":%lu,\"cached_tokens\":%lu", prompt_tokens, cached_tokens);
    put_end(j, &out);
}

static void digest_add(struct sim_digest *d, struct slice bytes)
{
    d->bytes += bytes.len;
    CHECK(crypto_hash_sha256_update(&d->hash, (const unsigned char *)bytes.at, bytes.len) == 0);
}

static bool has(struct slice s, struct slice what)
{
    return memmem(s.at, s.len, what.at, what.len) != NULL;
}

/* Adds the event as if the client had not asked for usage. */
static void plain_add(struct sim_entry *e, struct slice event)
{
    if (has(event, SLICE("\"choices\":[],\"usage\":")))
        return;
    const char *brace = event.len == 0 ? NULL : memrchr(event.at, '}', event.len);
    if (!e->fingerprint || brace == NULL || !has(event, SLICE("\"finish_reason\":\"")) ||
        has(event, SLICE("\"system_fingerprint\":\""))) {
        digest_add(&e->plain, event);
        return;
    }
    size_t at = (size_t)(brace - event.at);
    digest_add(&e->plain, slice_of(event.at, at));
    digest_add(&e->plain, SLICE(",\"system_fingerprint\":\"" SIM_FINGERPRINT "\""));
    digest_add(&e->plain, slice_skip(event, at));
}

void sim_entry_body(struct sim_entry *e, struct slice bytes)
{
    static const struct slice ends[] = {SLICE("\r\n\r\n"), SLICE("\n\n")};
    if (e->number == 0)
        return;
    digest_add(&e->body, bytes);
    /* All lines of a framing end in the same way. */
    bool crlf = memmem(bytes.at, bytes.len, ends[0].at, ends[0].len) != NULL;
    struct slice end = ends[crlf ? 0 : 1];
    while (bytes.len > 0) { /* event by event */
        const char *at = memmem(bytes.at, bytes.len, end.at, end.len);
        struct slice event =
            slice_of(bytes.at, at == NULL ? bytes.len : (size_t)(at - bytes.at) + end.len);
        bytes = slice_skip(bytes, event.len);
        plain_add(e, event);
    }
}

static void put_digest(struct buf *out, struct sim_digest *d)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof hash + 1];
    CHECK(crypto_hash_sha256_final(&d->hash, hash) == 0);
    (void)sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    sim_put(out, "\"bytes\":%lu,\"hash\":\"%s\"", d->bytes, hex);
}

void sim_entry_end(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns, enum sim_how how)
{
    static const char *const names[] = {"whole", "left", "refused", "failed"};
    struct buf out = {.at = NULL};
    if (e->number == 0)
        return;
    if (how == SIM_WHOLE && e->failed)
        how = SIM_FAILED;
    else if (how == SIM_WHOLE && (e->refused || e->status >= 400))
        how = SIM_REFUSED;
    put_begin(&out, now_ns, "end");
    put_entry(&out, e);
    sim_put(&out, ",\"how\":\"%s\",\"status\":%u", names[how], e->status);
    if (e->prompt_tokens > 0)
        sim_put(&out, ",\"prompt_tokens\":%lu,\"cached_tokens\":%lu", e->prompt_tokens,
                e->cached_tokens);
    sim_put(&out, ",");
    bool has_usage = e->plain.bytes != e->body.bytes;
    put_digest(&out, &e->body);
    if (has_usage) {
        sim_put(&out, ",\"plain\":{");
        put_digest(&out, &e->plain);
        sim_put(&out, "}");
    }
    put_end(j, &out);
    e->number = 0;
}
