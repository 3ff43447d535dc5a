/* Asks engines for a prompt's token ids. The reader of an engine's KV events does not always find a
 * prompt's blocks by structure (node/kv/reader.h). vLLM returns the ids on request
 * (return_token_ids). So the router requests them for some prompts, hashes them as they arrive
 * (node/kv/asked.h), and removes them from the answer. The client gets the same body as if the ids
 * had not been requested. Only the Content-Length is missing.
 *
 * vLLM before 0.10.2 ignores the field. SGLang has another name for the field, and refuses it in
 * streams, so SGLang is never asked. */
#include <stdlib.h>

#include "base/check.h"
#include "node/kv/readers.h"
#include "node/proxy/engine/pool.h"
#include "node/proxy/exchange/exchange_internal.h"
#include "node/route/kv_events.h"

const struct slice exchange_ids_question = SLICE("\"return_token_ids\":true,");

/* --- the choice of prompts ------------------------------------------------------------------ */

/* Returns true if the prompt has a name space (such as a cache_salt). The blocks' hashes depend on
 * it, but the token ids do not. */
static bool has_space(const struct http_skim *s)
{
    static const enum http_skim_name names[] = {HTTP_SKIM_CACHE_SALT, HTTP_SKIM_EXTRA_KEY,
                                                HTTP_SKIM_LORA, HTTP_SKIM_PREVIOUS_RESPONSE_ID};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http_skim_field(s, names[i]).len > 0 || http_skim_is_odd(s, names[i]))
            return true;
    return false;
}

static enum kv_want want_of(const struct exchange *x, const struct chain *chain)
{
    const struct kv_readers *readers = x->proxy->config.kv_readers;
    uint64_t ids[CHAIN_POINTS_MAX];
    if (readers == NULL)
        return KV_WANT_MAYBE;
    for (unsigned i = 0; i < chain->length; i++)
        ids[i] = chain->points[i].id & 0xffffffffffff;
    return kv_readers_want_asked(readers, ids, chain->length);
}

bool exchange_ids_wanted(struct exchange *x)
{
    struct proxy *p = x->proxy;
    const struct chain *chain = http_skim_chain(&x->skim);
    double share = p->config.options->kv_ask / 100;
    if (share == 0 || !node_router_events_can_ask(p->config.router) || !x->asks_plain ||
        x->minor == 0 || chain->length == 0 || chain->chunks || has_space(&x->skim) ||
        x->skim.flags[HTTP_SKIM_OWN_IDS] || chain->bytes > PROXY_IDS_BYTES_MAX)
        return false;
    return kv_budget_ask(&p->exchanges.ids_budget, share, chain->bytes, want_of(x, chain));
}

/* --- an attempt ----------------------------------------------------------------------------- */

static bool may_ask(struct exchange *x)
{
    struct proxy *p = x->proxy;
    uint64_t until_ms = p->engines.pools[x->now.decision.server].no_ids_ms;
    if (x->ids_refused || x->alive || x->asking || p->now_ms < until_ms)
        return false;
    if (x->ids != NULL)
        return true;
    if (p->exchanges.ids_open >= PROXY_IDS_OPEN_MAX || (x->ids = calloc(1, sizeof *x->ids)) == NULL)
        return false;
    p->exchanges.ids_open++;
    return true;
}

void exchange_ids_aim(struct exchange *x)
{
    struct proxy *p = x->proxy;
    uint32_t block = node_router_events_asks(p->config.router, &x->now.decision);
    x->now.ids_block = block > 0 && may_ask(x) ? block : 0;
    if (x->now.ids_block == 0) {
        memset(x->ids_field, ' ', exchange_ids_question.len);
        return;
    }
    uint64_t bytes = http_skim_chain(&x->skim)->bytes;
    memcpy(x->ids_field, exchange_ids_question.at, exchange_ids_question.len);
    kv_budget_spend(&p->exchanges.ids_budget, bytes);
    p->stats.ids_asked++;
    p->stats.ids_asked_bytes += bytes;
}

/* --- the answer ----------------------------------------------------------------------------- */

static void on_id(void *context, uint32_t id)
{
    struct exchange_ids *ids = context;
    kv_asked_token(&ids->asked, id);
}

/* Stops asking a replica that sends no ids, for PROXY_IDS_PAUSE_MS. */
static void pause_asking(const struct exchange *x)
{
    struct proxy *p = x->proxy;
    p->engines.pools[x->now.decision.server].no_ids_ms = p->now_ms + PROXY_IDS_PAUSE_MS;
}

void exchange_ids_begin(struct exchange *x, const struct http_head *head)
{
    bool good = head->status / 100 == 2;
    if (good && x->ids_refused)
        pause_asking(x);
    if (x->now.ids_block == 0 || !good || x->now.scan != EXCHANGE_SCAN_USAGE ||
        (x->now.unpack == NULL && http_coding_of(head) != HTTP_CODING_NONE))
        return;
    const struct http_ids_user user = {on_id, x->ids};
    kv_asked_begin(&x->ids->asked, &x->proxy->config.secret, x->now.ids_block);
    http_ids_cut_init(&x->ids->cut, !exchange_is_json(head), &user);
    x->ids->cuts = true;
    if (x->out_framing == HTTP_BODY_LENGTH) /* the answer gets shorter */
        x->out_framing = HTTP_BODY_CHUNKED;
}

void exchange_ids_told(const struct exchange *x)
{
    if (x->ids == NULL || !x->ids->cuts)
        return;
    if (x->ids->cut.prompts == 0 && x->usage.done && !x->usage.error)
        pause_asking(x);
    if (x->ids->cut.prompts == 1 && (int64_t)x->ids->asked.tokens == x->usage.prompt_tokens)
        node_router_events_tokens(x->proxy->config.router, &x->now.decision,
                                  http_skim_chain(&x->skim), &x->ids->asked,
                                  x->usage.cached_tokens);
}

void exchange_ids_forget(struct exchange *x)
{
    if (x->ids == NULL || !x->ids->cuts)
        return;
    http_ids_cut_free(&x->ids->cut);
    kv_asked_end(&x->ids->asked);
    x->ids->cuts = false;
}

void exchange_ids_free(struct exchange *x)
{
    if (x->ids == NULL)
        return;
    exchange_ids_forget(x);
    free(x->ids);
    x->ids = NULL;
    x->proxy->exchanges.ids_open--;
}
