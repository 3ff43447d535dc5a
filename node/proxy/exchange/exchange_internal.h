/* Declarations shared by the files of an exchange. Other folders use drive.h. README.md has the
 * order in which the files call each other. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H
#define NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H

#include "base/err.h"
#include "http/error.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/limit/verdict.h"

/* --- kind.c ---------------------------------------------------------------------------------- */

/* Returns true if bodies on such a path carry a prompt. */
bool exchange_carries_prompt(enum http_path_kind kind);
/* These return true if the head's Content-Type is multipart/form-data, any multipart type, or
 * JSON. */
bool exchange_is_form(const struct http_head *head);
bool exchange_is_multipart(const struct http_head *head);
bool exchange_is_json(const struct http_head *head);
/* Returns true if bodies on such a path carry no prompt, but may name a model, as JSON or as a
 * form. */
bool exchange_names_model(enum http_path_kind kind);
/* Returns true if requests on such a path only compute and change nothing, so repeating them is
 * harmless. */
bool exchange_computes(enum http_path_kind kind);
/* Returns true if a rejection on such a path can be evidence against a replica, because any replica
 * could accept the request. */
bool exchange_weighs_rejections(enum http_path_kind kind);
/* Returns true if a repeated request has the same effect as a single request (RFC 9110, section
 * 9.2.2). */
bool exchange_is_idempotent(enum http_method method);
/* Returns true if a request rejected with this status has started nothing, and so may be sent
 * again. */
bool exchange_begins_nothing(enum http_method method, unsigned status);
/* Returns the kind of request for which node/replica/reject.h counts rejections. */
uint8_t exchange_reject_kind(const struct exchange *x);

/* --- kept.c ---------------------------------------------------------------------------------- */

struct node_engine_error;

/* Stores the held rejection, or `said` instead, if the error was an event. `says_why`: the text
 * depends on the replica, so a different answer elsewhere is no evidence against the replica. After
 * ERR_NOMEM nothing has changed. */
MUST_USE int exchange_kept_keep(struct exchange *x, const struct node_rejection *what,
                                const struct node_engine_error *said, bool says_why);
/* Makes the stored rejection the held answer again, because no other replica was asked. */
void exchange_kept_unkeep(struct exchange *x);
void exchange_kept_drop(struct exchange *x);
/* Returns true if the client gets the stored rejection unless a better answer comes. */
bool exchange_kept_stands(const struct exchange *x);

/* --- exchange.c ------------------------------------------------------------------------------ */

/* Returns true if the API's terminal event has come, so that at most the end of the HTTP body is
 * missing. */
bool exchange_is_whole(const struct exchange *x);
/* Sets x->told if the terminal event has been written. Called after bytes were written. */
void exchange_note_told(struct exchange *x);
/* Moves the attempt to the phase `to`, which must be a permitted step. */
void exchange_goes(struct exchange *x, enum attempt_phase to);
/* Returns NULL if there is no memory. */
struct exchange *exchange_new(struct client *c);
/* Ends an exchange after the answer was written or queued. */
void exchange_finish(struct exchange *x);
/* Ends an exchange after the replica broke off the answer. The client gets the received part,
 * without a proper end. */
void exchange_finish_cut(struct exchange *x);
/* Releases the booking with this outcome. Without a booking there is no effect. */
void exchange_release_booking(struct exchange *x, enum node_outcome outcome);
/* Counts the error of x->doubt, if open, against the replica that sent the error. */
void exchange_blame(struct exchange *x);
/* Separates the exchange from the connection to the replica. Returns the connection; NULL: none. */
struct upstream *exchange_disconnected(struct exchange *x);
/* Separates the exchange from the connection to the replica, and aborts the connection. */
void exchange_hang_up(struct exchange *x);
/* Drops the held part of an answer (hold.c). */
void exchange_hold_drop(struct exchange *x);
/* Frees the body's decoder (decode.c), if any. */
void exchange_decode_drop(struct exchange *x);
/* Drops the received part of an answer of which the client has got nothing. */
void exchange_forget_answer(struct exchange *x);

/* --- spent.c ---------------------------------------------------------------------------------- */

/* Counts the request's use against the key's limits. Called at the end. */
void exchange_spent(struct exchange *x);

/* --- cors.c ----------------------------------------------------------------------------------- */

enum { EXCHANGE_CORS_LINES = 3 };
/* The settings' answer to the page's origin: no CORS fields, all origins, this origin, or not this
 * origin. */
enum exchange_cors {
    EXCHANGE_CORS_OFF,
    EXCHANGE_CORS_ANY,
    EXCHANGE_CORS_LISTED,
    EXCHANGE_CORS_OTHER,
};
enum exchange_cors exchange_cors_of(const struct exchange *x);

/* Notes if the page that sent the request, as named by Origin in the head, may read the answer. */
void exchange_cors_note(struct exchange *x, const struct http_head *head);
/* Writes the CORS fields for the router's own answers. Returns their number. */
size_t exchange_cors_lines(const struct exchange *x, struct http_line *lines);
/* --- answer.c -------------------------------------------------------------------------------- */

/* Answers with the replica's error, which came instead of an answer. Ends the exchange. */
void exchange_answer_engine_error(struct exchange *x, unsigned replica, unsigned status,
                                  const char *type, const char *text);
/* Answers 426 to a WebSocket request. Ends the exchange. */
void exchange_answer_upgrade(struct exchange *x);
/* Returns the error form of the path's API. */
enum http_error_form exchange_error_form(const struct exchange *x);
/* EXCHANGE_WORDS: most bytes of a message (512) with the added words. EXCHANGE_WORDS_ADDED: most
 * bytes of the added words. */
enum { EXCHANGE_WORDS = 640, EXCHANGE_WORDS_ADDED = 100 };
/* Adds to an error event the words by which client programs decide to repeat a request: a type, and
 * a text after the message. `out` has the new message. */
void exchange_event_say(const struct exchange *x, struct http_error *error,
                        char out[EXCHANGE_WORDS]);
/* Returns true if an engine's error goes to the client because the retry budget is empty. */
bool exchange_passes_for_lack(const struct exchange *x);

/* Answers with the stored rejection, ends the exchange and returns true. While the rejection is
 * stored, the client gets it in place of the router's own errors. */
bool exchange_answer_kept(struct exchange *x);

/* --- preflight.c ----------------------------------------------------------------------------- */

/* Answers a browser's preflight (CORS). Returns true if the request was a preflight. */
bool exchange_preflight(struct exchange *x, const struct http_head *head);

/* --- ending.c -------------------------------------------------------------------------------- */

/* How a kind of failed attempt is logged, counted and retried. */
struct exchange_failure {
    const char *what;  /* the failure in the log */
    const char *cause; /* the cause of a cut answer in the metrics */
    enum node_error error;
    enum verdict_reason why; /* the reason for the retry */
};
extern const struct exchange_failure exchange_failures[UPSTREAM_NO_PLACE]; /* by upstream_failure */

enum { EXCHANGE_LATE_TEXT = 128 };
/* Writes the text for a passed time limit, with the setting x->limit, if any. Used in errors and in
 * cut answers. */
void exchange_late_text(const struct exchange *x, char out[EXCHANGE_LATE_TEXT]);

/* Count a replica's failure, or an error status, for the metrics. */
void exchange_count_failure(const struct exchange *x, enum upstream_failure failure);
void exchange_count_status(const struct exchange *x, unsigned status);
/* Returns true if the HTTP body has ended before the answer's terminal event
 * (http_usage_unfinished()). */
bool exchange_unfinished(const struct exchange *x);
/* Returns true if the engine ended the answer with "abort", unrequested by the client and without
 * an error. */
bool exchange_was_aborted(const struct exchange *x);
/* Counts the engine's error event in the answer, once. */
void exchange_count_event(struct exchange *x);
/* Sets the outcome of a complete answer to a failure if the answer has an error event. */
void exchange_judge_error(struct exchange *x);
/* Returns the client's result if the answer fails now, in a word: "error", "error_event", "cut",
 * "whole" (only the end of the framing is missing). */
const char *exchange_error_word(const struct exchange *x);
/* Ends an answer of which the client has a part: writes an error event, and cuts the answer. */
void exchange_end_cut(struct exchange *x, enum upstream_failure failure);

/* --- overload.c ------------------------------------------------------------------------------ */

/* Queues the request as x->plan says. After the longest wait the request is answered 504, or `over`
 * is called if the wait was for QUEUE_ALONE or QUEUE_APART. */
void exchange_queue(struct exchange *x, void (*over)(struct deadline *d));
/* Answers 429: the queue is full. */
void exchange_queue_full(struct exchange *x);

/* --- patience.c ------------------------------------------------------------------------------ */

/* Returns the longest silence before the first token for the setting "auto". Any work of the engine
 * ends a silence. `ttft_s`: the predicted time to first token; 0: unknown. */
uint64_t exchange_token_wait_ms(double ttft_s);
/* Returns true if the engine worked lately, so that a slow answer is no failure. */
bool exchange_replica_moves(const struct exchange *x);
/* Returns true, once per request, if another replica may be tried after a long wait for the first
 * token. The present replica shows no sign of work, but may have queued the prompt. */
bool exchange_may_leave_silent(const struct exchange *x);

/* --- host.c ---------------------------------------------------------------------------------- */

/* Notes the client's Host, for replicas that get the client's Host by setting or label. */
void exchange_host_note(struct exchange *x, struct slice host);
/* Sets the Host in the head before the head is sent to the chosen replica. ERR_NOMEM. */
MUST_USE int exchange_host_name(struct exchange *x);
/* Returns the target of a redirect from a replica to itself, without the host, so the client asks
 * this router again. Empty: the redirect stays unchanged. */
struct slice exchange_host_location(const struct exchange *x, const struct http_head *head);

/* --- choose.c -------------------------------------------------------------------------------- */

/* Returns the model as the client named it. */
static inline struct slice exchange_named(const struct node_request *request)
{
    return request->alias.len > 0 ? request->alias : request->model;
}
/* Returns the id of the stored response to read or continue. Only the replica that made the
 * response has it. Empty: none. */
struct slice exchange_stored_response(const struct exchange *x);
/* Returns true if the request can be sent again after a rejection with this status. */
bool exchange_reject_again(const struct exchange *x, unsigned status);
/* Returns true if the router knows that only the present replica can answer. */
bool exchange_only_there(const struct exchange *x);
/* Asks admission for an untried replica. Returns ERR_* if none is possible. Otherwise x->plan says
 * if a replica is booked, or if the caller must queue or refuse the request. */
MUST_USE int exchange_choose_once(struct exchange *x);
/* Excludes the present replica from the next choices. If the outcome is not the stall of a single
 * rank, excludes all ranks of the process. */
void exchange_exclude(struct exchange *x, enum node_outcome outcome);
void exchange_exclude_other_engines(struct exchange *x);
/* Asks replicas for their model lists, once per request. `over` is called when the lists have come,
 * or after PROXY_LISTS_MS. Returns false if no list will come. */
bool exchange_look(struct exchange *x, void (*over)(struct deadline *d));
/* Returns whether another replica may have a longer context, after a replica refused the request as
 * too long. NODE_LONGER_IF_ANEW: the model lists must be read again first. */
enum node_longer exchange_longer(const struct exchange *x, const struct node_request *request);
/* Answers after the last failed attempt, with the engines' last error status if there was any.
 * Otherwise the status is 504 after a timeout, 503 if no replica was reached, or 502. `text`: the
 * error's text; NULL: the number of attempts. */
void exchange_no_answer(struct exchange *x, const char *text);
/* Answers a request for which there is no replica. The choice's error and the attempts so far
 * decide the answer. */
void exchange_no_replica(struct exchange *x, int err);

/* --- owner.c --------------------------------------------------------------------------------- */

/* Refuses a request for another key's stored response. A key for certain models is also refused if
 * the owner is unknown. Returns true if the request was answered. */
bool exchange_owner_refuse(struct exchange *x, struct slice id, struct slice param);
/* As exchange_owner_refuse(), for the stored response named in the body. */
bool exchange_owner_refuse_body(struct exchange *x);
/* Notes the replica and the owner of a new stored response, after the answer has shown the
 * response's id. */
void exchange_owner_put(struct exchange *x);

/* --- key.c ----------------------------------------------------------------------------------- */

/* Returns a hash of the key in the head, or of the client's address. Never 0. */
uint64_t exchange_key_client(const struct exchange *x, const struct http_head *head);
/* Finds the client's key by the head. Returns true if there is none and the request was
 * answered. */
bool exchange_key_refuse(struct exchange *x, const struct http_head *head);
/* Checks if the key allows the path. Returns true if refused and answered. */
bool exchange_key_refuse_path(struct exchange *x, const struct http_head *head);
/* Checks if the key allows a control request to all replicas. Returns true if refused and
 * answered. */
bool exchange_key_refuse_control(struct exchange *x);
/* Answers 429: the key's limit x->plan.over is used up. */
void exchange_key_limited(struct exchange *x);
/* Checks a complete body. Returns true if the key forbids the request; then it was answered. */
bool exchange_key_refuse_body(struct exchange *x);
/* Returns the key that engines get in place of the client's, valid for the event; empty: none. */
struct slice exchange_key_of_engines(const struct proxy *p);

/* --- engine_fields.c ------------------------------------------------------------------------- */

/* These refuse a request if the head, or the received part of the body, has a field forbidden to
 * clients (engine-fields). They return true if the request was answered. */
bool exchange_engine_fields_refuse_head(struct exchange *x, const struct http_head *head);
bool exchange_engine_fields_refuse_body(struct exchange *x);

/* --- trace.c --------------------------------------------------------------------------------- */

/* Begins the request's trace after the head was read, if the trace is recorded. */
void exchange_trace_begin(struct exchange *x, const struct http_head *head);
/* Writes the traceparent for engines as a line of their head, valid for the call. Returns the
 * number of lines; 0: engines get the client's own traceparent. */
size_t exchange_trace_line(struct exchange *x, struct http_forward_request *how,
                           struct http_line *line);
/* A replica was chosen. This and the next functions have no effect unless the request is
 * recorded. */
void exchange_trace_chosen(const struct exchange *x);
/* The request is queued. */
void exchange_trace_queued(const struct exchange *x);
/* The head is about to be sent. */
void exchange_trace_sent(const struct exchange *x);
/* The booking is released. */
void exchange_trace_attempt_ended(const struct exchange *x, enum node_outcome outcome);
/* The request has ended. `reason` is empty unless the request was refused or cut. */
void exchange_trace_end(struct exchange *x, const char *how, const char *reason, bool failed);

/* --- ask.c ----------------------------------------------------------------------------------- */

/* Prepares x->question, which finds the replica with the stored response. ERR_NOMEM, ERR_LIMIT. */
MUST_USE int exchange_ask(struct exchange *x);

/* --- attempt.c ------------------------------------------------------------------------------- */

/* Commits the answer before the first bytes go to the client. There are no retries any more, so
 * sent bytes of the request need not be kept. */
void exchange_answering(struct exchange *x);
/* Returns the reason to count for a retry: RETRY_ERROR in place of RETRY_DRAINS if no other replica
 * is healthy, otherwise `why`. RETRY_DRAINS counts neither against retries-max nor against the
 * budget, so if all replicas drained, each request would try one replica after the other. */
enum verdict_reason exchange_retry_reason(struct exchange *x, enum verdict_reason why);
/* Returns true if the bytes sent so far, retries-max and the retry budget allow to send the request
 * again. */
bool exchange_may_retry(struct exchange *x, enum verdict_reason why);
/* Returns true if the request may be sent again after a rejection, for which only half of the
 * budget may be used. Unless x->free_retry, another replica must be healthy; if `likely`, a replica
 * in a back-off is enough. The retry is not counted yet. */
bool exchange_may_try(struct exchange *x, bool likely);
/* Refuses a suspect. Called after suspect_refused() returned true. */
void exchange_refuse_suspect(struct exchange *x);
/* Releases the booking and asks for another replica. The present connection stays until
 * exchange_begin_anew(). Returns ERR_* as exchange_choose(). */
MUST_USE int exchange_rebook(struct exchange *x, enum node_outcome outcome);
/* As exchange_rebook(), but the same replica may be chosen again. */
MUST_USE int exchange_choose_again(struct exchange *x, enum node_outcome outcome);
/* Drops the received part of an answer, and the connection. Then begins the attempt planned by
 * exchange_rebook(), or the wait for a replica. */
void exchange_begin_anew(struct exchange *x, enum verdict_reason why);
/* Calls exchange_rebook() and exchange_begin_anew(). Returns ERR_* as exchange_rebook(). */
MUST_USE int exchange_move(struct exchange *x, enum node_outcome outcome, enum verdict_reason why);
/* Repeats the attempt on a fresh connection to the same replica. Returns ERR_* as
 * upstream_start(). */
MUST_USE int exchange_same_again(struct exchange *x);
/* Books another replica for a request of which nothing was sent, because of a shortage
 * (node/proxy/engine/shortage.h), or because the replica no longer fits. The request is sent, or
 * queued. */
void exchange_place_anew(struct exchange *x);
/* Sends the request itself, after the search for the stored response. */
void exchange_asked(struct exchange *x);
/* Returns true if an error of upstream_start() is the router's own: a limit, or memory. */
bool exchange_is_ours(int err);

/* After a replica denied the model and no other is known to serve it: asks all replicas for their
 * model lists, then chooses again. Returns false if none can be asked, or if this request had them
 * asked before. */
bool exchange_look_after(struct exchange *x);

/* --- reject.c -------------------------------------------------------------------------------- */

/* Returns true if a request rejected with this status may be tried elsewhere. Then the decision
 * needs the answer's body. */
bool exchange_reject_waits(const struct exchange *x, unsigned status);
/* Judges a rejection: a complete 4xx answer (the held one, and `said` is NULL), or the error event
 * `said`. Returns true if another replica is tried, or if the client was answered with this or an
 * earlier rejection. False: the caller forwards this rejection unchanged. */
bool exchange_rejected(struct exchange *x, unsigned status, const struct node_engine_error *said);
/* Judges an ambiguous 404 of a replica without a model list: another engine, or none, may be there.
 * If no other replica can be tried, the router ceases to believe that the replica serves the model.
 * All lists are read first if useful. Returns true if another answer replaces the 404. False: the
 * caller forwards the 404 unchanged. */
bool exchange_doubted(struct exchange *x);
/* Judges the rejection of a request that is longer than the replica's context. If no list has a
 * longer context, the lists may be old. Then they are read again, and a replica with a longer
 * context is tried. Returns true if another answer replaces the rejection. False: the caller
 * forwards the rejection unchanged. */
bool exchange_too_long(struct exchange *x, const struct node_engine_error *said);
/* Notes that the engine does not know the model. */
void exchange_note_denied(struct exchange *x, struct slice model);
/* Notes that the replica has accepted the request: a good answer has begun. */
void exchange_accepted(struct exchange *x);

/* --- failure.c ------------------------------------------------------------------------------- */

/* Handles a replica's answer to x->question. */
void exchange_answered(struct exchange *x, unsigned status);
/* Returns true if another replica may serve the request after a 400, because the replica's context
 * may be too short, or SGLang may not have loaded an adapter. */
bool exchange_may_fit_elsewhere(const struct exchange *x);
/* Returns true if the verdict on an answer of this status requires the body. */
bool exchange_body_decides(const struct exchange *x, unsigned status);
/* Judges an answer by the status. Returns true if the answer is dropped, because another replica is
 * tried or the client has got another answer. */
bool exchange_judge_status(struct exchange *x, unsigned status);
/* Acts on the verdict `j` on an answer. `status`: the status of the answer or the error event; 0:
 * the engine aborted. Returns false if the answer goes to the client. Sets x->now.outcome, by which
 * the attempt counts for the replica. */
bool exchange_judge_answer(struct exchange *x, const struct verdict_judgement *j, unsigned status);

/* --- ask_usage.c ------------------------------------------------------------------------------ */

/* Returns the offset in the body at which a new first member can be written: after the opening
 * brace, in the first segment. 0: there is none. */
size_t exchange_behind_brace(const struct body *body);
/* Returns bits 1 << enum node_engine: the engines to which this request cannot name a rank. */
unsigned exchange_unpinned(const struct exchange *x);
/* Writes the chosen rank into the request, before an attempt is sent. */
void exchange_pin(struct exchange *x);
/* Adds to a complete request what the router itself requests: usage, and token ids. */
void exchange_questions_ask(struct exchange *x);
/* Turns the router's request for usage on or off for the chosen replica, before an attempt is
 * sent. */
void exchange_usage_aim(struct exchange *x);
/* Called after the answer's head: prepares to remove usage not requested by the client. */
void exchange_usage_begin(struct exchange *x, const struct http_head *head);

/* --- alias.c ---------------------------------------------------------------------------------- */

/* Replaces an alias by the alias's model in the body and the prompt of a complete request. The
 * model must be allowed. Returns false if there was no memory; then the request was answered. */
bool exchange_alias_apply(struct exchange *x);
/* As exchange_choose_once(). If an alias's model has no possible replica, tries the alias's next
 * model. */
MUST_USE int exchange_choose(struct exchange *x);

/* --- aliased.c -------------------------------------------------------------------------------- */

/* Returns the model in the body; empty: none was read. */
struct slice exchange_body_model(const struct exchange *x);
/* Counts the real model of a request for an alias. Called at the end. */
void exchange_alias_count(struct exchange *x);

/* --- ask_ids.c -------------------------------------------------------------------------------- */

extern const struct slice exchange_ids_question;
/* Returns true if the engine may be asked for the token ids of a complete request's prompt, and
 * they would be useful. */
bool exchange_ids_wanted(struct exchange *x);
/* As exchange_usage_aim() and exchange_usage_begin(), for token ids. */
void exchange_ids_aim(struct exchange *x);
void exchange_ids_begin(struct exchange *x, const struct http_head *head);
/* Reports the token ids in the answer. Called before the booking is released. */
void exchange_ids_told(const struct exchange *x);
/* exchange_ids_forget() drops the present answer's state, exchange_ids_free() all of the exchange's
 * state about token ids. */
void exchange_ids_forget(struct exchange *x);
void exchange_ids_free(struct exchange *x);

/* --- decode.c -------------------------------------------------------------------------------- */

/* Begins to decode a request's body. Returns false if the head names an unknown coding, or if there
 * is no memory; then the request was answered. */
bool exchange_decode_begin(struct exchange *x, const struct http_head *head);
/* Decodes a piece from the front of `*bytes` and appends the output to the body; `*added` is the
 * new part. Returns false if the body was refused. The caller repeats this until both are empty. */
bool exchange_decode(struct exchange *x, struct slice *bytes, struct slice *added);
/* Ends the decoding. Returns false if the body was incomplete, and so was refused. */
bool exchange_decode_end(struct exchange *x);
/* Begins to decode an answer with a Content-Encoding (x->now.unpack), if the coding is known. The
 * client then gets the decoded answer. After ERR_NOMEM the caller drops the answer. */
MUST_USE int exchange_unpack_begin(struct exchange *x, const struct http_head *head);
/* Decodes a piece from the front of `*bytes`. `*out` is the output, valid until the next call.
 * Returns ERR_NOMEM, or as http_decoder_next(). */
MUST_USE int exchange_unpack(struct exchange *x, struct slice *bytes, struct slice *out);
/* Ends the exchange, because there is no memory to decode the answer. */
void exchange_unpack_refuse(struct exchange *x);

/* --- hold.c ---------------------------------------------------------------------------------- */

/* Decides by the answer's head which part of the answer to hold. */
void exchange_hold_begin(struct exchange *x, const struct http_head *head);
/* Holds the gathered bytes. Returns false if they must go out now. */
bool exchange_hold_waits(struct exchange *x);
/* Gathers the held bytes before the new ones. They are borrowed until exchange_hold_drop(). */
void exchange_hold_pass(struct exchange *x);
/* Sends the client a sign of life, after which another attempt is still possible. Returns false if
 * the path's API has none. */
bool exchange_hold_sign(struct exchange *x);
/* Returns true if enough of an error is held for a judgement. */
bool exchange_hold_is_long(const struct exchange *x);
/* Judges a complete answer, or a long answer's beginning. Returns true if another answer replaces
 * the held answer. */
bool exchange_hold_judge(struct exchange *x);
/* As exchange_hold_judge(), for an error event before any token, or for the abort of a held
 * answer. */
bool exchange_hold_judge_event(struct exchange *x);

#endif
