/* Fills the attention list from this router's view of the cluster: replicas and their models,
 * clients, the other routers, files. Runs twice a second (watch.c), even without viewers, so that
 * each problem's start is recorded. */
#include <stdio.h>
#include <string.h>

#include "node/admin/admin_internal.h"
#include "node/admin/figures.h"
#include "node/admin/live.h"
#include "node/replica/model.h"

enum {
    MINUTE_S = 60,
    WAIT_S = 2, /* a queue empty once in this time was a passing burst */
};

/* --- replicas --------------------------------------------------------------------------------- */

struct replicas {
    unsigned full;
    unsigned count, well; /* replicas that may be chosen; `well`: usable and not avoided */
    struct node_replica_set usable;
    struct node_replica_set hurting; /* replicas that list a model without a usable replica */
};

static bool is_shown(const struct node_router *r, unsigned i)
{
    return node_router_replica_present(r, i) && node_router_replica(r, i)->rank.ranks == 0;
}

/* True if the replica can be chosen, if only as a last resort. */
static bool is_usable(const struct node_replica *k, enum node_standing_why why)
{
    return !k->draining && (why == NODE_STANDING_WELL || why > NODE_STANDING_ASLEEP);
}

static struct replicas count_replicas(const struct node_router *r, uint64_t now_ms)
{
    struct replicas all = {0};
    for (unsigned i = 0; i < node_router_replica_count(r); i++) {
        if (!is_shown(r, i))
            continue;
        struct node_standing s = node_router_replica_standing(r, i, now_ms);
        bool usable = is_usable(node_router_replica(r, i), s.why);
        all.count++;
        all.full += s.why == NODE_STANDING_FULL;
        all.well += usable && !s.avoided;
        if (usable)
            node_replica_set_add(&all.usable, i);
    }
    return all;
}

enum trouble { FINE, OUT, AVOIDED };

/* Returns the trouble that needs attention. A drain, a restart after a drain and a slow start are
 * planned; a full queue passes by itself. */
static enum trouble trouble_of(const struct node_replica *k, enum node_standing_why why)
{
    if (k->draining || why == NODE_STANDING_WELL)
        return FINE;
    if (why < NODE_STANDING_DRAINED)
        return OUT;
    bool avoided = why == NODE_STANDING_STALLED || why == NODE_STANDING_FOUND ||
                   why == NODE_STANDING_BROKE || why == NODE_STANDING_ERRORS ||
                   why == NODE_STANDING_TRIED || why == NODE_STANDING_TRIAL ||
                   why == NODE_STANDING_REPORTED || why == NODE_STANDING_REJECTS;
    return avoided ? AVOIDED : FINE;
}

/* Returns ADMIN_FLAPS_OUTS if the replica went out so often within ADMIN_FLAPS_MS, else 0. */
static unsigned flaps(const struct admin_seen *seen, uint64_t now_ms)
{
    if (seen->outs < ADMIN_FLAPS_OUTS)
        return 0;
    uint64_t oldest_ms = seen->out_ms[seen->outs % ADMIN_FLAPS_OUTS];
    return now_ms < oldest_ms + ADMIN_FLAPS_MS ? ADMIN_FLAPS_OUTS : 0;
}

static void look_at_replica(struct admin *a, unsigned i, const struct replicas *all,
                            uint64_t now_ms, struct admin_attention_list *list)
{
    const struct node_router *r = a->config.router;
    char room[NODE_STANDING_TEXT_BYTES];
    struct node_standing s = node_router_replica_standing(r, i, now_ms);
    enum trouble trouble = trouble_of(node_router_replica(r, i), s.why);
    const char *text = node_standing_text(&s, room);
    struct admin_attention_facts facts = {.about = node_router_replica_name(r, i),
                                          .text = trouble != FINE ? text : "",
                                          .n = flaps(&a->seen[i], now_ms)};
    enum admin_attention_kind kind = trouble != OUT ? ATTENTION_REPLICA_AVOIDED
                                     : node_replica_set_has(&all->hurting, i)
                                         ? ATTENTION_REPLICA_LAST
                                         : ATTENTION_REPLICA_OUT;
    if (facts.n > 0) {
        kind = ATTENTION_REPLICA_FLAPS;
    } else {
        facts.n = all->well;
        facts.m = all->count;
    }
    if (kind == ATTENTION_REPLICA_FLAPS || trouble != FINE)
        admin_attention_add(list, kind, &facts);
}

/* Names the model's replicas, each with the trouble, as far as there is room. */
static void text_of_model(const struct node_router *r, const struct node_replica_set *serving,
                          uint64_t now_ms, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < node_router_replica_count(r) && len + 1 < size; i++) {
        char room[NODE_STANDING_TEXT_BYTES];
        if (!node_replica_set_has(serving, i) || !is_shown(r, i))
            continue;
        struct node_standing s = node_router_replica_standing(r, i, now_ms);
        int n = snprintf(out + len, size - len, "%s%.*s is %s", len > 0 ? ", " : "",
                         SLICE_ARG(node_router_replica_name(r, i)), node_standing_text(&s, room));
        len += n > 0 ? (size_t)n : 0;
    }
}

static bool any_of(const struct node_replica_set *a, const struct node_replica_set *b)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++)
        any |= a->words[i] & b->words[i];
    return any != 0;
}

static void set_join(struct node_replica_set *to, const struct node_replica_set *from)
{
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++)
        to->words[i] |= from->words[i];
}

static void look_at_models(struct admin *a, struct replicas *all, uint64_t now_ms,
                           struct admin_attention_list *list)
{
    struct node_models *models = node_router_model_table(a->config.router);
    struct node_replica_set shown = {0}, able;
    for (unsigned i = 0; i < node_router_replica_count(a->config.router); i++) {
        if (is_shown(a->config.router, i))
            node_replica_set_add(&shown, i);
    }
    for (unsigned row = 1; row <= node_models_last(models); row++) {
        const struct node_model *m = node_models_row_at(models, row);
        struct slice name = slice_of(m->name, m->name_len);
        char text[ATTENTION_TEXT_BYTES / 2];
        if (name.len == 0 || !any_of(&m->serving, &shown))
            continue;
        node_models_serving(models, name, &able);
        if (any_of(&able, &all->usable))
            continue;
        set_join(&all->hurting, &m->serving);
        text_of_model(a->config.router, &m->serving, now_ms, text, sizeof text);
        admin_attention_add(list, ATTENTION_MODEL_OUT,
                            &(struct admin_attention_facts){.about = name, .text = text});
    }
}

static void look_at_replicas(struct admin *a, uint64_t now_ms, struct admin_attention_list *list)
{
    struct replicas all = count_replicas(a->config.router, now_ms);
    static const struct node_replica_set none;
    if (memcmp(&all.usable, &none, sizeof none) == 0) {
        admin_attention_add(
            list, ATTENTION_NO_REPLICA,
            &(struct admin_attention_facts){.text = all.count == 0 ? "there are none" : ""});
        memset(&all.hurting, 0xff, sizeof all.hurting);
    } else {
        look_at_models(a, &all, now_ms, list);
    }
    if (all.full == all.count && all.count > 0)
        admin_attention_add(list, ATTENTION_ALL_FULL,
                            &(struct admin_attention_facts){.n = all.full});
    for (unsigned i = 0; i < node_router_replica_count(a->config.router); i++) {
        if (is_shown(a->config.router, i))
            look_at_replica(a, i, &all, now_ms, list);
    }
}

/* --- clients ---------------------------------------------------------------------------------- */

static void look_at_clients(const struct admin *a, struct admin_attention_list *list)
{
    struct admin_figures_sum sum = admin_figures_sum(admin_live_figures(a->live), MINUTE_S);
    const char *name = a->config.replication != NULL ? a->config.name : NULL;
    admin_attention_clients(
        list, slice_of_cstr(name != NULL ? name : ""),
        &(struct admin_attention_minute){.requests = sum.requests,
                                         .status_5xx = sum.results[NODE_RESULT_STATUS_5XX],
                                         .cut = sum.results[NODE_RESULT_CUT],
                                         .queue_full = sum.results[NODE_RESULT_QUEUE_FULL],
                                         .unauthorized = sum.unauthorized});
    uint64_t waited = admin_figures_waited(admin_live_figures(a->live), WAIT_S);
    if (waited > 0)
        admin_attention_add(list, ATTENTION_CLIENTS_WAIT,
                            &(struct admin_attention_facts){
                                .about = slice_of_cstr(name != NULL ? name : ""), .n = waited});
}

/* --- routers ---------------------------------------------------------------------------------- */

static void look_at_member(const struct node_member_look *m, struct admin_attention_list *list)
{
    struct admin_attention_facts facts = {.about = slice_of_cstr(m->name)};
    if (m->self || !m->shown || m->state == GOSSIP_LEFT)
        return;
    if (m->state == GOSSIP_DEAD) {
        admin_attention_add(list, m->old ? ATTENTION_ROUTER_OLD : ATTENTION_ROUTER_GONE, &facts);
        return;
    }
    if (m->state == GOSSIP_SUSPECT && !m->draining)
        admin_attention_add(list, ATTENTION_ROUTER_SILENT, &facts);
    facts.text = m->differs;
    if (m->differs[0] != '\0')
        admin_attention_add(list, ATTENTION_ROUTER_SETTINGS, &facts);
    facts.text = m->filtered;
    if (m->filtered[0] != '\0')
        admin_attention_add(list, ATTENTION_TCP_FILTERED, &facts);
}

static void look_at_routers(const struct admin *a, uint64_t now_ms,
                            struct admin_attention_list *list)
{
    const struct node_replication *n = a->config.replication;
    const struct admin_attention_facts none = {.n = 0};
    if (n == NULL)
        return;
    uint64_t now_us = node_replication_now_us(n);
    const char *alone = node_replication_alone(n, now_us);
    if (alone != NULL)
        admin_attention_add(list, ATTENTION_ALONE, &(struct admin_attention_facts){.text = alone});
    if (node_replication_knocked(n, now_us))
        admin_attention_add(list, ATTENTION_OTHER_CLUSTER, &none);
    enum admin_agree agree = admin_live_agree(a->live, now_ms);
    if (agree == LIVE_AGREE_DIFFER)
        admin_attention_add(list, ATTENTION_ROUTERS_DIFFER, &none);
    if (agree == LIVE_AGREE_INCOMPARABLE)
        admin_attention_add(list, ATTENTION_ROUTERS_INCOMPARABLE, &none);
    for (unsigned i = 0; i < node_replication_look_count(n); i++) {
        struct node_member_look m;
        node_replication_look(n, i, now_us, &m);
        look_at_member(&m, list);
    }
    admin_hearing_add(&a->hearing, now_ms, list);
}

/* --- the whole list --------------------------------------------------------------------------- */

void admin_attention_look(struct admin *a, uint64_t now_ms)
{
    struct admin_attention_list before = a->attention, *list = &a->attention;
    list->count = list->more = 0;
    look_at_clients(a, list);
    look_at_replicas(a, now_ms, list);
    look_at_routers(a, now_ms, list);
    if (a->config.attention != NULL)
        a->config.attention(a->config.metrics_context, list);
    admin_attention_since(list, &before, admin_unix_ms(a));
}

static int write_answer(struct admin *a, const struct admin_ask *ask, struct slice nodes,
                        struct buf *out)
{
    (void)ask, (void)nodes; /* admin_hearing() has read them */
    /* The list must be up to date: a script may just have drained a replica. */
    admin_attention_look(a, proxy_now_ms(a->proxy));
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    json_put_cstr(&w, "router", a->config.name);
    json_put_u64(&w, "now_ms", admin_unix_ms(a));
    admin_attention_write(&a->attention, &w);
    json_object_end(&w);
    return json_writer_finish(&w);
}

void admin_attention(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    bool fresh = a->hearing.taken_ms != 0 &&
                 proxy_now_ms(a->proxy) < a->hearing.taken_ms + ADMIN_ATTENTION_FRESH_MS;
    struct buf out = {0};
    if (a->config.replication != NULL && !fresh &&
        admin_ask_write(a, x, NODE_CALL_DIGESTS, slice_of("", 0), ADMIN_ATTENTION_US,
                        write_answer) == 0)
        return;
    int err = write_answer(a, NULL, slice_of("", 0), &out);
    admin_answer_json(x, err, &out);
}
