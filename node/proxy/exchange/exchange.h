/* A request, from the head to the last byte of the answer: the kind, the replica and the progress.
 * Events for a request are in drive.h. This header also has the functions by which the router
 * answers a request itself (node/proxy/own/local.h, node/admin).
 *
 * Until an answer's first token goes to the client (hold.c), a failed attempt is repeated at
 * another replica, at most retries-max times and within the retry budget. However the request ends,
 * exactly one node_router_finish() follows each booking. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGE_H
#define NODE_PROXY_EXCHANGE_EXCHANGE_H

#include "http/coding.h"
#include "http/ids_cut.h"
#include "http/path.h"
#include "http/skim.h"
#include "http/traceparent.h"
#include "http/usage.h"
#include "http/usage_cut.h"
#include "node/kv/asked.h"
#include "node/proxy/client/client.h"
#include "node/proxy/engine/upstream.h"

enum {
    EXCHANGE_ID_MAX = 128,             /* longest X-Request-Id in bytes; a longer id is replaced */
    EXCHANGE_PATH_MAX = 96,            /* bytes of the path in logs */
    EXCHANGE_SESSION_MAX = 128,        /* bytes of the session header's value */
    EXCHANGE_ORIGIN_MAX = 256,         /* bytes of an Origin repeated in the answer */
    EXCHANGE_UNPACK_BYTES = 16384,     /* size of the buffer for decoded bytes of an answer */
    EXCHANGE_HOST_MAX = 264,           /* bytes of a Host field for engines */
    EXCHANGE_RETRY_BYTES = 256 * 1024, /* a longer streamed body cannot be sent again */
    EXCHANGE_ASK_BYTES = 1024 * 1024,  /* a larger body is tried at only a few replicas */
    /* With this many unsent bytes of a streamed body, reading pauses. */
    EXCHANGE_SEND_BYTES_HIGH = 256 * 1024,
    EXCHANGE_ROUTERS_MAX = 3,      /* a request through more routers is answered 508 */
    EXCHANGE_FREE_RETRIES_MAX = 8, /* uncounted retries after failures to connect */
    EXCHANGE_HELD_MAX = 64 * 1024, /* held bytes of an answer; a longer answer is not judged */
    /* Held bytes of an error. If a replica with a longer context may help, EXCHANGE_HELD_MAX
     * applies, because engines repeat a too long prompt in the error. */
    EXCHANGE_HELD_ERROR_MAX = 8 * 1024,
    /* Decoded bytes of an answer in one event: PROXY_READ_BYTES at a ratio of 16, some ms of
     * work. */
    EXCHANGE_UNPACK_TURN_BYTES = 1024 * 1024,
};

/* Knowledge about a request that may be poison (node/proxy/exchange/suspect.h). All 0: no
 * suspicion. */
struct suspect {
    uint64_t hash;            /* hash of the request; 0: not computed yet */
    uint64_t at_ms;           /* time of the last death during the request */
    unsigned replica;         /* the replica of the last death */
    unsigned deaths;          /* deaths during attempts, counted against the request */
    bool died;                /* a death occurred, even if an answer later cleared the request */
    bool spared;              /* a death was not counted: the request may have been in transit */
    bool core;                /* a core died: the engine's death is certain */
    bool clear;               /* the evidence is strong: a dead core, or no other suspect */
    enum refusal refused;     /* the reason why the request must not be sent (again) */
    const char *refused_text; /* the reason in words for the client, unless the request is poison */
};

/* An error that may be the replica's fault or the request's: the next replica's answer decides. */
struct exchange_doubt {
    bool open;
    unsigned replica;
    uint32_t life; /* the replica's life when the error came */
};

/* A rejection (4xx) that is stored while another replica is tried (kept.c, reject.c). */
struct exchange_kept {
    bool open;
    /* The text depends on the replica: another replica's different answer is no evidence against
     * it. */
    bool says_why;
    bool is_error; /* `bytes` has only type and message: the rejection was an event, or too long */
    /* The rejection was too long to store. A second rejection, by another replica, goes to the
     * client instead. */
    bool cut;
    bool last; /* the value of client->last after the stored head */
    struct node_rejection what;
    uint32_t life; /* the replica's life when the rejection came */
    enum http_framing framing;
    struct buf bytes; /* head and body as the client would get them */
    size_t head;      /* length of the head in `bytes` */
};

/* The held part of an answer (hold.c). */
enum exchange_hold {
    EXCHANGE_HOLD_NONE,
    EXCHANGE_HOLD_STREAM,
    EXCHANGE_HOLD_BODY,
    EXCHANGE_HOLD_ERROR,
};

/* The parts of an answer to read: none; tokens, errors and the end; or only tokens, for the limits
 * of a client's key. */
enum exchange_scan { EXCHANGE_SCAN_NONE, EXCHANGE_SCAN_USAGE, EXCHANGE_SCAN_TOKENS };

/* The prompt's token ids, requested by the router with the present answer (ask_ids.c). */
struct exchange_ids {
    bool cuts; /* the ids are being removed from the answer */
    struct http_ids_cut cut;
    struct kv_asked asked; /* the prompt's chain */
};

/* An attempt's progress. exchange_goes() checks the order. */
enum attempt_phase {
    ATTEMPT_NONE,      /* no attempt yet, or the last one is over */
    ATTEMPT_CHOSEN,    /* a replica is booked; the request is sent now, or after a back-off */
    ATTEMPT_SENT,      /* the request is on a connection; no answer has begun */
    ATTEMPT_HELD,      /* an answer has begun, and may still be replaced */
    ATTEMPT_ANSWERING, /* the answer is committed: the client has bytes of it */
    ATTEMPT_PHASES
};

struct attempt {
    enum attempt_phase phase;
    struct upstream *upstream;
    struct node_decision decision;
    bool booked;
    bool stale;       /* a reused connection to the replica ended at once */
    bool usage_asked; /* the router, not the client, requested usage (ask_usage.c) */
    /* The engine's block size in tokens; 0: no token ids were requested (ask_ids.c). */
    uint32_t ids_block;
    unsigned addresses; /* number of the replica's addresses to which connecting failed */
    unsigned judged;    /* the status by which the answer was judged; 0: none */

    /* The answer: exchange_forget_answer() clears everything from `status` on. */
    unsigned status; /* status for the client, even if the router itself answers */
    enum node_outcome outcome;
    enum exchange_hold hold;
    enum exchange_scan scan;
    bool follows; /* the client already has a head and preamble: those of this answer are dropped */
    bool first_token;
    bool last_asked; /* the value of client->last before the answer's head */
    bool id_told;    /* the response's id was read and noted */
    bool error_counted;
    bool cuts_usage; /* usage that the client did not request is being removed */
    uint64_t first_byte_ms;
    struct buf held;  /* the head as the client would get it, and the body so far */
    size_t held_head; /* length of the head in `held` */
    size_t held_max;  /* most bytes to hold of the body */
    struct http_usage_cut cut;
    struct http_decoder *unpack; /* owned, if the answer is compressed and read */
    char *unpacked;      /* owned: EXCHANGE_UNPACK_BYTES of output, in use until the flush */
    size_t unpack_bytes; /* memory of `unpack` and `unpacked`, as proxy->segments counts it */
};

/* The request's part in a trace (trace.c). */
struct exchange_trace {
    struct trace_request *request; /* owned; NULL: not recorded */
    bool new_trace;                /* the client sent no trace */
    bool replaces;                 /* engines get `line` instead of the client's traceparent */
    char line[HTTP_TRACEPARENT_BYTES];
};

struct exchange {
    struct proxy *proxy;
    struct client *client;
    struct exchange *next_free;

    /* The request. */
    struct upstream_request request; /* `head` is as received if the router itself answers */
    struct http_route route;
    enum http_method method;
    unsigned minor;
    bool local;   /* the router itself answers: admin port, health, models, or a control request
                   * that goes to all replicas */
    bool to_all;  /* a control request to all replicas (node/proxy/own/control.h): the body is
                   * stored */
    bool endless; /* the answer continues until the client disconnects */
    bool probe;   /* a probe by a router that lists this router as a replica */
    bool whole;   /* the choice of a replica requires the complete body */
    bool skimming;
    bool undecided;               /* the first byte decides if the body is read or just streamed */
    bool form;                    /* the body is multipart, with a model field */
    bool early;                   /* routed by the body's first EXCHANGE_RETRY_BYTES */
    bool dropped;                 /* a sent part of the body was released: no retry */
    bool chunked_body;            /* the body's length is known only at the end */
    enum http_coding coding;      /* the body's coding as received */
    struct http_decoder *decoder; /* owned; NULL: the body is not compressed, or complete */
    size_t decoder_bytes;         /* memory of `decoder`, as proxy->segments counts it */
    uint64_t started_ms;
    struct slice request_id;
    uint16_t host_len;   /* length of `host`; 0: engines do not get the client's Host */
    uint16_t origin_len; /* length of `origin`; 0: the answer must not repeat the Origin */
    uint8_t session_len;
    uint8_t stored_id_len;
    uint8_t agent_len;
    uint8_t alias_len;     /* the client named an alias (alias.c); 0: no */
    uint8_t alias_at;      /* index of the present model, in this request's order of models */
    bool fell_back;        /* a later model of the alias, because no replica of the first is up */
    uint64_t alias_hash;   /* decides the order of the alias's models */
    uint64_t conversation; /* hash for control-share; 0: not needed, or unknown */
    struct node_rendered rendered; /* the prompt as engines see it */
    struct access_key *key; /* the client's key, referenced; NULL: none required, or none sent */
    uint64_t client_id;     /* hash of key or address, and of the program; 0: none */

    struct attempt now; /* the present attempt, or the last until the next begins */
    /* About the last sent attempt. These fields stay while the next replica is chosen. */
    uint64_t began_ms; /* start of the attempt on the present connection */
    bool timed_out;    /* a time limit passed: 504 instead of 502, if there is no other answer */
    bool reached;      /* a part of the request was sent */

    /* The choice, and the attempts so far. */
    bool plain_known, plain;      /* result of exchange_is_plain(), once known */
    struct admission_answer plan; /* admission's last answer, which has the next attempt */
    /* The replica with the stored response is unknown: after a 404 the next replica is asked. */
    bool asking_around;
    bool asking;           /* `question` is being sent instead of the request */
    bool asked;            /* `question` was answered, or is not needed */
    bool too_long;         /* a replica refused the request as longer than its context */
    uint32_t context_over; /* the exceeded context, in tokens; 0: unknown */
    /* Replicas were asked for their models again, because none serves this model. */
    bool looked;
    bool looking; /* the request waits for model lists */
    /* Replicas were asked for their models again, because a replica denied this model. */
    bool looked_after;
    /* A replica denied the model; all replicas with a recent denial are excluded. */
    bool model_likely;
    unsigned denied_by; /* index + 1 of the last replica that denied a listed model; 0: none */
    bool silent_left;   /* the request has left a replica without a sign of work, once */
    bool unpinned;      /* the request names no rank: the engine has fewer ranks than believed */
    bool pinned;        /* the request names a rank, or did (node/proxy/exchange/pin.c) */
    char *rank_field;   /* the body's rank field; NULL: none */
    unsigned attempts;
    unsigned retries;   /* attempts counted against retries-max and the budget */
    unsigned said;      /* error status of the last dropped answer; 0: none */
    bool failed_before; /* an attempt failed, and another followed */
    struct exchange_doubt doubt;
    struct exchange_kept kept;
    bool free_retry;          /* the next attempt after a rejection counts against no limit */
    struct deadline deadline; /* time of the next attempt, or of a held answer's sign of life */
    struct upstream_request question; /* a GET by which to find the stored response's replica */
    struct node_replica_set excluded;
    struct suspect suspect;

    struct admission_request admission;
    struct deadline request_deadline; /* request-timeout */

    /* Called when the exchange ends, if the router answers later (exchange_wait()). */
    void (*forget)(void *context);
    void *forget_context;

    struct exchange_trace trace;

    /* The client's part of an answer. */
    bool alive;            /* the client has a sign of life: the head of a stream */
    bool preamble_out;     /* the client also has the stream's events before the first token */
    bool told;             /* the kernel has accepted the terminal event and all before it */
    unsigned event_status; /* status in the router's error event in a stream; 0: no such event */
    enum http_framing out_framing;
    char *usage_field; /* place in the body of the request for usage, or blanks; NULL: none */
    char *ids_field;   /* place in the body of the request for token ids, or blanks; NULL: none */
    struct exchange_ids *ids; /* owned; NULL: no token ids are requested */
    bool ids_refused; /* an engine answered 4xx: the request is sent again without `ids_field` */
    bool asks_plain;  /* engines get no Accept-Encoding, as the router reads the answer */
    uint64_t bytes_out;
    bool refused;            /* the request ends with the router's own error */
    enum refusal refusal;    /* the reason to count; REFUSED_NONE: the status decides */
    const char *limit;       /* the setting that caused the error; NULL: none */
    const char *cause;       /* the engine's failure that ended the answer; NULL: none */
    unsigned retry_after_s;  /* Retry-After of the error; 0: the status decides */
    struct http_usage usage; /* tokens read from the present answer */

    /* Not cleared for each request. */
    char request_id_text[EXCHANGE_ID_MAX];
    char path[EXCHANGE_PATH_MAX]; /* empty until the head is read */
    char host[EXCHANGE_HOST_MAX];
    char origin[EXCHANGE_ORIGIN_MAX];
    char session[EXCHANGE_SESSION_MAX];
    char alias[HTTP_SKIM_FIELD_MAX];
    char agent[NODE_KIND_AGENT_MAX];       /* the product in the client's User-Agent */
    char stored_id[HTTP_USAGE_ID_MAX + 1]; /* id in the path /v1/responses/{id} */
    struct http_skim skim;                 /* at the end: 25 KB, used only for prompts */
};

/* Returns true if no other attempt is possible any more. */
static inline bool exchange_is_committed(const struct exchange *x)
{
    return x->now.phase == ATTEMPT_ANSWERING;
}

/* Answers with a complete body and the header fields `extra`. Ends the exchange. */
void exchange_answer(struct exchange *x, unsigned status, struct slice content_type,
                     struct slice body, const struct http_line *extra, size_t extra_count);
/* Begins an answer that continues until the client disconnects, or until exchange_endless_end().
 * Writes the head; exchange_endless_write() writes the text. Returns false if the answer has
 * already ended, because there is no memory or the request is a HEAD. */
bool exchange_endless_begin(struct exchange *x, struct slice content_type,
                            const struct http_line *extra, size_t extra_count);
/* Writes the whole text. If an earlier text is still unread by a slow client, writes nothing and
 * returns false, so that at most one text is queued per client. A client that reads nothing for
 * client-write-timeout is disconnected. */
bool exchange_endless_write(struct exchange *x, struct slice text);
void exchange_endless_end(struct exchange *x);
/* Answers with an error in the form of the path's API; the connection stays open. Ends the
 * exchange. */
void exchange_answer_error(struct exchange *x, unsigned status, struct slice param,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* As exchange_answer_error(), with a fixed text and another header field. */
void exchange_answer_error_with(struct exchange *x, unsigned status, const char *text,
                                const struct http_line *line);
/* Notes the reason for a refusal, and the setting that caused it. Returns the reason's status. */
unsigned exchange_because(struct exchange *x, enum refusal why);
/* Answers with the reason's status and text. */
void exchange_answer_refusal(struct exchange *x, enum refusal why);
/* Answers 405. `methods`: the methods of the path, for the text and the Allow field. */
void exchange_answer_not_allowed(struct exchange *x, struct slice path, const char *methods);

/* Notes that the router answers later. When the exchange ends, for any reason, `forget` is called.
 * exchange_wait(x, NULL, NULL) cancels that call. */
static inline void exchange_wait(struct exchange *x, void (*forget)(void *context), void *context)
{
    x->forget = forget;
    x->forget_context = context;
}

/* Set the session key, for policies with sessions: from the request's first configured header, or
 * without such a header from the body. exchange_session_set() sets a given value. */
void exchange_read_session(struct exchange *x, const struct http_head *head);
void exchange_session_from_body(struct exchange *x);
/* Returns a hash of the conversation: of the session; if there is none, of the prompt's beginning;
 * otherwise of the client. Must be called before exchange_render(), which joins the prompt. */
uint64_t exchange_conversation(const struct exchange *x);
void exchange_session_set(struct exchange *x, struct slice value);

/* Begins to read the prompt from the arriving body, as the router's policy requires. */
void exchange_skim_begin(struct exchange *x);
/* exchange_read_agent() reads the client's kind from the head. exchange_render() is called after
 * http_skim_end() and computes the chain of the prompt as engines see it. */
void exchange_read_agent(struct exchange *x, const struct http_head *head);
/* For explanations, called between exchange_read_agent() and exchange_render(): replaces an alias
 * in x->skim by the model's name (alias.c). */
void exchange_alias_look(struct exchange *x);
void exchange_render(struct exchange *x);
/* Describes the request for policies, from the finished skim. */
void exchange_describe(const struct exchange *x, struct node_request *out);

#endif
