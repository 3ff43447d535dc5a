/* A request, from its head to the last byte of its answer: its kind, its replica and its progress.
 * Events are in drive.h; this header serves the router's own answers (node/proxy/own/local.h,
 * node/admin).
 *
 * Until an answer's first token goes to the client (hold.c), another replica replaces a failing one
 * (retries-max times, within the retry budget). However the request ends, exactly one
 * node_router_finish() follows each booking. */
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
    EXCHANGE_ID_MAX = 128,                 /* bytes of X-Request-Id; longer ones are replaced */
    EXCHANGE_PATH_MAX = 96,                /* of the path in logs */
    EXCHANGE_SESSION_MAX = 128,            /* of the session header's value */
    EXCHANGE_ORIGIN_MAX = 256,             /* of an echoed Origin */
    EXCHANGE_UNPACK_BYTES = 16384,         /* decoded bytes of an answer, at a time */
    EXCHANGE_HOST_MAX = 264,               /* of a Host field for engines */
    EXCHANGE_RETRY_BYTES = 256 * 1024,     /* a streamed body beyond this cannot be sent again */
    EXCHANGE_ASK_BYTES = 1024 * 1024,      /* larger bodies are sent to few replicas */
    EXCHANGE_SEND_BYTES_HIGH = 256 * 1024, /* of a streamed body, waiting for a slow engine */
    EXCHANGE_ROUTERS_MAX = 3,              /* routers passed before; beyond these 508 */
    EXCHANGE_FREE_RETRIES_MAX = 8,         /* after failed connections */
    EXCHANGE_HELD_MAX = 64 * 1024,         /* of an answer; longer ones go out unjudged */
    /* The limit for an error; EXCHANGE_HELD_MAX if a longer context may help, because engines
     * repeat the prompt there. */
    EXCHANGE_HELD_ERROR_MAX = 8 * 1024,
    /* Decoded bytes of an answer in one event: a read at a ratio of 16, some ms of work. */
    EXCHANGE_UNPACK_TURN_BYTES = 1024 * 1024,
};

/* Knowledge about a request that may be poison (node/proxy/exchange/suspect.h); all 0: none. */
struct suspect {
    uint64_t hash;            /* 0: not made yet */
    uint64_t at_ms;           /* the last death during the request, */
    unsigned replica;         /* and its replica */
    unsigned deaths;          /* counted deaths during this request's own attempts */
    bool died;                /* a death occurred, though an answer cleared it */
    bool spared;              /* a death did not count: the request may have been in transit */
    bool core;                /* a core died: the engine's death is certain */
    bool clear;               /* or the request was alone there */
    enum refusal refused;     /* the request is not sent (again), */
    const char *refused_text; /* and the reason for the client, if not poison */
};

/* A replica's error may be the request's fault: the next answer decides. */
struct exchange_doubt {
    bool open;
    unsigned replica;
    uint32_t life; /* the replica's life at that time */
};

/* A rejection (4xx) with a question to another replica (kept.c, reject.c). */
struct exchange_kept {
    bool open;
    bool says_why; /* the text depends on the replica: no evidence against it */
    bool is_error; /* `bytes` has type and message: the rejection was an event, or too long */
    /* The rejection was too long. Another rejection goes to the client instead. */
    bool cut;
    bool last; /* client->last, by the kept head */
    struct node_rejection what;
    uint32_t life; /* the replica's life at that time */
    enum http_framing framing;
    struct buf bytes; /* head and body as for the client */
    size_t head;      /* length of the head in `bytes` */
};

/* The held part of an answer (hold.c). */
enum exchange_hold {
    EXCHANGE_HOLD_NONE,
    EXCHANGE_HOLD_STREAM,
    EXCHANGE_HOLD_BODY,
    EXCHANGE_HOLD_ERROR,
};

/* The scanned part of an answer: none; tokens, errors and the end; or only tokens, for a client's
 * key. */
enum exchange_scan { EXCHANGE_SCAN_NONE, EXCHANGE_SCAN_USAGE, EXCHANGE_SCAN_TOKENS };

/* Token ids in the present answer, requested by the router (ask_ids.c). */
struct exchange_ids {
    bool cuts; /* the ids are being removed */
    struct http_ids_cut cut;
    struct kv_asked asked; /* the chain of the prompt */
};

/* An attempt's progress: exchange_goes() checks the order. */
enum attempt_phase {
    ATTEMPT_NONE,      /* none yet, or the last is over */
    ATTEMPT_CHOSEN,    /* a replica is booked; sent now, or after a back-off */
    ATTEMPT_SENT,      /* on a connection, without an answer so far */
    ATTEMPT_HELD,      /* the answer has begun, and may still be replaced */
    ATTEMPT_ANSWERING, /* the answer is committed: the client has bytes of it */
    ATTEMPT_PHASES
};

struct attempt {
    enum attempt_phase phase;
    struct upstream *upstream;
    struct node_decision decision;
    bool booked;
    bool stale;       /* a reused connection to the replica ended at once */
    bool usage_asked; /* requested from the engine, not by the client (ask_usage.c) */
    /* The engine's block size in tokens, if the prompt's ids are requested (ask_ids.c); else 0. */
    uint32_t ids_block;
    unsigned addresses; /* failed addresses of the replica's name */
    unsigned judged;    /* the judged status; 0: none */

    /* The answer: exchange_forget_answer() clears everything from `status` on. */
    unsigned status; /* for the client, also of the router's own answer */
    enum node_outcome outcome;
    enum exchange_hold hold;
    enum exchange_scan scan;
    bool follows; /* begun after a sign of life: head and preamble are not forwarded */
    bool first_token;
    bool last_asked; /* client->last, before the head */
    bool id_told;    /* the response's id was read and noted */
    bool error_counted;
    bool cuts_usage; /* unrequested usage is being removed */
    uint64_t first_byte_ms;
    struct buf held;  /* head as for the client, and the body so far */
    size_t held_head; /* length of the head in `held` */
    size_t held_max;  /* limit of the held body */
    struct http_usage_cut cut;
    struct http_decoder *unpack; /* owned, if the answer is compressed and read */
    char *unpacked;              /* owned: EXCHANGE_UNPACK_BYTES, gathered until the next flush */
    size_t unpack_bytes;         /* of both, counted in proxy->segments */
};

/* The request's part in a trace (trace.c). */
struct exchange_trace {
    struct trace_request *request; /* owned; NULL: not recorded */
    bool new_trace;                /* the client sent no trace */
    bool replaces;                 /* engines get `line` instead of the client's field */
    char line[HTTP_TRACEPARENT_BYTES];
};

struct exchange {
    struct proxy *proxy;
    struct client *client;
    struct exchange *next_free;

    /* The request. */
    struct upstream_request request; /* the head: as received if the router answers */
    struct http_route route;
    enum http_method method;
    unsigned minor;
    bool local;   /* answered here: admin port, health, models, control requests to all */
    bool to_all;  /* a control request (node/proxy/own/control.h): the body is kept */
    bool endless; /* continues until the client leaves */
    bool probe;   /* from a router that takes this one for an engine */
    bool whole;   /* the choice requires the complete body */
    bool skimming;
    bool undecided;               /* the first body byte decides between reading and streaming */
    bool form;                    /* the body is multipart, with a model field */
    bool early;                   /* routed by the beginning of its body (EXCHANGE_RETRY_BYTES) */
    bool dropped;                 /* a sent part of the body was released: no retry */
    bool chunked_body;            /* the length is known only at the end */
    enum http_coding coding;      /* of the body, as received */
    struct http_decoder *decoder; /* owned; NULL: not compressed, or complete */
    size_t decoder_bytes;         /* of the decoder, counted in proxy->segments */
    uint64_t started_ms;
    struct slice request_id;
    uint16_t host_len;   /* of the client's Host, if an engine may get it; 0: none */
    uint16_t origin_len; /* of the Origin, if listed as allowed; else 0 */
    uint8_t session_len;
    uint8_t stored_id_len;
    uint8_t agent_len;
    uint8_t alias_len;             /* the client named an alias (alias.c); 0: no */
    uint8_t alias_at;              /* index of the body's model, in this request's order */
    bool fell_back;                /* not the first model, for lack of an up replica */
    uint64_t alias_hash;           /* decides the order */
    uint64_t conversation;         /* hash, for control-share; 0: not needed, or not known */
    struct node_rendered rendered; /* engines' view of the prompt */
    struct access_key *key;        /* the client's, held; NULL: not required, or none sent */
    uint64_t client_id;            /* a hash of the key or address, and the program; 0: none */

    struct attempt now; /* the present attempt, or the last until the next begins */
    /* The last sent attempt. These fields stay during the next choice. */
    uint64_t began_ms; /* start on a connection */
    bool timed_out;    /* 504 instead of 502, if there is no other answer */
    bool reached;      /* a part of the request was sent */

    /* The choice, and the attempts so far. */
    bool plain_known, plain;      /* exchange_is_plain() */
    struct admission_answer plan; /* admission's last answer, with the next attempt */
    bool asking_around;    /* a stored response without a known owner: 404 means the next replica */
    bool asking;           /* `question` is sent */
    bool asked;            /* and answered, or not needed */
    bool too_long;         /* a replica refused the request as longer than its context */
    uint32_t context_over; /* the exceeded context, in tokens; 0: unknown */
    bool looked;           /* replicas were asked again for their models, as none serves this one */
    bool looking;          /* waiting for these lists */
    bool looked_after;     /* the same after a replica denied the model */
    bool model_likely;     /* a replica denied the model: exclude all that did so lately */
    unsigned denied_by;    /* index + 1 of the last replica that denied a listed model; 0: none */
    bool silent_left;      /* gave up a replica without a sign of work: only once */
    bool unpinned;         /* the engine has fewer ranks than believed */
    bool pinned;           /* names a rank now, or did (node/proxy/exchange/pin.c) */
    char *rank_field;      /* the body's rank field; NULL: none */
    unsigned attempts;
    unsigned retries;   /* attempts counted against retries-max and the budget */
    unsigned said;      /* the error status of the last dropped answer; 0: none */
    bool failed_before; /* an attempt failed, and another followed */
    struct exchange_doubt doubt;
    struct exchange_kept kept;
    bool free_retry;          /* the next attempt after a rejection counts against nothing */
    struct deadline deadline; /* the next attempt, or a sign of life of a held answer */
    struct upstream_request question; /* a GET of the stored response */
    struct node_replica_set excluded;
    struct suspect suspect;

    struct admission_request admission;
    struct deadline request_deadline; /* request-timeout */

    /* The router answers later: called at the end. */
    void (*forget)(void *context);
    void *forget_context;

    struct exchange_trace trace;

    /* The client's part of an answer. */
    bool alive;            /* a sign of life: the head of a stream */
    bool preamble_out;     /* and also events without tokens */
    bool told;             /* the client's kernel has the terminal event and all before */
    unsigned event_status; /* of the router's error event in a stream; 0: none */
    enum http_framing out_framing;
    char *usage_field;        /* the body's request for usage, or blanks; NULL: none */
    char *ids_field;          /* the same for token ids */
    struct exchange_ids *ids; /* owned, if ids are requested; else NULL */
    bool ids_refused;         /* an engine answered 4xx to the request for ids: sent again
                                 without */
    bool asks_plain;          /* no coding is accepted, because the router reads the answer */
    uint64_t bytes_out;
    bool refused;            /* ends with the router's own error */
    enum refusal refusal;    /* the counted reason; NONE: by the status */
    const char *limit;       /* the setting behind the error; NULL: none */
    const char *cause;       /* the engine's failure that ended the answer; NULL: none */
    unsigned retry_after_s;  /* for the error; 0: by the status */
    struct http_usage usage; /* of the present answer, while scanned */

    /* Not cleared for each request. */
    char request_id_text[EXCHANGE_ID_MAX];
    char path[EXCHANGE_PATH_MAX]; /* empty until the head is read */
    char host[EXCHANGE_HOST_MAX];
    char origin[EXCHANGE_ORIGIN_MAX];
    char session[EXCHANGE_SESSION_MAX];
    char alias[HTTP_SKIM_FIELD_MAX];
    char agent[NODE_KIND_AGENT_MAX];       /* the product in the client's User-Agent */
    char stored_id[HTTP_USAGE_ID_MAX + 1]; /* of /v1/responses/{id} */
    struct http_skim skim;                 /* last: 25 KB, touched only by requests with prompts */
};

/* Returns true if no other attempt is possible any more. */
static inline bool exchange_is_committed(const struct exchange *x)
{
    return x->now.phase == ATTEMPT_ANSWERING;
}

/* Answers with a complete body; `extra` fields are added. Ends the exchange. */
void exchange_answer(struct exchange *x, unsigned status, struct slice content_type,
                     struct slice body, const struct http_line *extra, size_t extra_count);
/* Begins an answer that continues until the client leaves, or until exchange_endless_end(). The
 * head goes out now, and text follows. Returns false if the answer has ended: no memory, or a HEAD
 * request. */
bool exchange_endless_begin(struct exchange *x, struct slice content_type,
                            const struct http_line *extra, size_t extra_count);
/* Writes the whole text, unless an earlier text still waits for a slow client: then nothing, and
 * false. So at most a single text piles up per client. A client that reads nothing for
 * client-write-timeout is cut. */
bool exchange_endless_write(struct exchange *x, struct slice text);
void exchange_endless_end(struct exchange *x);
/* Answers with an error in the form of the path's API; the connection stays open. Ends the
 * exchange. */
void exchange_answer_error(struct exchange *x, unsigned status, struct slice param,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Does the same with another header field. */
void exchange_answer_error_with(struct exchange *x, unsigned status, const char *text,
                                const struct http_line *line);
/* Sets the reason for a refusal, and the setting; returns the status of its row. */
unsigned exchange_because(struct exchange *x, enum refusal why);
/* Answers with an error and the text of its row. */
void exchange_answer_refusal(struct exchange *x, enum refusal why);
/* Answers 405; `methods`: the path's methods, for people and for the Allow field. */
void exchange_answer_not_allowed(struct exchange *x, struct slice path, const char *methods);

/* Announces a later answer: `forget` is called when the exchange ends for any reason. An owner that
 * needs no such call first calls exchange_wait(x, NULL, NULL). */
static inline void exchange_wait(struct exchange *x, void (*forget)(void *context), void *context)
{
    x->forget = forget;
    x->forget_context = context;
}

/* Sets the session key, for policies with sessions: the first configured header present, or the
 * given value; else from the body, once read. */
void exchange_read_session(struct exchange *x, const struct http_head *head);
void exchange_session_from_body(struct exchange *x);
/* Returns a hash of the conversation: by its session, else by the beginning of its prompts, else by
 * its client. Called before exchange_render() joins the prompt. */
uint64_t exchange_conversation(const struct exchange *x);
void exchange_session_set(struct exchange *x, struct slice value);

/* Begins to read the prompt from the arriving body, as the router's policy requires. */
void exchange_skim_begin(struct exchange *x);
/* Reads the client's kind from the head; exchange_render() makes the prompt's chain after
 * http_skim_end(), as engines see the prompt. */
void exchange_read_agent(struct exchange *x, const struct http_head *head);
/* For explanations, between the two: the prompt becomes that of the model behind an alias
 * (alias.c). */
void exchange_alias_look(struct exchange *x);
void exchange_render(struct exchange *x);
/* Describes the request for policies, from the finished skim. */
void exchange_describe(const struct exchange *x, struct node_request *out);

#endif
