/* One request, from its head to the last byte of its answer.
 *
 *   exchange_begin           the head is there: what path is it, does its body matter for routing?
 *   exchange_on_body*        the body: held as long as a retry could need it, and skimmed
 *   exchange_on_body_end     prompts are routed now; other requests have been streaming already
 *   exchange_on_head/data/end  the replica answers: passed on at once
 *
 * Until the first byte of an answer went to the client, a replica that fails is replaced by another
 * (retries-max times). Whatever way it ends, exactly one node_router_finish() follows each booking.
 */
#ifndef NODE_IO_EXCHANGE_H
#define NODE_IO_EXCHANGE_H

#include "http/path.h"
#include "http/skim.h"
#include "http/usage.h"
#include "node/io/client.h"
#include "node/io/upstream.h"

enum {
    EXCHANGE_ID_MAX = 128,                 /* bytes of X-Request-Id; a longer one is replaced */
    EXCHANGE_PATH_MAX = 96,                /* of the path in logs */
    EXCHANGE_SESSION_MAX = 128,            /* of the session header's value */
    EXCHANGE_RETRY_BYTES = 256 * 1024,     /* a streamed body beyond this cannot be sent again */
    EXCHANGE_ASK_BYTES = 1024 * 1024,      /* larger bodies are not sent around for long */
    EXCHANGE_SEND_BYTES_HIGH = 256 * 1024, /* streamed body waiting for a slow engine */
    EXCHANGE_ROUTERS_MAX = 3,              /* that a request has passed before; then 508 */
};

enum exchange_scan { EXCHANGE_SCAN_NONE, EXCHANGE_SCAN_USAGE };

struct exchange {
    struct shell *shell;
    struct client *client;
    struct exchange *next_free;

    /* The request. */
    struct buf head; /* as it goes upstream; for local answers, as it came */
    struct body *body;
    struct http_route route;
    enum http_method method;
    unsigned minor;
    bool local; /* answered here: admin port, health, models */
    bool probe; /* of a router, that takes this one for an engine */
    bool whole; /* the body must be complete before a replica is chosen */
    bool skimming;
    bool answer_whole; /* a generation that is not streamed: its first byte comes with its last */
    bool head_request;
    bool dropped;      /* a sent part of the body was let go: no retry any more */
    bool chunked_body; /* its length is known only at the end */
    uint64_t started_ms;
    struct slice request_id;
    char request_id_text[EXCHANGE_ID_MAX];
    char path[EXCHANGE_PATH_MAX];
    char session[EXCHANGE_SESSION_MAX];
    uint8_t session_len;
    uint8_t stored_id_len;
    char stored_id[HTTP_USAGE_ID_MAX + 1]; /* of /v1/responses/{id} */

    /* The choice. */
    struct node_decision decision;
    bool booked;
    bool asking_around; /* a stored response whose maker is unknown: 404 means the next one */
    bool model_likely;  /* a replica denied the model: none that did lately is asked */
    bool timed_out;     /* the last attempt ended so: 504 rather than 502 if there is no other */
    bool reached;       /* something of the request was sent in the last attempt */
    unsigned addresses; /* of the replica's name that failed in this attempt */
    unsigned attempts;
    uint64_t excluded[NODE_REPLICAS_MAX / 64];
    struct upstream *upstream;
    struct admin_ask *asking;    /* admin port: other routers are asked */
    struct admin_add *adding;    /* admin port: a replica is probed before it is added */
    struct model_ask *model_ask; /* replicas are asked for their models */

    struct buf held;  /* a 404 that is not judged yet (hold.c): its head and its body */
    size_t held_head; /* bytes of it that are the head */

    /* The answer. */
    bool answering; /* bytes of it went to the client */
    bool first_token;
    enum exchange_scan scan;
    unsigned status;
    enum http_framing out_framing;
    uint64_t bytes_out;
    uint64_t first_byte_ms;
    enum node_outcome outcome;
    enum shell_refusal refusal; /* counted if it ends in an error of ours; NONE: by the status */
    struct http_usage usage;

    struct http_skim skim; /* last: 25 KB, touched only by requests with prompts */
};

/* --- from the client ------------------------------------------------------------------------ */

/* Makes the exchange of a head and hangs it on the client, or refuses. */
void exchange_begin(struct client *c, const struct http_head *head, bool has_body);
void exchange_on_body(struct exchange *x, struct slice bytes);
/* Room to read a body into directly (empty at the memory limit), and how much was read there. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected);
void exchange_on_body_read(struct exchange *x, size_t n);
void exchange_on_body_end(struct exchange *x);
/* The connection closes before the answer is whole. */
void exchange_on_cut(struct exchange *x, enum client_end why);
void exchange_on_client_drained(struct exchange *x);

/* Answers an error of the router's own and closes the connection; ends the exchange if there is
 * one. */
void exchange_refuse(struct client *c, unsigned status, const char *type, const char *text);

/* --- from the replica ----------------------------------------------------------------------- */

void exchange_on_head(struct exchange *x, const struct http_head *head);
void exchange_on_data(struct exchange *x, struct slice bytes);
void exchange_on_end(struct exchange *x);
void exchange_on_failure(struct exchange *x, enum upstream_failure failure);
/* The upstream is past another part of the body, or past all of it. */
void exchange_on_body_sent(struct exchange *x);
/* The first bytes of the answer go to the client: there is no retry any more. */
void exchange_on_answering(struct exchange *x);
/* Called after each sending: a body that was held back may go on. */
void exchange_on_request_drained(struct exchange *x);
/* What exchange_on_data() gathered goes out. Called at the end of each read. */
void exchange_flush(struct exchange *x);

/* --- for local answers ---------------------------------------------------------------------- */

/* One whole answer; `extra` fields are added. Ends the exchange. */
void exchange_answer(struct exchange *x, unsigned status, struct slice content_type,
                     struct slice body, const struct http_line *extra, size_t extra_count);
/* An OpenAI-style error; the connection stays open. Ends the exchange. */
void exchange_answer_error(struct exchange *x, unsigned status, const char *type,
                           struct slice param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* 405; `methods` is what the path does take, for people and for the Allow field. */
void exchange_answer_not_allowed(struct exchange *x, struct slice path, const char *methods);

/* The session key: from the configured header, where there is one, or given. */
void exchange_read_session(struct exchange *x, const struct http_head *head);
void exchange_session_set(struct exchange *x, struct slice value);

/* What a policy may know of the request, from the finished skim. */
void exchange_describe(const struct exchange *x, struct node_request *out);

/* The whole body as one piece of memory: for local answers that read it. The caller frees. */
int exchange_body_copy(const struct exchange *x, struct buf *out);

/* In a word, for logs and metrics: "whole", "client_gone", ... */
const char *exchange_end_name(enum client_end why);

void exchange_pool_free(struct shell *shell);

#endif
