/* Engines' answers in JSON: /v1/models, SGLang's /server_info, and errors for an unknown model. */
#ifndef NODE_REPLICA_ENGINE_JSON_H
#define NODE_REPLICA_ENGINE_JSON_H

#include "base/err.h"
#include "base/slice.h"
#include "node/replica/scrape.h"
#include "node/replica/terms.h"

/* Reads {"object":"list","data":[{"id":...,...},...]} and calls `each` for every model: its id
 * (unescaped, valid for the call only) and its whole object (points into `json`), so that lists of
 * several replicas can be merged without knowing what else is in them. Models without an id, or
 * with a longer one, are passed over. ERR_SYNTAX if it is no such list; else the first non-zero
 * answer of `each`, which ends the reading. */
MUST_USE int node_models_parse(struct slice json,
                               int (*each)(void *context, struct slice id, struct slice object),
                               void *context);

/* The kind of engine that an object of that list names as the owner, as vLLM and SGLang do; AUTO
 * for every other. */
enum node_engine node_models_owner(struct slice object);

/* The base whose adapter an object of that list is: cut off the front of `room`; empty: it is none,
 * or the name is longer. */
struct slice node_models_parent(struct slice object, char room[NODE_MODEL_ID_MAX]);

/* The context length in tokens that an object of that list tells (max_model_len, of vLLM and
 * SGLang); 0: none, as of most adapters. */
uint32_t node_models_context(struct slice object);

/* Whether the body of a 404 says that the model is unknown, rather than a path or something stored:
 * {"error":{"message":"The model `x` does not exist.","param":"model",...}} of vLLM, the flat
 * form of older ones, `"code":"model_not_found"` of OpenAI, and others of like words. */
bool node_error_model_unknown(struct slice json);

/* What an engine says of a failure. */
struct node_engine_error {
    unsigned status;                     /* the one that it names; 0: none */
    char message[NODE_MODEL_ID_MAX + 1]; /* its beginning; empty: none */
    char type[64];                       /* empty: none */
    bool too_long;                       /* its code: the context is too short */
};

/* Reads an error in any of the engines' forms: OpenAI's, the flat one of SGLang, Anthropic's, a
 * "response.failed" event, an abort of SGLang's native form. What is not there stays empty. */
void node_error_read(struct slice json, struct node_engine_error *out);

/* SGLang's /server_info: cache_tokens (max_total_num_tokens, of one rank), block_tokens (page_size)
 * and ranks (dp_size); all else of `out` is unknown. `context_tokens`: how long a prompt with its
 * answer may be there, which is context_length, or the cache where that is smaller; 0: it does not
 * say. ERR_SYNTAX; ERR_NOT_FOUND if none of the first two is there. */
MUST_USE int node_server_info_parse(struct slice json, struct node_scrape *out,
                                    uint32_t *context_tokens);

#endif
