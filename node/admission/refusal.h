/* The router's own errors: a single table for clients, metrics and logs.
 *
 *   X(NAME, word, status, setting, text)
 *
 * `word` is the reason in metrics, logs and x-grapevine-reason. `setting` causes the error
 * (x-grapevine-limit); NULL: none or several. `status` and `text` are the usual response. If the
 * text is NULL, the sender writes the text; the text of a time limit is only a part.
 *
 * First come clients' mistakes, and probes of a server's abilities: no other router, and no engine,
 * would have served these. */
#ifndef NODE_ADMISSION_REFUSAL_H
#define NODE_ADMISSION_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#define REFUSALS_EACH(X)                                                                           \
    X(MALFORMED, "malformed", 400, NULL, NULL) /* also 414, 431, 501, 505 of the parser */         \
    X(CODING, "coding", 415, NULL, NULL)       /* content coding of a body */                      \
    X(PATH, "path", 404, NULL, NULL)           /* also 405 */                                      \
    X(UPGRADE, "upgrade", 426, NULL, NULL)     /* a WebSocket handshake */                         \
    X(ORIGIN, "origin", 403, "cors-allow-origin",                                                  \
      "Pages of this origin may not call this router. Its operator can add the origin to "         \
      "cors-allow-origin.") /* answer to a preflight */                                            \
    X(MODEL, "model", 404, NULL, NULL)                                                             \
    X(API_KEY, "api_key", 401, NULL, NULL)       /* engines want a key for GET /v1/models */       \
    X(CLIENT_KEY, "client_key", 401, NULL, NULL) /* an unknown client key (client-keys-file) */    \
    X(KEY_MODEL, "key_model", 403, "models",                                                       \
      "This API key is for certain models only, and which one a request to this path is for "      \
      "cannot be told.")                       /* or the model is not among them (404) */          \
    X(KEY_RESPONSE, "key_response", 403, NULL, /* the response is another key's */                 \
      "The list of videos holds those of other API keys: ask for yours by id.")                    \
    /* From here on the cause is the router, a limit or a replica. */                              \
    X(BODY_LIMIT, "body_limit", 413, "body-bytes-max", "The request body is too large.")           \
    X(KEY_LIMIT, "key_limit", 429, NULL, NULL) /* a client's key exceeds a limit; also 403 */      \
    X(ENGINE_FIELD, "engine_field", 400, "engine-fields", NULL)                                    \
    X(CONTROL, "control", 403, "engine-control-paths",                                             \
      "This path controls an engine and is not open to clients.")                                  \
    X(NO_REPLICA, "no_replica", 503, NULL, NULL)                                                   \
    X(MEMORY, "memory", 503, "buffered-bytes-max", "Too many request bodies are held now.")        \
    X(TIMEOUT, "timeout", 408, NULL, NULL)                                                         \
    X(BAD_GATEWAY, "bad_gateway", 502, NULL, NULL) /* also 504: no replica gave an answer */       \
    X(RETRY_BUDGET, "retry_budget", 502, "retry-budget",                                           \
      "The replica did not answer in time, and no retry is left")                                  \
    X(BY_ENGINE, "engine", 502, NULL, NULL) /* error in a stream or of a control path */           \
    X(POISON, "poison", 502, NULL, "Engines died after this request. It is not sent to another.")  \
    X(SUSPECT, "suspect", 502, NULL, NULL) /* the request killed an engine */                      \
    X(LOOP, "loop", 508, NULL, NULL)       /* was here before, or at too many routers */           \
    X(INTERNAL, "internal", 500, NULL, NULL)                                                       \
    X(CONNECTIONS, "connections", 503, "connections-max", "Too many connections.")                 \
    X(CLIENT_CONNECTIONS, "client_connections", 429, "connections-per-client-max",                 \
      "Too many connections of one client.")       /* these two count as no request */             \
    X(SLOW_UPLOAD, "slow_upload", 408, NULL, NULL) /* also 503, if memory is short */              \
    X(QUEUE_FULL, "queue_full", 429, NULL, NULL)                                                   \
    X(QUEUE_TIMEOUT, "queue_timeout", 504, "queue-timeout",                                        \
      "No replica had room for the request in time")                                               \
    X(STOPPING, "stopping", 503, NULL, NULL) /* the request waited when the router stopped */      \
    X(CONNECT, "connect", 504, "upstream-connect-timeout", NULL)                                   \
    X(FIRST_TOKEN, "first_token", 504, "upstream-first-token-timeout", NULL)                       \
    X(IDLE, "idle", 504, "upstream-idle-timeout", NULL)                                            \
    X(WHOLE_ANSWER, "whole_answer", 504, "upstream-whole-answer-timeout", NULL)                    \
    X(REQUEST_TIMEOUT, "request_timeout", 504, "request-timeout",                                  \
      "The request was not answered in the time that it has")

#define REFUSAL_ENUM(NAME, word, status, setting, text) REFUSED_##NAME,
enum refusal {
    REFUSED_NONE,
    REFUSALS_EACH(REFUSAL_ENUM) REFUSALS,
    REFUSALS_OF_CLIENTS = REFUSED_BODY_LIMIT, /* the reasons before this are clients' mistakes */
};
#undef REFUSAL_ENUM

struct refusal_row {
    const char *word;
    unsigned status;
    const char *setting, *text;
};
extern const struct refusal_row refusal_rows[REFUSALS];

static inline bool refusal_is_clients(enum refusal refusal)
{
    return refusal != REFUSED_NONE && refusal < REFUSALS_OF_CLIENTS;
}

#endif
