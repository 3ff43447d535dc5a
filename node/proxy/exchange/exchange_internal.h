/* Declarations shared by the files of an exchange. Other rooms use drive.h. README.md has the order
 * in which the files call each other. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H
#define NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H

#include "base/err.h"
#include "http/error.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/limit/verdict.h"

/* --- kind.c ---------------------------------------------------------------------------------- */

/* Returns true if bodies on such a path carry a prompt. */
bool exchange_carries_prompt(enum http_path_kind kind);
/* Return true by the head's Content-Type. */
bool exchange_is_form(const struct http_head *head);
bool exchange_is_multipart(const struct http_head *head);
bool exchange_is_json(const struct http_head *head);
/* Returns true if bodies on such a path may name a model, as JSON or as a form. */
bool exchange_names_model(enum http_path_kind kind);
/* Returns true if such a request only computes and changes nothing, so a repetition is harmless. */
bool exchange_computes(enum http_path_kind kind);
/* Returns true if rejections on such a path say something about a replica: no resource of a single
 * replica is involved. */
bool exchange_weighs_rejections(enum http_path_kind kind);
/* Returns true if a repetition has the same effect (RFC 9110, section 9.2.2). */
bool exchange_is_idempotent(enum http_method method);
/* Returns true if a rejection with that status has started nothing: the request may be sent
 * again. */
bool exchange_begins_nothing(enum http_method method, unsigned status);
/* Returns the kind by which replicas differ in accepted requests (node/replica/reject.h). */
uint8_t exchange_reject_kind(const struct exchange *x);

/* --- kept.c ---------------------------------------------------------------------------------- */

struct node_engine_error;

/* Keeps the held rejection, or `said` instead, if the error was an event. `says_why`: the text
 * depends on the replica, so there is no evidence against it, and no doubt. After ERR_NOMEM nothing
 * has changed. */
MUST_USE int exchange_kept_keep(struct exchange *x, const struct node_rejection *what,
                                const struct node_engine_error *said, bool says_why);
/* Holds the rejection again, because no other replica was asked. */
void exchange_kept_unkeep(struct exchange *x);
void exchange_kept_drop(struct exchange *x);
/* Returns true if the client gets the rejection unless a better answer comes. */
bool exchange_kept_stands(const struct exchange *x);

/* --- exchange.c ------------------------------------------------------------------------------ */

/* Returns true if the API's terminal event is present: only the end of the framing is missing. */
bool exchange_is_whole(const struct exchange *x);
/* Notes if the client has the terminal event, after bytes went out. */
void exchange_note_told(struct exchange *x);
/* Moves the attempt to its next phase, which must be a legal step. */
void exchange_goes(struct exchange *x, enum attempt_phase to);
/* NULL: no memory. */
struct exchange *exchange_new(struct client *c);
/* Ends an exchange after the client has the answer, or the answer is queued. */
void exchange_finish(struct exchange *x);
/* Ends an exchange after the replica broke off its answer: the received part goes out, without a
 * proper end. */
void exchange_finish_cut(struct exchange *x);
/* Releases the booking, exactly once; no effect without a booking. */
void exchange_release_booking(struct exchange *x, enum node_outcome outcome);
/* Blames the replica in doubt, if any. */
void exchange_blame(struct exchange *x);
/* Separates the exchange from the connection and returns the latter; NULL: none. */
struct upstream *exchange_disconnected(struct exchange *x);
/* Does the same, and aborts the connection. */
void exchange_hang_up(struct exchange *x);
/* Drops the held part of an answer (hold.c). */
void exchange_hold_drop(struct exchange *x);
/* Frees the body's decoder (decode.c), if any. */
void exchange_decode_drop(struct exchange *x);
/* Drops the received part of an answer, of which the client has nothing. */
void exchange_forget_answer(struct exchange *x);

/* --- spent.c ---------------------------------------------------------------------------------- */

/* Counts the request's use for the key, at the end. */
void exchange_spent(struct exchange *x);

/* --- cors.c ----------------------------------------------------------------------------------- */

enum { EXCHANGE_CORS_LINES = 3 };
/* The answer to the origin, by the setting: no fields; all may; this origin may; this may not. */
enum exchange_cors {
    EXCHANGE_CORS_OFF,
    EXCHANGE_CORS_ANY,
    EXCHANGE_CORS_LISTED,
    EXCHANGE_CORS_OTHER,
};
enum exchange_cors exchange_cors_of(const struct exchange *x);

/* Notes if the requesting page may read the answer, by the head. */
void exchange_cors_note(struct exchange *x, const struct http_head *head);
/* Writes the fields for the router's own answers. Returns their number. */
size_t exchange_cors_lines(const struct exchange *x, struct http_line *lines);
/* --- answer.c -------------------------------------------------------------------------------- */

/* Answers with the replica's error, which came instead of an answer. Ends the exchange. */
void exchange_answer_engine_error(struct exchange *x, unsigned replica, unsigned status,
                                  const char *type, const char *text);
/* Answers 426 to a WebSocket request. Ends the exchange. */
void exchange_answer_upgrade(struct exchange *x);
/* Returns the error form of the path's API. */
enum http_error_form exchange_error_form(const struct exchange *x);
/* Bytes: the longest message, of 512, with the added words. */
enum { EXCHANGE_WORDS = 640, EXCHANGE_WORDS_ADDED = 100 };
/* Adds the words to an event by which programs decide to repeat a request: a type, and a text after
 * the message, in `out`. */
void exchange_event_say(const struct exchange *x, struct http_error *error,
                        char out[EXCHANGE_WORDS]);
/* Returns true if an engine's error goes to the client because the retry budget is empty. */
bool exchange_passes_for_lack(const struct exchange *x);

/* Answers with the kept rejection, and ends the exchange; returns true. The router's own errors do
 * the same while the rejection stays. */
bool exchange_answer_kept(struct exchange *x);

/* --- preflight.c ----------------------------------------------------------------------------- */

/* Answers a browser's preflight, for permission to send a request. Returns true if answered. */
bool exchange_preflight(struct exchange *x, const struct http_head *head);

/* --- ending.c -------------------------------------------------------------------------------- */

/* The names and counters of a failed attempt. */
struct exchange_failure {
    const char *what;  /* in the log */
    const char *cause; /* of a cut answer, in the metrics */
    enum node_error error;
    enum verdict_reason why; /* for the retry */
};
extern const struct exchange_failure exchange_failures[UPSTREAM_NO_PLACE]; /* by upstream_failure */

enum { EXCHANGE_LATE_TEXT = 128 };
/* Writes the error text of a passed time limit, with the setting behind it (`limit`), if any. For
 * errors and cut answers. */
void exchange_late_text(const struct exchange *x, char out[EXCHANGE_LATE_TEXT]);

/* Count a replica's failure for metrics. */
void exchange_count_failure(const struct exchange *x, enum upstream_failure failure);
void exchange_count_status(const struct exchange *x, unsigned status);
/* Returns true if the framing has ended, but the answer has not (http_usage_unfinished). */
bool exchange_unfinished(const struct exchange *x);
/* Returns true if the engine ended the answer with "abort", unasked and without a reason. */
bool exchange_was_aborted(const struct exchange *x);
/* Counts the engine's error in the answer, once. */
void exchange_count_event(struct exchange *x);
/* Sets the outcome of a complete answer: an error of the engine in the answer decides. */
void exchange_judge_error(struct exchange *x);
/* Returns the client's result if the answer fails now, in a word: "error", "error_event", "cut",
 * "whole" (only the end of the framing is missing). */
const char *exchange_error_word(const struct exchange *x);
/* Ends an answer that is on its way to the client: with an error event, and cut. */
void exchange_end_cut(struct exchange *x, enum upstream_failure failure);

/* --- overload.c ------------------------------------------------------------------------------ */

/* Queues the request, by x->plan. A timeout is answered 504, or calls `over` if the request waits
 * for other company. */
void exchange_queue(struct exchange *x, void (*over)(struct deadline *d));
/* Answers 429: the queue is full. */
void exchange_queue_full(struct exchange *x);

/* --- patience.c ------------------------------------------------------------------------------ */

/* Returns the longest silence before the first token, for the setting "auto"; `ttft_s`: the
 * predicted time (0: unknown). The engine's work ends the silence. */
uint64_t exchange_token_wait_ms(double ttft_s);
/* Returns true if the engine worked lately: a slow answer is no failure then. */
bool exchange_replica_moves(const struct exchange *x);
/* Returns true if another replica may be asked after a long wait for the first token. The present
 * replica shows no sign of work, but may have queued the prompt. Once per request. */
bool exchange_may_leave_silent(const struct exchange *x);

/* --- host.c ---------------------------------------------------------------------------------- */

/* Notes the client's Host, for replicas that should see it. */
void exchange_host_note(struct exchange *x, struct slice host);
/* Sets the Host in the head, before it is sent to the chosen replica. ERR_NOMEM. */
MUST_USE int exchange_host_name(struct exchange *x);
/* Returns the target of a replica's redirect to itself, without the host, so that clients stay
 * here. Empty: unchanged. */
struct slice exchange_host_location(const struct exchange *x, const struct http_head *head);

/* --- choose.c -------------------------------------------------------------------------------- */

/* Returns the model as the client named it. */
static inline struct slice exchange_named(const struct node_request *request)
{
    return request->alias.len > 0 ? request->alias : request->model;
}
/* Returns the stored response that the request reads or continues: only its maker has it. Empty:
 * none. */
struct slice exchange_stored_response(const struct exchange *x);
/* Returns true if the request can be sent again after a rejection with that status. */
bool exchange_reject_again(const struct exchange *x, unsigned status);
/* Returns true if only this replica can answer, as the router knows. */
bool exchange_only_there(const struct exchange *x);
/* Asks for an untried replica: x->plan is the answer. ERR_*: none is possible; 0: booked, queued,
 * or to be refused. */
MUST_USE int exchange_choose_once(struct exchange *x);
/* Excludes the present replica after that outcome, with all ranks of its process. If only the rank
 * stalled, the other ranks stay. */
void exchange_exclude(struct exchange *x, enum node_outcome outcome);
void exchange_exclude_other_engines(struct exchange *x);
/* Asks replicas for their model lists, once per request; `over` is called when the lists have come,
 * or at the timeout. Returns false if no replica can be asked, or all were just asked. */
bool exchange_look(struct exchange *x, void (*over)(struct deadline *d));
/* Returns the chance of a longer context elsewhere, after a replica refused the request as too
 * long. IF_ANEW: the lists must be read again first. */
enum node_longer exchange_longer(const struct exchange *x, const struct node_request *request);
/* Answers after the last failed attempt. An engine's last error decides. Without any, the status is
 * 504 after a timeout, 503 if the replica was not reached, or 502, with the text (NULL: the number
 * of attempts). */
void exchange_no_answer(struct exchange *x, const char *text);
/* Answers without a replica: `err` of the choice, and the attempts so far. */
void exchange_no_replica(struct exchange *x, int err);

/* --- owner.c --------------------------------------------------------------------------------- */

/* Refuses a stored response of another key. A key for certain models also needs a known owner.
 * Returns true if answered. */
bool exchange_owner_refuse(struct exchange *x, struct slice id, struct slice param);
/* Does the same for the stored response in the body. */
bool exchange_owner_refuse_body(struct exchange *x);
/* Notes the replica and the owner of a response, after the answer has shown the id. */
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
/* Answers 429: the key has used its limit, by x->plan. */
void exchange_key_limited(struct exchange *x);
/* Checks a complete body. Returns true if the key forbids the request, which was answered. */
bool exchange_key_refuse_body(struct exchange *x);
/* Returns the key for engines, in place of the client's; empty: none. Valid for the call. */
struct slice exchange_key_of_engines(const struct proxy *p);

/* --- engine_fields.c ------------------------------------------------------------------------- */

/* Refuse a head, or the received part of a body, with a field forbidden to clients (engine-fields).
 * Return true if answered. */
bool exchange_engine_fields_refuse_head(struct exchange *x, const struct http_head *head);
bool exchange_engine_fields_refuse_body(struct exchange *x);

/* --- trace.c --------------------------------------------------------------------------------- */

/* Begins a trace after the head, which may be recorded. */
void exchange_trace_begin(struct exchange *x, const struct http_head *head);
/* Writes the traceparent for engines as a line of their head, valid for the call; 0: the client's
 * own passes. */
size_t exchange_trace_line(struct exchange *x, struct http_forward_request *how,
                           struct http_line *line);
/* These functions do nothing unless the request is recorded. A replica was chosen. */
void exchange_trace_chosen(const struct exchange *x);
/* The request is queued. */
void exchange_trace_queued(const struct exchange *x);
/* The head is about to be sent. */
void exchange_trace_sent(const struct exchange *x);
/* The booking is released. */
void exchange_trace_attempt_ended(const struct exchange *x, enum node_outcome outcome);
/* The request ends: `reason` is empty if neither refused nor cut. */
void exchange_trace_end(struct exchange *x, const char *how, const char *reason, bool failed);

/* --- ask.c ----------------------------------------------------------------------------------- */

/* Prepares the question for the owner of the stored response. ERR_NOMEM, ERR_LIMIT. */
MUST_USE int exchange_ask(struct exchange *x);

/* --- attempt.c ------------------------------------------------------------------------------- */

/* Commits the answer: bytes of it are about to go to the client. There are no retries any more, so
 * sent bytes need not be kept. */
void exchange_answering(struct exchange *x);
/* Returns the reason for a retry. A refusal during a drain does not count against the budget, but
 * only while another replica is well. If all drain, each request would try each replica. */
enum verdict_reason exchange_retry_reason(struct exchange *x, enum verdict_reason why);
/* Returns true if the request may be sent again: bytes sent so far, retries-max, the budget. */
bool exchange_may_retry(struct exchange *x, enum verdict_reason why);
/* Does the same after a rejection, uncounted: half of the budget stays for failing replicas. Unless
 * x->free_retry, another replica must be well; with `likely`, a back-off is allowed. */
bool exchange_may_try(struct exchange *x, bool likely);
/* Refuses a suspect, after suspect_refused(). */
void exchange_refuse_suspect(struct exchange *x);
/* Releases the booking and asks for another replica; the present attempt continues until
 * exchange_begin_anew(). ERR_* of exchange_choose(). */
MUST_USE int exchange_rebook(struct exchange *x, enum node_outcome outcome);
/* Does the same, but the same replica may be chosen again. */
MUST_USE int exchange_choose_again(struct exchange *x, enum node_outcome outcome);
/* Begins the attempt planned by exchange_rebook(), or the wait for a replica. The received part of
 * an answer and its connection are dropped. */
void exchange_begin_anew(struct exchange *x, enum verdict_reason why);
/* Does both. ERR_* of exchange_rebook(). */
MUST_USE int exchange_move(struct exchange *x, enum node_outcome outcome, enum verdict_reason why);
/* Repeats the attempt on a fresh connection. ERR_* of upstream_start(). */
MUST_USE int exchange_same_again(struct exchange *x);
/* Books another replica for a request of which nothing was sent: there was no room for the
 * connection (node/proxy/engine/shortage.h), or the replica no longer fits. The request is sent, or
 * waits. */
void exchange_place_anew(struct exchange *x);
/* Sends the request itself after the search for a stored response. */
void exchange_asked(struct exchange *x);
/* Returns true if an error of upstream_start() is the router's own: a limit, or memory. */
bool exchange_is_ours(int err);

/* Asks all replicas for their lists, then chooses again. A replica denied the model, and no other
 * is known to serve it. Returns false if none can be asked, or they were asked before. */
bool exchange_look_after(struct exchange *x);

/* --- reject.c -------------------------------------------------------------------------------- */

/* Returns true if an answer of that status may be tried elsewhere, so the body is worth waiting
 * for. */
bool exchange_reject_waits(const struct exchange *x, unsigned status);
/* Judges a complete answer of 4xx, or the error of an event (`said`; else NULL: the held answer).
 * Returns true if kept and tried elsewhere, or if the client has an answer, from this or an earlier
 * replica. False: forwarded unchanged. */
bool exchange_rejected(struct exchange *x, unsigned status, const struct node_engine_error *said);
/* Judges an ambiguous 404 of a replica that has not listed its models: another engine may be there,
 * or none. If no other replica can be asked, the belief in this one's model ends. All lists are
 * read first if useful. Returns true if another answer replaces this one. False: forwarded
 * unchanged. */
bool exchange_doubted(struct exchange *x);
/* Judges a request longer than the replica's context, without a longer context in any list. The
 * lists may be old, so they are read again, and a replica with a longer context is tried. Returns
 * true if another answer replaces this one. False: forwarded unchanged. */
bool exchange_too_long(struct exchange *x, const struct node_engine_error *said);
/* The engine reports an unknown model. */
void exchange_note_denied(struct exchange *x, struct slice model);
/* A good answer has begun. */
void exchange_accepted(struct exchange *x);

/* --- failure.c ------------------------------------------------------------------------------- */

/* A replica answered the question for the stored response. */
void exchange_answered(struct exchange *x, unsigned status);
/* Returns true if another replica may serve a request after a 400: the context may be too short, or
 * an adapter of SGLang may be missing. */
bool exchange_may_fit_elsewhere(const struct exchange *x);
/* Returns true if the verdict on such a status requires the body. */
bool exchange_body_decides(const struct exchange *x, unsigned status);
/* Judges an answer's status. Returns true if the answer is dropped, because another replica is
 * asked now, or the client has another answer. */
bool exchange_judge_status(struct exchange *x, unsigned status);
/* Judges an answer by the verdict `j`; `status` is the status meant (0: aborted). Returns false if
 * the answer goes to the client; x->now.outcome is the meaning for the replica. */
bool exchange_judge_answer(struct exchange *x, const struct verdict_judgement *j, unsigned status);

/* --- ask_usage.c ------------------------------------------------------------------------------ */

/* Returns the place for a new first member in the body: after the opening brace, in the first
 * segment. 0: none. */
size_t exchange_behind_brace(const struct body *body);
/* Returns the engines that take no rank from this request: bits 1 << enum node_engine. */
unsigned exchange_unpinned(const struct exchange *x);
/* Writes the chosen rank into the request, before an attempt is sent. */
void exchange_pin(struct exchange *x);
/* Adds the router's own questions to a complete request. */
void exchange_questions_ask(struct exchange *x);
/* Turns the question for usage on or off for the chosen replica, before an attempt is sent. */
void exchange_usage_aim(struct exchange *x);
/* Prepares the removal of usage after the answer's head. */
void exchange_usage_begin(struct exchange *x, const struct http_head *head);

/* --- alias.c ---------------------------------------------------------------------------------- */

/* Resolves an alias in a complete request with an allowed model: the body and the prompt name a
 * real model from now on. Returns false without memory, and the request was answered. */
bool exchange_alias_apply(struct exchange *x);
/* Chooses as exchange_choose_once(). For an alias, the next model follows if no replica of the
 * previous one is possible. */
MUST_USE int exchange_choose(struct exchange *x);

/* --- aliased.c -------------------------------------------------------------------------------- */

/* Returns the model in the body; empty: none was read. */
struct slice exchange_body_model(const struct exchange *x);
/* Counts the target of a request for an alias, at the end. */
void exchange_alias_count(struct exchange *x);

/* --- ask_ids.c -------------------------------------------------------------------------------- */

extern const struct slice exchange_ids_question;
/* Returns true if the engine may be asked for a complete request's prompt tokens, and these are
 * useful. */
bool exchange_ids_wanted(struct exchange *x);
/* Do the same as for usage. */
void exchange_ids_aim(struct exchange *x);
void exchange_ids_begin(struct exchange *x, const struct http_head *head);
/* Reports the answer's prompt tokens, before the booking is released. */
void exchange_ids_told(const struct exchange *x);
/* Drop the state of the answer, or of the exchange. */
void exchange_ids_forget(struct exchange *x);
void exchange_ids_free(struct exchange *x);

/* --- decode.c -------------------------------------------------------------------------------- */

/* Begins to decode a body, by the head. Returns false for an unknown coding or without memory, and
 * the request was answered. */
bool exchange_decode_begin(struct exchange *x, const struct http_head *head);
/* Decodes the next piece from the front of `bytes` to the end of the body; `added` is the output
 * there. Returns false if the body was refused. Call until both are empty. */
bool exchange_decode(struct exchange *x, struct slice *bytes, struct slice *added);
/* Ends the decoding. Returns false if the body was incomplete, and refused. */
bool exchange_decode_end(struct exchange *x);
/* Begins to decode an answer with a Content-Encoding, if possible (x->now.unpack); the answer gets
 * longer. After ERR_NOMEM the caller drops the answer. */
MUST_USE int exchange_unpack_begin(struct exchange *x, const struct http_head *head);
/* Decodes the next piece from the front of `bytes`; `out`: the output, valid until the next call.
 * ERR_NOMEM, or as http_decoder_next(). */
MUST_USE int exchange_unpack(struct exchange *x, struct slice *bytes, struct slice *out);
/* Ends the exchange: no memory to decode the answer. */
void exchange_unpack_refuse(struct exchange *x);

/* --- hold.c ---------------------------------------------------------------------------------- */

/* Chooses the part of the answer to hold, by the head. */
void exchange_hold_begin(struct exchange *x, const struct http_head *head);
/* Holds the gathered bytes. Returns false if they must go out now. */
bool exchange_hold_waits(struct exchange *x);
/* Gathers the held bytes before the new ones; borrowed until exchange_hold_drop(). */
void exchange_hold_pass(struct exchange *x);
/* Gives the client a sign of life without excluding another attempt. Returns false if the API has
 * none. */
bool exchange_hold_sign(struct exchange *x);
/* Returns true if enough of an error is held for a judgement. */
bool exchange_hold_is_long(const struct exchange *x);
/* Judges a complete answer, or the beginning of a long one. Returns true if another answer replaces
 * this one. */
bool exchange_hold_judge(struct exchange *x);
/* Does the same for an error before any token, or for the abort of a held answer. */
bool exchange_hold_judge_event(struct exchange *x);

#endif
