/* What an engine publishes of its ranks' caches: messages (kv_events.h) with numbers from 0, and
 * the last ones once more for who asks. Pure: kv_sockets.h carries them.
 *
 * A vLLM publishes what happened with its next step, an idle one therefore with its next request.
 * SGLang publishes at once, and its first message says that its cache is empty.
 */
#ifndef TESTS_ENGINE_SIM_KV_PUBLISHER_H
#define TESTS_ENGINE_SIM_KV_PUBLISHER_H

#include "tests/engine-sim/kv_events.h"
#include "tests/engine-sim/ranks.h"

enum { SIM_KV_TOPIC_MAX = 128, SIM_KV_KEPT_MAX = 1000000 };

/* Who carries the messages. */
struct sim_kv_carrier {
    void (*send)(void *context, unsigned rank, uint64_t number, struct slice payload);
    /* All connections end, and come again from now on, or do not. */
    void (*listen)(void *context, bool on);
    void *context;
};

struct sim_kv_config {
    const char *form;   /* kv_events.h */
    const char *topic;  /* in front of each message */
    bool bytes;         /* hashes are */
    unsigned first;     /* what events call the first rank */
    uint64_t kept;      /* messages of a rank that can be asked for again */
    unsigned port;      /* of the first rank; the next ones have the next. 0: none yet */
    unsigned again;     /* the same where one asks; 0: none, or none yet */
    bool answers_again; /* there is such a port */
    /* tcp://HOST:PORT to which the first rank connects; the next ones have the next port. NULL: it
     * waits at `port`. */
    const char *connect;
};

struct sim_publisher;

/* `ranks` and the texts are borrowed. NULL: there is no such form. */
struct sim_publisher *sim_publisher_create(const struct sim_kv_config *config,
                                           struct sim_ranks *ranks);
void sim_publisher_destroy(struct sim_publisher *p);
/* NULL: nobody. Borrowed. */
void sim_publisher_carry(struct sim_publisher *p, const struct sim_kv_carrier *carrier);
void sim_publisher_ports(struct sim_publisher *p, unsigned port, unsigned again);
const struct sim_kv_config *sim_publisher_config(const struct sim_publisher *p);
unsigned sim_publisher_ranks(const struct sim_publisher *p);

/* Publishes what is due. `idle`: without waiting for a step. */
void sim_publisher_step(struct sim_publisher *p, double unix_s, bool idle);
/* The process is gone; another one is there, with empty caches. */
void sim_publisher_stop(struct sim_publisher *p);
void sim_publisher_start(struct sim_publisher *p);
/* The number of the rank's next message. */
uint64_t sim_publisher_number(const struct sim_publisher *p, unsigned rank);
/* Hands out the rank's kept messages from that number on, in the order of their publication. False:
 * nobody answers. */
bool sim_publisher_replay(const struct sim_publisher *p, unsigned rank, uint64_t from,
                          void (*each)(void *context, uint64_t number, struct slice payload),
                          void *context);

/* --- faults ---------------------------------------------------------------------------------- */

/* The next messages of the rank are not sent; `lost`: nor kept. */
void sim_publisher_drop(struct sim_publisher *p, unsigned rank, uint64_t messages, bool lost);
/* The next message has that number. */
void sim_publisher_renumber(struct sim_publisher *p, unsigned rank, uint64_t number);
/* The rank's cache is emptied, and no event says so. */
void sim_publisher_forget(struct sim_publisher *p, unsigned rank);
/* Who asks for messages gets no answer, or does again. */
void sim_publisher_answer(struct sim_publisher *p, bool answers);
/* All connections end, and nothing else changes. */
void sim_publisher_cut(struct sim_publisher *p);

#endif
