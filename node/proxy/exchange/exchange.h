/* One request, from its head to the last byte of its answer: what it is, which replica serves it,
 * and how far it has come. What happens to it is in drive.h; this header is for whoever
 * answers requests in the router itself (node/proxy/own/local.h, node/admin).
 *
 * Until the first token of an answer goes to the client (hold.c), a replica that fails is replaced
 * by another (retries-max times, within the retry budget). Whatever way it ends, exactly one
 * node_router_finish() follows each booking.
 */
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
    EXCHANGE_ID_MAX = 128,                 /* bytes of X-Request-Id; a longer one is replaced */
    EXCHANGE_PATH_MAX = 96,                /* of the path in logs */
    EXCHANGE_SESSION_MAX = 128,            /* of the session header's value */
    EXCHANGE_ORIGIN_MAX = 256,             /* of an Origin that is said again */
    EXCHANGE_UNPACK_BYTES = 16384,         /* of an answer that is decoded, at a time */
    EXCHANGE_HOST_MAX = 264,               /* of a Host that engines may be asked under */
    EXCHANGE_RETRY_BYTES = 256 * 1024,     /* a streamed body beyond this cannot be sent again */
    EXCHANGE_ASK_BYTES = 1024 * 1024,      /* larger bodies are not sent around for long */
    EXCHANGE_SEND_BYTES_HIGH = 256 * 1024, /* streamed body waiting for a slow engine */
    EXCHANGE_ROUTERS_MAX = 3,              /* that a request has passed before; then 508 */
    EXCHANGE_FREE_RETRIES_MAX = 8,         /* after connections that failed */
    EXCHANGE_HELD_MAX = 64 * 1024,         /* bytes of an answer; a longer one goes out as it is */
    EXCHANGE_HELD_ERROR_MAX = 8 * 1024,    /* of an error; EXCHANGE_HELD_MAX where a longer context
                                              may help: engines repeat the prompt there */
    /* Of an answer that is decoded, in one event: a read that had shrunk to a sixteenth, some ms of
     * work. */
    EXCHANGE_UNPACK_TURN_BYTES = 1024 * 1024,
};

/* What is known of a request that may be poison (node/proxy/exchange/suspect.h); all 0: nothing. */
struct suspect {
    uint64_t hash;            /* 0: not made yet */
    uint64_t at_ms;           /* the last death that it was at, */
    unsigned replica;         /* and whose that was */
    unsigned deaths;          /* of this request's own attempts, as far as they count */
    bool died;                /* there was one, though an answer cleared it */
    bool spared;              /* one did not count: it may have been on its way to the engine */
    bool core;                /* one of them was of a core: no doubt that the engine died */
    bool clear;               /* or it was the only one there */
    enum refusal refused;     /* it is not sent (again), */
    const char *refused_text; /* and why, for its client, if it is no poison */
};

/* A replica answered an error that may be the request's own: what comes next decides. */
struct exchange_doubt {
    bool open;
    unsigned replica;
    uint32_t life; /* of that replica then */
};

/* A rejection (4xx) that another replica is asked about (kept.c, reject.c). */
struct exchange_kept {
    bool open;
    bool says_why; /* that it depends on the replica: no evidence against that one */
    bool is_error; /* what is kept is its type and message: it came as an event of a stream, */
    bool cut;      /* or was too long. Another rejection goes to the client in place of this one */
    bool last;     /* client->last, as the head that is kept says */
    struct node_rejection what;
    uint32_t life; /* of that replica then */
    enum http_framing framing;
    struct buf bytes; /* head and body as the client gets them */
    size_t head;      /* bytes of it that are the head */
};

/* What waits of its answer (hold.c). */
enum exchange_hold {
    EXCHANGE_HOLD_NONE,
    EXCHANGE_HOLD_STREAM,
    EXCHANGE_HOLD_BODY,
    EXCHANGE_HOLD_ERROR,
};

/* What is read of its answer: nothing; its tokens, errors and end; or tokens alone, for a client's
 * key. */
enum exchange_scan { EXCHANGE_SCAN_NONE, EXCHANGE_SCAN_USAGE, EXCHANGE_SCAN_TOKENS };

/* Token ids that the router asked for, in the present answer (ask_ids.c). */
struct exchange_ids {
    bool cuts; /* they are taken out of it */
    struct http_ids_cut cut;
    struct kv_asked asked; /* the prompt's chain */
};

/* How far it has come: exchange_goes() checks which may follow which. */
enum attempt_phase {
    ATTEMPT_NONE,      /* none has begun, or the last one is over */
    ATTEMPT_CHOSEN,    /* a replica is booked: it is sent now, or after a back-off */
    ATTEMPT_SENT,      /* it is on a connection, and no answer has begun */
    ATTEMPT_HELD,      /* its answer has begun, and another one may still come in its place */
    ATTEMPT_ANSWERING, /* its answer is committed: bytes of it went to the client */
    ATTEMPT_PHASES
};

struct attempt {
    enum attempt_phase phase;
    struct upstream *upstream;
    struct node_decision decision;
    bool booked;
    bool stale;       /* a reused connection to the replica ended at once */
    bool usage_asked; /* of the engine, though the client did not ask for it (ask_usage.c) */
    uint32_t
        ids_block; /* the same of its prompt's tokens (ask_ids.c), whose blocks have so many; 0:
                           they were not asked for */
    unsigned addresses; /* of the replica's name that failed */
    unsigned judged;    /* the status that its answer was judged by; 0: it was not */

    /* Its answer: from `status` on all is forgotten with it (exchange_forget_answer). */
    unsigned status; /* of what the client gets: also of an answer of the router's own */
    enum node_outcome outcome;
    enum exchange_hold hold;
    enum exchange_scan scan;
    bool follows; /* it began behind a sign of life: its head and preamble are not passed on */
    bool first_token;
    bool last_asked; /* client->last, before its head */
    bool id_told;    /* of the response that it is, and noted */
    bool error_counted;
    bool cuts_usage; /* it has usage that the client did not ask for, which is taken out */
    uint64_t first_byte_ms;
    struct buf held;  /* its head as the client gets it, and the body so far */
    size_t held_head; /* bytes of it that are the head */
    size_t held_max;  /* bytes of the body that may be held */
    struct http_usage_cut cut;
    struct http_decoder *unpack; /* owned, where it comes compressed and is read */
    char *unpacked;              /* owned: EXCHANGE_UNPACK_BYTES, gathered until the next flush */
    size_t unpack_bytes;         /* that count for both in proxy->segments */
};

/* Its part in a trace (trace.c). */
struct exchange_trace {
    struct trace_request *request; /* owned; NULL: it is not recorded */
    bool new_trace;                /* the client named none */
    bool replaces;                 /* `line` goes to engines in place of what the client named */
    char line[HTTP_TRACEPARENT_BYTES];
};

struct exchange {
    struct proxy *proxy;
    struct client *client;
    struct exchange *next_free;

    /* The request. */
    struct upstream_request request; /* its head: as it came, if the router answers itself */
    struct http_route route;
    enum http_method method;
    unsigned minor;
    bool local;   /* answered here: admin port, health, models, what goes to all replicas */
    bool to_all;  /* the latter (node/proxy/own/control.h): its body is kept */
    bool endless; /* and goes on until its client leaves */
    bool probe;   /* of a router, that takes this one for an engine */
    bool whole;   /* the body must be complete before a replica is chosen */
    bool skimming;
    bool undecided;    /* whether its body is read, or streams through: its first byte will tell */
    bool form;         /* its body is multipart, with a field for its model */
    bool early;        /* it was routed by what came first of its body (EXCHANGE_RETRY_BYTES) */
    bool dropped;      /* a sent part of the body was let go: no retry any more */
    bool chunked_body; /* its length is known only at the end */
    enum http_coding coding;      /* of its body, as it comes */
    struct http_decoder *decoder; /* owned, of such a body; NULL: there is none, or it is whole */
    size_t decoder_bytes;         /* that count for it in proxy->segments */
    uint64_t started_ms;
    struct slice request_id;
    uint16_t host_len;   /* of the client's Host, where that may go to an engine; 0: it has none */
    uint16_t origin_len; /* of the Origin, where only some may call and it may; else 0 */
    uint8_t session_len;
    uint8_t stored_id_len;
    uint8_t agent_len;
    uint8_t alias_len;   /* the client named an alias (alias.c); 0: it did not */
    uint8_t alias_at;    /* which of its models the body names, in the order of this request */
    bool fell_back;      /* it is not the first one, of which no replica was up */
    uint64_t alias_hash; /* by which that order is */
    struct node_rendered rendered; /* how engines see its prompt */
    struct access_key *key; /* the client's, held; NULL: no keys are asked for, or none was shown */
    uint64_t client_id;     /* a hash of its key or address, and its program; 0: none */

    struct attempt now; /* the present attempt; until the next one begins, the last */
    /* Of the last attempt that was sent. These stay while the next one is chosen. */
    uint64_t began_ms; /* when it was given to a connection */
    bool timed_out;    /* 504 rather than 502 if there is no other */
    bool reached;      /* something of the request was sent */

    /* The choice, and the attempts so far. */
    bool plain_known, plain;      /* exchange_is_plain() */
    struct admission_answer plan; /* what the last question said; where the next attempt goes */
    bool asking_around;    /* a stored response whose maker is unknown: 404 means the next one */
    bool asking;           /* `question` is what is sent */
    bool asked;            /* and was answered, or needs no answer */
    bool too_long;         /* a replica said that it is longer than its context, */
    uint32_t context_over; /* which has so many tokens; 0: not known */
    bool looked;  /* replicas were asked anew for their models, as none was known to serve it */
    bool looking; /* their lists are waited for */
    bool looked_after;  /* the same, after one had said that it does not */
    bool model_likely;  /* a replica denied the model: none that did lately is asked */
    unsigned denied_by; /* number and 1 of the last that did and lists it; 0: none */
    bool silent_left;   /* a replica that showed no sign of work was given up: not twice */
    bool unpinned;      /* the engine has fewer ranks than it was believed to have */
    bool pinned;        /* it names a rank, or did (node/proxy/exchange/pin.c) */
    char *rank_field;   /* where its body does; NULL: nowhere */
    unsigned attempts;
    unsigned retries;   /* of them, those that count against retries-max and the budget */
    unsigned said;      /* the error status of the last answer that was let go; 0: none */
    bool failed_before; /* an attempt failed, and another was made */
    struct exchange_doubt doubt;
    struct exchange_kept kept;
    bool free_retry;          /* the next one after a rejection counts against nothing */
    struct deadline deadline; /* the next attempt begins; or what is held shows a sign of life */
    struct upstream_request question; /* a GET of the stored response */
    struct node_replica_set excluded;
    struct suspect suspect;

    struct admission_request admission;
    struct deadline request_deadline; /* request-timeout */

    /* The router answers itself, and waits for something: called at the end. */
    void (*forget)(void *context);
    void *forget_context;

    struct exchange_trace trace;

    /* What of an answer is with the client. */
    bool alive;            /* a sign of life: the head of a stream */
    bool preamble_out;     /* and events without tokens */
    bool told;             /* its terminal event, with all before it, is with the client's kernel */
    unsigned event_status; /* of the error event of ours in a begun stream; 0: none */
    enum http_framing out_framing;
    char *usage_field;        /* where its body asks for usage, or has blanks; NULL: nowhere */
    char *ids_field;          /* the same of token ids */
    struct exchange_ids *ids; /* owned: those that were asked for; NULL: none were */
    bool ids_refused;         /* an engine answered 4xx to that: it was sent again without */
    bool asks_plain;          /* no coding is accepted: what engines answer is read */
    uint64_t bytes_out;
    bool refused;            /* it ends in an error of ours */
    enum refusal refusal;    /* counted then; NONE: by the status */
    const char *limit;       /* the setting that such an error comes from; NULL: none */
    const char *cause;       /* what of the engine's ended its answer badly; NULL: nothing */
    unsigned retry_after_s;  /* of such an error; 0: as its status says */
    struct http_usage usage; /* of the present answer, while that is scanned */

    /* Not set to zero for each request. */
    char request_id_text[EXCHANGE_ID_MAX];
    char path[EXCHANGE_PATH_MAX]; /* empty until the head is read */
    char host[EXCHANGE_HOST_MAX];
    char origin[EXCHANGE_ORIGIN_MAX];
    char session[EXCHANGE_SESSION_MAX];
    char alias[HTTP_SKIM_FIELD_MAX];
    char agent[NODE_KIND_AGENT_MAX];       /* the product that the client's User-Agent names */
    char stored_id[HTTP_USAGE_ID_MAX + 1]; /* of /v1/responses/{id} */
    struct http_skim skim;                 /* last: 25 KB, touched only by requests with prompts */
};

/* From now on there is no other attempt. */
static inline bool exchange_is_committed(const struct exchange *x)
{
    return x->now.phase == ATTEMPT_ANSWERING;
}

/* One whole answer; `extra` fields are added. Ends the exchange. */
void exchange_answer(struct exchange *x, unsigned status, struct slice content_type,
                     struct slice body, const struct http_line *extra, size_t extra_count);
/* An answer that goes on until its client leaves, or exchange_endless_end(). Its head goes out now,
 * and what is written follows. False: it has ended, without memory, or because its method is HEAD.
 */
bool exchange_endless_begin(struct exchange *x, struct slice content_type,
                            const struct http_line *extra, size_t extra_count);
/* Writes all of it, unless something that was written before still waits for a slow client: then
 * nothing, and false. So no client makes more than one text pile up; one that reads nothing for
 * client-write-timeout is cut. */
bool exchange_endless_write(struct exchange *x, struct slice text);
void exchange_endless_end(struct exchange *x);
/* An error in the form that clients of its path read; the connection stays open. Ends the exchange.
 */
void exchange_answer_error(struct exchange *x, unsigned status, struct slice param,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same with a field more in its head. */
void exchange_answer_error_with(struct exchange *x, unsigned status, const char *text,
                                const struct http_line *line);
/* Why it is refused, and the setting that this comes from; returns the status of its row. */
unsigned exchange_because(struct exchange *x, enum refusal why);
/* An error with the text of its row. */
void exchange_answer_refusal(struct exchange *x, enum refusal why);
/* 405; `methods` is what the path does take, for people and for the Allow field. */
void exchange_answer_not_allowed(struct exchange *x, struct slice path, const char *methods);

/* It is answered later: `forget` is called when the exchange ends, whatever ends it. An owner that
 * answers and need not hear of it calls exchange_wait(x, NULL, NULL) first. */
static inline void exchange_wait(struct exchange *x, void (*forget)(void *context), void *context)
{
    x->forget = forget;
    x->forget_context = context;
}

/* The session key, for policies that want it: of the first of the configured headers that is
 * there, or given; else of the body, once it has been read. */
void exchange_read_session(struct exchange *x, const struct http_head *head);
void exchange_session_from_body(struct exchange *x);
void exchange_session_set(struct exchange *x, struct slice value);

/* Begins to read the prompt, as the router's policy wants it, in what comes of the body. */
void exchange_skim_begin(struct exchange *x);
/* The client's kind, by its head; and after http_skim_end() its prompt's chain, as engines see
 * it. */
void exchange_read_agent(struct exchange *x, const struct http_head *head);
/* Between the two, to look at only: the prompt is that of the model behind an alias (alias.c). */
void exchange_alias_look(struct exchange *x);
void exchange_render(struct exchange *x);
/* What a policy may know of the request, from the finished skim. */
void exchange_describe(const struct exchange *x, struct node_request *out);

#endif
