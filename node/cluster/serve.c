/* Answers other members' calls: snapshots, digests, explanations, events, figures, hidden
 * members. */
#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "node/cluster/replication_internal.h"
#include "node/cluster/snapshot.h"

enum { JSON_CHUNK = 32768 };

struct node_serve {
    struct node_replication *n;
    uint8_t kind;
    uint64_t now_us;  /* when the call began */
    uint64_t rewinds; /* node_state_rewinds() when the call began */
    enum { SERVE_HEAD, SERVE_LATER, SERVE_STATE, SERVE_VECTOR, SERVE_END } stage;
    struct crdt_snapshot cursor;
    struct buf vector; /* the vector at the snapshot's start */
    struct buf text;   /* a whole answer in JSON */
    size_t told;       /* bytes of `text` already sent */
};

static int explain_make(struct node_serve *s, struct slice request)
{
    const struct node_replication_user *user = &s->n->user;
    return user->explain
               ? user->explain(user->context, request, node_replication_ms(s->now_us), &s->text)
               : ERR_UNSUPPORTED;
}

void node_replication_events(struct node_replication *n, node_replication_events_write *write,
                             void *context)
{
    n->events_write = write;
    n->events_context = context;
}

void node_replication_figures(struct node_replication *n, node_replication_events_write *write,
                              void *context)
{
    n->figures_write = write;
    n->figures_context = context;
}

static int figures_make(struct node_serve *s, struct slice request)
{
    const struct node_replication *n = s->n;
    return n->figures_write ? n->figures_write(n->figures_context, request, &s->text)
                            : ERR_UNSUPPORTED;
}

static int events_make(struct node_serve *s, struct slice request)
{
    const struct node_replication *n = s->n;
    return n->events_write ? n->events_write(n->events_context, request, &s->text)
                           : ERR_UNSUPPORTED;
}

static int forget_make(struct node_serve *s, struct slice request)
{
    bool forgotten = node_replication_forget(s->n, request);
    return buf_append_cstr(&s->text, forgotten ? "{\"forgotten\":true}" : "{\"forgotten\":false}");
}

static int serve_begin(struct node_serve *s, struct slice request)
{
    struct wire_reader r = wire_reader_of(request.at, request.len);
    switch (s->kind) {
    case NODE_CALL_SNAPSHOT:
        crdt_snapshot_begin(&s->cursor, wire_read_u32(&r)); /* later versions may send more */
        return r.bad ? ERR_SYNTAX : gossip_vector_write(s->n->gossip, &s->vector);
    case NODE_CALL_DIGESTS:
        return node_replication_digests_json(s->n, s->now_us, &s->text);
    case NODE_CALL_EXPLAIN:
        return explain_make(s, request);
    case NODE_CALL_EVENTS:
        return events_make(s, request);
    case NODE_CALL_FIGURES:
        return figures_make(s, request);
    case NODE_CALL_FORGET:
        return forget_make(s, request);
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

/* The head lists the live routers, because a joining node would skip reports of unknown routers. */
static int head_put(const struct node_serve *s, struct buf *out)
{
    enum { HEAD = 8 + WIRE_VARINT_MAX, ROUTER = 14 };
    const struct node_replication *n = s->n;
    size_t room = HEAD + (size_t)ROUTER * (n->peer_count + 1);
    int err = buf_reserve(out, room);
    if (err != ERR_OK)
        return err;
    struct wire_writer w = wire_writer_of(out->at + out->len, room);
    wire_write_u8(&w, NODE_SNAPSHOT_HEAD);
    wire_write_u8(&w, n->ready);
    wire_write_u48(&w, node_state_cluster_ms(n->state, node_replication_ms(s->now_us)));
    unsigned live = 1;
    for (unsigned i = 0; i < n->peer_count; i++)
        live += node_peer_lives(&n->peers[i]);
    wire_write_varint(&w, live);
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
    return FUTURE ? buf_append_slice(out, FUTURE_BYTES) : ERR_OK;
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
        s->stage = FUTURE ? SERVE_LATER : SERVE_STATE;
        err = head_put(s, out);
        return err == ERR_OK ? 1 : err;
    case SERVE_LATER: /* a chunk of an unknown kind (base/future.h) */
        s->stage = SERVE_STATE;
        err = buf_append_char(out, (char)FUTURE_KIND);
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
