/* The engine's own record of its requests, to check clients' answers against: JSON lines,
 * a request's in this order.
 *
 *   request   a complete request: number, op (its header x-jepsen-op), method, path
 *   first     its first token is made, and the cache has its prompt: prompt_tokens, cached_tokens
 *   end       result (below), status, bytes and hash (SHA-256) of the body as sent: before
 *             chunking; of a stream, the bytes of its events. `plain`: both, as the
 *             answer would be without the usage event, if there was one: its
 *             fingerprint stands in the event before then
 *
 * and of the engine itself `begin`, and `restart` (POST /sim/restart: its cache is empty again).
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
    SIM_WHOLE,   /* all of it was written */
    SIM_LEFT,    /* the client closed before */
    SIM_REFUSED, /* an error, and nothing was computed */
    SIM_FAILED,  /* the engine gave up the request, or broke off */
};

struct sim_journal {
    void (*write)(void *context, struct slice line); /* a whole line, at once; NULL: no journal */
    void *context;
    uint64_t last;    /* number */
    bool fingerprint; /* streams end with one */
};

struct sim_digest {
    uint64_t bytes;
    crypto_hash_sha256_state hash;
};

/* A request in the journal. */
struct sim_entry {
    uint64_t number; /* 0: not recorded */
    char op[128];
    bool refused; /* whatever the status says */
    bool failed;  /* likewise */
    unsigned status;
    uint64_t prompt_tokens; /* 0: not read so far */
    uint64_t cached_tokens;
    struct sim_digest body;
    struct sim_digest plain; /* without the event of usage */
    bool fingerprint;        /* a stream ends with one */
};

/* An event of the engine. */
void sim_journal_event(struct sim_journal *j, uint64_t now_ns, const char *what);

/* All of these do nothing without a journal, or if the entry is not recorded. */
void sim_entry_request(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                       const struct http_head *head);
void sim_entry_first(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns,
                     uint64_t prompt_tokens, uint64_t cached_tokens);
void sim_entry_body(struct sim_entry *e, struct slice bytes);
/* SIM_WHOLE becomes what `refused`, `failed` and the status say. The entry is over. */
void sim_entry_end(struct sim_journal *j, struct sim_entry *e, uint64_t now_ns, enum sim_how how);

#endif
