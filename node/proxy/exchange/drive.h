/* Events for an exchange, passed on by proxy.c or caused by node/proxy/guard. */
#ifndef NODE_PROXY_EXCHANGE_DRIVE_H
#define NODE_PROXY_EXCHANGE_DRIVE_H

#include "node/proxy/engine/upstream.h"
#include "node/proxy/exchange/exchange.h"

/* --- from the client ------------------------------------------------------------------------ */

/* Handles a result of client_next(): a new request, or a piece of a body. Returns true if the
 * request is complete and the router answers it. */
bool exchange_request(struct client *c, const struct client_input *in);
/* exchange_body_room() returns memory into which the network reads the body directly: empty at the
 * memory limit, or if the body is not stored. exchange_body_read() adds the `n` bytes read there to
 * the body; `end`: the body is complete. Returns true if the request is complete and the router
 * answers it. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected);
bool exchange_body_read(struct exchange *x, size_t n, bool end);
/* Called when the client has read the queued bytes: continues with the answer. */
void exchange_client_drained(struct exchange *x);
/* Ends the exchange and closes the client's connection. */
void exchange_cut(struct exchange *x, enum client_end why, bool reset);
/* Ends the exchange, if any, and closes the client's connection. */
static inline void exchange_drop(struct client *c, enum client_end why, bool reset)
{
    if (c->exchange != NULL)
        exchange_cut(c->exchange, why, reset);
    else
        client_close(c, reset);
}
/* Answers with the router's own error, ends the exchange, if any, and closes the connection. */
void exchange_refuse(struct client *c, unsigned status, const char *text);
/* A refusal with more details. */
struct exchange_refusal {
    unsigned status;
    enum refusal refusal; /* the reason; REFUSED_NONE: the status decides */
    const char *limit;    /* the setting behind the refusal; NULL: none */
    const char *text;
};
void exchange_refuse_for(struct client *c, const struct exchange_refusal *why);
/* Refuses with the reason's status and text. */
void exchange_refuse_because(struct client *c, enum refusal why);

/* --- from the replica ----------------------------------------------------------------------- */

/* Handles a result of upstream_next(). Returns false if the answer contradicts the head. Then the
 * caller must fail the connection. */
bool exchange_response(struct exchange *x, const struct upstream_output *out);
/* Continues with an answer held back by upstream_hold(): passes on the decoded bytes not passed on
 * yet. Must be called before the next piece is taken. */
bool exchange_response_rest(struct exchange *x);
/* Writes the gathered bytes to the client. Called at the end of the event. */
void exchange_flush(struct exchange *x);
/* Called when the answer is complete. */
void exchange_ended(struct exchange *x);
/* Called when the attempt has failed and the connection is closed. */
void exchange_failed(struct exchange *x, enum upstream_failure failure);
/* Writes the gathered bytes, and then an error event if the answer is a stream of events. */
void exchange_say_cut(struct exchange *x, unsigned status, const char *text);

/* --- time ----------------------------------------------------------------------------------- */

/* Called when a time limit on the connection to the replica has passed. Returns true if the wait
 * continues, under a new limit. Returns false if the attempt fails; x->refusal and x->limit have
 * the reason. */
bool exchange_time_left(struct exchange *x);
/* Cuts a begun answer, because the engine shows no sign of work. Ends the exchange. */
void exchange_stall_cut(struct exchange *x);
/* Called when request-timeout has passed. Ends the exchange. */
void exchange_late(struct exchange *x);
/* Returns true if a request without a token may move to another replica: retries-max and the retry
 * budget permit an attempt, and another replica is up and not avoided. */
bool exchange_may_move(struct exchange *x);
/* Returns true if the engine counts the request at once, because the body has nothing to prepare:
 * no picture, no sound, no grammar. Returns false in uncertain cases. Reads the body only once. */
bool exchange_is_plain(struct exchange *x);
/* Returns true if answers on such a path have tokens, because the request is for a completion. */
bool exchange_answers_tokens(enum http_path_kind kind);

/* --- by the router -------------------------------------------------------------------------- */

/* Chooses a replica and sends the request, or answers with the reason why no replica is
 * possible. */
void exchange_route(struct exchange *x);
/* Sends the received bytes of the body, releases sent ones, and stops reading while the client is
 * faster than the engine. */
void exchange_push(struct exchange *x);
/* Chooses replicas for queued requests, because a replica may be free. */
void exchange_queue_run(struct proxy *p);
/* Answers all queued requests with an error, because the node stops. */
void exchange_queue_stop(struct proxy *p);
/* Frees the exchanges kept for reuse. */
void exchange_pool_free(struct proxy *p);

#endif
