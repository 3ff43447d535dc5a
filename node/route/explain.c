/* The router's beliefs and the reasons for a choice, as JSON for operators. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/json_write.h"
#include "node/cluster/replication.h"
#include "node/replica/learned.h"
#include "node/replica/standing.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

enum { NAMES_SHOWN_MAX = 16 }; /* models shown for each replica */

/* Writes the replica's context length in tokens; null: unknown. */
static void put_context(struct json_writer *w, const struct node_router *r, unsigned replica)
{
    uint32_t context = node_router_context(r, replica);
    json_put_known(w, "context_tokens", context > 0, context);
}

static void explain_candidate(struct json_writer *w, const struct node_router *r,
                              const struct node_candidate *c)
{
    json_object_begin(w);
    json_put_slice(w, "replica", node_replica_name(&r->replicas[c->replica]));
    put_context(w, r, c->replica);
    json_put_cstr(w, "cache_from", node_router_cache_source(r, c->replica));
    node_candidate_write(c, true, true, w);
    json_object_end(w);
}

static bool is_candidate(const struct node_router *r, unsigned replica)
{
    for (unsigned i = 0; i < r->candidate_count; i++) {
        if (r->candidates[i].replica == replica)
            return true;
    }
    return false;
}

static enum node_health health_of(const struct node_router *r, const struct node_replica *k)
{
    enum node_health health = node_replica_health(&r->replicas[k->rank.server]);
    return health == NODE_HEALTH_UP && k->draining ? NODE_HEALTH_DRAINING : health;
}

enum { WHY_BYTES = NODE_STANDING_TEXT_BYTES };

/* The reason why the router does not ask the replica for the model, a literal; NULL: the router may
 * ask. */
static const char *why_not_of_model(const struct node_router *r, unsigned replica,
                                    const struct node_request *request, uint64_t now_ms)
{
    unsigned server = r->replicas[replica].rank.server;
    if (node_replica_set_has(&r->servers.asked, server))
        return NULL;
    return node_models_denied(r->models, server, request->model, now_ms)
               ? "answered lately that it does not know the model"
               : "does not serve the model";
}

/* The reason why a healthy replica is left out: a literal, or text written to `room`, of WHY_BYTES
 * bytes. */
static const char *why_not_asked(const struct node_router *r, unsigned replica,
                                 const struct node_request *request, char *room)
{
    const struct node_replica *k = &r->replicas[replica];
    struct node_need need = node_router_need(r, request);
    if (node_router_is_unsure(r, k->rank.server))
        return "has listed no models, and others list this one";
    if (node_router_fit(r, replica, &need) != NODE_FIT_WELL) {
        bool not = node_router_fit(r, replica, &need) == NODE_FIT_NOT;
        (void)snprintf(room, WHY_BYTES, "its context of %" PRIu32 " tokens %s too short",
                       node_router_context(r, replica), not ? "is" : "may be");
        return node_router_context(r, replica) > 0 ? room : "its context length is not known";
    }
    if (r->replicas[k->rank.server].server.no_place)
        return "this router has no room for another connection to it";
    if (node_replica_own_requests(&r->replicas[k->rank.server]) >= r->config.replica_requests_max)
        return "at replica-requests-max";
    return r->replicas[k->rank.server].server.models_stale
               ? "is asked for its models: it may be another engine"
               : "another replica is preferred";
}

/* The reason why a replica was left out. A missing model comes first, because then no other reason
 * matters. Evidence against the replica counts only if relevant to this request. Rejections of
 * other kinds, a slow start, or a trial to come are not relevant. */
static const char *why_left_out(const struct node_router *r, unsigned replica,
                                const struct node_request *request, uint64_t now_ms, char *room)
{
    const struct node_replica *k = &r->replicas[replica];
    enum node_health health = health_of(r, k);
    struct node_standing standing = node_router_replica_standing(r, replica, now_ms);
    const char *not_of_model = why_not_of_model(r, replica, request, now_ms);
    if (health == NODE_HEALTH_UP && not_of_model != NULL)
        return not_of_model;
    bool counts = standing.why == NODE_STANDING_REJECTS
                      ? node_router_reject_avoids(r, k->rank.server)
                      : standing.avoided;
    if (health == NODE_HEALTH_UP && !counts)
        standing.why = NODE_STANDING_WELL;
    if (standing.why != NODE_STANDING_WELL)
        return node_standing_text(&standing, room);
    if (health != NODE_HEALTH_UP)
        return node_health_text(health);
    return why_not_asked(r, replica, request, room);
}

/* Writes the replicas left out of the choice, with the reasons. */
static void explain_left_out(struct json_writer *w, const struct node_router *r,
                             const struct node_request *request, uint64_t now_ms)
{
    char room[WHY_BYTES];
    json_put_array(w, "left_out");
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        if (k->absent || is_candidate(r, i) || k->rank.ranks > 0)
            continue;
        json_object_begin(w);
        json_put_slice(w, "replica", node_replica_name(k));
        json_put_cstr(w, "why", why_left_out(r, i, request, now_ms, room));
        json_object_end(w);
    }
    json_array_end(w);
}

/* Writes the believed rendering of the prompt by engines, and the source of this belief. */
static void explain_rendering(struct json_writer *w, struct node_router *r,
                              const struct node_request *request)
{
    static const char *const from[] = {
        [NODE_RENDERING_KNOWN] = "known of the engines",
        [NODE_RENDERING_ANSWERS] = "cached tokens that answers report",
        [NODE_RENDERING_ROUTER] = "another router",
    };
    char text[256];
    struct node_rendered shown = request->rendered;
    if (shown.key == 0) /* another router sent the request, or all engines render the prompt
                         * alike */
        node_router_render_shown(r, request->model, &shown);
    json_put_object(w, "rendering");
    /* empty: the prompt counts as sent */
    json_put_cstr(w, "text", node_rendering_text(shown.rendering, text, sizeof text));
    const struct node_client_kind *k = node_renderings_find(r->renderings, shown.key);
    json_put_slice(w, "client", k ? slice_of(k->agent, k->agent_len) : slice_of("", 0));
    json_put_cstr(w, "form", k ? k->form : "");
    json_put_cstr(w, "from", from[k ? k->from : NODE_RENDERING_KNOWN]);
    json_put_u64(w, "answers", k ? k->taught : 0);
    json_put_bool(w, "watched", k != NULL && k->watch > 0);
    json_object_end(w);
}

/* The replica that the policy would choose now. Restores the state that a choice changes. */
static unsigned would_choose(struct node_router *r, const struct node_request *request,
                             const struct node_policy *policy)
{
    struct prng prng = r->prng;
    uint64_t turn = r->turn;
    unsigned index = node_router_choose(r, request, policy);
    r->prng = prng;
    r->turn = turn;
    return r->candidates[index].replica;
}

/* In shadow mode: finds the plain policy's choice. From then until node_router_shadow_leave() all
 * figures are those of the router's own policy. Returns -1 if shadow mode is off. */
static int shadow_begin(struct node_router *r, struct node_request *request,
                        const struct node_need *need, uint64_t now_ms)
{
    struct node_size size;
    if (!r->config.shadow ||
        node_router_evaluate(r, request, need, NULL, false, now_ms, &size) != ERR_OK)
        return -1;
    int plain = (int)would_choose(r, request, r->plain);
    return node_router_shadow_enter(r, request) ? plain : -1;
}

static const char *why_last_resort(const struct node_router *r, unsigned choice, uint64_t now_ms,
                                   char room[WHY_BYTES])
{
    const struct node_replica *k = &r->replicas[choice];
    struct node_standing standing = node_router_replica_standing(r, choice, now_ms);
    bool down = r->replicas[k->rank.server].health == NODE_HEALTH_DOWN;
    return down ? node_standing_text(&standing, room) : "";
}

int node_router_explain(struct node_router *r, const struct node_request *given, uint64_t now_ms,
                        struct buf *out)
{
    struct node_size size = {0};
    struct node_request copy = *given;
    const struct node_request *request = &copy;
    copy.no_guess = true; /* a guess due now is not shown */
    char room[WHY_BYTES];
    struct node_need need = node_router_need(r, request);
    const struct node_policy *policy = node_router_routed_by(r, request);
    int plain = shadow_begin(r, &copy, &need, now_ms);
    int err = node_router_evaluate(r, request, &need, NULL, true, now_ms, &size);
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_cstr(&w, "policy", policy->name);
    json_put_slice(&w, "model", request->model);
    json_put_slice(&w, "alias", request->alias); /* empty if another router sent the request */
    json_put_bool(&w, "fallback", request->fell_back);
    json_put_u64(&w, "tokens_least", need.least); /* fewest tokens, with the answer */
    json_put_u64(&w, "tokens_most", need.most);   /* most tokens; both 0: the request fits each
                                                   * context, or no context is known */
    json_put_double(&w, "displaced_weight", r->config.displaced_weight);
    json_put_double(&w, "decode_weight", r->config.decode_weight);
    if (err != ERR_OK) {
        r->candidate_count = 0;
        json_put_cstr(&w, "error",
                      err == ERR_NOT_FOUND ? "no replica serves the model"
                      : err == ERR_AGAIN   ? "every replica is full: at replica-requests-max, or "
                                             "without room for another connection"
                                           : "no replica can be chosen now");
    } else {
        json_put_double(&w, "prompt_tokens", size.prompt_tokens);
        json_put_double(&w, "output_tokens", size.output_tokens);
        json_put_bool(&w, "adapter", size.adapter != 0);
        json_put_u64(&w, "checkpoints", request->chain ? request->chain->length : 0);
        explain_rendering(&w, r, request);
        unsigned own = would_choose(r, request, plain >= 0 ? r->policy : policy);
        unsigned choice = plain >= 0 ? (unsigned)plain : own;
        json_put_slice(&w, "choice", node_replica_name(&r->replicas[choice]));
        json_put_slice(&w, "shadow_choice", /* empty: no shadow mode */
                       plain >= 0 ? node_replica_name(&r->replicas[own]) : slice_of("", 0));
        /* the reason why the choice is down, as all replicas are; empty: the choice is up */
        json_put_cstr(&w, "last_resort", why_last_resort(r, choice, now_ms, room));
        json_put_array(&w, "replicas");
        for (unsigned i = 0; i < r->candidate_count; i++)
            explain_candidate(&w, r, &r->candidates[i]);
        json_array_end(&w);
    }
    explain_left_out(&w, r, request, now_ms);
    json_object_end(&w);
    if (plain >= 0)
        node_router_shadow_leave(r);
    return json_writer_finish(&w);
}

static void replica_load(struct json_writer *w, const struct node_router *r,
                         const struct node_replica *k, uint64_t now_ms)
{
    double rate = k->believed.tokens_per_s;
    json_put_object(w, "load");
    json_put_u64(w, "requests", k->load.requests);
    json_put_u64(w, "prefill_tokens", k->load.prefill_tokens);
    json_put_u64(w, "context_tokens", k->load.context_tokens);
    json_put_double(w, "queue_s", node_load_queue_s(r->bookings, &k->load, rate, now_ms));
    struct crdt_load others;
    crdt_reports_load_sum(crdt_state_reports(r->crdt), (unsigned)(k - r->replicas), &others);
    json_put_u64(w, "requests_of_others", others.requests);
    json_put_u64(w, "prefill_tokens_of_others", others.prefill_tokens);
    json_object_end(w);
}

static void replica_learned(struct json_writer *w, const struct node_replica *k)
{
    json_put_object(w, "learned");
    for (unsigned i = 0; i < node_learned_rows_count; i++) {
        const struct node_learned_row *row = &node_learned_rows[i];
        json_put_double(w, row->key, row->value(k) * row->unit);
    }
    json_object_end(w);
}

static void replica_cache(struct json_writer *w, const struct node_router *r, unsigned number)
{
    const struct node_replica *k = &r->replicas[number];
    json_put_object(w, "cache");
    json_put_double(w, "tokens", node_replica_cache_tokens(k, (double)r->config.cache_tokens));
    json_put_bool(w, "told_by_engine", k->told.cache_tokens > 0);
    json_put_cstr(w, "from", node_router_cache_source(r, number));
    json_put_double(w, "size_factor", k->belief.factor);
    json_put_u64(w, "indexed_bytes", node_router_ring(r, number).total * CHECKPOINT_BLOCK_BYTES);
    json_put_double(w, "present_bytes", k->belief.present_blocks * CHECKPOINT_BLOCK_BYTES);
    json_put_u64(w, "predicted_tokens", k->cache.by_usage.predicted);
    json_put_u64(w, "actual_tokens", k->cache.by_usage.actual);
    json_object_end(w);
}

static void replica_scrape(struct json_writer *w, const struct node_replica *k, uint64_t now_ms)
{
    json_key(w, "engine_metrics");
    if (k->scraped_ms == 0) {
        json_nil(w);
        return;
    }
    json_object_begin(w);
    json_put_u64(w, "age_ms", now_ms > k->scraped_ms ? now_ms - k->scraped_ms : 0);
    json_put_double(w, "running", k->scrape.running);
    json_put_double(w, "waiting", k->scrape.waiting);
    json_put_double(w, "cache_usage", k->scrape.cache_usage);
    json_put_bool(w, "asleep", k->asleep);
    json_object_end(w);
}

/* Writes the probes that the engine refused, and the models that it is known to serve. */
static void replica_access(struct json_writer *w, const struct node_router *r, unsigned number)
{
    static const char *const paths[NODE_PROBES] = {
        [NODE_PROBE_HEALTH] = "/health",    [NODE_PROBE_METRICS] = "/metrics",
        [NODE_PROBE_MODELS] = "/v1/models", [NODE_PROBE_SERVER_INFO] = "/server_info",
        [NODE_PROBE_PING] = "/ping",        [NODE_PROBE_EVENTS] = "/kv_event_sources",
    };
    const struct node_replica *k = &r->replicas[number];
    json_put_array(w, "probes_refused");
    for (unsigned i = 0; i < NODE_PROBES; i++) {
        if ((k->server.probes_refused >> i & 1) != 0)
            json_cstr(w, paths[i]);
    }
    json_array_end(w);
    json_put_bool(w, "api_key", r->config.probes_have_key); /* true if the router has a key for
                                                             * probes */
    json_put_object(w, "models");
    json_put_array(w, "names");
    struct slice name;
    unsigned count = 0;
    for (unsigned at = 0; node_models_next(r->models, k->rank.server, &at, &name); count++) {
        if (count < NAMES_SHOWN_MAX)
            json_slice(w, name);
    }
    json_array_end(w);
    json_put_u64(w, "count", count);
    json_put_cstr(w, "from",
                  node_models_listed(r->models, k->rank.server) ? "engine"
                  : count > 0                                   ? "clients"
                                                                : "nobody");
    json_put_slice(w, "label", k->said.model);
    /* null: the replica gave a list, was not asked, or refused */
    json_put_known(w, "list_status", k->server.list_status > 0, k->server.list_status);
    json_object_end(w);
}

/* Writes whether the replica is chosen like others. If not, writes the reason and the remaining
 * time. */
static void replica_standing(struct json_writer *w, const struct node_router *r,
                             const struct node_replica *rank, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[rank->rank.server];
    unsigned replica = (unsigned)(rank - r->replicas);
    struct node_standing standing = node_router_replica_standing(r, replica, now_ms);
    char room[WHY_BYTES];
    json_put_bool(w, "avoided", standing.avoided);
    json_put_cstr(w, "why", node_standing_word(standing.why));         /* empty: nothing is wrong */
    json_put_cstr(w, "why_text", node_standing_text(&standing, room)); /* `why` as a phrase */
    json_put_bool(w, "drained", standing.drained || standing.why == NODE_STANDING_DRAINED);
    /* null: no contradicted rejections */
    json_put_known(w, "rejects_status", standing.why == NODE_STANDING_REJECTS, standing.status);
    json_put_known(w, "why_for_ms", standing.until_ms > now_ms, standing.until_ms - now_ms);
    json_put_bool(w, "backing_off", node_router_replica_backing_off(r, rank->rank.server, now_ms));
    json_put_bool(w, "leaving", k->signs.leaving);
    /* status of the last health check */
    json_put_known(w, "check_status", k->trouble.check.status > 0, k->trouble.check.status);
    /* the sign of the stall; empty: none */
    json_put_cstr(w, "stalled", node_stall_name(node_router_replica_stall(r, replica)));
}

/* Context of put_view(), which writes one router's report about a replica. */
struct view {
    struct json_writer *w;
    const struct node_router *r;
    bool elsewhere;
};

static bool put_view(void *context, uint64_t router, const struct crdt_load *load,
                     const struct crdt_sight *sight, const struct crdt_learned *learned)
{
    (void)learned;
    const struct view *v = context;
    if (router == v->r->common->self)
        return true;
    const char *name = v->r->names ? node_replication_name(v->r->names, router) : NULL;
    char id[17];
    (void)snprintf(id, sizeof id, "%016" PRIx64, router);
    json_object_begin(v->w);
    json_put_cstr(v->w, "router", name ? name : id);
    if (sight) {
        /* a replica that is only at another router is reported as down, for older builds
         * (share.c) */
        json_put_cstr(v->w, "health",
                      v->elsewhere ? "unknown"
                      : sight->health <= NODE_HEALTH_DRAINING
                          ? node_health_text((enum node_health)sight->health)
                          : "unknown");
        json_put_bool(v->w, "configured", sight->configured);
    }
    if (load) {
        json_put_u64(v->w, "requests", load->requests);
        json_put_u64(v->w, "prefill_tokens", load->prefill_tokens);
        json_put_u64(v->w, "context_tokens", load->context_tokens);
    }
    json_object_end(v->w);
    return true;
}

/* Writes the replica's row in the registry, and the other routers' reports about the replica. */
static void replica_routers(struct json_writer *w, const struct node_router *r, unsigned number)
{
    static const char *const wishes[] = {
        [CRDT_WISH_NONE] = "none", [CRDT_WISH_ADDED] = "added", [CRDT_WISH_REMOVED] = "removed"};
    const struct crdt_replica *row = node_router_row(r, number);
    json_put_bool(w, "configured", node_router_is_ours(r, number));
    /* true: the replica leaves when the name is forgotten */
    json_put_bool(w, "unnamed", node_router_replica_unnamed(r, number));
    json_put_cstr(w, "wish", wishes[row->wish]);
    json_put_object(w, "incarnation");
    json_put_u64(w, "started_ms", row->incarnation.started);
    json_put_u64(w, "raises", row->incarnation.raises);
    json_object_end(w);
    json_put_array(w, "other_routers");
    struct view view = {.w = w, .r = r, .elsewhere = node_router_only_at(r, number).len > 0};
    crdt_reports_each(crdt_state_reports(r->crdt), number, put_view, &view);
    json_array_end(w);
}

static void put_replica(struct json_writer *w, const struct node_router *r, unsigned number,
                        uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[number];
    json_object_begin(w);
    json_put_slice(w, "name", node_replica_name(k));
    json_put_known(w, "rank", k->rank.is_one, k->rank.number);
    json_put_u64(w, "ranks", k->rank.ranks); /* above 0: the ranks are chosen instead of the
                                              * address */
    struct slice only_at = node_router_only_at(r, number);
    json_put_cstr(w, "health", only_at.len > 0 ? "elsewhere" : node_health_text(health_of(r, k)));
    json_put_slice(w, "only_at", only_at); /* the only router that can use the replica; empty: all
                                            * can */
    if (k->health == NODE_HEALTH_ROUTER)   /* the router found at the address instead of an
                                            * engine */
        json_put_slice(w, "router", slice_of(k->router, k->router_len));
    replica_standing(w, r, k, now_ms);
    json_put_cstr(w, "engine", node_engine_text(k->engine));
    put_context(w, r, number);
    json_put_double(w, "weight", k->weight);
    json_key(w, "sources");
    discover_names_write(r->sources, node_router_source_name(r, node_replica_name(k)), w);
    json_put_u64(w, "chosen", r->slots[number].chosen);
    json_put_u64(w, "restarts", k->restarts);
    replica_access(w, r, number);
    replica_load(w, r, k, now_ms);
    replica_learned(w, k);
    replica_cache(w, r, number);
    json_key(w, "events");
    node_router_events_write(r, number, now_ms, w);
    replica_scrape(w, k, now_ms);
    replica_routers(w, r, number);
    json_object_end(w);
}

/* Writes an address's ranks, in order, after the address. A rank's name may be forgotten while the
 * rank is still in use. */
static void put_ranks(struct json_writer *w, const struct node_router *r, unsigned server,
                      uint64_t now_ms)
{
    int slots[NODE_RANKS_MAX];
    memset(slots, -1, sizeof slots);
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        if (k->rank.is_one && k->rank.server == server && !k->absent)
            slots[k->rank.number] = (int)i;
    }
    for (unsigned rank = 0; rank < NODE_RANKS_MAX; rank++) {
        if (slots[rank] >= 0 && node_router_row(r, (unsigned)slots[rank]))
            put_replica(w, r, (unsigned)slots[rank], now_ms);
    }
}

int node_router_replicas_json(struct node_router *r, uint64_t now_ms, struct buf *out)
{
    node_router_beliefs_now(r, now_ms);
    struct json_writer w = json_writer_of(out);
    json_array_begin(&w);
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = &r->replicas[i];
        bool shown = !k->absent || node_router_only_at(r, i).len > 0;
        if (!shown || k->rank.is_one || !node_router_row(r, i))
            continue;
        put_replica(&w, r, i, now_ms);
        if (k->rank.ranks > 0)
            put_ranks(&w, r, i, now_ms);
    }
    json_array_end(&w);
    return json_writer_finish(&w);
}
