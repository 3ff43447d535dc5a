/* Attempts to get an answer: which replica, and which one next when it fails. */
#include "node/io/exchange_parts.h"

#include "base/check.h"
#include "base/err.h"
#include "node/io/local.h"
#include "node/io/output.h"

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
    *out = (struct node_request){
        .session = session_of(x), .body_bytes = x->body->bytes, .replica_wanted = -1};
    if (x->route.kind == HTTP_PATH_MULTIPART) {
        out->model = local_multipart_model(x->body);
    } else if (x->skimming && x->skim.understood) {
        out->model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
        out->chain = http_skim_chain(&x->skim);
        out->answer_whole = !x->skim.flags[HTTP_SKIM_STREAM];
        int64_t limit = http_skim_output_max(&x->skim);
        out->output_tokens_max = limit > 0 && limit < INT32_MAX ? (uint32_t)limit : 0;
    }
    struct slice stored = exchange_stored_response(x);
    if (stored.len > 0)
        out->replica_wanted = node_affinity_get(x->shell->affinity, stored);
}

static void no_replica(struct exchange *x, int err)
{
    if (err == ERR_NOT_FOUND && x->attempts == 0) {
        struct node_request request;
        exchange_describe(x, &request);
        struct slice model = request.model;
        x->shell->stats.requests_refused[SHELL_REFUSED_MODEL]++;
        exchange_answer_error(x, 404, "NotFoundError", SLICE("model"),
                              "The model `%.*s` does not exist.",
                              model.len > 256 ? 256 : (int)model.len, model.at);
        return;
    }
    x->shell->stats.requests_refused[SHELL_REFUSED_NO_REPLICA]++;
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

/* Books a replica that was not tried yet. */
static int choose(struct exchange *x)
{
    struct shell *shell = x->shell;
    struct node_request request;
    exchange_describe(x, &request);
    x->asking_around = exchange_stored_response(x).len > 0 && request.replica_wanted < 0;
    uint64_t now = shell_now_ms(shell);
    int err =
        x->skimming && exchange_generates(x->route.kind)
            ? node_router_choose(shell->router, &request, x->excluded, now, &x->decision)
            : node_router_choose_by_load(shell->router, &request, x->excluded, now, &x->decision);
    if (err == 0) {
        x->booked = true;
        x->attempts++;
    }
    return err;
}

/* Begins to send to the replica that is booked; tries others where that fails at once. */
static void start(struct exchange *x)
{
    struct shell *shell = x->shell;
    int err;
    while ((err = upstream_start(&shell->pools[x->decision.replica], x, false, &x->upstream)) !=
           0) {
        bool full = err == ERR_FULL; /* our own limit is no failure of the replica */
        exchange_release_booking(x, full ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_CONNECT_FAILED);
        exclude(x);
        err = x->attempts > shell->options->retries_max ? ERR_UNREACHABLE : choose(x);
        if (err != 0) {
            no_replica(x, full ? ERR_FULL : err);
            return;
        }
    }
    upstream_push(x->upstream);
}

void exchange_route(struct exchange *x)
{
    int err = choose(x);
    if (err != 0)
        no_replica(x, err);
    else
        start(x);
}

/* Whether another attempt may be made, with the request whole as it was. */
static bool may_retry(const struct exchange *x)
{
    return !x->answering && !x->dropping && x->attempts <= x->shell->options->retries_max;
}

static void retry_elsewhere(struct exchange *x, enum node_outcome outcome)
{
    output_discard(x); /* the start of an answer that turned out to be none */
    exchange_release_booking(x, outcome);
    exclude(x);
    x->shell->stats.retries++;
    x->scan = EXCHANGE_SCAN_NONE;
    exchange_route(x);
}

/* --- when it fails -------------------------------------------------------------------------- */

void exchange_on_failure(struct exchange *x, enum upstream_failure failure)
{
    struct shell *shell = x->shell;
    struct upstream_pool *pool = &shell->pools[x->decision.replica];
    x->upstream = NULL;
    x->timed_out = failure == UPSTREAM_TIMEOUT;
    if (failure == UPSTREAM_STALE && !x->dropping &&
        upstream_start(pool, x, true, &x->upstream) == 0) {
        upstream_push(x->upstream);
        return; /* the same booking goes on */
    }
    enum node_outcome outcome = NODE_OUTCOME_BROKEN;
    if (failure == UPSTREAM_CONNECT_FAILED) {
        shell->stats.upstream_connect_failures++;
        outcome = NODE_OUTCOME_CONNECT_FAILED;
        upstream_pool_resolve(pool, 5000);
    } else {
        shell->stats.upstream_broken++;
    }
    log_event(shell->log, LOG_WARN, "upstream_failed", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(shell->router, x->decision.replica)),
              LOG_CSTR("what", failure == UPSTREAM_CONNECT_FAILED ? "connect"
                               : failure == UPSTREAM_TIMEOUT      ? "timeout"
                               : failure == UPSTREAM_MALFORMED    ? "malformed answer"
                                                                  : "connection broke"),
              LOG_BOOL("answering", x->answering));
    if (may_retry(x)) {
        retry_elsewhere(x, outcome);
        return;
    }
    x->outcome = outcome;
    if (x->answering) { /* the client must see that the answer is cut: no proper end of chunks */
        struct client *c = x->client;
        output_flush(x);
        exchange_release_booking(x, outcome);
        if (x->out_framing == HTTP_BODY_UNTIL_CLOSE)
            client_reset(c);
        else
            client_close(c);
        return;
    }
    output_discard(x);
    if (failure == UPSTREAM_TIMEOUT)
        exchange_answer_error(x, 504, "GatewayTimeoutError", slice_of("", 0),
                              "The replica did not answer in time.");
    else
        exchange_answer_error(x, 502, "BadGatewayError", slice_of("", 0),
                              "The replica failed before it answered.");
}

bool exchange_moves_on(struct exchange *x, unsigned status)
{
    struct shell *shell = x->shell;
    bool busy = status == 503;
    /* Asking around is no failure: each replica may be asked once. */
    bool elsewhere = x->asking_around && status == 404 && !x->answering && !x->dropping;
    if (!elsewhere && !(busy && may_retry(x)))
        return false;
    struct node_decision before = x->decision;
    struct upstream *u = x->upstream;
    exchange_release_booking(x, busy ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_OK);
    exclude(x);
    if (choose(x) != 0) {
        x->decision = before; /* nobody else: this answer goes to the client */
        return false;
    }
    x->upstream = NULL;
    upstream_abort(u);
    shell->stats.retries++;
    start(x);
    return true;
}
