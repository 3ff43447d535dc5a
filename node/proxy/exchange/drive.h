/* What happens to an exchange: for proxy.c, which hands on events, and for node/proxy/guard. */
#ifndef NODE_PROXY_EXCHANGE_DRIVE_H
#define NODE_PROXY_EXCHANGE_DRIVE_H

#include "node/proxy/engine/upstream.h"
#include "node/proxy/exchange/exchange.h"

/* --- from the client -------------------------------------------------------------------------- */

/* What was taken from the client: a new request, and pieces of its body. True: it is whole now, and
 * the router answers it itself. */
bool exchange_request(struct client *c, const struct client_input *in);
/* Room to read a body into directly (empty at the memory limit, and where it is not held), and how
 * much was read there. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected);
bool exchange_body_read(struct exchange *x, size_t n, bool end);
/* The client has read what was queued for it. */
void exchange_client_drained(struct exchange *x);
/* The end of an exchange whose connection closes (and closes it). */
void exchange_cut(struct exchange *x, enum client_end why, bool reset);
/* The same, where there may be no exchange. */
static inline void exchange_drop(struct client *c, enum client_end why, bool reset)
{
    if (c->exchange != NULL)
        exchange_cut(c->exchange, why, reset);
    else
        client_close(c, reset);
}
/* Answers an error of the router's own and closes the connection; ends the exchange if there is
 * one. */
void exchange_refuse(struct client *c, unsigned status, const char *text);
/* The same where more is to be said of it. */
struct exchange_refusal {
    unsigned status;
    enum refusal refusal; /* NONE: by the status */
    const char *limit;    /* the setting that it comes from; NULL: none */
    const char *text;
};
void exchange_refuse_for(struct client *c, const struct exchange_refusal *why);
/* With the text of its row. */
void exchange_refuse_because(struct client *c, enum refusal why);

/* --- from the replica ------------------------------------------------------------------------- */

/* What was taken of the answer. */
/* False: it is not what its head says; the connection is as it was: fail it. */
bool exchange_response(struct exchange *x, const struct upstream_output *out);
/* The same of what was decoded before and did not go out yet, of an answer that is held back
 * (upstream_hold): before the next piece is taken. */
bool exchange_response_rest(struct exchange *x);
/* What was gathered goes out, at the end of the event. */
void exchange_flush(struct exchange *x);
/* The answer is whole. */
void exchange_ended(struct exchange *x);
/* The attempt failed; its connection is closed. */
void exchange_failed(struct exchange *x, enum upstream_failure failure);
/* What is gathered goes out, and behind it an error event, if the answer is a stream of events. */
void exchange_say_cut(struct exchange *x, unsigned status, const char *text);

/* --- by the clock ----------------------------------------------------------------------------- */

/* The limit of time on its connection to the replica has passed. True: it may wait longer, and a
 * limit is armed again. False: the attempt fails, and `refusal` and `limit` say by which. */
bool exchange_time_left(struct exchange *x);
/* Its answer has begun, and is lost: nothing shows that the engine still works on it. Ends the
 * exchange. */
void exchange_stall_cut(struct exchange *x);
/* request-timeout has passed. Ends the exchange. */
void exchange_late(struct exchange *x);
/* Whether it could go to another replica, that is up and not avoided: it has no token yet. */
bool exchange_may_move(struct exchange *x);
/* Whether nothing in its body may keep an engine busy with it before it counts it: no picture, no
 * sound, no grammar. Looks through the body, once; in doubt it is not. */
bool exchange_is_plain(struct exchange *x);
/* Whether the answer of such a path reports tokens (the work is a completion). */
bool exchange_answers_tokens(enum http_path_kind kind);

/* --- by the router ---------------------------------------------------------------------------- */

/* Chooses a replica and sends, or answers why there is none. */
void exchange_route(struct exchange *x);
/* Sends what is there, lets go of what is sent, and holds a client that is faster. */
void exchange_push(struct exchange *x);
/* There may be room at a replica: those that wait are looked at. */
void exchange_queue_run(struct proxy *p);
/* The node stops: those that wait are answered. */
void exchange_queue_stop(struct proxy *p);
/* Lets go of those that are kept for the next requests. */
void exchange_pool_free(struct proxy *p);

#endif
