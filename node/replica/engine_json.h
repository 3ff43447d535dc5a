/* Engines' answers in JSON: /v1/models, SGLang's /server_info, and errors for an unknown model. */
#ifndef NODE_REPLICA_ENGINE_JSON_H
#define NODE_REPLICA_ENGINE_JSON_H

#include "base/err.h"
#include "base/slice.h"
#include "node/replica/scrape.h"
#include "node/replica/terms.h"

/* A model of a list, or an adapter. Its id and parent are unescaped, and valid for a call only. */
struct node_listed {
    struct slice id;
    struct slice object; /* all of it, in the list */
    struct slice parent; /* the base whose adapter it is; empty: it is none, or that is too long */
    uint32_t
        context_tokens; /* max_model_len of vLLM and SGLang; 0: not told, as of most adapters */
    enum node_engine engine; /* by its owned_by; AUTO: any other */
};

typedef int (*node_listed_each)(void *context, const struct node_listed *model);

/* Reads {"object":"list","data":[{"id":...,...},...]} and calls `each` for every model, with its
 * whole object, so that lists of several replicas can be merged without knowing what else is in
 * them. Models without an id, or with a longer one, are passed over. ERR_SYNTAX if it is no such
 * list; else the first non-zero answer of `each`, which ends the reading. */
MUST_USE int node_models_parse(struct slice json, node_listed_each each, void *context);

/* What an engine says of a failure. */
struct node_engine_error {
    unsigned status;                     /* the one that it names; 0: none */
    char message[NODE_MODEL_ID_MAX + 1]; /* its beginning; empty: none */
    char type[64];                       /* empty: none */
    bool too_long;                       /* its code: the context is too short */
    bool model_unknown;                  /* a whole one says so, rather than a path or an id */
};

/* Reads an error in any of the engines' forms: OpenAI's, the flat one of SGLang, Anthropic's, a
 * "response.failed" event, an abort of SGLang's native form. What is not there stays empty. That a
 * model is unknown is said by {"error":{"message":"The model `x` does not exist.","param":"model",
 * ...}} of vLLM, the flat form of older ones, `"code":"model_not_found"` of OpenAI, and others of
 * like words. */
void node_error_read(struct slice json, struct node_engine_error *out);

/* SGLang's /server_info: cache_tokens (max_total_num_tokens, of one rank), block_tokens (page_size)
 * and ranks (dp_size); all else of `out` is unknown. `context_tokens`: how long a prompt with its
 * answer may be there, which is context_length, or the cache where that is smaller; 0: it does not
 * say. ERR_SYNTAX; ERR_NOT_FOUND if none of the first two is there. */
MUST_USE int node_server_info_parse(struct slice json, struct node_scrape *out,
                                    uint32_t *context_tokens);

#endif
