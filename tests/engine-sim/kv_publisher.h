/* An engine's publication of the ranks' KV events: messages (kv_events.h) with numbers from 0, and
 * replays of the last messages on request. Pure: kv_sockets.h carries them.
 *
 * vLLM publishes events with the next step, so an idle vLLM publishes with the next request. SGLang
 * publishes at once, and the first message says that the cache is empty. */
#ifndef TESTS_ENGINE_SIM_KV_PUBLISHER_H
#define TESTS_ENGINE_SIM_KV_PUBLISHER_H

#include "tests/engine-sim/kv_events.h"
#include "tests/engine-sim/ranks.h"

enum { SIM_KV_TOPIC_MAX = 128, SIM_KV_KEPT_MAX = 1000000 };

/* The carrier of the messages. */
struct sim_kv_carrier {
    void (*send)(void *context, unsigned rank, uint64_t number, struct slice payload);
    /* Closes all connections, and accepts new ones from now on, or (false) does not. */
    void (*listen)(void *context, bool on);
    void *context;
};

struct sim_kv_config {
    const char *form;   /* kv_events.h */
    const char *topic;  /* topic of each message */
    bool bytes;         /* hashes are bytes */
    unsigned first;     /* the first rank's number in events */
    uint64_t kept;      /* messages kept per rank for replay */
    unsigned port;      /* the first rank's port; the next ranks have the next ports. 0: none yet */
    unsigned again;     /* the first rank's port for replays; 0: none, or none yet */
    bool answers_again; /* there is a port for replays */
    /* tcp://HOST:PORT to which the first rank connects; the next ranks use the next ports. NULL:
     * listens at `port`. */
    const char *connect;
};

struct sim_publisher;

/* `ranks` and the texts are borrowed. NULL: unknown form. */
struct sim_publisher *sim_publisher_create(const struct sim_kv_config *config,
                                           struct sim_ranks *ranks);
void sim_publisher_destroy(struct sim_publisher *p);
/* NULL: none. Borrowed. */
void sim_publisher_carry(struct sim_publisher *p, const struct sim_kv_carrier *carrier);
void sim_publisher_ports(struct sim_publisher *p, unsigned port, unsigned again);
const struct sim_kv_config *sim_publisher_config(const struct sim_publisher *p);
unsigned sim_publisher_ranks(const struct sim_publisher *p);

/* Publishes the events due. `idle`: without waiting for a step. */
void sim_publisher_step(struct sim_publisher *p, double unix_s, bool idle);
/* The process ends; or a new process begins, with empty caches. */
void sim_publisher_stop(struct sim_publisher *p);
void sim_publisher_start(struct sim_publisher *p);
/* The number of the rank's next message. */
uint64_t sim_publisher_number(const struct sim_publisher *p, unsigned rank);
/* Passes the rank's kept messages from number `from` on, in order. False: no answer. */
bool sim_publisher_replay(const struct sim_publisher *p, unsigned rank, uint64_t from,
                          void (*each)(void *context, uint64_t number, struct slice payload),
                          void *context);

/* --- faults ---------------------------------------------------------------------------------- */

/* The rank's next messages are not sent; `lost`: they are not kept either. */
void sim_publisher_drop(struct sim_publisher *p, unsigned rank, uint64_t messages, bool lost);
/* Sets the number of the next message. */
void sim_publisher_renumber(struct sim_publisher *p, unsigned rank, uint64_t number);
/* The rank's cache is emptied, and no event says so. */
void sim_publisher_forget(struct sim_publisher *p, unsigned rank);
/* Stops or resumes answers to requests for messages. */
void sim_publisher_answer(struct sim_publisher *p, bool answers);
/* All connections end, and nothing else changes. */
void sim_publisher_cut(struct sim_publisher *p);

#endif
