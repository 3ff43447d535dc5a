/* What the files of an exchange share among themselves, and nobody else uses. Each calls only those
 * before it in this list:
 *
 *   exchange.c   life: made, finished, logged
 *   answer.c     answers of the router's own, refusals
 *   attempt.c    the replica that is chosen, and the next one when it fails
 *   hold.c       answers that say whether the replica knows the model
 *   request.c    the client's head and body
 *   response.c   the replica's answer on its way to the client
 */
#ifndef NODE_PROXY_EXCHANGE_INTERNAL_H
#define NODE_PROXY_EXCHANGE_INTERNAL_H

#include "base/err.h"
#include "node/proxy/exchange.h"

/* --- exchange.c ------------------------------------------------------------------------------ */

/* NULL without memory. */
struct exchange *exchange_new(struct client *c);
/* The end of an exchange whose answer the client has, or has queued. */
void exchange_finish(struct exchange *x);
/* The same for an answer that the replica broke off: what came goes out, without a proper end. */
void exchange_finish_cut(struct exchange *x);
/* The end of an exchange whose connection closes (and closes it). */
void exchange_cut(struct exchange *x, enum client_end why, bool reset);
/* Exactly one of these follows each booking; does nothing without one. */
void exchange_release_booking(struct exchange *x, enum node_outcome outcome);
/* Lets go of a 404 that is held, see below. */
void exchange_hold_drop(struct exchange *x);
void exchange_pool_free(struct proxy *p);

/* --- answer.c -------------------------------------------------------------------------------- */

/* Answers an error of the router's own and closes the connection; ends the exchange if there is
 * one. */
void exchange_refuse(struct client *c, unsigned status, const char *type, const char *text);

/* --- attempt.c ------------------------------------------------------------------------------- */

/* Whether the answer of such a path reports tokens (the work is a completion). */
bool exchange_answers_tokens(enum http_path_kind kind);
/* Whether the body of such a path carries a prompt. */
bool exchange_carries_prompt(enum http_path_kind kind);

/* Chooses a replica and sends, or answers why there is none. */
void exchange_route(struct exchange *x);
/* Sends what is there, lets go of what is sent, and holds a client that is faster. */
void exchange_push(struct exchange *x);
/* Bytes of an answer are about to go to the client: there is no retry any more, and no need to keep
 * what is sent. */
void exchange_answering(struct exchange *x);
/* Whether an answer of that status is let go because another replica is asked now. */
bool exchange_moves_on(struct exchange *x, unsigned status);
/* Releases the booking and books another replica. If there is none, everything but the booking is
 * as it was, and ERR_* of the choice returned. */
MUST_USE int exchange_choose_another(struct exchange *x, enum node_outcome outcome);
/* Sends to the replica that is booked, or to another where that fails at once. */
void exchange_start(struct exchange *x);
/* The attempt failed; its connection is closed. */
void exchange_failed(struct exchange *x, enum upstream_failure failure);
/* Answers that have not moved for `silent_ms` fail: their engine is dead. */
void exchange_fail_silent(struct pool *pool, uint64_t silent_ms);
/* The stored response that the request asks for or continues: only its maker has it. Empty: none.
 */
struct slice exchange_stored_response(const struct exchange *x);

/* --- hold.c ---------------------------------------------------------------------------------- */

/* What the head of an answer says of the model; only of a replica that does not list its models. A
 * 404 that may mean an unknown model is held (true) until all of it is there. */
bool exchange_hold_begin(struct exchange *x, const struct http_head *head);
/* Holds more of its body. False: it is too long, and so is forwarded as it is. */
bool exchange_hold_add(struct exchange *x, struct slice bytes);
/* The answer that is held is whole. True: another one comes in its place, or has. */
bool exchange_hold_judge(struct exchange *x);

/* --- request.c: from the client -------------------------------------------------------------- */

/* What was taken from the client: a new request, and pieces of its body. True: it is whole now, and
 * the router answers it itself. */
bool exchange_request(struct client *c, const struct client_input *in);
/* Room to read a body into directly (empty at the memory limit), and how much was read there. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected);
bool exchange_body_read(struct exchange *x, size_t n, bool end);

/* --- response.c: from the replica ------------------------------------------------------------ */

/* What was taken of the answer. */
void exchange_response(struct exchange *x, const struct upstream_output *out);
/* What was gathered goes out, at the end of the event. */
void exchange_flush(struct exchange *x);
/* The answer is whole. */
void exchange_ended(struct exchange *x);
/* The client has read what was queued for it. */
void exchange_client_drained(struct exchange *x);

#endif
