/* The coding sessions of ../shared/traces (see README.md there): a JSON file per session; each
 * request has a list of blocks of 64 tokens.
 *
 * Block ids of the files are local to a session. Here they are unique over all sessions, except for
 * the first half of a session's tools and system prompt, which all sessions share (the publisher's
 * default). Equal ids mean an equal prefix up to and including the block. */
#ifndef TESTS_LIB_CODING_SESSIONS_H
#define TESTS_LIB_CODING_SESSIONS_H

#include <stdint.h>

enum { SESSION_BLOCK_TOKENS = 64 };

struct session_request {
    double think_s; /* the user's pause before the request */
    uint32_t prompt_tokens;
    uint32_t output_tokens;
    uint32_t block_count;
    uint32_t *blocks; /* whole blocks of the prompt */
};

struct session {
    char id[64];
    unsigned count;
    struct session_request *requests;
};

struct coding_sessions {
    unsigned count;
    struct session *sessions; /* in the order of file names */
};

/* Reads up to `files_max` files (0: all) of the directory, without requests of more than
 * `prompt_tokens_max` tokens (0: no limit). ERR_NOT_FOUND: no readable session is there. */
int coding_sessions_load(struct coding_sessions *out, const char *directory, unsigned files_max,
                         uint32_t prompt_tokens_max);
void coding_sessions_free(struct coding_sessions *s);

#endif
