/* Takes time and size limits from the settings, at the start and after changes. Runs time limits
 * that have ended. */
#include "base/err.h"
#include "node/proxy/proxy_internal.h"

/* Returns `ms`, or, if 0 means no limit, a time that never ends. For queues that are needed even
 * without a limit: for their order, or because a limit set later applies to requests under way. */
static uint64_t or_never(uint64_t ms)
{
    return ms > 0 ? ms : UINT64_MAX / 4;
}

/* Takes over the aliases, which were checked when loaded. Without memory the old ones stay. */
static void take_aliases(struct proxy *p)
{
    struct node_aliases fresh;
    struct node_alias_fault fault;
    if (node_aliases_make(&fresh, &p->config.options->model_alias, &fault) != ERR_OK)
        return;
    node_aliases_count_on(&fresh, &p->aliases);
    node_aliases_free(&p->aliases);
    p->aliases = fresh;
}

/* Takes over the settings stored in another form. All others are read at each use. */
static void take_settings(struct proxy *p)
{
    const struct node_options *o = p->config.options;
    const uint64_t token_ms = o->upstream_first_token_timeout_ms;
    const bool automatic = token_ms == NODE_OPTION_AUTO;
    const uint64_t idle_ms = o->upstream_idle_timeout_ms;
    const uint64_t wait_ms[PROXY_LIMITS] = {
        [PROXY_CLIENT_HEAD] = o->client_head_timeout_ms,
        [PROXY_CLIENT_IDLE] = or_never(o->client_idle_timeout_ms),
        [PROXY_ADMIN_IDLE] = PROXY_ADMIN_IDLE_MS,
        [PROXY_ADMIN_BODY] = or_never(o->client_body_timeout_ms),
        [PROXY_ADMIN_WRITE] = or_never(o->client_write_timeout_ms),
        [PROXY_CLIENT_BODY] = o->client_body_timeout_ms,
        [PROXY_CLIENT_BODY_TOTAL] = or_never(o->client_body_total_timeout_ms),
        [PROXY_CLIENT_WRITE] = o->client_write_timeout_ms,
        [PROXY_CLIENT_LINGER] = PROXY_LINGER_MS,
        [PROXY_CLIENT_SHORT] = PROXY_LINGER_SHORT_MS,
        [PROXY_CLIENT_FRESH] = PROXY_FRESH_MS,
        [PROXY_CLIENT_PARTING] = PROXY_PARTING_MS,
        [PROXY_UPSTREAM_CONNECT] = o->upstream_connect_timeout_ms,
        [PROXY_UPSTREAM_FIRST_TOKEN] = automatic ? PROXY_FIRST_TOKEN_MIN_MS : token_ms,
        [PROXY_UPSTREAM_AGAIN] = PROXY_LOOK_MS,
        [PROXY_UPSTREAM_FIRST_BYTE] = automatic ? PROXY_FIRST_TOKEN_MAX_MS : token_ms,
        [PROXY_UPSTREAM_WHOLE_ANSWER] = o->upstream_whole_answer_timeout_ms,
        [PROXY_UPSTREAM_IDLE] = idle_ms == NODE_OPTION_AUTO ? PROXY_IDLE_MS : idle_ms,
        [PROXY_UNPACK] = 1, /* the next tick */
        [PROXY_UPSTREAM_KEEPALIVE] = o->upstream_keepalive_ms,
        [PROXY_STREAM_HOLD] = o->stream_hold_ms,
        [PROXY_RETRY_FIRST] = 20,
        [PROXY_RETRY_FIRST + 1] = 65,
        [PROXY_RETRY_FIRST + 2] = 110,
        [PROXY_RETRY_LAST] = 150,
        [PROXY_REQUEST] = or_never(o->request_timeout_ms),
        [PROXY_QUEUE] = or_never(o->queue_timeout_ms),
        [PROXY_QUEUE_ALONE] = ADMISSION_ALONE_MS,
        [PROXY_QUEUE_APART] = ADMISSION_APART_MS,
        [PROXY_LISTS] = PROXY_LISTS_MS,
        [PROXY_FETCH] = o->health_timeout_ms,
        [PROXY_FETCH_SGLANG] = o->health_timeout_sglang_ms,
        [PROXY_FETCH_CONNECT] =
            o->health_timeout_ms < PROXY_QUICK_MS ? o->health_timeout_ms : PROXY_QUICK_MS,
        [PROXY_FETCH_PATIENT] = o->upstream_whole_answer_timeout_ms > 0
                                    ? o->upstream_whole_answer_timeout_ms
                                    : PROXY_CONTROL_MS,
        [PROXY_FETCH_FAILED] = 1,
    };
    for (unsigned i = 0; i < PROXY_LIMITS; i++)
        deadline_queue_limit(&p->limit[i], wait_ms[i]);
    take_aliases(p);
    p->limits.fields_max = (unsigned)o->headers_max;
    p->admission.queue.length_max = o->queue_max;
    p->segments.bytes_max = o->buffered_bytes_max;
    budget_share(&p->admission.budget, o->retry_budget);
}

void proxy_limits_begin(struct proxy *p)
{
    for (unsigned i = 0; i < PROXY_LIMITS; i++)
        deadline_queue_init(&p->limit[i], 0);
    p->limits = http_limits_default;
    p->limits.head_bytes_max = p->config.options->head_bytes_max;
    p->engines.limits = (struct http_limits){.head_bytes_max = PROXY_ENGINE_HEAD_BYTES_MAX,
                                             .target_bytes_max = PROXY_ENGINE_HEAD_BYTES_MAX,
                                             .fields_max = HTTP_FIELDS_MAX};
    take_settings(p);
}

void proxy_renew(struct proxy *p, uint64_t now_ms)
{
    p->now_ms = now_ms;
    take_settings(p);
    p->due_ms = 0;
    p->admission.due = true; /* there may be room now */
}

void proxy_limits_run(struct proxy *p)
{
    p->due_ms = UINT64_MAX;
    for (unsigned i = 0; i < PROXY_LIMITS; i++) {
        deadline_run(&p->limit[i], p->now_ms);
        const struct deadline *first = deadline_first(&p->limit[i]);
        if (first != NULL)
            proxy_armed(p, first);
    }
}

uint64_t proxy_due_ms(const struct proxy *p)
{
    uint64_t soon = p->ticked_ms + PROXY_TICK_MS;
    uint64_t due = p->ticked_ms + PROXY_TICK_IDLE_MS;
    if (p->due_ms < due)
        due = p->due_ms;
    return p->stats.requests_open > 0 || p->engines.pool_count > 0 || due < soon ? soon : due;
}
