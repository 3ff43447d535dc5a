/* Calls: a question to a single member, or to all members (serve.c answers). */
#include "base/err.h"
#include "base/json_write.h"
#include "node/cluster/replication_internal.h"

#include <stdlib.h>

/* Gives the address for the next call to a member: the likeliest, or after each failed call the
 * next in the list. Connections may work at another address than datagrams. False: no address is
 * known. */
static bool place_of(const struct node_replication *n, uint64_t peer, struct gossip_address *out)
{
    struct gossip_place places[GOSSIP_PLACES_MAX];
    const struct node_peer *p = node_replication_peer(n, peer);
    unsigned count = gossip_member_places(n->gossip, peer, places);
    if (count > 0)
        *out = places[p != NULL ? p->calls_failed % count : 0].at;
    return count > 0;
}

struct node_call *node_call_open(struct node_replication *n, enum node_call_use use, uint64_t peer,
                                 uint8_t kind, struct slice request, uint64_t now_us)
{
    struct gossip_address at;
    struct node_call *c = NULL;
    for (unsigned i = 0; i < NODE_CALLS_MAX && !c; i++)
        c = n->calls[i].use == NODE_CALL_FREE ? &n->calls[i] : NULL;
    if (!c || !place_of(n, peer, &at))
        return NULL;
    *c = (struct node_call){.use = use,
                            .id = ++n->call_id,
                            .peer = peer,
                            .began_us = now_us,
                            .until_us = now_us + NODE_CALL_PROGRESS_US};
    if (n->io.call(n->io.context, c->id, &at, kind, request) < 0) {
        node_peer_called(n, peer, false, now_us);
        c->use = NODE_CALL_FREE;
        return NULL;
    }
    return c;
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
        json_put_cstr(&w, "error",
                      err_text(m->state != ASKED_DONE ? ERR_TIMEOUT
                               : m->err != ERR_OK     ? m->err
                                                      : ERR_CLOSED));
        json_object_end(&w);
    }
    json_object_end(&w);
    return json_writer_finish(&w);
}

/* Ends a question to all members: all have answered, or the time is up. */
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

/* True if a member can be expected to answer: alive or suspected, and a protocol version is
 * common. */
static bool is_there(const struct node_replication *n, uint64_t node, uint64_t now_us)
{
    struct gossip_member m;
    return gossip_member_find(n->gossip, node, now_us, &m) == ERR_OK &&
           (m.self || (m.understood && (m.state == GOSSIP_ALIVE || m.state == GOSSIP_SUSPECT)));
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

/* Opens as many calls of a question as there is room for. The other calls wait until some end. */
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

/* --- whether TCP gets through ---------------------------------------------------------------- */

/* The next member in turn with failed calls, but too few to count as filtered; if there is none,
 * the next member in turn. NULL: no member can be called. */
static struct node_peer *to_try(struct node_replication *n)
{
    struct node_peer *next = NULL;
    for (unsigned i = 1; i <= n->peer_count; i++) {
        struct node_peer *p = &n->peers[(n->tried + i) % n->peer_count];
        bool there = p->state == GOSSIP_ALIVE && node_peer_counts(p);
        if (there && node_peer_doubted(p))
            return p;
        if (there && next == NULL)
            next = p;
    }
    return next;
}

static void tried(struct node_replication *n, struct node_peer *p, uint64_t now_us)
{
    if (p != NULL && node_peer_doubted(p))
        n->try_due_us = now_us + NODE_TRY_AGAIN_US;
    else if (p != NULL && now_us >= p->told_us)
        node_peer_tell_filtered(n, p, now_us);
}

/* TCP may become filtered at any time. A ready router makes no calls unless an operator asks or a
 * snapshot is needed, so this tests whether TCP works. */
static void try_run(struct node_replication *n, uint64_t now_us)
{
    if (!n->ready || now_us < n->try_due_us)
        return;
    struct node_peer *p = n->try_due_us > 0 ? to_try(n) : NULL;
    n->try_due_us = now_us + NODE_AGAIN_US;
    if (p == NULL)
        return;
    n->tried = (unsigned)(p - n->peers);
    if (!node_call_open(n, NODE_CALL_TRY, p->node, NODE_CALL_DIGESTS, slice_of("", 0), now_us))
        tried(n, p, now_us);
}

void node_call_answered(struct node_replication *n, struct node_call *c, int err, uint64_t now_us)
{
    if (c->use == NODE_CALL_TRY) {
        c->use = NODE_CALL_FREE;
        tried(n, node_replication_peer(n, c->peer), now_us);
        return;
    }
    struct node_asked *m = &n->asks[c->ask].asked[c->asked];
    unsigned number = c->ask;
    m->state = ASKED_DONE;
    m->err = err;
    c->use = NODE_CALL_FREE;
    ask_run(n, number, now_us);
}

struct node_call *node_call_find(struct node_replication *n, uint32_t id)
{
    for (unsigned i = 0; i < NODE_CALLS_MAX; i++) {
        if (n->calls[i].use != NODE_CALL_FREE && n->calls[i].id == id)
            return &n->calls[i];
    }
    return NULL; /* the call was given up in the meantime */
}

int node_call_answer(struct node_replication *n, const struct node_call *c, struct slice chunk)
{
    if (c->use == NODE_CALL_TRY)
        return ERR_OK;
    struct node_ask *a = &n->asks[c->ask];
    a->answer_bytes += chunk.len;
    return a->answer_bytes > NODE_ANSWERS_BYTES_MAX
               ? ERR_LIMIT
               : buf_append_slice(&a->asked[c->asked].answer, chunk);
}

void node_call_run(struct node_replication *n, uint64_t now_us)
{
    for (unsigned i = 0; i < NODE_ASKS_MAX; i++) {
        if (n->asks[i].open)
            ask_run(n, i, now_us);
    }
    try_run(n, now_us);
}

uint64_t node_call_due(const struct node_replication *n)
{
    uint64_t due = n->ready ? n->try_due_us : UINT64_MAX;
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
