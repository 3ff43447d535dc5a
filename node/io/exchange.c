#include "node/io/exchange_parts.h"

#include <stdlib.h>

#include "base/check.h"
#include "node/io/local.h"
#include "node/io/model_list.h"
#include "node/io/output.h"

enum { EXCHANGES_KEPT = 256 };

struct exchange *exchange_new(struct client *c)
{
    struct shell *shell = c->shell;
    struct exchange *x = shell->exchange_free;
    if (x != NULL) {
        shell->exchange_free = x->next_free;
        shell->exchange_free_count--;
    } else {
        x = malloc(sizeof *x);
        if (x == NULL)
            return NULL;
        buf_init(&x->head, 0);
    }
    struct buf head = x->head;
    memset(x, 0, offsetof(struct exchange, usage));
    head.len = 0;
    x->head = head;
    x->body = body_new();
    if (x->body == NULL) {
        buf_free(&x->head);
        free(x);
        return NULL;
    }
    x->shell = shell;
    x->client = c;
    x->started_ms = shell_now_ms(shell);
    x->outcome = NODE_OUTCOME_OK;
    shell->stats.requests += !c->surplus && c->port == SHELL_PORT_CLIENT;
    shell->stats.requests_open++;
    return x;
}

static void exchange_free(struct exchange *x)
{
    struct shell *shell = x->shell;
    CHECK(!x->booked && x->upstream == NULL);
    body_unref(&shell->segments, x->body);
    x->body = NULL;
    shell->stats.requests_open--;
    if (shell->exchange_free_count >= EXCHANGES_KEPT || x->head.cap > 64 * 1024) {
        buf_free(&x->head);
        free(x);
        return;
    }
    x->next_free = shell->exchange_free;
    shell->exchange_free = x;
    shell->exchange_free_count++;
}

void exchange_pool_free(struct shell *shell)
{
    while (shell->exchange_free != NULL) {
        struct exchange *x = shell->exchange_free;
        shell->exchange_free = x->next_free;
        buf_free(&x->head);
        free(x);
    }
    shell->exchange_free_count = 0;
}

void exchange_release_booking(struct exchange *x, enum node_outcome outcome)
{
    if (!x->booked)
        return;
    x->booked = false;
    struct node_usage usage = {-1, -1, -1};
    bool computed = x->status / 100 == 2;
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        usage.prompt_tokens = x->usage.prompt_tokens;
        usage.cached_tokens = x->usage.cached_tokens;
        usage.completion_tokens = x->usage.completion_tokens;
        if (usage.completion_tokens < 0 && x->usage.token_events > 0)
            usage.completion_tokens = x->usage.token_events;
    }
    node_router_finish(x->shell->router, x->decision.booking, outcome, computed ? &usage : NULL,
                       shell_now_ms(x->shell));
}

const char *exchange_end_name(enum client_end why)
{
    static const char *const names[CLIENT_ENDS] = {
        [CLIENT_END_DONE] = "whole",          [CLIENT_END_GONE] = "client_gone",
        [CLIENT_END_SLOW] = "client_slow",    [CLIENT_END_ENGINE] = "engine_failed",
        [CLIENT_END_NO_MEMORY] = "no_memory", [CLIENT_END_REFUSED] = "refused",
        [CLIENT_END_STOPPED] = "stopped",
    };
    _Static_assert(ARRAY_LEN(((struct shell_stats *)0)->answers_cut) == CLIENT_ENDS,
                   "one counter each");
    return names[why];
}

/* The router's own health says 503 to every probe until an engine is loaded: no line for each. */
static bool has_access_line(const struct exchange *x, enum client_end why)
{
    bool bad = why != CLIENT_END_DONE || x->status >= 400 || x->outcome != NODE_OUTCOME_OK;
    bool health = x->route.kind == HTTP_PATH_HEALTH && x->route.method_allowed;
    unsigned wanted = x->shell->options->access_log;
    return x->client->port != SHELL_PORT_ADMIN &&
           (wanted == NODE_ACCESS_LOG_ALL || (wanted == NODE_ACCESS_LOG_ERRORS && bad && !health));
}

static void log_access(const struct exchange *x, enum client_end why)
{
    struct shell *shell = x->shell;
    if (!has_access_line(x, why))
        return;
    bool has_replica = x->attempts > 0;
    uint64_t now = shell_now_ms(shell);
    log_event(
        shell->log, LOG_INFO, "request", LOG_STR("id", x->request_id),
        LOG_CSTR("client", x->client->peer), LOG_CSTR("path", x->path),
        LOG_UINT("status", x->status),
        LOG_STR("replica", has_replica
                               ? node_router_replica_name(shell->router, x->decision.replica)
                               : slice_of("", 0)),
        LOG_UINT("attempts", x->attempts), LOG_UINT("ms", now - x->started_ms),
        LOG_UINT("first_byte_ms", x->first_byte_ms != 0 ? x->first_byte_ms - x->started_ms : 0),
        LOG_UINT("bytes_in", x->body->bytes), LOG_UINT("bytes_out", x->bytes_out),
        LOG_INT("prompt_tokens", x->scan ? x->usage.prompt_tokens : -1),
        LOG_INT("cached_tokens", x->scan ? x->usage.cached_tokens : -1),
        LOG_UINT("cached_predicted", x->decision.cached_tokens),
        LOG_CSTR("end", exchange_end_name(why)));
}

/* The one way out of every exchange. */
static void end(struct exchange *x, enum client_end why, enum node_outcome outcome)
{
    struct shell_stats *stats = &x->shell->stats;
    if (x->status >= 100 && x->status < 600 && !x->client->surplus &&
        x->client->port == SHELL_PORT_CLIENT)
        stats->responses[x->status / 100]++;
    if (why == CLIENT_END_GONE)
        stats->client_gone++;
    if (x->answering && why != CLIENT_END_DONE)
        stats->answers_cut[why]++;
    if (x->upstream != NULL) {
        struct upstream *u = x->upstream;
        x->upstream = NULL;
        upstream_abort(u);
    }
    if (x->asking != NULL)
        admin_forget(x);
    if (x->adding != NULL)
        admin_add_forget(x);
    if (x->model_ask != NULL)
        model_list_forget(x);
    exchange_hold_drop(x);
    exchange_release_booking(x, outcome);
    log_access(x, why);
    exchange_free(x);
}

void exchange_finish(struct exchange *x)
{
    struct client *c = x->client;
    /* A client that is already lost to us hears nothing of the end. */
    end(x, c->broken, x->outcome);
    client_answered(c);
}

void exchange_finish_cut(struct exchange *x)
{
    struct client *c = x->client;
    bool by_reset = x->out_framing == HTTP_BODY_UNTIL_CLOSE;
    end(x, CLIENT_END_ENGINE, x->outcome);
    client_answer_cut(c, by_reset);
}

void exchange_on_cut(struct exchange *x, enum client_end why)
{
    output_discard(x);
    end(x, why, NODE_OUTCOME_CLIENT_GONE);
}
