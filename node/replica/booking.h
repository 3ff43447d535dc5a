/* Work in flight: a booking per request, summed up per replica, released exactly once.
 *
 *     chosen              first byte               end
 *       |---- prefill -------|------ decode ---------|
 *       prefill_tokens booked
 *       context_tokens and the request itself booked ----|
 *
 * A replica's bookings in prefill form a queue, the line, in the order of sending. The engine has
 * been computing the head of the line since `head_since_ms`. Other routers' prompts are in the
 * engine's queue too. Their reports show how many of these tokens the engine computed meanwhile.
 * The head's time counts for all these tokens together. A booking is not timed if it enters our
 * empty line while the engine computes other routers' prompts: no router knows how much of those
 * prompts was computed already.
 *
 * An answer that is not streamed begins only when complete. So the booking leaves the line once it
 * has been the head for the estimated time of its prefill (node_load_advance).
 *
 * Invariants (node_bookings_check): the load of a replica is the sum of the open bookings there, in
 * integers, so without bookings it is exactly zero; the line holds exactly the bookings in prefill.
 * A released or foreign handle aborts. */
#ifndef NODE_REPLICA_BOOKING_H
#define NODE_REPLICA_BOOKING_H

#include "base/err.h"
#include "node/kv/tree.h"
#include "node/replica/evidence.h"
#include "node/replica/renderings.h"
#include "node/replica/room.h"
#include "node/replica/terms.h"

/* Other routers' work in flight at a replica, from their reports, a moment late. */
struct node_remote_load {
    uint64_t requests;
    uint64_t prefill_tokens;
    uint64_t context_tokens;
    uint64_t decoding_tokens;
    uint64_t prefilled_tokens; /* prompt tokens computed so far; only differences mean something */
};

/* Work in flight at a replica: this router's bookings, and separately the other routers'. */
struct node_load {
    uint32_t requests;
    uint32_t head, tail;      /* first and last slot of the line; NODE_BOOKING_NONE if empty */
    uint64_t prefill_tokens;  /* uncached prompt tokens of this router's requests, not computed
                               * yet */
    uint64_t context_tokens;  /* context tokens of this router's requests in flight */
    uint64_t decoding_tokens; /* context tokens of this router's requests in decode */
    double head_since_ms;
    double head_prefilled; /* prefilled_tokens at head_since_ms */
    bool head_timed;       /* the head's time can be measured: no half-done work of other routers
                            * was ahead */
    uint32_t streaming;    /* this router's streamed answers that have begun */
    struct node_remote_load remote;
    /* This router's requests with answers that are not streamed. */
    uint64_t whole_requests;
    uint64_t whole_chosen_ms;     /* sum of the times at which these requests were placed */
    uint64_t whole_prompt_tokens; /* sum of these requests' uncached prompt tokens */
    /* Integrals over time, other routers' work included. Differences show the load during a
     * request. */
    double decoding_area; /* integral of all routers' context tokens in decode, in token seconds */
    double area_at_ms;
    double prefilled_tokens; /* prompt tokens computed so far */
};

enum { NODE_BOOKING_NONE = UINT32_MAX };

/* The work of a booking. */
struct node_work {
    uint32_t replica;
    uint32_t model; /* row of the model table */
    uint32_t prefill_tokens;
    uint32_t prompt_tokens; /* estimated prompt tokens; 0: the router learns nothing from this
                             * request */
    uint32_t cached_tokens; /* predicted cached tokens of the prompt */
    uint32_t tier_tokens;   /* part of cached_tokens to be loaded from a tier */
    uint32_t context_tokens;
    uint64_t prompt_bytes; /* size of the prompt as the chain counts it; 0: unknown */
    double ttft_s;         /* predicted time to the first token */
    double line_tokens;    /* tokens in the line when the request was placed, this prompt
                            * included */
    double tokens_per_s;   /* believed rate at which line_tokens are computed */
    uint32_t beside;       /* requests of all routers in flight at the replica when this request was
                            * placed */
    double context_beside; /* context tokens of the requests counted in `beside` */
    uint32_t generation;   /* the index's generation in which the prompt was recorded */
    bool answer_whole;     /* not streamed */
    bool token_ids;        /* the prompt came as token ids */
    bool continues;        /* continues a stored response, so the engine's prompt is longer than the
                            * sent text */
    bool several;          /* several answers (n > 1); the usage has the sum of tokens */
    struct chain_content content;
    uint32_t matched_tokens;    /* prompt tokens matched in the believed cache, before rounding to
                                 * the engine's blocks */
    uint32_t fresh_blocks;      /* index blocks added by the prompt */
    struct {                    /* the prompt's last checkpoint that is believed to be cached at the
                                 * replica */
        uint64_t id;            /* 0: none */
        uint32_t after, before; /* blocks up to the checkpoint before this one, and up to the
                                 * checkpoint after it */
    } fork;
    uint64_t prompt_id;  /* id of the prompt's last checkpoint; 0: none */
    uint32_t tail_bytes; /* the prompt's bytes after the last checkpoint */
    bool chunks;         /* the prompt's checkpoints are of chunks (base/chain.h) */
    struct node_rendered rendered;
    struct node_reach reach;  /* parts of the prompt recorded at the replica before, believed cached
                               * or not */
    bool adapter_loads;       /* the adapter has no slot at the replica, as far as the router
                               * knows */
    uint32_t adapter;         /* 0: none (node/replica/adapters.h) */
    uint32_t asked_block;     /* tokens per block of asked_chain; 0: the engine has returned no
                               * token ids */
    uint64_t asked_chain;     /* hash chain of the prompt's whole blocks (node/kv/asked.h) */
    struct kv_fronts fronts;  /* points at which the prompt may continue after the cached part
                               * (node/kv/tree.h) */
    bool plain;               /* the plain policy chose the replica (shadow mode, or a control
                               * group) */
    bool by_time;             /* the booking leaves the line after the estimated time of its
                               * prefill, and is not timed */
    struct node_work_shadow { /* shadow mode (node/route/shadow.h): the choice of the router's own
                               * policy */
        struct node_booking booking; /* the booking at the shadow's choice; none if shadow mode is
                                      * off */
        bool moved;                  /* the shadow's choice is another replica */
        uint32_t prompt_tokens;      /* estimated prompt tokens at the shadow's choice */
        uint32_t cached_tokens;      /* predicted cached tokens at the shadow's choice */
        double ttft_s;               /* predicted time to the first token at the shadow's choice; 0:
                                      * unknown */
    } shadow;
};

struct node_booking_entry {
    struct node_work work;
    uint32_t stamp;
    uint32_t prev, next; /* neighbours in the line; `next` also in the free list */
    bool open;
    bool prefilling;
    bool first_byte_seen;
    uint64_t chosen_ms;
    uint64_t first_byte_ms;
    double prefill_s;      /* measured duration of the prefill; < 0: not measured */
    bool rate_taught;      /* the prefill rate was learned at the first byte already, before the
                            * answer's token count came */
    double prefill_beside; /* tokens of other prompts computed during prefill_s */
    struct node_room_amount ran_at_first_byte; /* load in decode at the first byte: the requests of
                                                * all routers, this request included */
    double area_at_first_byte;                 /* the replica's decoding_area at the first byte */
    double prefilled_at_first_byte;
};

struct node_bookings;

/* ERR_NOMEM. */
MUST_USE int node_bookings_create(struct node_bookings **out);
void node_bookings_destroy(struct node_bookings *p);
/* Aborts unless each load is the sum of its open bookings. `loads`: by replica, every load that has
 * or had bookings. */
void node_bookings_check(const struct node_bookings *p, const struct node_load *const *loads,
                         unsigned count);
uint32_t node_bookings_open_count(const struct node_bookings *p);

void node_load_init(struct node_load *l);
/* The sum of all bookings at the replica, by all routers. */
static inline struct node_room_amount node_load_booked(const struct node_load *l)
{
    return (struct node_room_amount){
        (double)l->requests + (double)l->remote.requests,
        (double)l->context_tokens + (double)l->remote.context_tokens,
    };
}
/* Sets the other routers' present load at the replica. If prefilled_tokens fell, a router restarted
 * or left; the difference is then ignored. */
void node_load_remote(struct node_load *l, const struct node_remote_load *remote, uint64_t now_ms);

/* Opens a booking at the end of the line, and sets *out. ERR_FULL: NODE_BOOKINGS_MAX bookings are
 * open. */
MUST_USE int node_bookings_open(struct node_bookings *p, struct node_load *l,
                                const struct node_work *work, uint64_t now_ms,
                                struct node_booking *out);

/* The entry of an open booking; aborts for any other handle. */
struct node_booking_entry *node_bookings_get(struct node_bookings *p, struct node_booking b);

/* The prefill is over. Only the first call for a booking has an effect, and returns true. If the
 * booking is the timed head of the line and its answer is streamed, prefill_s becomes the duration
 * of the prefill. */
bool node_bookings_first_byte(struct node_bookings *p, struct node_load *l, struct node_booking b,
                              uint64_t now_ms);

/* Releases the booking's whole load. The entry stays readable until the next
 * node_bookings_open(). */
const struct node_booking_entry *node_bookings_close(struct node_bookings *p, struct node_load *l,
                                                     struct node_booking b, uint64_t now_ms);

/* Removes bookings from the head of the line whose estimated prefill time has passed. Only bookings
 * that are not streamed, or have `by_time` set, are removed. */
void node_load_advance(struct node_bookings *p, struct node_load *l, double tokens_per_s,
                       uint64_t now_ms);

/* Seconds until everything in the line is computed at this rate. The time already spent on the head
 * counts, up to the head's estimated time. */
double node_load_queue_s(const struct node_bookings *p, const struct node_load *l,
                         double tokens_per_s, uint64_t now_ms);

/* The prompt being computed, at the head of the line. */
struct node_head {
    double tokens;  /* tokens of the prompt, and of other prompts computed meanwhile */
    double since_s; /* duration so far; 0: unknown */
};

/* All zero if the line is empty, or if the head's time cannot be measured. It cannot if the prompt
 * joined other routers' queue, is not streamed, has `by_time` set, or waits for an adapter. */
struct node_head node_load_head(const struct node_bookings *p, const struct node_load *l,
                                uint64_t now_ms);

/* Expected number of this router's answers that should have ended by now, among those that are not
 * streamed. Each takes token_s seconds per uncached prompt token, then answer_s seconds. */
double node_load_due_whole(const struct node_load *l, double token_s, double answer_s,
                           uint64_t now_ms);

#endif
