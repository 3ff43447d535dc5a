/* Model aliases (node/settings/aliases.h). In the body for an engine, only the model's name
 * changes, to the real name. The router's beliefs about caches use the real name too, because
 * requests by the alias and by the real name share the engines' caches.
 *
 * If an alias is split between models, a conversation stays with one model. The client's session
 * selects the model, or if there is none the prompt's beginning. All routers select the same model.
 * The next model is tried only if no replica of the previous one can be chosen, never because a
 * replica is slow or full. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "http/forward.h"
#include "http/multipart.h"
#include "node/settings/aliases.h"

static struct node_alias *alias_of(const struct exchange *x)
{
    return x->alias_len > 0 ? node_alias_find(&x->proxy->aliases, slice_of(x->alias, x->alias_len))
                            : NULL;
}

static uint64_t side_hash(const struct exchange *x)
{
    const struct hash_secret *secret = &x->proxy->config.secret;
    uint64_t words[] = {hash64(secret, x->alias, x->alias_len), exchange_conversation(x)};
    return hash64(secret, words, sizeof words);
}

/* --- the body ------------------------------------------------------------------------------- */

/* Writes the model into the body. `has_length`: the head for the engine has a Content-Length.
 * Returns false if there is no memory; then nothing has changed. */
static bool body_edit(struct exchange *x, struct slice model, bool has_length)
{
    struct body *body = x->request.body;
    char text[HTTP_SKIM_FIELD_MAX + 2] = "\""; /* no escapes needed: is_model() */
    uint64_t at;
    size_t gone, quote = x->form ? 0 : 1;
    CHECK(model.len <= HTTP_SKIM_FIELD_MAX);
    if (x->form) {
        gone = http_multipart_model(body, x->proxy->joined, &at).len;
    } else {
        at = x->skim.model_at;
        gone = (size_t)x->skim.model_bytes;
    }
    memcpy(text + quote, model.at, model.len);
    if (quote > 0)
        text[1 + model.len] = '"';
    if (body->refs != 1 || buf_reserve(&x->request.head, HTTP_LENGTH_ROOM) != ERR_OK ||
        body_replace(&x->proxy->segments, body, at, gone, slice_of(text, model.len + 2 * quote)) !=
            ERR_OK)
        return false;
    if (has_length)
        CHECK(http_forward_length_change(&x->request.head, body->bytes) == ERR_OK);
    return true;
}

/* Reads the prompt again, because the chain depends on the model in the body. */
static void skim_again(struct exchange *x)
{
    exchange_skim_begin(x);
    for (const struct segment *s = x->request.body->first; s != NULL; s = s->next)
        http_skim_feed(&x->skim, s->data, s->len);
    http_skim_end(&x->skim);
    exchange_render(x);
}

/* --- the choice of the model ---------------------------------------------------------------- */

/* An alias's models, in the order in which this request tries them. */
struct targets {
    const struct node_alias *alias;
    unsigned count;
    uint8_t order[NODE_ALIAS_TARGETS_MAX];
};

static struct targets targets_of(const struct exchange *x, const struct node_alias *alias)
{
    struct targets t = {.alias = alias};
    t.count = node_alias_order(alias, x->alias_hash, t.order);
    return t;
}

static struct slice model_at(const struct targets *t, unsigned i)
{
    return t->alias->targets[t->order[i]].model;
}

/* Returns the index of the first target from `from` on with a replica able to serve now; t->count:
 * none. A stored response exists only at the replica that made it. */
static unsigned first_up(const struct exchange *x, const struct targets *t, unsigned from)
{
    struct node_router *router = x->proxy->config.router;
    struct node_request request;
    exchange_describe(x, &request);
    for (unsigned i = from; i < t->count; i++) {
        request.model = model_at(t, i);
        bool here =
            request.replica_wanted >= 0 &&
            node_router_replica_serves(router, (unsigned)request.replica_wanted, request.model);
        if (here || (request.replica_wanted < 0 &&
                     node_router_model_up(router, &request, &x->excluded, x->proxy->now_ms)))
            return i;
    }
    return t->count;
}

/* Returns the alias that the body names; NULL: none. Stores the alias's name in `x`, and a hash of
 * the alias and the conversation, which selects the model. */
static struct node_alias *note(struct exchange *x)
{
    struct slice name = exchange_body_model(x);
    struct node_alias *alias = name.len > 0 ? node_alias_find(&x->proxy->aliases, name) : NULL;
    if (alias == NULL)
        return NULL;
    memcpy(x->alias, name.at, name.len);
    x->alias_len = (uint8_t)name.len;
    x->alias_hash = side_hash(x);
    return alias;
}

/* Returns the model to try first, and stores its position in x->alias_at. */
static struct slice pick(struct exchange *x, const struct node_alias *alias)
{
    const struct targets t = targets_of(x, alias);
    unsigned first = first_up(x, &t, 0);
    x->alias_at = (uint8_t)(first < t.count ? first : 0);
    x->fell_back = x->alias_at > 0 && exchange_stored_response(x).len == 0;
    return model_at(&t, x->alias_at);
}

void exchange_alias_look(struct exchange *x)
{
    const struct node_alias *alias = note(x);
    if (alias != NULL)
        http_skim_model_set(&x->skim, pick(x, alias));
}

bool exchange_alias_apply(struct exchange *x)
{
    if (x->proxy->aliases.count == 0)
        return true;
    const struct node_alias *alias = note(x);
    if (alias == NULL)
        return true;
    struct slice model = pick(x, alias);
    if (!body_edit(x, model, !x->chunked_body)) {
        exchange_refuse_because(x->client, REFUSED_MEMORY);
        return false;
    }
    if (x->skimming)
        http_skim_model_set(&x->skim, model);
    return true;
}

/* Returns true if the request may be sent again with another model. While a rejection is open, the
 * request must stay the same. */
static bool may_change(const struct exchange *x)
{
    return !x->kept.open && !x->asking && !x->dropped && !exchange_is_committed(x) &&
           exchange_stored_response(x).len == 0;
}

static bool change(struct exchange *x, const struct targets *t, unsigned to)
{
    if (to >= t->count || !body_edit(x, model_at(t, to), true))
        return false;
    if (x->skimming)
        skim_again(x);
    x->alias_at = (uint8_t)to;
    x->fell_back = true;
    x->doubt.open = false; /* an answer of another model says nothing about the error */
    x->model_likely = false;
    x->denied_by = 0;
    return true;
}

/* Called before the choice: switches to another model of the alias if no replica of the present
 * model can be chosen, and a replica of the other model can. */
static void aim(struct exchange *x)
{
    const struct node_alias *alias = alias_of(x);
    if (alias == NULL || x->alias_at + 1u >= alias->count || !may_change(x))
        return;
    const struct targets t = targets_of(x, alias);
    unsigned to = first_up(x, &t, x->alias_at);
    if (to != x->alias_at)
        (void)change(x, &t, to);
}

/* Called after the choice found no replica. Returns true if the body now names another model, which
 * has a replica. */
static bool next(struct exchange *x)
{
    const struct node_alias *alias = alias_of(x);
    if (alias == NULL || x->alias_at + 1u >= alias->count || !may_change(x))
        return false;
    const struct targets t = targets_of(x, alias);
    return change(x, &t, first_up(x, &t, x->alias_at + 1u));
}

int exchange_choose(struct exchange *x)
{
    if (x->alias_len == 0)
        return exchange_choose_once(x);
    aim(x);
    int err = exchange_choose_once(x);
    while ((err == ERR_UNREACHABLE || err == ERR_NOT_FOUND) && next(x))
        err = exchange_choose_once(x);
    return err;
}
