/* Events for an exchange: from proxy.c, which passes them on, and from node/proxy/guard. */
#ifndef NODE_PROXY_EXCHANGE_DRIVE_H
#define NODE_PROXY_EXCHANGE_DRIVE_H

#include "node/proxy/engine/upstream.h"
#include "node/proxy/exchange/exchange.h"

/* --- from the client ------------------------------------------------------------------------ */

/* Handles a result of client_next(): a new request, pieces of its body. Returns true if the request
 * is complete and the router answers it. */
bool exchange_request(struct client *c, const struct client_input *in);
/* Room for reading a body directly, and the number of bytes read there. Empty at the memory limit,
 * and if the body is not stored. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected);
bool exchange_body_read(struct exchange *x, size_t n, bool end);
/* The client has read the queued bytes. */
void exchange_client_drained(struct exchange *x);
/* Ends an exchange and closes the connection. */
void exchange_cut(struct exchange *x, enum client_end why, bool reset);
/* Ends the exchange, if any, and closes the connection. */
static inline void exchange_drop(struct client *c, enum client_end why, bool reset)
{
    if (c->exchange != NULL)
        exchange_cut(c->exchange, why, reset);
    else
        client_close(c, reset);
}
/* Answers with the router's own error and closes the connection; ends the exchange, if any. */
void exchange_refuse(struct client *c, unsigned status, const char *text);
/* A refusal with more details. */
struct exchange_refusal {
    unsigned status;
    enum refusal refusal; /* NONE: by the status */
    const char *limit;    /* the setting behind it; NULL: none */
    const char *text;
};
void exchange_refuse_for(struct client *c, const struct exchange_refusal *why);
/* Refuses with the text of the reason's row. */
void exchange_refuse_because(struct client *c, enum refusal why);

/* --- from the replica ----------------------------------------------------------------------- */

/* Handles a result of upstream_next(). Returns false if the answer contradicts its head; the
 * connection is unchanged, and the caller fails it. */
bool exchange_response(struct exchange *x, const struct upstream_output *out);
/* Continues with the decoded bytes of a held-back answer (upstream_hold) that did not go out yet.
 * Called before the next piece is taken. */
bool exchange_response_rest(struct exchange *x);
/* Writes the gathered bytes, at the end of the event. */
void exchange_flush(struct exchange *x);
/* The answer is complete. */
void exchange_ended(struct exchange *x);
/* The attempt failed; the connection is closed. */
void exchange_failed(struct exchange *x, enum upstream_failure failure);
/* Writes the gathered bytes, and then an error event if the answer is a stream of events. */
void exchange_say_cut(struct exchange *x, unsigned status, const char *text);

/* --- time ----------------------------------------------------------------------------------- */

/* A time limit on the connection to the replica has passed. Returns true if the wait continues,
 * under a new limit. Returns false if the attempt fails; `refusal` and `limit` name the reason. */
bool exchange_time_left(struct exchange *x);
/* The answer has begun and is lost: nothing shows any work of the engine. Ends the exchange. */
void exchange_stall_cut(struct exchange *x);
/* request-timeout has passed. Ends the exchange. */
void exchange_late(struct exchange *x);
/* Returns true if the request has no token yet and another replica is up and not avoided. */
bool exchange_may_move(struct exchange *x);
/* Returns true if no part of the body can keep an engine busy before the request is counted: no
 * picture, no sound, no grammar. Reads the body once; in doubt the result is false. */
bool exchange_is_plain(struct exchange *x);
/* Returns true if answers on such a path report tokens (the work is a completion). */
bool exchange_answers_tokens(enum http_path_kind kind);

/* --- by the router -------------------------------------------------------------------------- */

/* Chooses a replica and sends, or answers with the reason for none. */
void exchange_route(struct exchange *x);
/* Sends the available bytes, releases sent ones, and stops reading from a faster client. */
void exchange_push(struct exchange *x);
/* Places waiting requests, because a replica may have room. */
void exchange_queue_run(struct proxy *p);
/* Answers the waiting requests, because the node stops. */
void exchange_queue_stop(struct proxy *p);
/* Frees the exchanges kept for reuse. */
void exchange_pool_free(struct proxy *p);

#endif
