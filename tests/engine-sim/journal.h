/* The engine's record of requests, for comparison with clients' answers: JSON lines, for each
 * request in this order.
 *
 *   request   a complete request: number, op (header x-jepsen-op), method, path
 *   first     the first token is made, and the cache has the prompt: prompt_tokens, cached_tokens
 *   end       result (below), status, bytes and hash (SHA-256) of the body before chunking; for a
 *             stream, of the events. `plain`, if there was a usage event: bytes and hash without
 *             this event, and with the fingerprint in the event before
 *
 * and of the engine itself `begin`, and `restart` (POST /sim/restart: the cache is empty again).
 * Requests for output are recorded, and any request with the header. Pure: a line goes to `write`.
 */
#ifndef TESTS_ENGINE_SIM_JOURNAL_H
#define TESTS_ENGINE_SIM_JOURNAL_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/head.h"

enum sim_how {
    SIM_WHOLE,   /* the whole answer was written */
    SIM_LEFT,    /* the client closed before the end */
    SIM_REFUSED, /* the answer is an error, and nothing was computed */
    SIM_FAILED,  /* the engine gave up the request, or broke off the answer */
};

struct sim_journal {
    void (*write)(void *context, struct slice line); /* a whole line, at once; NULL: no journal */
    void *context;
    uint64_t last;    /* number of the last request */
    bool fingerprint; /* the last event of a stream has a fingerprint */
};

struct sim_digest {
    uint64_t bytes;
    crypto_hash_sha256_state hash;
};

/* A request in the journal. */
struct sim_entry {
    uint64_t number; /* 0: not recorded */
    char op[128];
    bool refused; /* refused, whatever the status says */
    bool failed;  /* failed, whatever the status says */
    unsigned status;
    uint64_t prompt_tokens; /* 0: not read so far */
    uint64_t cached_tokens;
    struct sim_digest body;
    struct sim_digest plain; /* the answer without the usage event */
    bool fingerprint;        /* the last event of the stream has a fingerprint */
};

/* An event of the engine. */
void sim_journal_event(struct sim_journal *j, uint64_t now_ns, const char *what);

/* sim_entry_*() do nothing without a journal, or if the entry is not recorded. */
void sim_entry_request(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                       const struct http_head *head);
void sim_entry_first(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                     uint64_t prompt_tokens, uint64_t cached_tokens);
void sim_entry_body(struct sim_entry *e, struct slice bytes);
/* Ends the entry. SIM_WHOLE may become SIM_REFUSED or SIM_FAILED, by `refused`, `failed` and the
 * status. */
void sim_entry_end(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns, enum sim_how how);

#endif
