/* What the files of an exchange share among themselves, and nobody else uses.
 *
 *   exchange.c   life: made, finished, told to the access log
 *   request.c    the client's head and body
 *   attempt.c    the replica that is chosen, and the next one when it fails
 *   response.c   the replica's answer on its way to the client
 *   hold.c       answers that tell whether the replica knows the model
 *   answer.c     answers of the router's own
 */
#ifndef NODE_IO_EXCHANGE_PARTS_H
#define NODE_IO_EXCHANGE_PARTS_H

#include "node/io/exchange.h"

/* NULL without memory. */
struct exchange *exchange_new(struct client *c);
/* The end of every exchange whose client is still there; the client is told. */
void exchange_finish(struct exchange *x);
/* The same for an answer that the replica broke off: what came goes out, without a proper end. */
void exchange_finish_cut(struct exchange *x);
/* Exactly one of these follows each booking; does nothing without one. */
void exchange_release_booking(struct exchange *x, enum node_outcome outcome);

/* Whether the answer of such a path tells tokens (and the work is a generation). */
bool exchange_generates(enum http_path_kind kind);
/* Whether such a request makes an engine compute and changes nothing: it may be done twice. */
bool exchange_computes(enum http_path_kind kind);

/* Chooses a replica and sends, or answers why there is none. */
void exchange_route(struct exchange *x);
/* Whether an answer of that status was let go because another replica is asked now. */
bool exchange_moves_on(struct exchange *x, unsigned status);
/* Releases the booking and books another replica. If there is none, everything but the booking is
 * as it was, and ERR_* of the choice returned. */
int exchange_choose_another(struct exchange *x, enum node_outcome outcome);
/* Sends to the replica that is booked, or to another where that fails at once. */
void exchange_start(struct exchange *x);

/* The head of an answer goes on to the client. */
void exchange_pass_head(struct exchange *x, const struct http_head *head);
void exchange_pass_data(struct exchange *x, struct slice bytes);

/* What the head of an answer says of the model, at a replica that does not list its models. A 404
 * that may mean an unknown model is held (true) until all of it is there. */
bool exchange_hold_begin(struct exchange *x, const struct http_head *head);
/* True: the bytes are held too. Otherwise nothing is held any more; what was has gone out. */
bool exchange_hold_data(struct exchange *x, struct slice bytes);
/* The answer is whole. True: another one will come in its place, or has; else what was held is
 * given to output_data(), and is good until exchange_hold_drop(). */
bool exchange_hold_end(struct exchange *x);
void exchange_hold_drop(struct exchange *x);

/* The stored response that the request asks for or continues: only its maker has it. Empty: none.
 */
struct slice exchange_stored_response(const struct exchange *x);

#endif
