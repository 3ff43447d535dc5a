/* KV-cache events: replicas with live events, tidings about prompts and answers, and the reader's
 * reports. */
#include "node/route/kv_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crdt/marks.h"
#include "node/route/router_internal.h"

/* --- live replicas --------------------------------------------------------------------------- */

void node_router_events_follow(struct node_router *r)
{
    struct node_events *v = &r->events;
    bool told_others = v->others;
    v->any = v->others = v->can_ask = false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].absent || !node_router_has_events(r, k))
            continue;
        v->any = true;
        v->can_ask |= node_router_process_at(r, k)->engine == NODE_ENGINE_VLLM;
        v->others |= r->replicas[k].turn_events.others > 0; /* counts routers that would read next,
                                                             * too */
    }
    if (v->any && v->told == NULL) /* without memory, each prompt is reported whole */
        v->told = calloc(NODE_EVENTS_TOLD_BUCKETS, sizeof *v->told);
    if (v->others && !told_others && v->told != NULL) /* earlier tidings reached no other router */
        memset(v->told, 0, NODE_EVENTS_TOLD_BUCKETS * sizeof *v->told);
}

void node_router_events_live(struct node_router *r, unsigned replica, bool live)
{
    CHECK(replica < r->replica_count);
    r->slots[replica].events.live = live;
    node_router_events_follow(r);
}

void node_router_events_reads(struct node_router *r, unsigned replica, enum node_reads reads)
{
    CHECK(replica < r->replica_count);
    if (r->slots[replica].events.reads == reads)
        return;
    r->slots[replica].events.reads = reads;
    r->reports_taken = UINT64_MAX; /* this router's place in the order of readers may have
                                    * changed */
}

bool node_router_events_are_live(const struct node_router *r, unsigned replica)
{
    CHECK(replica < r->replica_count);
    return node_router_has_events(r, replica);
}

uint64_t node_router_events_stored(const struct node_router *r, unsigned replica)
{
    CHECK(replica < r->replica_count);
    return r->slots[replica].events.stored;
}

bool node_router_events_can_ask(const struct node_router *r)
{
    return r->events.can_ask;
}

const char *node_router_cache_source(const struct node_router *r, unsigned k)
{
    if (node_router_has_events(r, k))
        return "events";
    return r->replicas[k].cache.size_learned ? "answers" : "inferred";
}

/* --- prompts --------------------------------------------------------------------------------- */

/* A checkpoint in use is reported to readers once, and again after one to two turns of about a
 * minute (2^TURN_SHIFT ms). So a reader recovers after a lost tiding or a restart. */
enum { TURN_SHIFT = 16, STAMP_MASK = 0xffff };

static uint64_t id48(uint64_t id)
{
    return id & 0xffffffffffff;
}

static uint64_t stamp_now(const struct node_router *r)
{
    return (r->now_ms >> TURN_SHIFT) & STAMP_MASK;
}

static uint64_t *told_at(const struct node_router *r, uint64_t id)
{
    struct node_events_bucket *b = &r->events.told[id % NODE_EVENTS_TOLD_BUCKETS];
    for (unsigned i = 0; i < NODE_EVENTS_TOLD_WAYS; i++) {
        if (b->id_stamp[i] >> 16 == id48(id))
            return &b->id_stamp[i];
    }
    return NULL;
}

static bool was_told(const struct node_router *r, uint64_t id)
{
    const uint64_t *entry = r->events.told != NULL ? told_at(r, id) : NULL;
    return entry != NULL && ((stamp_now(r) - *entry) & STAMP_MASK) <= 1;
}

static void told_now(struct node_router *r, uint64_t id)
{
    if (r->events.told == NULL)
        return;
    struct node_events_bucket *b = &r->events.told[id % NODE_EVENTS_TOLD_BUCKETS];
    uint64_t *entry = told_at(r, id);
    for (unsigned i = 0; entry == NULL && i < NODE_EVENTS_TOLD_WAYS; i++)
        entry = b->id_stamp[i] == 0 ? &b->id_stamp[i] : NULL;
    if (entry == NULL)
        entry = &b->id_stamp[b->next++ % NODE_EVENTS_TOLD_WAYS];
    *entry = id48(id) << 16 | stamp_now(r);
}

static void tell_path(struct node_router *r, const struct kv_path *path)
{
    struct node_events *v = &r->events;
    if (v->user.path != NULL)
        v->user.path(v->user.context, path);
    for (unsigned from = 0; v->others && from < path->count;) {
        uint8_t bytes[CRDT_TIDING_MAX];
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        from += kv_path_write(path, from, &w);
        crdt_state_tell(r->crdt, KV_TIDING_PATH, slice_of((const char *)bytes, wire_written(&w)));
    }
}

void node_router_events_recorded(struct node_router *r, const struct chain *chain)
{
    if (!r->events.any || chain->chunks)
        return;
    unsigned at = 0;
    while (at < chain->length && was_told(r, chain->points[at].id))
        at++;
    while (at < chain->length) {
        struct kv_path path;
        path.parent = at > 0 ? id48(chain->points[at - 1].id) : 0;
        for (path.count = 0; path.count < KV_PATH_POINTS_MAX && at < chain->length; at++) {
            path.ids[path.count] = id48(chain->points[at].id);
            path.codes[path.count++] = chain->points[at].code;
            told_now(r, chain->points[at].id);
        }
        tell_path(r, &path);
    }
}

/* --- answers --------------------------------------------------------------------------------- */

static uint32_t tokens(int64_t count)
{
    return count >= 0 && count < KV_UNTOLD ? (uint32_t)count : KV_UNTOLD;
}

static uint64_t later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* True if the engine must have stored a block: it computed more than two blocks of tokens. A
 * prompt's last block is computed again even if cached, and a partial block is not stored. */
static bool stored_a_block(const struct node_router *r, const struct node_work *work,
                           const struct node_usage *usage)
{
    double block = node_replica_block_tokens(&r->replicas[work->replica]);
    if (!(block > 0))
        block = node_replica_block_tokens(node_router_process_at(r, work->replica));
    double cached =
        usage->cached_tokens >= 0 ? (double)usage->cached_tokens : (double)work->cached_tokens;
    return block > 0 && (double)usage->prompt_tokens - cached > 2 * block;
}

void node_router_events_answered(struct node_router *r, const struct node_booking_entry *e,
                                 const struct node_usage *usage, bool well, uint64_t now_ms)
{
    const struct node_work *work = &e->work;
    struct node_events *v = &r->events;
    r->slots[work->replica].events.stored += well && stored_a_block(r, work, usage);
    /* If the prompt continues a stored response, the engine puts text before the prompt that the
     * router does not know. */
    if (!v->any || work->prompt_id == 0 || work->chunks || work->continues)
        return;
    uint64_t sent_ms = node_state_cluster_ms(r->state, e->chosen_ms);
    bool began = e->first_byte_seen && !work->answer_whole;
    const struct kv_told told = {
        .slot = work->replica,
        .end = id48(work->prompt_id),
        .tail_bytes = work->tail_bytes,
        .sent_ms = sent_ms,
        .first_ms = began ? later(node_state_cluster_ms(r->state, e->first_byte_ms), sent_ms) : 0,
        .ended_ms = later(node_state_cluster_ms(r->state, now_ms), sent_ms),
        .prompt_tokens = tokens(usage->prompt_tokens),
        .cached_tokens = tokens(usage->cached_tokens),
        .output_tokens = work->several ? KV_UNTOLD : tokens(usage->completion_tokens),
        .well = well,
        .asked_block = work->asked_block,
        .asked_chain = work->asked_chain,
        .fronts = work->fronts,
    };
    if (v->user.told != NULL)
        v->user.told(v->user.context, &told);
    if (v->others) {
        uint8_t bytes[KV_TOLD_BYTES_MAX];
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        kv_told_write(&told, r->replicas[work->replica].rkey, &w);
        crdt_state_tell(r->crdt, KV_TIDING_TOLD, slice_of((const char *)bytes, wire_written(&w)));
    }
}

uint32_t node_router_events_asks(const struct node_router *r, const struct node_decision *decision)
{
    const struct node_replica *server = &r->replicas[decision->server];
    const struct node_work *work = &node_bookings_get(r->bookings, decision->booking)->work;
    if (!node_router_has_events(r, decision->replica) || server->engine != NODE_ENGINE_VLLM ||
        server->server.packs || work->prompt_id == 0 || work->chunks || work->continues ||
        work->adapter != 0 || chain_media(&work->content) > 0)
        return 0;
    double block = r->replicas[decision->replica].scrape.block_tokens;
    block = block > 0 ? block : server->scrape.block_tokens;
    return block >= 1 && block <= INT32_MAX ? (uint32_t)block : 0;
}

static struct kv_fronts fronts_of(const struct node_router *r, const struct chain *chain,
                                  const struct kv_asked *asked, uint32_t cached_tokens)
{
    struct kv_fronts fronts = {.at = {kv_asked_front(asked, cached_tokens)}};
    fronts.count = fronts.at[0].blocks > 0;
    for (unsigned i = 0; fronts.count > 0 && i < chain->length; i++) {
        const struct node_ruler_mark *m = node_ruler_at(r->ruler, chain->points[i].id);
        if (m == NULL || m->answer > 0 || fronts.count == KV_FRONTS_MAX)
            continue;
        fronts.at[fronts.count] = kv_asked_front(asked, m->tokens);
        fronts.count += fronts.at[fronts.count].blocks > 0;
    }
    return fronts;
}

void node_router_events_tokens(struct node_router *r, const struct node_decision *decision,
                               const struct chain *chain, const struct kv_asked *asked,
                               int64_t cached_tokens)
{
    struct node_work *work = &node_bookings_get(r->bookings, decision->booking)->work;
    work->asked_block = asked->block_tokens;
    work->asked_chain = asked->chain;
    if (cached_tokens > 0 && cached_tokens < INT32_MAX)
        work->fronts = fronts_of(r, chain, asked, (uint32_t)cached_tokens);
}

/* --- what others tell ------------------------------------------------------------------------ */

static bool hear_path(struct node_router *r, struct slice body)
{
    struct kv_path path;
    if (kv_path_read(body, &path) != ERR_OK)
        return false;
    r->events.user.path(r->events.user.context, &path);
    return true;
}

static bool hear_told(struct node_router *r, struct slice body)
{
    struct kv_told told;
    uint32_t rkey;
    if (kv_told_read(body, &rkey, &told) != ERR_OK)
        return false;
    int slot = crdt_registry_by_rkey(crdt_state_registry(r->crdt), rkey);
    if (slot < 0 || (unsigned)slot >= r->replica_count)
        return false;
    told.slot = (unsigned)slot;
    r->events.user.told(r->events.user.context, &told);
    return true;
}

static void on_tiding(void *context, uint64_t router, uint8_t kind, struct slice body)
{
    (void)router;
    struct node_router *r = context;
    bool heard = kind == KV_TIDING_PATH   ? hear_path(r, body)
                 : kind == KV_TIDING_TOLD ? hear_told(r, body)
                                          : false;
    r->events.passed_over += !heard;
}

void node_router_events_hear(struct node_router *r)
{
    bool reads = r->events.user.path != NULL;
    crdt_state_hear(r->crdt, reads ? on_tiding : NULL, r);
}

void node_router_events_watch(struct node_router *r, const struct node_events_user *user)
{
    CHECK(user == NULL || (user->path != NULL && user->told != NULL));
    r->events.user = user != NULL ? *user : (struct node_events_user){0};
    node_router_events_hear(r);
}

/* --- the reader's word ----------------------------------------------------------------------- */

/* Notes the generation in which an evicted block was last used. */
static void floor_note(struct node_router *r, unsigned replica, uint32_t generation)
{
    struct node_events_floor *f = &r->slots[replica].events.floor;
    uint64_t turn = r->now_ms >> TURN_SHIFT;
    if (turn != f->turn)
        *f = (struct node_events_floor){.before = f->now, .turn = turn};
    f->now = f->now == 0 || generation < f->now ? generation : f->now;
}

int node_router_events_gone(struct node_router *r, unsigned replica, uint64_t id, uint8_t code)
{
    CHECK(replica < r->replica_count);
    uint32_t generation;
    if (crdt_index_get(r->index, id, replica, code, &generation) == ERR_OK &&
        !crdt_index_is_gone(r->index, id, replica, generation))
        floor_note(r, replica, generation);
    return crdt_state_mark_gone(r->crdt, id, code, replica);
}

int node_router_events_present(struct node_router *r, unsigned replica, uint64_t id, uint8_t code)
{
    CHECK(replica < r->replica_count);
    uint32_t floor = node_router_belief_floor(r, replica);
    int news = crdt_state_mark_present(r->crdt, id, code, replica, floor);
    if (news == 1)
        node_belief_moved(&r->replicas[replica].belief);
    return news;
}

/* --- what is to be seen ---------------------------------------------------------------------- */

void node_router_events_write(const struct node_router *r, unsigned replica, uint64_t now_ms,
                              struct json_writer *w)
{
    const struct node_events_user *user = &r->events.user;
    struct kv_reading_row row;
    unsigned server = r->replicas[replica].rank.server;
    if (slice_equal(r->replicas[server].said.kv_events, SLICE("off"))) {
        row = (struct kv_reading_row){.from = "", .reading = KV_READING_NOT};
    } else if (user->row == NULL || !user->row(user->context, replica, &row)) {
        json_nil(w);
        return;
    }
    const struct kv_reader_stats *s = &row.stats;
    json_object_begin(w);
    json_put_cstr(w, "state", kv_reading_text(row.reading));
    json_put_cstr(w, "state_text", kv_reading_phrase(row.reading));
    json_put_bool(w, "speaks", row.speaks);
    json_put_cstr(w, "from", row.from);
    json_put_u64(w, "blocks", s->tree.held);
    json_put_u64(w, "block_tokens", row.block_tokens);
    json_put_bool(w, "whole", s->tree.whole);
    json_put_u64(w, "messages", s->feed.messages);
    json_put_u64(w, "gaps", s->feed.gaps);
    json_put_u64(w, "missed", s->feed.missed);
    json_put_u64(w, "answers", s->told);
    json_put_u64(w, "tied", s->tied);
    json_put_u64(w, "unmatched", s->unmatched);
    json_put_u64(w, "unclear", s->unclear);
    json_put_u64(w, "agreed", s->agreed);
    json_put_u64(w, "contradicted", s->contradicted);
    json_put_known(w, "believed_in_ms", s->believed_ms > now_ms, s->believed_ms - now_ms);
    json_object_end(w);
}
