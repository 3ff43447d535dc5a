#include "node/proxy/own/models.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/fetch.h"
#include "node/proxy/engine/model_list.h"
#include "node/proxy/engine/prober.h"
#include "node/replica/model.h"

/* Merges the lists given to the router by replicas. */
static int merge_told(const struct proxy *p, struct model_merge *m)
{
    int err = 0;
    for (unsigned i = 0; i < p->engines.pool_count && err == 0; i++) {
        struct slice models = prober_models(p, i);
        if (models.len > 0)
            err = node_models_parse(models, model_merge_add, m);
    }
    return err;
}

static void answer_unknown(struct exchange *x, struct slice id)
{
    exchange_answer_error(x, exchange_because(x, REFUSED_MODEL), SLICE("model"),
                          "The model `%.*s` does not exist.", id.len > 256 ? 256 : (int)id.len,
                          id.at);
}

/* Answers for an unlisted model, as if the client had requested a completion: 503 if all of the
 * model's replicas are down, otherwise 404. */
static void answer_not_listed(struct exchange *x, struct slice id)
{
    bool allowed = x->key == NULL || access_key_allows(x->key, id);
    if (allowed && node_router_model_away(x->proxy->config.router, id))
        exchange_answer_error(x, 503, slice_of("", 0), "No replica that serves this model is up.");
    else
        answer_unknown(x, id);
}

/* --- aliases --------------------------------------------------------------------------------- */

/* Returns true if a list names any of the alias's models, so a request can be served. `*context`:
 * the models' shortest known context length; 0: none is known. */
static bool alias_listed(const struct model_merge *m, const struct node_alias *a, uint32_t *context)
{
    bool any = false;
    *context = 0;
    for (unsigned i = 0; i < a->count; i++) {
        unsigned number;
        if (!model_merge_number(m, a->targets[i].model, &number))
            continue;
        uint32_t tokens = m->list.contexts[number];
        if (tokens > 0 && (*context == 0 || tokens < *context))
            *context = tokens;
        any = true;
    }
    return any;
}

/* Writes an alias in the form in which engines list a model. The field `root` has the alias's first
 * model. */
static int put_alias(struct buf *out, const struct node_alias *a, uint32_t context)
{
    char tokens[48] = "";
    if (context > 0)
        (void)snprintf(tokens, sizeof tokens, ",\"max_model_len\":%u", context);
    return buf_printf(out,
                      "{\"id\":\"%.*s\",\"object\":\"model\",\"created\":0,"
                      "\"owned_by\":\"grapevine\",\"root\":\"%.*s\",\"parent\":null%s}",
                      SLICE_ARG(a->name), SLICE_ARG(a->targets[0].model), tokens);
}

/* Adds the aliases after the models. An alias is left out if a list has a model of the same
 * name. */
static int put_aliases(const struct exchange *x, const struct model_merge *m, bool first,
                       struct buf *out)
{
    const struct node_aliases *all = &x->proxy->aliases;
    bool any_key = x->key == NULL || x->key->models == NULL;
    int err = 0;
    for (unsigned i = 0; i < all->count && err == 0; i++) {
        const struct node_alias *a = &all->at[i];
        uint32_t context;
        if (!alias_listed(m, a, &context) || model_merge_find(m, a->name).at != NULL ||
            !(any_key || access_key_allows(x->key, a->name)))
            continue;
        if (!first)
            err = buf_append_char(out, ',');
        first = false;
        if (err == 0)
            err = put_alias(out, a, context);
    }
    return err;
}

static bool alias_away(const struct exchange *x, const struct node_alias *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (node_router_model_away(x->proxy->config.router, a->targets[i].model))
            return true;
    }
    return false;
}

/* Answers a request for the alias as a single model. */
static void answer_alias(struct exchange *x, const struct model_merge *m,
                         const struct node_alias *a)
{
    struct buf body;
    uint32_t context;
    bool allowed = x->key == NULL || access_key_allows(x->key, a->name);
    buf_init(&body, 0);
    if (!allowed || (!alias_listed(m, a, &context) && !alias_away(x, a)))
        answer_unknown(x, a->name);
    else if (!alias_listed(m, a, &context))
        exchange_answer_error(x, 503, slice_of("", 0), "No replica that serves this model is up.");
    else if (put_alias(&body, a, context) == 0)
        exchange_answer(x, 200, SLICE("application/json"), buf_slice(&body), NULL, 0);
    else
        exchange_answer_error(x, 500, slice_of("", 0), "out of memory");
    buf_free(&body);
}

/* --- the merged list ------------------------------------------------------------------------- */

/* Writes the list. If the client's key allows only certain models, writes only those. */
static int write_list(const struct exchange *x, const struct model_merge *m, struct buf *out)
{
    bool all = x->key == NULL || x->key->models == NULL;
    int err = buf_append_cstr(out, "{\"object\":\"list\",\"data\":[");
    bool first = true;
    for (unsigned i = 0; i < m->list.count && err == 0; i++) {
        if (!all && !access_key_allows(x->key, m->list.ids[i]))
            continue;
        if (!first)
            err = buf_append_char(out, ',');
        first = false;
        if (err == 0)
            err = buf_append(out, m->out.at + m->objects[i].at, m->objects[i].len);
    }
    if (err == 0)
        err = put_aliases(x, m, first, out);
    return err == 0 ? buf_append_cstr(out, "]}") : err;
}

static void answer_merged(struct exchange *x, const struct model_merge *m, struct slice wanted)
{
    const struct slice json = SLICE("application/json");
    if (wanted.at != NULL) {
        struct slice object = model_merge_find(m, wanted);
        if (object.at == NULL || (x->key != NULL && !access_key_allows(x->key, wanted)))
            answer_not_listed(x, wanted);
        else
            exchange_answer(x, 200, json, object, NULL, 0);
        return;
    }
    struct buf body;
    buf_init(&body, 0);
    if (write_list(x, m, &body) == 0)
        exchange_answer(x, 200, json, buf_slice(&body), NULL, 0);
    else
        exchange_answer_error(x, 500, slice_of("", 0), "out of memory");
    buf_free(&body);
}

static void merge_free(struct model_merge *m)
{
    if (m != NULL)
        buf_free(&m->out);
    free(m);
}

static struct model_merge *merge_anew(const struct proxy *p, struct slice wanted)
{
    struct model_merge *m = malloc(sizeof *m); /* too large for the stack */
    if (m == NULL)
        return NULL;
    model_merge_begin(m, &p->config.secret, wanted);
    if (merge_told(p, m) == 0)
        return m;
    merge_free(m);
    return NULL;
}

/* Returns the merged list; NULL: no memory. The lists are merged again only after a change, because
 * a thousand lists are a megabyte of JSON. */
static const struct model_merge *merged(struct proxy *p)
{
    uint64_t version = prober_models_version(p);
    if (p->models != NULL && p->models_version == version)
        return p->models;
    models_forget(p);
    p->models = merge_anew(p, slice_of(NULL, 0));
    p->models_version = version;
    return p->models;
}

void models_forget(struct proxy *p)
{
    merge_free(p->models);
    p->models = NULL;
}

/* Answers for a single model. If the merged list is cut, searches the replicas' lists. */
static void answer_one(struct exchange *x, const struct model_merge *m, struct slice wanted)
{
    struct model_merge *found = NULL;
    if (m->list.cut && model_merge_find(m, wanted).at == NULL)
        found = merge_anew(x->proxy, wanted);
    answer_merged(x, found != NULL ? found : m, wanted);
    merge_free(found);
}

/* --- asking replicas for a client ------------------------------------------------------------ */

/* A request for a replica's models. */
struct asked {
    struct fetch fetch;
    struct model_ask *ask;
    unsigned replica;
};

struct model_ask {
    struct exchange *x;
    struct proxy *proxy;
    struct buf lines; /* the client's authorization, as header lines */
    struct node_replica_set todo;
    unsigned next;     /* all replicas of `todo` below this number have been asked */
    unsigned open;     /* number of requests under way */
    unsigned answered; /* number of lists received */
    unsigned refused;  /* status of the first refusal; 0: none */
    struct buf refusal;
    char wanted[NODE_MODEL_ID_MAX + 1];
    struct model_merge merge;
    struct model_list list; /* scratch */
    struct asked asked[MODELS_AT_ONCE];
};

/* Returns true if the replica refuses to list models for the router, but may list them for a
 * client. The replica must be a live engine, because another router must not see the client's
 * key. */
static bool wants_asking(const struct proxy *p, unsigned replica)
{
    const struct node_router *r = p->config.router;
    if (p->engines.pools[replica].proxy == NULL || !node_router_replica_present(r, replica))
        return false;
    enum node_health health = node_router_replica_health(r, replica);
    return (node_router_replica(r, replica)->server.probes_refused >> NODE_PROBE_MODELS & 1) != 0 &&
           health != NODE_HEALTH_DOWN && health != NODE_HEALTH_ROUTER;
}

static void ask_free(struct model_ask *ask)
{
    for (unsigned i = 0; i < MODELS_AT_ONCE; i++) {
        if (ask->asked[i].ask != NULL)
            fetch_cancel(&ask->asked[i].fetch);
    }
    ask->proxy->model_asks--;
    buf_free_wiped(&ask->lines);
    buf_free(&ask->refusal);
    buf_free(&ask->merge.out);
    free(ask);
}

static void on_forget(void *context)
{
    ask_free(context);
}

/* Answers with the known lists; if all replicas refused, with the engine's own refusal. */
static void answer_asked(struct exchange *x, struct model_ask *ask)
{
    if (ask->answered > 0 || ask->merge.list.count > 0) {
        answer_merged(x, &ask->merge, ask->merge.wanted);
        return;
    }
    if (ask->refused == 0) {
        exchange_answer_error(x, 503, slice_of("", 0), "No replica listed its models.");
        return;
    }
    x->refusal = REFUSED_API_KEY;
    if (ask->refusal.len > 0 && ask->refusal.at[0] == '{')
        exchange_answer(x, ask->refused, SLICE("application/json"), buf_slice(&ask->refusal), NULL,
                        0);
    else
        exchange_answer_error(x, ask->refused, slice_of("", 0), "The engines refuse this API key.");
}

static void go_on(struct model_ask *ask);

/* Learns the replica's models from a list that the client may see, and merges the list for the
 * client. */
static void learn(struct model_ask *ask, unsigned replica, struct slice body)
{
    struct proxy *p = ask->proxy;
    if (model_list_read(&ask->list, body) != 0)
        return;
    prober_engine_found(p, replica, ask->list.engine);
    for (unsigned i = 0; i < ask->list.count; i++)
        node_models_learn(node_router_model_table(p->config.router), replica, ask->list.ids[i],
                          true);
    if (node_models_parse(body, model_merge_add, &ask->merge) == 0)
        ask->answered++;
}

static void on_listed(void *context, int err, bool refused, unsigned status, struct slice body)
{
    (void)refused;
    struct asked *a = context;
    struct model_ask *ask = a->ask;
    if (err == 0 && status == 200) {
        learn(ask, a->replica, body);
    } else if (err == 0 && (status == 401 || status == 403) && ask->refused == 0) {
        ask->refused = status;
        if (body.len <= MODELS_REFUSAL_BYTES_MAX)
            DISCARD(buf_append_slice(&ask->refusal, body));
    }
    fetch_cancel(&a->fetch);
    a->ask = NULL;
    ask->open--;
    go_on(ask);
}

static void begin(struct model_ask *ask, struct asked *a, unsigned replica)
{
    a->ask = ask;
    a->replica = replica;
    ask->open++;
    fetch_init(&a->fetch, &ask->proxy->engines.pools[replica], on_listed, a);
    fetch_get(&a->fetch, SLICE("/v1/models"), buf_slice(&ask->lines), 0);
}

/* Asks the next replicas. If none is left, answers the client. */
static void go_on(struct model_ask *ask)
{
    for (unsigned i = 0; i < MODELS_AT_ONCE; i++) {
        if (ask->asked[i].ask != NULL)
            continue;
        ask->next = node_replica_set_next(&ask->todo, ask->next, ask->proxy->engines.pool_count);
        if (ask->next == ask->proxy->engines.pool_count)
            break;
        begin(ask, &ask->asked[i], ask->next++);
    }
    if (ask->open > 0)
        return;
    exchange_wait(ask->x, NULL, NULL);
    answer_asked(ask->x, ask);
    ask_free(ask);
}

/* Copies a header line of the client's request for the engines. */
static int pass_line(struct buf *out, const struct http_head *head, const char *name)
{
    struct slice value = http_head_find(head, slice_of_cstr(name));
    return value.at == NULL ? 0 : buf_printf(out, "%s: %.*s\r\n", name, SLICE_ARG(value));
}

static void ask_replicas(struct exchange *x, const struct http_head *head, struct slice wanted)
{
    struct proxy *p = x->proxy;
    struct model_ask *ask = p->model_asks < MODELS_ASKS_MAX ? calloc(1, sizeof *ask) : NULL;
    if (ask == NULL) {
        exchange_answer_error(x, 503, slice_of("", 0), "Too many clients ask for the models now.");
        return;
    }
    p->model_asks++;
    ask->x = x;
    ask->proxy = p;
    if (wanted.at != NULL) {
        memcpy(ask->wanted, wanted.at, wanted.len);
        wanted = slice_of(ask->wanted, wanted.len);
    }
    model_merge_begin(&ask->merge, &p->config.secret, wanted);
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        if (wants_asking(p, i))
            node_replica_set_add(&ask->todo, i);
    }
    int err = pass_line(&ask->lines, head, "authorization");
    /* From Anthropic's clients; also accepted by SGLang. */
    if (err == 0)
        err = pass_line(&ask->lines, head, "x-api-key");
    if (err == 0)
        err = merge_told(p, &ask->merge);
    if (err != 0) {
        ask_free(ask);
        exchange_answer_error(x, 500, slice_of("", 0), "%s", err_text(err));
        return;
    }
    exchange_wait(x, on_forget, ask);
    go_on(ask);
}

/* --- the answer ------------------------------------------------------------------------------ */

static const char no_list[] =
    "No replica has listed its models to the router yet. Try again when an engine is up: "
    "`gvctl replicas` shows them.";

/* Returns true if any replica has sent a list, even an empty list. */
static bool any_told(const struct proxy *p)
{
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        if (prober_models(p, i).len > 0)
            return true;
    }
    return false;
}

void models_answer(struct exchange *x, const struct http_head *head, struct slice encoded_id,
                   bool one)
{
    char decoded[1024];
    struct slice wanted = slice_of(NULL, 0);
    bool absurd = one && (http_percent_decode(encoded_id, decoded, sizeof decoded, &wanted) != 0 ||
                          wanted.len == 0 || wanted.len > NODE_MODEL_ID_MAX);
    if (absurd) {
        answer_unknown(x, wanted);
        return;
    }
    struct proxy *p = x->proxy;
    bool must_ask = false;
    /* If this router checks clients' keys, they are sent to no engine. */
    for (unsigned i = 0; i < p->engines.pool_count && !must_ask && p->config.access == NULL; i++)
        must_ask = wants_asking(p, i);
    const struct model_merge *m = merged(p);
    const struct node_alias *alias = one ? node_alias_find(&p->aliases, wanted) : NULL;
    if (m == NULL)
        exchange_answer_error(x, 500, slice_of("", 0), "out of memory");
    else if (must_ask && alias == NULL && (!one || model_merge_find(m, wanted).at == NULL))
        ask_replicas(x, head, wanted);
    else if (!any_told(p))
        exchange_answer_error(x, 503, slice_of("", 0), "%s", no_list);
    else if (alias != NULL && model_merge_find(m, wanted).at == NULL)
        answer_alias(x, m, alias);
    else if (one)
        answer_one(x, m, wanted);
    else
        answer_merged(x, m, wanted);
}
