/* Work in flight: one booking per request, summed up per replica, released exactly once.
 *
 *   chosen              first byte               end
 *     |---- prefill -------|------ decode ---------|
 *     prefill_tokens booked
 *     context_tokens and the request itself booked ----|
 *
 * A replica's bookings in prefill form a line in the order of sending. The engine computes the
 * head of the line, since `head_since_ms`. Other routers' prompts are in the engine's line too.
 * Those computed while our head waits leave the others' gauges, and the head's time is divided
 * among all. A booking that enters our empty line while the engine computes others' prompts is
 * not timed: no router can tell how much of those was done already.
 *
 * An answer that is not streamed begins only when complete. Its booking leaves the line after its
 * estimated time at the head (node_load_advance).
 *
 * Invariants (node_bookings_check): the load of a replica is the sum of its open bookings, in
 * integers, so without bookings it is exactly zero; the line holds exactly its bookings in prefill.
 * A released or foreign handle aborts. */
#ifndef NODE_REPLICA_BOOKING_H
#define NODE_REPLICA_BOOKING_H

#include "base/err.h"
#include "node/kv/tree.h"
#include "node/replica/evidence.h"
#include "node/replica/renderings.h"
#include "node/replica/room.h"
#include "node/replica/terms.h"

/* Other routers' work in flight at a replica, by their gauges, which lag a moment behind. */
struct node_remote_load {
    uint64_t requests;
    uint64_t prefill_tokens;
    uint64_t context_tokens;
    uint64_t decoding_tokens;
    uint64_t prefilled_tokens; /* computed so far; only differences mean something */
};

/* Work in flight at one replica: this router's bookings, and beside them the other routers'. */
struct node_load {
    uint32_t requests;
    uint32_t head, tail;      /* slots of the line, NODE_BOOKING_NONE if empty */
    uint64_t prefill_tokens;  /* uncached prompt tokens not computed yet */
    uint64_t context_tokens;  /* of all requests in flight */
    uint64_t decoding_tokens; /* of requests with their prefill over */
    double head_since_ms;
    double head_prefilled; /* prefilled_tokens then */
    bool head_timed;       /* no work of others was ahead that was partly done already */
    uint32_t streaming;    /* own ones that have begun to answer, and stream */
    struct node_remote_load remote;
    /* Own requests without streamed answers: their number, */
    uint64_t whole_requests;
    uint64_t whole_chosen_ms;     /* sum of the times when they were chosen */
    uint64_t whole_prompt_tokens; /* prompt tokens to be computed for them */
    /* Integrals over time, others' work included, to see what a request went through. */
    double decoding_area; /* decoding tokens * seconds */
    double area_at_ms;
    double prefilled_tokens; /* computed so far */
};

enum { NODE_BOOKING_NONE = UINT32_MAX };

/* The work of one booking. */
struct node_work {
    uint32_t replica;
    uint32_t model; /* row of the model table */
    uint32_t prefill_tokens;
    uint32_t prompt_tokens; /* estimated; 0: the router learns nothing from this request */
    uint32_t cached_tokens; /* predicted */
    uint32_t tier_tokens;   /* part of the above that has to be loaded from a tier */
    uint32_t context_tokens;
    uint64_t prompt_bytes; /* as the chain counts them; 0: unknown */
    double ttft_s;         /* predicted time to the first token */
    double line_tokens;    /* in the line at that time, this prompt included; */
    double tokens_per_s;   /* the rate that computes these */
    uint32_t beside;       /* requests that were in flight there then, of all routers, */
    double context_beside; /* and context tokens of those requests */
    uint32_t generation;   /* the index's, in which the prompt was recorded */
    bool answer_whole;     /* not streamed */
    bool token_ids;        /* the prompt came as token ids */
    bool continues;        /* a stored response, so the prompt is more than was sent */
    bool several;          /* answers (n > 1); the usage adds up their tokens */
    struct chain_content content;
    uint32_t matched_tokens;    /* matched in the believed cache, before the engine's rounding */
    uint32_t fresh_blocks;      /* index blocks that the prompt added */
    struct {                    /* the last checkpoint that was believed to be there: */
        uint64_t id;            /* 0: none */
        uint32_t after, before; /* blocks up to the previous checkpoint, and up to the next one */
    } fork;
    uint64_t prompt_id;  /* of its last checkpoint; 0: none */
    uint32_t tail_bytes; /* the prompt's bytes after that checkpoint, up to half a block */
    bool chunks;         /* its checkpoints are of chunks (base/chain.h) */
    struct node_rendered rendered;
    struct node_reach reach;  /* parts recorded at the replica before, believed or not */
    bool adapter_loads;       /* the adapter has no slot there, as far as the router knows */
    uint32_t adapter;         /* 0: none (node/replica/adapters.h) */
    uint32_t asked_block;     /* tokens a block, if the engine tokenized the prompt; 0: not yet */
    uint64_t asked_chain;     /* chain of the prompt's whole blocks (node/kv/asked.h) */
    struct kv_fronts fronts;  /* its continuations behind the cached part */
    bool plain;               /* the plain policy chose */
    bool by_time;             /* leaves the line after its estimated time, and times nothing */
    struct node_work_shadow { /* shadow mode (node/route/shadow.h): the policy's choice */
        struct node_booking booking; /* there; none without shadow mode */
        bool moved;                  /* the choice is another replica */
        uint32_t prompt_tokens;      /* as estimated there, */
        uint32_t cached_tokens;      /* of these, predicted, */
        double ttft_s;               /* and the time to the first token; 0: unknown */
    } shadow;
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
    bool rate_taught;      /* the head already taught the rate, before the answer's token count */
    double prefill_beside; /* tokens of others' prompts that were computed in that time */
    struct node_room_amount ran_at_first_byte; /* of all routers, this request included */
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
/* The other routers' present load there. A count that fell has restarted and is ignored. */
void node_load_remote(struct node_load *l, const struct node_remote_load *remote, uint64_t now_ms);

/* ERR_FULL beyond NODE_BOOKINGS_MAX. */
MUST_USE int node_bookings_open(struct node_bookings *p, struct node_load *l,
                                const struct node_work *work, uint64_t now_ms,
                                struct node_booking *out);

/* The entry of an open booking; aborts for any other handle. */
struct node_booking_entry *node_bookings_get(struct node_bookings *p, struct node_booking b);

/* Prefill is over. Only the first call has an effect; returns true for that one. If the booking was
 * at the head of the line, prefill_s is the duration of its prefill. */
bool node_bookings_first_byte(struct node_bookings *p, struct node_load *l, struct node_booking b,
                              uint64_t now_ms);

/* Releases everything. The entry stays readable until the next open. */
const struct node_booking_entry *node_bookings_close(struct node_bookings *p, struct node_load *l,
                                                     struct node_booking b, uint64_t now_ms);

/* Removes bookings of answers that are not streamed from the line when their time has passed. */
void node_load_advance(struct node_bookings *p, struct node_load *l, double tokens_per_s,
                       uint64_t now_ms);

/* Seconds until everything in the line is computed, at this rate; the time already spent on the
 * head counts, up to what the head should take. */
double node_load_queue_s(const struct node_bookings *p, const struct node_load *l,
                         double tokens_per_s, uint64_t now_ms);

/* The prompt that is being computed. */
struct node_head {
    double tokens;  /* of the prompt, and of others' prompts computed meanwhile */
    double since_s; /* duration so far; 0: unknown */
};

/* Zero for a prompt that joined other routers' line, is not streamed, or waits for its adapter. */
struct node_head node_load_head(const struct node_bookings *p, const struct node_load *l,
                                uint64_t now_ms);

/* Number of answers that are not streamed and should have ended by now. Each takes token_s seconds
 * for a computed prompt token, then answer_s seconds. */
double node_load_due_whole(const struct node_load *l, double token_s, double answer_s,
                           uint64_t now_ms);

#endif
