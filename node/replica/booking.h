/* Work in flight: one booking per request, summed up per replica, released exactly once.
 *
 *   chosen              first byte               end
 *     |---- prefill -------|------ decode ---------|
 *     prefill_tokens booked
 *     context_tokens and the request itself booked ----|
 *
 * The bookings in prefill at a replica form a line in the order in which they were sent. The head
 * of the line is being computed, since `head_since_ms`. Others' prompts stand in the same line of
 * the engine: those that are computed while one of ours is at the head leave the others' gauges,
 * and the time is shared out among all. But of one of ours that comes to an empty line of our own
 * while others' are computed nobody sees how much of those was done already: it is not timed.
 *
 * An answer that is not streamed begins when it is complete. Its booking leaves the line when its
 * estimated time at the head has passed (node_load_advance).
 *
 * Invariants (node_bookings_check): the load of a replica is the sum of its open bookings, in
 * integers, so without bookings it is exactly zero; the line holds exactly its bookings in prefill.
 * A released or foreign handle aborts.
 */
#ifndef NODE_REPLICA_BOOKING_H
#define NODE_REPLICA_BOOKING_H

#include "base/err.h"
#include "node/kv/tree.h"
#include "node/replica/evidence.h"
#include "node/replica/renderings.h"
#include "node/replica/room.h"
#include "node/replica/terms.h"

/* What other routers have in flight at a replica, by their gauges, which are a moment late. */
struct node_remote_load {
    uint64_t requests;
    uint64_t prefill_tokens;
    uint64_t context_tokens;
    uint64_t decoding_tokens;
    uint64_t prefilled_tokens; /* computed so far; only differences mean something */
};

/* What is in flight at one replica: own bookings, and beside them what others have there. */
struct node_load {
    uint32_t requests;
    uint32_t head, tail;      /* slots of the line, NODE_BOOKING_NONE if empty */
    uint64_t prefill_tokens;  /* uncached prompt tokens not computed yet */
    uint64_t context_tokens;  /* of all requests in flight */
    uint64_t decoding_tokens; /* of those whose prefill is over */
    double head_since_ms;
    double head_prefilled; /* prefilled_tokens then */
    bool head_timed;       /* no work of others was ahead that was partly done already */
    uint32_t streaming;    /* own ones that have begun to answer, and stream */
    struct node_remote_load remote;
    /* Own ones whose answers are not streamed: how many, */
    uint64_t whole_requests;
    uint64_t whole_chosen_ms;     /* when they were chosen, added up, */
    uint64_t whole_prompt_tokens; /* and what of their prompts was to be computed */
    /* Integrals over time, others' work included, to see what a request went through. */
    double decoding_area; /* decoding tokens * seconds */
    double area_at_ms;
    double prefilled_tokens; /* computed so far */
};

enum { NODE_BOOKING_NONE = UINT32_MAX };

/* What is booked. */
struct node_work {
    uint32_t replica;
    uint32_t model; /* row of the model table */
    uint32_t prefill_tokens;
    uint32_t prompt_tokens; /* estimated; 0: nothing is learned from it */
    uint32_t cached_tokens; /* predicted */
    uint32_t tier_tokens;   /* of these, to be brought back from a tier */
    uint32_t context_tokens;
    uint64_t prompt_bytes; /* as the chain counts them; 0: unknown */
    double ttft_s;         /* until its first token, predicted; and of what it finds in line, */
    double line_tokens;    /* itself included, */
    double tokens_per_s;   /* which are computed at this rate */
    uint32_t beside;       /* requests that were in flight there then, of all routers, */
    double context_beside; /* and tokens of context of them */
    uint32_t generation;   /* of the index in which it was recorded */
    bool answer_whole;     /* not streamed */
    bool token_ids;        /* the prompt came as token ids */
    bool continues;        /* a stored response, so the prompt is more than was sent */
    bool several;          /* answers, whose tokens the usage adds up */
    struct chain_content content;
    uint32_t matched_tokens; /* of what is believed to be there, whatever the engine makes of it */
    uint32_t fresh_blocks;   /* of the index, that it brought */
    struct {                 /* the last checkpoint that was believed to be there: */
        uint64_t id;         /* 0: none */
        uint32_t after, before; /* blocks up to the one in front of it, and up to the next one */
    } fork;
    uint64_t prompt_id;  /* of its last checkpoint; 0: none */
    uint32_t tail_bytes; /* of the prompt beyond that, to half a block */
    bool chunks;         /* its checkpoints are of chunks (base/chain.h) */
    struct node_rendered rendered;
    struct node_reach reach; /* what was recorded there before, believed or not */
    bool adapter_loads;      /* it is not held there, by what is known */
    uint32_t adapter;        /* 0: none (node/replica/adapters.h) */
    uint32_t asked_block; /* the engine told the prompt's tokens: those of a block; 0: not yet, */
    uint64_t asked_chain; /* and the chain of its whole blocks (node/kv/asked.h), */
    struct kv_fronts fronts; /* and where it went on behind what was cached */
};

struct node_booking_entry {
    struct node_work work;
    uint32_t stamp;
    uint32_t prev, next; /* in the line; next: in the free list */
    bool open;
    bool prefilling;
    bool first_byte_seen;
    uint64_t chosen_ms;
    uint64_t first_byte_ms;
    double prefill_s;      /* measured duration of its prefill; < 0: not measured */
    bool rate_taught;      /* that one taught the rate already, before the answer told its tokens */
    double prefill_beside; /* tokens of others' prompts that were computed in that time */
    struct node_room_amount ran_at_first_byte; /* of all routers, itself included */
    double area_at_first_byte;                 /* the replica's integrals then */
    double prefilled_at_first_byte;
};

struct node_bookings;

/* ERR_NOMEM. */
MUST_USE int node_bookings_create(struct node_bookings **out);
void node_bookings_destroy(struct node_bookings *p);
/* `loads` are all loads that were ever booked on, by replica. */
void node_bookings_check(const struct node_bookings *p, const struct node_load *const *loads,
                         unsigned count);
uint32_t node_bookings_open_count(const struct node_bookings *p);

void node_load_init(struct node_load *l);
/* All that is booked there, of all routers. */
static inline struct node_room_amount node_load_booked(const struct node_load *l)
{
    return (struct node_room_amount){
        (double)l->requests + (double)l->remote.requests,
        (double)l->context_tokens + (double)l->remote.context_tokens,
    };
}
/* What the others have there now. A count that fell began anew, and is ignored. */
void node_load_remote(struct node_load *l, const struct node_remote_load *remote, uint64_t now_ms);

/* ERR_FULL beyond NODE_BOOKINGS_MAX. */
MUST_USE int node_bookings_open(struct node_bookings *p, struct node_load *l,
                                const struct node_work *work, uint64_t now_ms,
                                struct node_booking *out);

/* The entry of an open booking; aborts for any other handle. */
struct node_booking_entry *node_bookings_get(struct node_bookings *p, struct node_booking b);

/* Prefill is over. Only the first call does something; returns whether this was it. If the booking
 * was at the head of the line, prefill_s is how long it took. */
bool node_bookings_first_byte(struct node_bookings *p, struct node_load *l, struct node_booking b,
                              uint64_t now_ms);

/* Releases everything. The entry stays readable until the next open. */
const struct node_booking_entry *node_bookings_close(struct node_bookings *p, struct node_load *l,
                                                     struct node_booking b, uint64_t now_ms);

/* Lets bookings whose answers are not streamed leave the line when their time has passed. */
void node_load_advance(struct node_bookings *p, struct node_load *l, double tokens_per_s,
                       uint64_t now_ms);

/* Seconds until everything in the line is computed, at this rate; the time already spent on the
 * head counts, up to what the head should take. */
double node_load_queue_s(const struct node_bookings *p, const struct node_load *l,
                         double tokens_per_s, uint64_t now_ms);

/* What is known of the prompt that is being computed. */
struct node_head {
    double tokens;  /* of it, and of others' that were computed meanwhile */
    double since_s; /* for how long it has been computed; 0: nothing is known */
};

/* Nothing is known of one that came to a line of others, that is not streamed, or that waits for
 * its adapter. */
struct node_head node_load_head(const struct node_bookings *p, const struct node_load *l,
                                uint64_t now_ms);

/* How many of the answers that are not streamed should have ended by now. Each takes token_s
 * seconds for a prompt token that is computed, and answer_s seconds from there on. */
double node_load_due_whole(const struct node_load *l, double token_s, double answer_s,
                           uint64_t now_ms);

#endif
