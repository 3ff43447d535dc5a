/* What the files of an exchange share among themselves, and nobody else uses; what others do with
 * one stands in drive.h. README.md says in which order the files call each other. */
#ifndef NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H
#define NODE_PROXY_EXCHANGE_EXCHANGE_INTERNAL_H

#include "base/err.h"
#include "http/error.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/limit/verdict.h"

/* --- kind.c ---------------------------------------------------------------------------------- */

/* Whether the body of such a path carries a prompt. */
bool exchange_carries_prompt(enum http_path_kind kind);
/* By the Content-Type of a head. */
bool exchange_is_form(const struct http_head *head);
bool exchange_is_multipart(const struct http_head *head);
bool exchange_is_json(const struct http_head *head);
/* Whether the body of such a path may name a model, as JSON or as a form. */
bool exchange_names_model(enum http_path_kind kind);
/* Whether such a request makes an engine compute and changes nothing: it may be done twice. */
bool exchange_computes(enum http_path_kind kind);
/* Whether its rejections say something of a replica: nothing that only one of them has. */
bool exchange_weighs_rejections(enum http_path_kind kind);
/* Doing it twice is as good as doing it once (RFC 9110, section 9.2.2). */
bool exchange_is_idempotent(enum http_method method);
/* Whether a request that is rejected with that status has begun nothing, whatever it asks for: it
 * may be sent again. */
bool exchange_begins_nothing(enum http_method method, unsigned status);
/* The kind of request by which replicas differ in what they accept (node/replica/reject.h). */
uint8_t exchange_reject_kind(const struct exchange *x);

/* --- kept.c ---------------------------------------------------------------------------------- */

struct node_engine_error;

/* What is held of the answer, which is a rejection, is kept; with `said` that error instead, which
 * came as an event. `says_why`: that it depends on the replica: no evidence against that one, which
 * is in no doubt. ERR_NOMEM: all is as it was. */
MUST_USE int exchange_kept_keep(struct exchange *x, const struct node_rejection *what,
                                const struct node_engine_error *said, bool says_why);
/* It is held again: nobody else was asked. */
void exchange_kept_unkeep(struct exchange *x);
void exchange_kept_drop(struct exchange *x);
/* Whether the client gets it where no better answer comes. */
bool exchange_kept_stands(const struct exchange *x);

/* --- exchange.c ------------------------------------------------------------------------------ */

/* The terminal event of its API is there: only the end of the framing is missing. */
bool exchange_is_whole(const struct exchange *x);
/* Bytes of the answer went out, or may have: is that event with the client? */
void exchange_note_told(struct exchange *x);
/* The attempt's next phase, which has to be one that may follow. */
void exchange_goes(struct exchange *x, enum attempt_phase to);
/* NULL without memory. */
struct exchange *exchange_new(struct client *c);
/* The end of an exchange whose answer the client has, or has queued. */
void exchange_finish(struct exchange *x);
/* The same for an answer that the replica broke off: what came goes out, without a proper end. */
void exchange_finish_cut(struct exchange *x);
/* Exactly one of these follows each booking; does nothing without one. */
void exchange_release_booking(struct exchange *x, enum node_outcome outcome);
/* The replica in doubt, if there is one, is to blame. */
void exchange_blame(struct exchange *x);
/* It is on no connection any more. Returns the one that it was on; NULL: none. */
struct upstream *exchange_disconnected(struct exchange *x);
/* The same, and that connection is let go. */
void exchange_hang_up(struct exchange *x);
/* Lets go of what is held (hold.c). */
void exchange_hold_drop(struct exchange *x);
/* Lets go of the decoder of its body (decode.c), if there is one. */
void exchange_decode_drop(struct exchange *x);
/* Nothing of an answer is with the client, and what came is let go. */
void exchange_forget_answer(struct exchange *x);

/* --- spent.c ---------------------------------------------------------------------------------- */

/* The end: what it used is counted for its key. */
void exchange_spent(struct exchange *x);

/* --- cors.c ----------------------------------------------------------------------------------- */

enum { EXCHANGE_CORS_LINES = 3 };
/* By the setting, and the origin that asks: nothing is said; all may; this one may; it may not. */
enum exchange_cors {
    EXCHANGE_CORS_OFF,
    EXCHANGE_CORS_ANY,
    EXCHANGE_CORS_LISTED,
    EXCHANGE_CORS_OTHER,
};
enum exchange_cors exchange_cors_of(const struct exchange *x);

/* By its head: whether the page that asks may know the answer. */
void exchange_cors_note(struct exchange *x, const struct http_head *head);
/* What an answer of the router's own says of that. Returns how many lines. */
size_t exchange_cors_lines(const struct exchange *x, struct http_line *lines);
/* --- answer.c -------------------------------------------------------------------------------- */

/* An error that the replica said in place of its answer. Ends the exchange. */
void exchange_answer_engine_error(struct exchange *x, unsigned replica, unsigned status,
                                  const char *type, const char *text);
/* 426, to a request to go on with WebSocket. Ends the exchange. */
void exchange_answer_upgrade(struct exchange *x);
/* How clients of its path read errors. */
enum http_error_form exchange_error_form(const struct exchange *x);
/* Bytes: the longest message, of 512, with what is added. */
enum { EXCHANGE_WORDS = 640, EXCHANGE_WORDS_ADDED = 100 };
/* Adds to an event what programs decide by, where the same request may be answered if it is sent
 * again: a type, and words behind the message, in `out`. */
void exchange_event_say(const struct exchange *x, struct http_error *error,
                        char out[EXCHANGE_WORDS]);
/* Whether the error of an engine goes to the client because the budget for retries is empty. */
bool exchange_passes_for_lack(const struct exchange *x);

/* The rejection that is kept goes to the client, and ends the exchange: true. Errors of the
 * router's own do the same while it stands. */
bool exchange_answer_kept(struct exchange *x);

/* --- preflight.c ----------------------------------------------------------------------------- */

/* A browser asks whether a page may send a request. True: answered. */
bool exchange_preflight(struct exchange *x, const struct http_head *head);

/* --- ending.c -------------------------------------------------------------------------------- */

/* What a failed attempt is called and counted as. */
struct exchange_failure {
    const char *what;  /* in the log */
    const char *cause; /* of an answer that is cut: in the words of the metrics */
    enum node_error error;
    enum verdict_reason why; /* it is sent again */
};
extern const struct exchange_failure exchange_failures[UPSTREAM_NO_PLACE]; /* by upstream_failure */

enum { EXCHANGE_LATE_TEXT = 128 };
/* The error of a limit of time that has passed: it names the setting (`limit`), where one is the
 * cause. For an error in place of an answer, and for an answer that is cut. */
void exchange_late_text(const struct exchange *x, char out[EXCHANGE_LATE_TEXT]);

/* What went wrong at the replica, for metrics. */
void exchange_count_failure(const struct exchange *x, enum upstream_failure failure);
void exchange_count_status(const struct exchange *x, unsigned status);
/* Its framing came to an end, but the answer did not (http_usage_unfinished). */
bool exchange_unfinished(const struct exchange *x);
/* The engine ended it with "abort", which nobody asked it for, and says no more of why. */
bool exchange_was_aborted(const struct exchange *x);
/* Counts the error that the engine says in it, once. */
void exchange_count_event(struct exchange *x);
/* The answer is whole: if the engine says an error in it, that is its outcome. */
void exchange_judge_error(struct exchange *x);
/* What the client gets if the answer fails now, in a word: "error", "error_event", "cut", "whole"
 * (it has all but the end of the framing). */
const char *exchange_error_word(const struct exchange *x);
/* Ends an answer that is on its way to the client and goes no further: with that event, and cut. */
void exchange_end_cut(struct exchange *x, enum upstream_failure failure);

/* --- overload.c ------------------------------------------------------------------------------ */

/* It waits in the queue, as x->plan says. When its time there is up it is answered 504; `over` is
 * called instead if it waits for other company than there is. */
void exchange_queue(struct exchange *x, void (*over)(struct deadline *d));
/* The queue is full: 429. */
void exchange_queue_full(struct exchange *x);

/* --- patience.c ------------------------------------------------------------------------------ */

/* How long silence may be before the first token, where the setting is "auto"; `ttft_s` is the
 * predicted time (0: nobody knows). While the engine shows work there is none. */
uint64_t exchange_token_wait_ms(double ttft_s);
/* Whether the engine was seen to work lately: then being slow is no failure of it. */
bool exchange_replica_moves(const struct exchange *x);
/* Whether the first token was waited for so long at a replica that shows no sign of work that
 * another one may be asked, though this one may have queued the prompt: once. */
bool exchange_may_leave_silent(const struct exchange *x);

/* --- host.c ---------------------------------------------------------------------------------- */

/* The client's Host, for replicas that are to see it. */
void exchange_host_note(struct exchange *x, struct slice host);
/* Names the host in the head that is about to be sent to the replica of the present decision.
 * ERR_NOMEM. */
MUST_USE int exchange_host_name(struct exchange *x);
/* A redirect of that replica to the name that it was asked under, without that: it leads clients
 * here. Empty: it is to stay as it is. */
struct slice exchange_host_location(const struct exchange *x, const struct http_head *head);

/* --- choose.c -------------------------------------------------------------------------------- */

/* The stored response that the request asks for or continues: only its maker has it. Empty: none.
 */
/* The model as its client named it. */
static inline struct slice exchange_named(const struct node_request *request)
{
    return request->alias.len > 0 ? request->alias : request->model;
}
struct slice exchange_stored_response(const struct exchange *x);
/* Whether it can be sent again if it is rejected with that status. */
bool exchange_reject_again(const struct exchange *x, unsigned status);
/* Whether the router knows that only this replica can answer. */
bool exchange_only_there(const struct exchange *x);
/* Asks for a replica that was not tried yet: x->plan is the answer. ERR_*: none will do; 0: it is
 * booked there, or waits, or is to be refused. */
MUST_USE int exchange_choose_once(struct exchange *x);
/* The replica of the present decision, which ended so, is not chosen again: nor are other ranks of
 * its process, unless it was a rank that stands still. */
void exchange_exclude(struct exchange *x, enum node_outcome outcome);
void exchange_exclude_other_engines(struct exchange *x);
/* Replicas are asked for their lists of models; `over` is called when they have come, or time is
 * up. Once a request. False: there is nobody to ask, or they have just been asked. */
bool exchange_look(struct exchange *x, void (*over)(struct deadline *d));
/* Whether another replica may have a longer context than the one that refused the request as longer
 * than its own, and is still to be asked; IF_ANEW: the lists are still to be read anew. */
enum node_longer exchange_longer(const struct exchange *x, const struct node_request *request);
/* No replica gave an answer, and none is asked any more. What an engine said last is the truth of
 * it; else 504 if the last one's time was up, 503 if it was not reached, or 502, with the text
 * (NULL: how many were tried). */
void exchange_no_answer(struct exchange *x, const char *text);
/* Answers why there is no replica: `err` of the choice, and what was tried. */
void exchange_no_replica(struct exchange *x, int err);

/* --- owner.c --------------------------------------------------------------------------------- */

/* Of a request with a key: the stored response of this id is not its own, or nobody can tell.
 * True: answered so. */
bool exchange_owner_refuse(struct exchange *x, struct slice id, struct slice param);
/* The same of the stored response that its body names. */
bool exchange_owner_refuse_body(struct exchange *x);
/* The answer has told the id of the response that it is: where it is, and whose, is known now. */
void exchange_owner_put(struct exchange *x);

/* --- key.c ----------------------------------------------------------------------------------- */

/* By its head: a hash of the key that it shows, or of its address. Never 0. */
uint64_t exchange_key_client(const struct exchange *x, const struct http_head *head);
/* By its head: whose it is. True: nobody's, which was answered. */
bool exchange_key_refuse(struct exchange *x, const struct http_head *head);
/* By its path: whether the key may have it sent to a replica. True: no, which was answered. */
bool exchange_key_refuse_path(struct exchange *x, const struct http_head *head);
/* It goes to all replicas, which not every key may ask for. True: it was answered so. */
bool exchange_key_refuse_control(struct exchange *x);
/* Its key has used enough, as x->plan says: 429. */
void exchange_key_limited(struct exchange *x);
/* Its body is whole. True: it asks for what the key may not, which was answered. */
bool exchange_key_refuse_body(struct exchange *x);
/* The key that goes to engines in place of the client's; empty: none. Good for the call. */
struct slice exchange_key_of_engines(const struct proxy *p);

/* --- engine_fields.c ------------------------------------------------------------------------- */

/* Its head, or its body as far as it is read, has a field that no client may use (engine-fields).
 * True: answered so. */
bool exchange_engine_fields_refuse_head(struct exchange *x, const struct http_head *head);
bool exchange_engine_fields_refuse_body(struct exchange *x);

/* --- trace.c --------------------------------------------------------------------------------- */

/* Traces are on, and its head came: it may be recorded. */
void exchange_trace_begin(struct exchange *x, const struct http_head *head);
/* The traceparent for engines, as one line of their head, good for the call; 0: the client's own
 * passes. */
size_t exchange_trace_line(struct exchange *x, struct http_forward_request *how,
                           struct http_line *line);
/* The rest does nothing unless it is recorded. A replica was chosen. */
void exchange_trace_chosen(const struct exchange *x);
/* It waits for one. */
void exchange_trace_queued(const struct exchange *x);
/* Its head is about to be sent. */
void exchange_trace_sent(const struct exchange *x);
/* The booking is released. */
void exchange_trace_attempt_ended(const struct exchange *x, enum node_outcome outcome);
/* It ends: `reason` is empty where it was neither refused nor cut. */
void exchange_trace_end(struct exchange *x, const char *how, const char *reason, bool failed);

/* --- ask.c ----------------------------------------------------------------------------------- */

/* The next to be sent is the question who has the stored response. ERR_NOMEM, ERR_LIMIT. */
MUST_USE int exchange_ask(struct exchange *x);

/* --- attempt.c ------------------------------------------------------------------------------- */

/* The answer is committed: bytes of it are about to go to the client, so there is no retry any more
 * and no need to keep what is sent. */
void exchange_answering(struct exchange *x);
/* Why it would be sent again. Who refuses because it drains is no charge to the budget, but only
 * while another replica is well: where all drain each would be asked for each request. */
enum verdict_reason exchange_retry_reason(struct exchange *x, enum verdict_reason why);
/* Whether the request may be sent again: what was sent so far, retries-max, the budget. */
bool exchange_may_retry(struct exchange *x, enum verdict_reason why);
/* The same after a rejection, quietly: half of the budget stays for replicas that fail, and unless
 * x->free_retry another one is to be well; with `likely` it may be in a back-off. */
bool exchange_may_try(struct exchange *x, bool likely);
/* It may be poison and is not sent (again), as suspect_refused() said: answers so. */
void exchange_refuse_suspect(struct exchange *x);
/* Releases the booking and asks for another replica; the present attempt goes on until
 * exchange_begin_anew(). ERR_* of exchange_choose(). */
MUST_USE int exchange_rebook(struct exchange *x, enum node_outcome outcome);
/* The same, but that replica may be chosen again. */
MUST_USE int exchange_choose_again(struct exchange *x, enum node_outcome outcome);
/* The next attempt, as exchange_rebook() planned it, or the wait for one: what came of an answer is
 * forgotten and its connection let go. */
void exchange_begin_anew(struct exchange *x, enum verdict_reason why);
/* Both. ERR_* of exchange_rebook(). */
MUST_USE int exchange_move(struct exchange *x, enum node_outcome outcome, enum verdict_reason why);
/* The same attempt on a fresh connection. ERR_* of upstream_start(). */
MUST_USE int exchange_same_again(struct exchange *x);
/* Nothing of it was sent, for want of a place for the connection (node/proxy/engine/shortage.h), or
 * because the replica is not fit any more: another one is booked and it is sent there, or it waits.
 */
void exchange_place_anew(struct exchange *x);
/* The replicas were asked for a stored response: now the request itself is sent. */
void exchange_asked(struct exchange *x);
/* Whether an error of upstream_start() is our own: a limit, or memory. */
bool exchange_is_ours(int err);

/* A replica said that it does not serve the model, and no other is known to: all are asked for
 * their lists, and then one is chosen again. False: there is nobody to ask, or they were asked
 * before. */
bool exchange_look_after(struct exchange *x);

/* --- reject.c -------------------------------------------------------------------------------- */

/* Whether an answer of that status may be tried elsewhere, so that its body is waited for. */
bool exchange_reject_waits(const struct exchange *x, unsigned status);
/* An answer of 4xx is whole, or said in an event (`said`; else NULL: what is held is the answer).
 * Kept, and tried elsewhere where that is worth it: true. Also true: the client has its answer, of
 * this replica or of the one before. False: it goes to the client as it is. */
bool exchange_rejected(struct exchange *x, unsigned status, const struct node_engine_error *said);
/* The replica has not listed its models, and answers 404 in words that may mean anything: it may be
 * another engine than before, or none. Where no other replica can be asked, that it serves the
 * model no longer counts, and the lists of all are read first if that may help. True: another
 * answer comes in place of this one, or has. False: it goes to the client as it is. */
bool exchange_doubted(struct exchange *x);
/* The request is longer than the replica's context, and no other listed a longer one. Those lists
 * may be old: they are read anew, and it is tried at one that has a longer context by then. True:
 * another answer comes in place of this one, or has. False: it goes to the client as it is. */
bool exchange_too_long(struct exchange *x, const struct node_engine_error *said);
/* Its engine says that the model is unknown. */
void exchange_note_denied(struct exchange *x, struct slice model);
/* A good answer has begun. */
void exchange_accepted(struct exchange *x);

/* --- failure.c ------------------------------------------------------------------------------- */

/* The replica said whether it has the stored response. */
void exchange_answered(struct exchange *x, unsigned status);
/* Whether a 400 may say that its context is too short, or of SGLang that an adapter is not there,
 * and another replica may serve the request. */
bool exchange_may_fit_elsewhere(const struct exchange *x);
/* Whether only the body of an answer of that status says whose failure it is. */
bool exchange_body_decides(const struct exchange *x, unsigned status);
/* An answer of that status came. True: it is let go, because another replica is asked now, or the
 * client has another answer. */
bool exchange_judge_status(struct exchange *x, unsigned status);
/* The same for an answer that the verdict `j` is on; `status` is the one that it stands for (0: it
 * was aborted). False: it goes to the client, and x->now.outcome is what it says of the replica. */
bool exchange_judge_answer(struct exchange *x, const struct verdict_judgement *j, unsigned status);

/* --- ask_usage.c ------------------------------------------------------------------------------ */

/* Where something can be put in front of the body's first member: behind the brace that opens it,
 * in its first segment. 0: it is not where it should be. */
size_t exchange_behind_brace(const struct body *body);
/* Engines that cannot be told a rank for this request: bits 1 << enum node_engine. */
unsigned exchange_unpinned(const struct exchange *x);
/* Names the rank that was chosen, before an attempt is sent. */
void exchange_pin(struct exchange *x);
/* The request is whole: what the engine is to tell beyond what its client asks for. */
void exchange_questions_ask(struct exchange *x);
/* Asks the replica of the present decision, or does not, before an attempt is sent. */
void exchange_usage_aim(struct exchange *x);
/* The head of its answer came: whether usage is to be cut out of that, which is longer then. */
void exchange_usage_begin(struct exchange *x, const struct http_head *head);

/* --- alias.c ---------------------------------------------------------------------------------- */

/* The request is whole, and its client may use the model that it names. If that is an alias, its
 * body and its prompt name a real model from now on. False: there is no memory, which was answered.
 */
bool exchange_alias_apply(struct exchange *x);
/* As exchange_choose_once(); of an alias its next model is asked for where no replica of the one
 * before will do. */
MUST_USE int exchange_choose(struct exchange *x);

/* --- aliased.c -------------------------------------------------------------------------------- */

/* The model that its body names; empty: none is read. */
struct slice exchange_body_model(const struct exchange *x);
/* The end: where a request for an alias went is counted. */
void exchange_alias_count(struct exchange *x);

/* --- ask_ids.c -------------------------------------------------------------------------------- */

extern const struct slice exchange_ids_question;
/* The request is whole: whether the engine may be asked for its prompt's tokens, and they are in
 * demand. */
bool exchange_ids_wanted(struct exchange *x);
/* As those of usage. */
void exchange_ids_aim(struct exchange *x);
void exchange_ids_begin(struct exchange *x, const struct http_head *head);
/* The attempt ends, and is booked still: what its answer said of the prompt's tokens. */
void exchange_ids_told(const struct exchange *x);
/* Its answer is not looked at again; or the exchange ends. */
void exchange_ids_forget(struct exchange *x);
void exchange_ids_free(struct exchange *x);

/* --- decode.c -------------------------------------------------------------------------------- */

/* By its head. False: it is in a coding that is not decoded here, or there is no memory, which was
 * answered. */
bool exchange_decode_begin(struct exchange *x, const struct http_head *head);
/* Decodes the next piece off the front of `bytes` behind its body; `added` is what came out, in
 * that. False: it was refused. Call it until both are used up and empty. */
bool exchange_decode(struct exchange *x, struct slice *bytes, struct slice *added);
/* The body is whole. False: it was refused, being none. */
bool exchange_decode_end(struct exchange *x);
/* The head of an answer with a Content-Encoding came: whether it is decoded (x->now.unpack), which
 * makes it longer. ERR_NOMEM: there is no memory for that, and the answer is to be let go. */
MUST_USE int exchange_unpack_begin(struct exchange *x, const struct http_head *head);
/* Decodes the next piece off the front of `bytes`: `out` is what came out, good until the next
 * call. ERR_NOMEM, or as http_decoder_next(). */
MUST_USE int exchange_unpack(struct exchange *x, struct slice *bytes, struct slice *out);
/* There is no memory for decoding its answer. Ends the exchange. */
void exchange_unpack_refuse(struct exchange *x);

/* --- hold.c ---------------------------------------------------------------------------------- */

/* What of this answer waits, by its head. */
void exchange_hold_begin(struct exchange *x, const struct http_head *head);
/* What is gathered waits; false: it must go out now. */
bool exchange_hold_waits(struct exchange *x);
/* What waits is gathered before what came now; borrowed until exchange_hold_drop(). */
void exchange_hold_pass(struct exchange *x);
/* The client gets a sign of life, and another attempt stays possible. False: this API has none. */
bool exchange_hold_sign(struct exchange *x);
/* What waits of an error is as much of it as is ever looked at. */
bool exchange_hold_is_long(const struct exchange *x);
/* The answer is whole, or too long to wait for more. True: another one comes in its place, or has.
 */
bool exchange_hold_judge(struct exchange *x);
/* The same for an error that came before any token, or that says that a held answer was aborted. */
bool exchange_hold_judge_event(struct exchange *x);

#endif
