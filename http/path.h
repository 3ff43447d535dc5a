/* Classifies the paths of the client port by a table of vLLM's and SGLang's paths.
 *
 * Engine control paths (sleep, flush, LoRA loading, ...) are recognised in every disguise that an
 * engine, or a proxy before the engine, may undo. Disguises are percent-encoding (of any depth),
 * dot segments, doubled, trailing or backward slashes, path parameters, other case, control bytes,
 * and a prefix or suffix of further segments. A path that could reach a control path is
 * HTTP_PATH_CONTROL, never HTTP_PATH_OTHER. Paths that make an engine compute, and paths of stored
 * results, are also found behind other segments (`behind`): the rules for clients and their keys
 * apply there as well. Paths are not rewritten, with an exception: if a path is listed without the
 * last slash, the slash is removed. Engines answer such a path with a redirect, which clients do
 * not follow with a body.
 */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include "base/err.h"
#include "base/slice.h"
#include "http/head.h"

enum http_path_kind {
    HTTP_PATH_OTHER, /* unknown path: refused, or proxied by load */
    HTTP_PATH_CHAT,  /* /v1/chat/completions */
    HTTP_PATH_COMPLETIONS,
    HTTP_PATH_RESPONSES, /* POST /v1/responses */
    HTTP_PATH_MESSAGES,  /* POST /v1/messages (Anthropic) */
    HTTP_PATH_GENERATE,  /* SGLang's /generate */
    HTTP_PATH_TOKENS,    /* /inference/v1/generate: token ids in, token ids out */
    /* A JSON body with a model, and maybe a prompt: render, tokenize, embeddings, pooling, score,
     * detokenize, ... */
    HTTP_PATH_PROMPT,
    HTTP_PATH_INVOCATIONS,     /* SageMaker's /invocations: a body as for PROMPT, but a header may
                                * name another model, and the engine's operator another handler */
    HTTP_PATH_MEDIA,           /* audio, images, or a video in the answer itself: JSON or multipart,
                                * with a model */
    HTTP_PATH_JOBS,            /* /v1/videos: POST as for MEDIA begins a job, which is stored by
                                  a single engine; GET lists an engine's jobs */
    HTTP_PATH_PLAIN,           /* proxied by load, without reading a body */
    HTTP_PATH_MODELS,          /* /v1/models: the router merges the replicas' lists */
    HTTP_PATH_MODEL_ONE,       /* /v1/models/{id}: answered by the router, never forwarded; the id
                                * is percent-encoded and may hold '/' */
    HTTP_PATH_RESPONSE_STORED, /* /v1/responses/{id}: goes to the replica that made the response;
                                * the id has no percent-encoding */
    HTTP_PATH_MEDIA_STORED,    /* a stored video or image; goes to the replica that made the file */
    HTTP_PATH_HEALTH,          /* /health, /ping: answered by the router */
    HTTP_PATH_STATUS,          /* /metrics, /load and such, which differ by engine: treated as
                                * OTHER */
    HTTP_PATH_ROOT,            /* GET and HEAD of /, with which programs test whether a server is
                                  up: answered by the router; other methods are OTHER */
    HTTP_PATH_SERVER,          /* OPTIONS *: answered by the router */
    HTTP_PATH_CONTROL,         /* refused to clients unless configured */
    HTTP_PATH_KINDS,
};

struct http_route {
    enum http_path_kind kind;
    bool method_allowed; /* false: answer 405 with Allow; the engines' body is
                            {"detail":"Method Not Allowed"} */
    unsigned methods;    /* the path's methods: bits 1 << enum http_method */
    struct slice id;     /* the id in a path of MODEL_ONE, RESPONSE_STORED or MEDIA_STORED */
    bool slashed;        /* the path is listed without the last slash: the slash is to be removed */
    bool behind;         /* the listed path is behind other segments or in another case, as an
                            engine may have a root path; the request path is forwarded unchanged */
    size_t prefix;       /* bytes of the request path before the listed path */
};

/* Looks up a request's path, which comes without the query, as in struct http_head. OPTIONS (CORS
 * preflight) on a proxied path gives HTTP_PATH_PLAIN: the engine answers it. OTHER, CONTROL and
 * stored results behind other segments allow every method. */
struct http_route http_path_lookup(struct slice path, enum http_method method);

/* True if a CONTROL path empties the engine's prefix cache (vLLM: also /sleep; SGLang: also
 * /release_memory_occupation). Recognises the disguises listed above. */
bool http_path_resets_cache(struct slice path);

/* The method's name, such as "GET"; empty for OTHER. */
const char *http_method_name(enum http_method method);

/* Writes the value of an Allow field: "GET, HEAD". At most `size` - 1 bytes and a NUL. */
void http_methods_text(unsigned methods, char *out, size_t size);

/* Undoes percent-encoding once. ERR_SYNTAX: a '%' without two hex digits; ERR_LIMIT: `size` is too
 * small; `encoded.len` always suffices. `*decoded` lies in `out`. */
MUST_USE int http_percent_decode(struct slice encoded, char *out, size_t size,
                                 struct slice *decoded);

#define HTTP_BODY_NOT_FOUND          "{\"detail\":\"Not Found\"}"
#define HTTP_BODY_METHOD_NOT_ALLOWED "{\"detail\":\"Method Not Allowed\"}"

#endif
