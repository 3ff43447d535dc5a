/* A client's request: a body of any of the APIs, read in a single pass. Pure.
 *
 * The prompt is rendered in ChatML: role markers around each message, tools and system text in
 * front, wherever they were in the body. The result becomes the request's chain. */
#ifndef TESTS_ENGINE_SIM_ASK_H
#define TESTS_ENGINE_SIM_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/engine-sim/text.h"

enum sim_tool_choice { SIM_TOOL_AUTO, SIM_TOOL_NONE, SIM_TOOL_REQUIRED };

struct sim_piece {
    uint8_t section; /* enum section of ask_internal.h */
    uint8_t kind;
    bool begins; /* the piece begins a tool, or a block of system text in a list */
    struct slice text;
    struct slice role; /* a message's role */
    uint32_t id;       /* a token id of the prompt */
};

struct sim_ask {
    struct slice model; /* empty: not given; points into `text`, like all slices */
    struct slice request_id;
    struct slice cache_salt;
    struct slice previous_response;
    struct slice tool_name; /* name of the tool to call */
    enum sim_tool_choice tool_choice;
    bool has_messages;
    bool has_prompt; /* the body has prompt, input, text or input_ids */
    bool has_max_tokens;
    bool has_tools;
    bool stream;
    bool include_usage;
    bool return_token_ids;
    bool ignore_eos;
    bool background;
    bool empty_salt;    /* cache_salt is empty: an error in vLLM */
    bool wrong_tokens;  /* a token id beyond the vocabulary */
    bool store;         /* for responses: true by default */
    int64_t max_tokens; /* -1: not given */
    int64_t min_tokens;
    int64_t routed_dp_rank;     /* SIM_ASK_NO_RANK: not given */
    int64_t data_parallel_rank; /* older name of routed_dp_rank */
    uint64_t seed;
    size_t error_at; /* offset of invalid JSON */

    /* Memory of the slices, owned. */
    char *text;
    size_t text_len;
    struct sim_piece *pieces;
    size_t piece_count;
    size_t piece_cap;
};

#define SIM_ASK_NO_RANK INT64_MIN
/* A whole number with or without a sign, as Python's int() reads it; false: not a number. */
bool sim_ask_integer(struct slice text, int64_t *out);

/* ERR_SYNTAX: not a JSON object; error_at is set. */
int sim_ask_parse(struct sim_ask *a, struct slice body);
void sim_ask_free(struct sim_ask *a);

/* Changes that an engine makes to a prompt before the look-up (ask_rewrite.c). Slices are borrowed,
 * also by the request. */
struct sim_rewrite {
    struct slice drop; /* removes a leading block of system text with this beginning; empty: none */
    struct slice lead; /* adds this text in front; empty: none */
    bool system_first; /* later system messages move to the head */
    bool sort_tools;
    bool trim_reasoning; /* drops the assistant's reasoning before the user's last message */
};

void sim_ask_rewrite(struct sim_ask *a, const struct sim_rewrite *how);

/* Adds the prompt to the chain. `continues`: the chain ends in an earlier answer, and the prompt
 * follows this answer. */
void sim_ask_render(const struct sim_ask *a, struct sim_chain *chain, bool continues);

/* Calls `each` for every token of the rendered prompt, for /tokenize. */
void sim_ask_tokens(const struct sim_ask *a, void (*each)(void *, uint32_t id, struct slice text),
                    void *context);

#endif
