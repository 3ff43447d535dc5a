/* Calls: one question to one member, or the same to all; and answering them. */
#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "node/cluster/replication_internal.h"
#include "node/cluster/snapshot.h"

#include <stdlib.h>

enum {
    PROGRESS_US = 10000000, /* an answer that stands still so long has failed */
    JSON_CHUNK = 32768,
};

/* --- asking --------------------------------------------------------------------------------- */

struct node_call *node_call_open(struct node_replication *n, enum node_call_use use, uint64_t peer,
                                 uint8_t kind, struct slice request, uint64_t now_us)
{
    struct gossip_member m;
    struct node_call *c = NULL;
    for (unsigned i = 0; i < NODE_CALLS_MAX && !c; i++)
        c = n->calls[i].use == NODE_CALL_FREE ? &n->calls[i] : NULL;
    if (!c || gossip_member_find(n->gossip, peer, now_us, &m) != ERR_OK)
        return NULL;
    *c = (struct node_call){.use = use,
                            .id = ++n->call_id,
                            .peer = peer,
                            .began_us = now_us,
                            .until_us = now_us + PROGRESS_US};
    if (n->io.call(n->io.context, c->id, &m.address, kind, request) < 0) {
        c->use = NODE_CALL_FREE;
        return NULL;
    }
    return c;
}

static struct node_call *call_of(struct node_replication *n, uint32_t id)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use != NODE_CALL_FREE && n->calls[i].id == id)
            return &n->calls[i];
    }
    return NULL; /* given up in the meantime */
}

void node_ask_free(struct node_ask *a)
{
    for (unsigned i = 0; i < a->count; i++)
        buf_free(&a->asked[i].answer);
    free(a->asked);
    buf_free(&a->request);
    *a = (struct node_ask){0};
}

static int ask_json(const struct node_ask *a, struct buf *out)
{
    struct json_writer w = json_writer_of(out);
    json_object_begin(&w);
    for (unsigned i = 0; i < a->count; i++) {
        const struct node_asked *m = &a->asked[i];
        json_key(&w, m->name);
        if (m->state == ASKED_DONE && m->err == ERR_OK && m->answer.len > 0) {
            json_raw(&w, buf_slice(&m->answer));
            continue;
        }
        json_object_begin(&w);
        json_key(&w, "error");
        json_cstr(&w, err_text(m->state != ASKED_DONE ? ERR_TIMEOUT
                               : m->err != ERR_OK     ? m->err
                                                      : ERR_CLOSED));
        json_object_end(&w);
    }
    json_object_end(&w);
    return json_writer_finish(&w);
}

/* Everybody has answered, or the time is up. */
static void ask_end(struct node_replication *n, unsigned number)
{
    struct node_ask *a = &n->asks[number];
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use == NODE_CALL_ASK && n->calls[i].ask == number)
            n->calls[i].use = NODE_CALL_FREE;
    }
    struct buf json = {0};
    if (ask_json(a, &json) != ERR_OK)
        buf_clear(&json);
    void (*done)(void *context, struct slice json) = a->done;
    void *context = a->context;
    node_ask_free(a);
    done(context, buf_slice(&json));
    buf_free(&json);
}

static bool has_room(const struct node_replication *n)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use == NODE_CALL_FREE)
            return true;
    }
    return false;
}

/* Whether a member can be expected to answer at all: one that has died or left will not. */
static bool is_there(const struct node_replication *n, uint64_t node, uint64_t now_us)
{
    struct gossip_member m;
    return gossip_member_find(n->gossip, node, now_us, &m) == ERR_OK &&
           (m.self || m.state == GOSSIP_ALIVE || m.state == GOSSIP_SUSPECT);
}

static void give_up(struct node_replication *n, unsigned number, unsigned asked)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        struct node_call *c = &n->calls[i];
        if (c->use == NODE_CALL_ASK && c->ask == number && c->asked == asked)
            c->use = NODE_CALL_FREE;
    }
    n->asks[number].asked[asked].state = ASKED_DONE;
    n->asks[number].asked[asked].err = ERR_UNREACHABLE;
}

/* Opens as many calls as there is room for; the others wait for those that end. */
static void ask_run(struct node_replication *n, unsigned number, uint64_t now_us)
{
    struct node_ask *a = &n->asks[number];
    unsigned done = 0;
    for (unsigned i = 0; i < a->count; i++) {
        struct node_asked *m = &a->asked[i];
        if (m->state != ASKED_DONE && !is_there(n, m->node, now_us))
            give_up(n, number, i);
        if (m->state == ASKED_WAITING && has_room(n)) {
            struct node_call *c =
                node_call_open(n, NODE_CALL_ASK, m->node, a->kind, buf_slice(&a->request), now_us);
            if (c) {
                c->ask = number;
                c->asked = i;
                m->state = ASKED_OPEN;
            } else {
                m->state = ASKED_DONE;
                m->err = ERR_UNREACHABLE;
            }
        }
        done += m->state == ASKED_DONE;
    }
    if (done == a->count || now_us >= a->until_us)
        ask_end(n, number);
}

static int own_answer(struct node_replication *n, uint8_t kind, struct slice request,
                      uint64_t now_us, struct buf *out)
{
    struct node_serve *serve;
    int err = node_replication_serve(n, kind, request, now_us, &serve);
    if (err != ERR_OK)
        return err;
    int more;
    do {
        more = node_replication_serve_next(n, serve, out);
    } while (more > 0);
    node_replication_serve_end(serve);
    return more;
}

int node_replication_ask(struct node_replication *n, uint8_t kind, struct slice request,
                         uint64_t timeout_us, uint64_t now_us,
                         void (*done)(void *context, struct slice json), void *context)
{
    unsigned number = 0;
    while (number < NODE_ASKS_MAX && n->asks[number].open)
        number++;
    if (number == NODE_ASKS_MAX)
        return ERR_FULL;
    struct node_ask *a = &n->asks[number];
    unsigned members = gossip_member_count(n->gossip);
    *a = (struct node_ask){.open = true,
                           .kind = kind,
                           .until_us = now_us + timeout_us,
                           .asked = calloc(members, sizeof *a->asked),
                           .done = done,
                           .context = context};
    if (!a->asked || buf_append_slice(&a->request, request) != ERR_OK) {
        node_ask_free(a);
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < members; i++) {
        struct gossip_member member;
        gossip_member_at(n->gossip, i, now_us, &member);
        if (!is_there(n, member.node, now_us))
            continue;
        struct node_asked *m = &a->asked[a->count++];
        m->node = member.node;
        memcpy(m->name, member.name, sizeof m->name);
        buf_init(&m->answer, NODE_ANSWER_BYTES_MAX);
        if (member.self) {
            m->err = own_answer(n, kind, request, now_us, &m->answer);
            m->state = ASKED_DONE;
        }
    }
    ask_run(n, number, now_us);
    return ERR_OK;
}

static void asked_done(struct node_replication *n, struct node_call *c, int err, uint64_t now_us)
{
    struct node_asked *m = &n->asks[c->ask].asked[c->asked];
    unsigned number = c->ask;
    m->state = ASKED_DONE;
    m->err = err;
    c->use = NODE_CALL_FREE;
    ask_run(n, number, now_us);
}

int node_replication_answer(struct node_replication *n, uint32_t id, struct slice chunk,
                            uint64_t now_us)
{
    struct node_call *c = call_of(n, id);
    if (!c)
        return ERR_CLOSED;
    c->until_us = now_us + PROGRESS_US;
    if (c->use == NODE_CALL_JOIN) {
        node_join_answer(n, c, chunk, now_us);
    } else {
        struct node_ask *a = &n->asks[c->ask];
        a->answer_bytes += chunk.len;
        int err = a->answer_bytes > NODE_ANSWERS_BYTES_MAX
                      ? ERR_LIMIT
                      : buf_append_slice(&a->asked[c->asked].answer, chunk);
        if (err != ERR_OK)
            asked_done(n, c, err, now_us);
    }
    return call_of(n, id) ? ERR_OK : ERR_CLOSED;
}

void node_replication_answered(struct node_replication *n, uint32_t id, int err, uint64_t now_us)
{
    struct node_call *c = call_of(n, id);
    if (!c)
        return;
    if (c->use == NODE_CALL_JOIN)
        node_join_answered(n, c, err, now_us);
    else
        asked_done(n, c, err, now_us);
}

void node_call_run(struct node_replication *n, uint64_t now_us)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use != NODE_CALL_FREE && now_us >= n->calls[i].until_us)
            node_replication_answered(n, n->calls[i].id, ERR_TIMEOUT, now_us);
    }
    for (unsigned i = 0; i < NODE_ASKS_MAX; i++) {
        if (n->asks[i].open)
            ask_run(n, i, now_us);
    }
}

uint64_t node_call_due(const struct node_replication *n)
{
    uint64_t due = UINT64_MAX;
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use != NODE_CALL_FREE && n->calls[i].until_us < due)
            due = n->calls[i].until_us;
    }
    for (unsigned i = 0; i < NODE_ASKS_MAX; i++) {
        if (n->asks[i].open && n->asks[i].until_us < due)
            due = n->asks[i].until_us;
    }
    return due;
}

/* --- answering ------------------------------------------------------------------------------ */

struct node_serve {
    struct node_replication *n;
    uint8_t kind;
    uint64_t now_us;  /* when it began */
    uint64_t rewinds; /* of the state, then */
    enum { SERVE_HEAD, SERVE_STATE, SERVE_VECTOR, SERVE_END } stage;
    struct crdt_snapshot cursor;
    struct buf vector; /* of the start */
    struct buf text;   /* a whole answer in JSON */
    size_t told;       /* of it */
};

static int explain_make(struct node_serve *s, struct slice request)
{
    const struct node_replication_user *user = &s->n->user;
    return user->explain
               ? user->explain(user->context, request, node_replication_ms(s->now_us), &s->text)
               : ERR_UNSUPPORTED;
}

static int serve_begin(struct node_serve *s, struct slice request)
{
    struct wire_reader r = wire_reader_of(request.at, request.len);
    switch (s->kind) {
    case NODE_CALL_SNAPSHOT:
        crdt_snapshot_begin(&s->cursor, wire_read_u32(&r));
        return r.bad ? ERR_SYNTAX : gossip_vector_write(s->n->gossip, &s->vector);
    case NODE_CALL_DIGESTS:
        return node_replication_digests_json(s->n, &s->text);
    case NODE_CALL_EXPLAIN:
        return explain_make(s, request);
    default:
        return ERR_UNSUPPORTED;
    }
}

int node_replication_serve(struct node_replication *n, uint8_t kind, struct slice request,
                           uint64_t now_us, struct node_serve **out)
{
    if (n->serving == NODE_CALLS_SERVED_MAX)
        return ERR_FULL;
    struct node_serve *s = calloc(1, sizeof *s);
    if (!s)
        return ERR_NOMEM;
    *s = (struct node_serve){
        .n = n, .kind = kind, .now_us = now_us, .rewinds = node_state_rewinds(n->state)};
    n->serving++;
    n->served++;
    int err = serve_begin(s, request);
    if (err != ERR_OK) {
        node_replication_serve_end(s);
        return err;
    }
    *out = s;
    return ERR_OK;
}

/* Who lives is told too: reports of routers of which the other has not heard would be lost to it.
 */
static int head_put(const struct node_serve *s, struct buf *out)
{
    enum { HEAD = 8, ROUTER = 14 };
    const struct node_replication *n = s->n;
    size_t room = HEAD + (size_t)ROUTER * (n->peer_count + 1);
    int err = buf_reserve(out, room);
    if (err != ERR_OK)
        return err;
    struct wire_writer w = wire_writer_of(out->at + out->len, room);
    wire_write_u8(&w, NODE_SNAPSHOT_HEAD);
    wire_write_u8(&w, n->ready);
    wire_write_u48(&w, node_state_cluster_ms(n->state, node_replication_ms(s->now_us)));
    wire_write_u64(&w, gossip_self(n->gossip));
    wire_write_u48(&w, gossip_epoch(n->gossip));
    for (unsigned i = 0; i < n->peer_count; i++) {
        if (!node_peer_lives(&n->peers[i]))
            continue;
        wire_write_u64(&w, n->peers[i].node);
        wire_write_u48(&w, n->peers[i].epoch);
    }
    CHECK(!w.bad);
    out->len += wire_written(&w);
    return ERR_OK;
}

static int vector_put(struct node_serve *s, struct buf *out)
{
    if (BUG(SNAPSHOT_VECTOR_LATE)) {
        buf_clear(&s->vector);
        int err = gossip_vector_write(s->n->gossip, &s->vector);
        if (err != ERR_OK)
            return err;
    }
    int err = buf_append_char(out, NODE_SNAPSHOT_VECTOR);
    return err == ERR_OK ? buf_append_slice(out, buf_slice(&s->vector)) : err;
}

static int snapshot_next(struct node_serve *s, struct buf *out)
{
    size_t start = out->len;
    int err = ERR_OK;
    switch (s->stage) {
    case SERVE_HEAD:
        s->stage = SERVE_STATE;
        err = head_put(s, out);
        return err == ERR_OK ? 1 : err;
    case SERVE_STATE:
        err = buf_append_char(out, NODE_SNAPSHOT_STATE);
        if (err == ERR_OK)
            err = crdt_snapshot_next(node_state_crdt(s->n->state), &s->cursor, out);
        if (err != 0)
            return err;
        out->len = start;
        s->stage = SERVE_VECTOR;
        __attribute__((fallthrough));
    case SERVE_VECTOR:
        s->stage = SERVE_END;
        err = vector_put(s, out);
        return err == ERR_OK ? 1 : err;
    case SERVE_END:
        break;
    }
    return 0;
}

int node_replication_serve_next(struct node_replication *n, struct node_serve *s, struct buf *out)
{
    if (s->kind == NODE_CALL_SNAPSHOT)
        return s->rewinds == node_state_rewinds(n->state) ? snapshot_next(s, out) : ERR_STALE;
    size_t left = s->text.len - s->told;
    size_t part = left < JSON_CHUNK ? left : JSON_CHUNK;
    if (part == 0)
        return 0;
    int err = buf_append(out, s->text.at + s->told, part);
    if (err != ERR_OK)
        return err;
    s->told += part;
    return 1;
}

void node_replication_serve_end(struct node_serve *s)
{
    s->n->serving--;
    buf_free(&s->vector);
    buf_free(&s->text);
    free(s);
}
