/* Engines' answers in JSON: /v1/models, SGLang's /server_info, and errors for an unknown model. */
#ifndef NODE_REPLICA_ENGINE_JSON_H
#define NODE_REPLICA_ENGINE_JSON_H

#include "base/err.h"
#include "base/slice.h"
#include "node/replica/scrape.h"
#include "node/replica/terms.h"

/* A model of a list, or an adapter. The id and parent are unescaped. All slices are valid only
 * during the call of node_listed_each. */
struct node_listed {
    struct slice id;
    struct slice object; /* the model's whole object in the list */
    struct slice parent; /* base model of an adapter; empty: not an adapter, or too long */
    uint32_t
        context_tokens; /* max_model_len of vLLM and SGLang; 0: not listed, as for most adapters */
    enum node_engine engine; /* the engine named in owned_by; AUTO: any other owner */
};

typedef int (*node_listed_each)(void *context, const struct node_listed *model);

/* Reads {"object":"list","data":[{"id":...,...},...]} and calls `each` for every model, with the
 * model's whole object, so that the caller can merge several replicas' lists unchanged. Models with
 * a missing or too long id are skipped. ERR_SYNTAX: the text is no list of models. Other results
 * are the first non-zero result of `each`, which ends the reading. */
MUST_USE int node_models_parse(struct slice json, node_listed_each each, void *context);

/* An engine's error response. */
struct node_engine_error {
    unsigned status;                     /* HTTP status given inside the error; 0: none */
    char message[NODE_MODEL_ID_MAX + 1]; /* truncated; empty: none */
    char type[64];                       /* empty: none */
    bool too_long;                       /* by the error's code, the prompt is longer than the
                                          * context */
    bool model_unknown;                  /* a field of the error says that the model is unknown, not
                                          * a path or an id; set only if the JSON text is
                                          * complete */
};

/* Reads an error in any of the engines' forms: OpenAI's, SGLang's flat form, Anthropic's, a
 * "response.failed" event, an abort of SGLang's native form. Missing fields stay empty. An unknown
 * model reads {"error":{"message":"The model `x` does not exist.","param":"model", ...}} in vLLM;
 * in older releases, the flat form. In OpenAI's form it is `"code":"model_not_found"`, elsewhere
 * similar words. */
void node_error_read(struct slice json, struct node_engine_error *out);

/* Reads SGLang's /server_info: cache_tokens (max_total_num_tokens, of a rank), block_tokens
 * (page_size) and ranks (dp_size). All other fields of `out` are unknown. Sets *context_tokens to
 * the limit on a prompt with its answer: context_length or the cache size, whichever is smaller; 0:
 * not reported. ERR_SYNTAX: no JSON. ERR_NOT_FOUND: both cache_tokens and block_tokens are
 * missing. */
MUST_USE int node_server_info_parse(struct slice json, struct node_scrape *out,
                                    uint32_t *context_tokens);

#endif
