/* What the paths of the client port mean: one table of vLLM's and SGLang's.
 *
 * Engine control paths (sleep, flush, LoRA loading, ...) are recognised in every disguise that an
 * engine, or something in front of it, may undo: percent-encoding (of any depth), dot segments,
 * doubled, trailing or backward slashes, path parameters, other case, control bytes, a prefix or
 * suffix of further segments. Whatever could reach one is HTTP_PATH_CONTROL, never HTTP_PATH_OTHER.
 * Paths that make an engine compute, and those of what it stored, are found behind other segments
 * too (`behind`): what is said of clients and their keys holds there as well.
 * Nothing is rewritten but one slash at the end of a path that is known without it: engines answer
 * such a path with a redirect, which clients do not follow with a body.
 */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include "base/err.h"
#include "base/slice.h"
#include "http/head.h"

enum http_path_kind {
    HTTP_PATH_OTHER, /* unknown: refused, or proxied by load */
    HTTP_PATH_CHAT,  /* /v1/chat/completions */
    HTTP_PATH_COMPLETIONS,
    HTTP_PATH_RESPONSES,       /* POST /v1/responses */
    HTTP_PATH_MESSAGES,        /* Anthropic's */
    HTTP_PATH_GENERATE,        /* SGLang's /generate */
    HTTP_PATH_TOKENS,          /* /inference/v1/generate: token ids in, token ids out */
    HTTP_PATH_PROMPT,          /* any other JSON body, which names a model and may hold a prompt:
                                  render, tokenize, embeddings, pooling, score, detokenize, ... */
    HTTP_PATH_INVOCATIONS,     /* SageMaker's: a body as of PROMPT, but a header may name another
                                  model, and the engine's operator another handler */
    HTTP_PATH_MEDIA,           /* audio, images, a video at once: JSON or multipart, with a model */
    HTTP_PATH_JOBS,            /* /v1/videos: POST as of MEDIA begins a job, which one engine keeps;
                                  GET lists its jobs */
    HTTP_PATH_PLAIN,           /* proxied by load, nothing to read in a body */
    HTTP_PATH_MODELS,          /* merged over the replicas */
    HTTP_PATH_MODEL_ONE,       /* id: percent-encoded, may hold '/'; answered, never forwarded */
    HTTP_PATH_RESPONSE_STORED, /* id: plain; the replica that made it */
    HTTP_PATH_MEDIA_STORED,    /* the same of a video or an image */
    HTTP_PATH_HEALTH,          /* /health, /ping: answered by the router */
    HTTP_PATH_STATUS,          /* /metrics, /load and such, which are of one engine: as OTHER */
    HTTP_PATH_ROOT,            /* GET and HEAD of /, as programs ask whether a server is there:
                                  answered by the router; other methods are OTHER */
    HTTP_PATH_SERVER,          /* OPTIONS *: answered by the router */
    HTTP_PATH_CONTROL,         /* refused to clients unless configured */
    HTTP_PATH_KINDS,
};

struct http_route {
    enum http_path_kind kind;
    bool method_allowed; /* false: answer 405 with Allow; the engines' body is
                            {"detail":"Method Not Allowed"} */
    unsigned methods;    /* bits 1 << enum http_method that the path takes */
    struct slice id;     /* of MODEL_ONE, RESPONSE_STORED and MEDIA_STORED */
    bool slashed;        /* the path is known without the slash at its end, which is to go */
    bool behind;         /* it is known behind other segments or in another case: an engine may sit
                            behind a root path. It goes on as it came */
    size_t prefix;       /* bytes of the path before the known one */
};

/* `path` without query, as in struct http_head. OPTIONS (CORS preflight) on a path that is
 * proxied gives HTTP_PATH_PLAIN: the engine answers it. OTHER, CONTROL and
 * what is stored behind other segments allow every method. */
struct http_route http_path_lookup(struct slice path, enum http_method method);

/* Whether a CONTROL path empties the engine's prefix cache (vLLM: also /sleep; SGLang: also
 * /release_memory_occupation). In the same disguises. */
bool http_path_resets_cache(struct slice path);

/* "GET"; empty for OTHER. */
const char *http_method_name(enum http_method method);

/* For an Allow field: "GET, HEAD". Writes at most `size` - 1 bytes and a NUL. */
void http_methods_text(unsigned methods, char *out, size_t size);

/* Undoes percent-encoding once. ERR_SYNTAX: a '%' without two hex digits; ERR_LIMIT: `size` is too
 * small. out may be as long as encoded. */
MUST_USE int http_percent_decode(struct slice encoded, char *out, size_t size,
                                 struct slice *decoded);

#define HTTP_BODY_NOT_FOUND          "{\"detail\":\"Not Found\"}"
#define HTTP_BODY_METHOD_NOT_ALLOWED "{\"detail\":\"Method Not Allowed\"}"

#endif
