/* Attempts to get an answer: which replica, and which one next when it fails. */
#include "node/proxy/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/multipart.h"

/* --- what kind of work it is ---------------------------------------------------------------- */

bool exchange_carries_prompt(enum http_path_kind kind)
{
    switch (kind) {
    case HTTP_PATH_CHAT:
    case HTTP_PATH_COMPLETIONS:
    case HTTP_PATH_RESPONSES:
    case HTTP_PATH_MESSAGES:
    case HTTP_PATH_GENERATE:
    case HTTP_PATH_TOKENS:
    case HTTP_PATH_PROMPT:
        return true;
    default:
        return false;
    }
}

/* Whether such a request makes an engine compute and changes nothing: it may be done twice. */
static bool computes(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) || kind == HTTP_PATH_MULTIPART;
}

bool exchange_answers_tokens(enum http_path_kind kind)
{
    return exchange_carries_prompt(kind) && kind != HTTP_PATH_PROMPT;
}

/* --- the choice ----------------------------------------------------------------------------- */

static struct slice session_of(const struct exchange *x)
{
    if (x->session_len > 0)
        return slice_of(x->session, x->session_len);
    if (!x->skimming || !x->skim.understood)
        return slice_of(NULL, 0);
    static const enum http_skim_name keys[] = {HTTP_SKIM_PROMPT_CACHE_KEY, HTTP_SKIM_SESSION_ID,
                                               HTTP_SKIM_USER, HTTP_SKIM_METADATA_USER_ID};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct slice value = http_skim_field(&x->skim, keys[i]);
        if (value.len > 0)
            return value;
    }
    return slice_of(NULL, 0);
}

/* The stored response that the request asks for or continues: only its maker has it. */
struct slice exchange_stored_response(const struct exchange *x)
{
    if (x->stored_id_len > 0)
        return slice_of(x->stored_id, x->stored_id_len);
    if (x->skimming && x->skim.understood)
        return http_skim_field(&x->skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID);
    return slice_of(NULL, 0);
}

void exchange_describe(const struct exchange *x, struct node_request *out)
{
    *out = (struct node_request){.session = session_of(x),
                                 .body_bytes = x->request.body->bytes,
                                 .replica_wanted = -1,
                                 .model_likely = x->model_likely};
    if (x->route.kind == HTTP_PATH_MULTIPART) {
        out->model = multipart_model(x->request.body, x->proxy->joined);
    } else if (x->skimming && x->skim.understood) {
        out->model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
        out->chain = http_skim_chain(&x->skim);
        out->answer_whole = !x->skim.flags[HTTP_SKIM_STREAM];
        int64_t limit = http_skim_output_max(&x->skim);
        out->output_tokens_max = limit > 0 && limit < INT32_MAX ? (uint32_t)limit : 0;
    }
    struct slice stored = exchange_stored_response(x);
    if (stored.len > 0)
        out->replica_wanted = node_affinity_get(x->proxy->config.affinity, stored);
}

static void no_replica(struct exchange *x, int err)
{
    if (err == ERR_NOT_FOUND && x->attempts == 0) {
        struct node_request request;
        exchange_describe(x, &request);
        struct slice model = request.model;
        x->refusal = PROXY_REFUSED_MODEL;
        exchange_answer_error(x, 404, "NotFoundError", SLICE("model"),
                              "The model `%.*s` does not exist.",
                              model.len > 256 ? 256 : (int)model.len, model.at);
        return;
    }
    if (x->attempts > 0 && err != ERR_FULL)
        exchange_answer_error(x, x->timed_out ? 504 : 502,
                              x->timed_out ? "GatewayTimeoutError" : "BadGatewayError",
                              slice_of("", 0), "No replica answered (%u tried).", x->attempts);
    else
        exchange_answer_error(x, 503, "ServiceUnavailableError", slice_of("", 0),
                              err == ERR_FULL ? "Too many requests are under way."
                                              : "No replica that serves this request is up.");
}

static void exclude(struct exchange *x)
{
    unsigned r = x->decision.replica;
    x->excluded[r / 64] |= UINT64_C(1) << (r % 64);
}

/* SGLang's native path is unknown to vLLM: those that are known to be vLLM are not asked, unless
 * there are no others. */
static void exclude_other_engines(struct exchange *x)
{
    const struct node_router *router = x->proxy->config.router;
    unsigned count = node_router_replica_count(router);
    unsigned others = 0;
    for (unsigned i = 0; i < count; i++)
        others += node_router_replica_engine(router, i) != NODE_ENGINE_VLLM;
    for (unsigned i = 0; i < count && others > 0; i++) {
        if (node_router_replica_engine(router, i) == NODE_ENGINE_VLLM)
            x->excluded[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

/* Books a replica that was not tried yet. What is asked around is a question more than work: most
 * of those asked will not have it, so nothing is recorded of them. */
static int choose(struct exchange *x)
{
    struct proxy *p = x->proxy;
    struct node_request request;
    exchange_describe(x, &request);
    x->asking_around = exchange_stored_response(x).len > 0 && request.replica_wanted < 0;
    uint64_t now = p->now_ms;
    int err = x->skimming && x->skim.understood && !x->asking_around &&
                      exchange_answers_tokens(x->route.kind)
                  ? node_router_choose(p->config.router, &request, x->excluded, now, &x->decision)
                  : node_router_choose_by_load(p->config.router, &request, x->excluded, now,
                                               &x->decision);
    if (err == 0) {
        x->booked = true;
        x->attempts++;
        x->addresses = 0;
    }
    return err;
}

/* --- sending -------------------------------------------------------------------------------- */

/* Whether a retry could need what was sent already. */
static bool body_is_kept(const struct exchange *x)
{
    return !x->answering && (x->whole || x->request.body->bytes <= EXCHANGE_RETRY_BYTES);
}

static void release_sent(struct exchange *x)
{
    if (x->upstream != NULL && !body_is_kept(x) &&
        upstream_release_sent(x->upstream, x->request.body))
        x->dropped = true;
}

void exchange_answering(struct exchange *x)
{
    x->answering = true;
    release_sent(x);
}

void exchange_push(struct exchange *x)
{
    struct upstream *u = x->upstream;
    if (u == NULL)
        return;
    upstream_push(u);
    release_sent(x);
    uint64_t unsent = x->request.body->bytes - u->body_sent;
    if (unsent > EXCHANGE_SEND_BYTES_HIGH && !x->whole)
        client_hold_body(x->client);
    else if (unsent < EXCHANGE_SEND_BYTES_HIGH / 2)
        client_resume_body(x->client);
}

/* Our own limit, or want of memory, is no failure of the replica. */
static bool is_ours(int err)
{
    return err == ERR_FULL || err == ERR_NOMEM;
}

void exchange_start(struct exchange *x)
{
    struct proxy *p = x->proxy;
    int err;
    while ((err = upstream_start(&p->pools[x->decision.replica], x, &x->request, false,
                                 &x->upstream)) != 0) {
        bool full = is_ours(err);
        exchange_release_booking(x, full ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_CONNECT_FAILED);
        exclude(x);
        err = x->attempts > p->config.options->retries_max ? ERR_UNREACHABLE : choose(x);
        if (err != 0) {
            no_replica(x, full ? ERR_FULL : err);
            return;
        }
    }
    if (x->attempts > 1)
        p->stats.retries++;
    exchange_push(x);
}

void exchange_route(struct exchange *x)
{
    if (x->route.kind == HTTP_PATH_GENERATE)
        exclude_other_engines(x);
    int err = choose(x);
    if (err != 0)
        no_replica(x, err);
    else
        exchange_start(x);
}

/* Doing it twice is as good as doing it once (RFC 9110, section 9.2.2). */
static bool is_idempotent(enum http_method method)
{
    switch (method) {
    case HTTP_METHOD_GET:
    case HTTP_METHOD_HEAD:
    case HTTP_METHOD_OPTIONS:
    case HTTP_METHOD_PUT:
    case HTTP_METHOD_DELETE:
        return true;
    default:
        return false;
    }
}

/* Whether another attempt may be made, with the request whole as it was. */
static bool may_retry(const struct exchange *x)
{
    if (x->answering || x->dropped || x->attempts > x->proxy->config.options->retries_max)
        return false;
    if (!x->reached || is_idempotent(x->method))
        return true;
    /* Computing a prompt twice changes nothing but the load. When an engine is silent for so long
     * that time is up, it has most likely queued the prompt: a second one would queue it again. */
    return !x->timed_out && computes(x->route.kind);
}

/* The start of an answer that turned out to be none: the next one begins from nothing. */
static void forget_answer(struct exchange *x)
{
    client_discard(x->client);
    if (x->status != 0)
        x->client->last = x->last_asked;
    x->scan = EXCHANGE_SCAN_NONE;
    x->status = 0;
    x->outcome = NODE_OUTCOME_OK;
    x->first_token = false;
    x->first_byte_ms = 0;
}

static void retry_elsewhere(struct exchange *x, enum node_outcome outcome)
{
    exchange_release_booking(x, outcome);
    exclude(x);
    forget_answer(x);
    exchange_route(x);
}

/* --- when it fails -------------------------------------------------------------------------- */

static const char *failure_text(enum upstream_failure failure)
{
    switch (failure) {
    case UPSTREAM_CONNECT_FAILED:
        return "connect";
    case UPSTREAM_TIMEOUT:
        return "timeout";
    case UPSTREAM_MALFORMED:
        return "malformed answer";
    default:
        return "connection broke";
    }
}

/* The same replica once more, under the same booking: nothing says that it failed. ERR_AGAIN: that
 * is not the case; else what upstream_start() says. */
static int again(struct exchange *x, struct pool *pool, enum upstream_failure failure)
{
    bool stale = failure == UPSTREAM_STALE && !x->dropped;
    bool other_address = failure == UPSTREAM_CONNECT_FAILED && ++x->addresses < pool->address_count;
    if (!stale && !other_address)
        return ERR_AGAIN;
    int err = upstream_start(pool, x, &x->request, true, &x->upstream);
    if (err == 0)
        exchange_push(x);
    return err;
}

void exchange_failed(struct exchange *x, enum upstream_failure failure)
{
    struct proxy *p = x->proxy;
    struct pool *pool = &p->pools[x->decision.replica];
    exchange_hold_drop(x);
    /* A reused connection that closed without a word had closed before the request came. */
    x->reached = failure != UPSTREAM_STALE && x->upstream != NULL && x->upstream->head_sent > 0;
    x->upstream = NULL;
    x->timed_out = failure == UPSTREAM_TIMEOUT;
    int err = again(x, pool, failure);
    if (err == 0)
        return;
    enum node_outcome outcome = NODE_OUTCOME_BROKEN;
    if (failure == UPSTREAM_STALE && is_ours(err)) {
        outcome = NODE_OUTCOME_ENGINE_BUSY;
    } else if (failure == UPSTREAM_CONNECT_FAILED) {
        p->stats.upstream_connect_failures++;
        outcome = NODE_OUTCOME_CONNECT_FAILED;
        pool_resolve(pool, 5000);
    } else if (failure != UPSTREAM_TIMEOUT) {
        p->stats.upstream_broken++;
    }
    log_event(p->config.log, LOG_WARN, "upstream_failed", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(p->config.router, x->decision.replica)),
              LOG_CSTR("what", failure_text(failure)), LOG_BOOL("answering", x->answering));
    if (may_retry(x)) {
        retry_elsewhere(x, outcome);
        return;
    }
    x->outcome = outcome;
    if (x->answering) { /* the client must see that the answer is cut: no proper end of chunks */
        if (client_has_gathered(x->client))
            x->bytes_out += client_flush(x->client, x->out_framing == HTTP_BODY_CHUNKED, false);
        exchange_finish_cut(x);
        return;
    }
    client_discard(x->client);
    if (failure == UPSTREAM_TIMEOUT)
        exchange_answer_error(x, 504, "GatewayTimeoutError", slice_of("", 0),
                              "The replica did not answer in time.");
    else
        exchange_answer_error(x, 502, "BadGatewayError", slice_of("", 0),
                              "The replica failed before it answered.");
}

int exchange_choose_another(struct exchange *x, enum node_outcome outcome)
{
    struct node_decision before = x->decision;
    exchange_release_booking(x, outcome);
    exclude(x);
    int err = choose(x);
    if (err != 0)
        x->decision = before;
    return err;
}

bool exchange_moves_on(struct exchange *x, unsigned status)
{
    struct proxy *p = x->proxy;
    bool busy = status == 503;
    x->reached = true;
    x->timed_out = false;
    /* Asking around is no failure: each replica may be asked once, if that is little effort. */
    bool elsewhere = x->asking_around && status == 404 && !x->answering && !x->dropped &&
                     (x->request.body->bytes <= EXCHANGE_ASK_BYTES ||
                      x->attempts <= p->config.options->retries_max);
    if (!elsewhere && !(busy && may_retry(x)))
        return false;
    struct upstream *u = x->upstream;
    if (exchange_choose_another(x, busy ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_OK) != 0)
        return false; /* nobody else: this answer goes to the client */
    x->upstream = NULL;
    upstream_abort(u);
    exchange_start(x);
    return true;
}

void exchange_fail_silent(struct pool *pool, uint64_t silent_ms)
{
    struct upstream *u; /* failing one may close others or open new ones elsewhere: start over */
    while ((u = upstream_find_silent(pool, silent_ms)) != NULL) {
        struct exchange *x = u->exchange;
        u->any_byte = true; /* not a stale connection: the engine is gone */
        enum upstream_failure failure = upstream_fail(u, UPSTREAM_BROKEN);
        if (x != NULL)
            exchange_failed(x, failure);
    }
}
