/* Passes a replica's answer on to the client. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/check.h"
#include "node/proxy/exchange/suspect.h"

/* Returns the answer's form (enum http_usage_form); -1: another form, which has no tokens. */
static int form_of(const struct http_head *head)
{
    static const struct {
        struct slice type;
        enum http_usage_form form;
    } forms[] = {
        {SLICE("text/event-stream"), HTTP_USAGE_SSE},
        {SLICE("application/json"), HTTP_USAGE_JSON},
        {SLICE("application/x-ndjson"), HTTP_USAGE_LINES},
    };
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (type.len >= forms[i].type.len &&
            slice_equal_nocase(slice_of(type.at, forms[i].type.len), forms[i].type))
            return (int)forms[i].form;
    return -1;
}

static void choose_scan(struct exchange *x, const struct http_head *head)
{
    int form = form_of(head);
    bool job = x->route.kind == HTTP_PATH_JOBS && x->method == HTTP_METHOD_POST;
    bool all = (exchange_answers_tokens(x->route.kind) && form != HTTP_USAGE_LINES) ||
               (job && form == HTTP_USAGE_JSON);
    bool counts = x->admission.counted && exchange_computes(x->route.kind);
    bool packed = x->now.unpack == NULL && http_coding_of(head) != HTTP_CODING_NONE;
    if (form < 0 || packed || (!all && !counts))
        return;
    http_usage_init(&x->usage, (enum http_usage_form)form);
    x->now.scan = all ? EXCHANGE_SCAN_USAGE : EXCHANGE_SCAN_TOKENS;
}

static void note_first_token(struct exchange *x)
{
    x->now.first_token = true;
    x->now.first_byte_ms = x->proxy->now_ms;
    if (x->now.upstream != NULL)
        upstream_token_came(x->now.upstream);
    suspect_answered(x);
    admission_alone(&x->proxy->admission, &x->admission, x->now.decision.server);
    if (x->now.status / 100 != 2) /* an error says nothing about the time of the work */
        return;
    exchange_blame(x); /* the request is good, then */
    exchange_accepted(x);
    if (x->now.booked)
        node_router_first_byte(x->proxy->config.router, x->now.decision.booking,
                               x->now.first_byte_ms);
}

/* Returns true for a 429 or 503 without Retry-After, as engines send them: the router adds the
 * field. */
static bool lacks_retry_after(const struct http_head *head)
{
    return (head->status == 429 || head->status == 503) &&
           http_head_find(head, SLICE("retry-after")).at == NULL;
}

static void gather_head(struct exchange *x, const struct http_head *head)
{
    struct proxy *p = x->proxy;
    struct http_line lines[10] = {{SLICE("x-request-id"), x->request_id}};
    size_t n = 1;
    if (p->config.options->replica_header)
        lines[n++] =
            (struct http_line){SLICE("x-grapevine-replica"),
                               node_router_replica_name(p->config.router, x->now.decision.replica)};
    if (p->config.options->replica_header && x->alias_len > 0)
        lines[n++] = (struct http_line){SLICE("x-grapevine-model"), exchange_body_model(x)};
    if (p->config.options->replica_header && x->fell_back)
        lines[n++] = (struct http_line){SLICE("x-grapevine-fallback"), SLICE("true")};
    if (exchange_passes_for_lack(x))
        lines[n++] = (struct http_line){SLICE("x-grapevine-limit"), slice_of_cstr(x->limit)};
    if (lacks_retry_after(head))
        lines[n++] = (struct http_line){SLICE("retry-after"), SLICE("1")};
    struct slice location = exchange_host_location(x, head);
    if (location.len > 0)
        lines[n++] = (struct http_line){SLICE("location"), location};
    bool listed = exchange_cors_of(x) >= EXCHANGE_CORS_LISTED;
    if (listed) /* the setting has precedence over the engine's field */
        n += exchange_cors_lines(x, lines + n);
    struct http_forward_response how = {.client_minor = x->minor,
                                        .keep_alive = !x->client->last,
                                        .framing = x->out_framing,
                                        .content_length = head->content_length,
                                        .extra = lines,
                                        .extra_count = n};
    if (x->now.unpack != NULL)
        how.drop = HTTP_FIELD_BIT(HTTP_CONTENT_ENCODING);
    if (listed)
        how.drop |= HTTP_FIELD_BIT(HTTP_ALLOW_ORIGIN);
    client_gather_head(x->client, head, &how);
}

static void pass_head(struct exchange *x, const struct http_head *head)
{
    struct proxy *p = x->proxy;
    exchange_goes(x, ATTEMPT_HELD);
    x->now.status = head->status;
    if (x->asking_around && head->status / 100 == 2) /* found: no search next time */
        node_affinity_put(p->config.affinity, exchange_stored_response(x), x->now.decision.replica);
    if (head->status >= 400)
        x->now.outcome = verdict_of_answer(head->status, slice_of("", 0)).outcome;
    x->now.first_byte_ms = p->now_ms;
    choose_scan(x, head);
    if (x->now.scan != EXCHANGE_SCAN_USAGE || x->usage.form == HTTP_USAGE_JSON)
        note_first_token(x);
    exchange_hold_begin(x, head);
    if (x->alive) { /* the client has a head */
        exchange_usage_begin(x, head);
        return;
    }
    x->now.last_asked = x->client->last;
    x->out_framing = http_forward_response_framing(head, x->minor);
    if (x->now.unpack != NULL && x->out_framing == HTTP_BODY_LENGTH)
        x->out_framing = x->minor == 0 ? HTTP_BODY_UNTIL_CLOSE : HTTP_BODY_CHUNKED;
    exchange_usage_begin(x, head);
    exchange_ids_begin(x, head);
    if (x->out_framing == HTTP_BODY_UNTIL_CLOSE ||
        x->client->state == CLIENT_BODY) /* answered early: the rest of the body is not needed */
        x->client->last = true;
    gather_head(x, head);
}

static void hold_expired(struct deadline *d);

static bool cuts_ids(const struct exchange *x)
{
    return x->ids != NULL && x->ids->cuts;
}

/* Called when the gathered bytes were written, or copied: the memory of the cuts may be used
 * again. */
static void settled(struct exchange *x)
{
    http_usage_cut_settled(&x->now.cut);
    if (cuts_ids(x))
        http_ids_cut_settled(&x->ids->cut);
}

/* Writes the gathered bytes, as a chunk in chunked answers; or holds them. */
static void flush(struct exchange *x, bool last)
{
    bool chunked = x->out_framing == HTTP_BODY_CHUNKED && !x->request.to_head;
    if (x->now.hold != EXCHANGE_HOLD_NONE) {
        if (!last && exchange_hold_waits(x)) {
            x->deadline.expired = hold_expired;
            if (x->deadline.next == NULL && x->now.hold != EXCHANGE_HOLD_ERROR && !x->alive)
                proxy_arm(x->proxy, PROXY_STREAM_HOLD, &x->deadline);
            settled(x);
            return;
        }
        exchange_hold_pass(x);
    }
    if (!exchange_is_committed(x) && (client_has_gathered(x->client) || last))
        exchange_answering(x);
    x->bytes_out += client_flush(x->client, chunked, last);
    exchange_note_told(x);
    settled(x);
    if (x->now.held.cap > 0)
        exchange_hold_drop(x);
}

/* Gives the client a sign of life, after a wait of stream-hold. */
static void hold_expired(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, deadline);
    if (exchange_hold_sign(x))
        return;
    exchange_hold_pass(x);
    flush(x, false);
}

/* Returns true if the answer ends here: another answer comes instead, or an error cannot follow the
 * sign of life. */
static bool is_judged_away(struct exchange *x)
{
    if (exchange_hold_judge(x))
        return true;
    if (!x->alive || x->now.hold != EXCHANGE_HOLD_ERROR)
        return false;
    unsigned status = x->now.status;
    exchange_forget_answer(x);
    exchange_answer_error(x, status, slice_of("", 0),
                          "The replica that should continue the answer returned status %u.",
                          status);
    return true;
}

static void gather(struct exchange *x, struct slice bytes)
{
    if (client_gather_full(x->client))
        flush(x, false);
    client_gather(x->client, bytes);
}

static void gather_without_usage(struct exchange *x, struct slice bytes)
{
    if (x->now.cut.handed)
        flush(x, false);
    for (struct slice out; http_usage_cut_next(&x->now.cut, &bytes, &out);)
        gather(x, out);
}

static void gather_asked(struct exchange *x, struct slice bytes)
{
    if (x->now.cuts_usage)
        gather_without_usage(x, bytes);
    else
        gather(x, bytes);
}

static void gather_without_ids(struct exchange *x, struct slice bytes)
{
    struct http_ids_cut *cut = &x->ids->cut;
    if (cut->handed || x->now.cut.handed) /* makes room for all new pieces */
        flush(x, false);
    for (struct slice out; http_ids_cut_next(cut, &bytes, &out);)
        gather_asked(x, out);
}

/* Notes the response's id at once, because the client may soon ask for it. */
static void note_id(struct exchange *x)
{
    bool stored = x->route.kind == HTTP_PATH_RESPONSES || x->route.kind == HTTP_PATH_JOBS;
    if (x->now.id_told || !stored || x->usage.response_id[0] == '\0')
        return;
    x->now.id_told = true;
    exchange_owner_put(x);
}

/* Returns false if an error came instead of the first token, and the answer was dropped. */
static bool pass_body(struct exchange *x, struct slice bytes)
{
    if (cuts_ids(x))
        gather_without_ids(x, bytes);
    else
        gather_asked(x, bytes);
    if (exchange_hold_is_long(x)) {
        if (is_judged_away(x))
            return false;
        exchange_hold_pass(x);
    }
    if (x->now.scan != EXCHANGE_SCAN_NONE)
        http_usage_feed(&x->usage, bytes.at, bytes.len);
    if (x->now.scan != EXCHANGE_SCAN_USAGE)
        return true;
    note_id(x);
    if (!x->now.first_token && x->usage.first_token)
        note_first_token(x);
    return !x->usage.error_whole || !exchange_hold_judge_event(x);
}

/* As pass_body(), for a compressed answer, as far as decoding is allowed now. The rest of `bytes`
 * waits in the connection. `*malformed`: the bytes contradict the coding. */
static bool pass_packed(struct exchange *x, struct slice bytes, bool *malformed)
{
    struct slice out;
    size_t made = 0;
    do {
        if (client_has_gathered(x->client)) /* maybe of earlier decoded bytes */
            flush(x, false);
        bool waits = made >= EXCHANGE_UNPACK_TURN_BYTES || client_congested(x->client);
        int err =
            waits ? upstream_hold(x->now.upstream, bytes.len) : exchange_unpack(x, &bytes, &out);
        if (err == ERR_NOMEM) {
            exchange_unpack_refuse(x);
            return false;
        }
        if (waits)
            return true;
        *malformed = err != 0;
        if (*malformed || (out.len > 0 && !pass_body(x, out)))
            return false;
        made += out.len;
    } while (bytes.len > 0 || out.len == EXCHANGE_UNPACK_BYTES);
    return true;
}

/* Returns true if the answer can continue the client's stream. */
static bool can_follow(const struct http_head *head)
{
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    return head->status / 100 == 2 && type.len >= 17 &&
           slice_equal_nocase(slice_of(type.at, 17), SLICE("text/event-stream"));
}

/* Repeats the request without asking for usage, because usage could not be removed from an answer
 * in an unknown coding. Returns true if the same replica is asked again, which happens once in the
 * replica's life. */
static bool is_asked_without_usage(struct exchange *x, const struct http_head *head)
{
    struct proxy *p = x->proxy;
    if (head->status / 100 != 2 || http_coding_of(head) != HTTP_CODING_OTHER)
        return false;
    node_router_replica_packs_set(p->config.router, x->now.decision.server);
    log_event(
        p->config.log, LOG_WARN, "answer_coding_unread",
        LOG_STR("replica", node_router_replica_name(p->config.router, x->now.decision.server)),
        LOG_STR("coding", http_head_get(head, HTTP_CONTENT_ENCODING)),
        LOG_CSTR("effect", "the router reads nothing of its streams, which contain no usage"));
    if (exchange_is_committed(x) || x->alive || x->dropped)
        return false;
    exchange_hang_up(x);
    if (exchange_same_again(x) != 0)
        exchange_failed(x, UPSTREAM_CONNECT_FAILED);
    return true;
}

/* Repeats a refused request without asking for token ids, which may be the cause. Returns true if
 * the same replica is asked again. */
static bool is_asked_without_ids(struct exchange *x, unsigned status)
{
    if (x->now.ids_block == 0 || (status != 400 && status != 422) || exchange_is_committed(x) ||
        x->alive || x->dropped)
        return false;
    x->ids_refused = true;
    exchange_hang_up(x);
    if (exchange_same_again(x) != 0)
        exchange_failed(x, UPSTREAM_CONNECT_FAILED);
    return true;
}

/* Repeats the request on a fresh connection after a 408, by which the engine closes an idle
 * connection, and which is no reply to the request. If repeating is impossible, the client gets the
 * 408, after which programs repeat the request. */
static bool is_asked_afresh(struct exchange *x, const struct upstream_output *out)
{
    if (!out->stale || x->dropped)
        return false;
    exchange_hang_up(x);
    exchange_failed(x, UPSTREAM_STALE);
    return true;
}

/* Begins an answer. Returns false if the client does not get the answer. Runs once per answer, so
 * the stack frame must not burden each event. */
__attribute__((noinline)) static bool begin(struct exchange *x, const struct upstream_output *out)
{
    const struct http_head *head = out->head;
    if (is_asked_afresh(x, out))
        return false;
    if (x->asking) {
        exchange_answered(x, head->status);
        return false;
    }
    if ((x->now.usage_asked || x->now.ids_block > 0) && is_asked_without_usage(x, head))
        return false;
    if (is_asked_without_ids(x, head->status))
        return false;
    exchange_count_status(x, head->status);
    if (exchange_judge_status(x, head->status))
        return false;
    if (x->alive && !can_follow(head) && !exchange_body_decides(x, head->status)) {
        exchange_answer_error(x, head->status >= 400 ? head->status : 502, slice_of("", 0),
                              "The replica that should continue the answer returned status %u.",
                              head->status);
        return false;
    }
    if (http_head_has(head, HTTP_CONTENT_ENCODING) && exchange_computes(x->route.kind) &&
        exchange_unpack_begin(x, head) != 0) {
        exchange_unpack_refuse(x);
        return false;
    }
    pass_head(x, head);
    return true;
}

bool exchange_response(struct exchange *x, const struct upstream_output *out)
{
    bool malformed = false;
    if (out->head != NULL && !begin(x, out))
        return true;
    if (out->body.len > 0 && x->now.unpack == NULL && !pass_body(x, out->body))
        return true;
    if (out->body.len > 0 && x->now.unpack != NULL && !pass_packed(x, out->body, &malformed))
        return !malformed;
    if (out->end)
        exchange_ended(x);
    return true;
}

bool exchange_response_rest(struct exchange *x)
{
    bool malformed = false;
    (void)pass_packed(x, slice_of("", 0), &malformed);
    return !malformed;
}

void exchange_flush(struct exchange *x)
{
    if (client_has_gathered(x->client))
        flush(x, false);
    if (x->now.upstream == NULL)
        return;
    if (client_congested(x->client)) {
        x->proxy->stats.backpressure++;
        upstream_pause(x->now.upstream);
    } else if (x->now.upstream->held_back) {
        x->proxy->stats.unpack_waits++;
        upstream_pause(x->now.upstream);
        proxy_arm(x->proxy, PROXY_UNPACK, &x->now.upstream->deadline);
    }
}

/* Judges the end of an answer. Returns false if another answer comes instead. */
static bool judge_end(struct exchange *x)
{
    if (is_judged_away(x))
        return false;
    if (x->now.unpack != NULL && http_decoder_end(x->now.unpack) != 0) {
        exchange_failed(x, UPSTREAM_UNFINISHED);
        return false;
    }
    if (x->now.scan != EXCHANGE_SCAN_NONE)
        http_usage_finish(&x->usage);
    if (x->now.scan != EXCHANGE_SCAN_USAGE)
        return true;
    if (exchange_hold_judge_event(x))
        return false;
    if (exchange_unfinished(x)) {
        exchange_failed(x, UPSTREAM_UNFINISHED);
        return false;
    }
    exchange_judge_error(x);
    return true;
}

void exchange_ended(struct exchange *x)
{
    (void)exchange_disconnected(x);
    if (cuts_ids(x)) {
        http_ids_cut_end(&x->ids->cut);
        gather_without_ids(x, slice_of("", 0));
    }
    if (x->now.cuts_usage) { /* no event will be complete any more */
        x->now.cut.passes = true;
        gather_without_usage(x, slice_of("", 0));
    }
    if (!judge_end(x))
        return;
    flush(x, true);
    exchange_finish(x);
}

void exchange_client_drained(struct exchange *x)
{
    if (x->now.upstream != NULL && !client_congested(x->client))
        upstream_resume(x->now.upstream);
}
