/* Takes the usage out of a stream again, where the router asked for it and the client did not.
 *
 *     http_usage_cut_init(&cut);
 *     for each piece of the stream, in any splits:
 *         while (http_usage_cut_next(&cut, &piece, &out))
 *             `out` goes on to the client
 *     http_usage_cut_rest(&cut)              what is left at the end
 *
 * With stream_options.include_usage engines send one more event before [DONE], whose `choices` are
 * empty and whose `usage` is an object (OpenAI's chat and completions; vLLM 0.32, SGLang 0.5). That
 * event is left out. An engine that sends usage beside content sends it to everybody (vLLM's
 * --enable-force-include-usage): then all passes.
 *
 * Asked for usage, vLLM writes `system_fingerprint` into that event; not asked, into the event that
 * has the `finish_reason`. So the fingerprint is moved back: an event that ends a choice waits for
 * the event behind it, and goes on with the fingerprint if that one is of usage, as it is if not.
 * The engine sends both at once. Nothing else is changed. Of several choices only the one whose
 * end stands right before the usage gets the fingerprint: the others' ends would have to wait for
 * the last choice.
 *
 * Only whole events go on, so the end of a piece may wait for the next one. An event of more than
 * HTTP_USAGE_CUT_MAX (a tool call that was held back until it was whole) is not that of usage: it
 * passes as it comes, and without a fingerprint.
 */
#ifndef HTTP_USAGE_CUT_H
#define HTTP_USAGE_CUT_H

#include "base/buf.h"
#include "base/slice.h"

enum { HTTP_USAGE_CUT_MAX = 64 * 1024 };

struct http_usage_cut {
    struct buf part;      /* an event that began in an earlier piece, */
    size_t out;           /* behind so many bytes that went on, or were left out */
    struct buf finish;    /* the event that ended a choice, which waits for the next one, */
    size_t finish_out;    /* behind so many bytes that went on */
    unsigned char place;  /* in the event of `part`, at the end of what came (usage_cut.c) */
    unsigned char handed; /* which memory was handed out: see http_usage_cut_settled() */
    bool whole;           /* the event of `part` is */
    bool is_long;         /* the rest of the present event passes */
    bool passes;          /* all that comes */
};

/* Owns memory from the first event that comes in parts on; free it by _free(). */
void http_usage_cut_init(struct http_usage_cut *c);
void http_usage_cut_free(struct http_usage_cut *c);

/* Takes bytes off the front of `in`. False: it is used up. `out` is good until `in` goes or, if
 * `handed` is set, until the caller says that it needs it no more (_settled), which it does before
 * the next piece. Without memory an event that came in parts passes, and no fingerprint moves. */
bool http_usage_cut_next(struct http_usage_cut *c, struct slice *in, struct slice *out);
static inline void http_usage_cut_settled(struct http_usage_cut *c)
{
    c->handed = 0;
}

/* What waits for the rest of its event: half of one. */
struct slice http_usage_cut_rest(const struct http_usage_cut *c);

/* The whole event before that, which waits for the next one. */
struct slice http_usage_cut_finish(const struct http_usage_cut *c);

#endif
