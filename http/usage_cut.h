/* Removes the usage from a stream if the router asked for it and the client did not.
 *
 *     http_usage_cut_init(&cut);
 *     for each piece of the stream, in any splits:
 *         while (http_usage_cut_next(&cut, &piece, &out))
 *             `out` goes on to the client
 *     http_usage_cut_rest(&cut)              what is left at the end
 *
 * With stream_options.include_usage engines send an additional event before [DONE], in which
 * `choices` is empty and `usage` is an object (OpenAI's chat and completions; vLLM 0.32, SGLang
 * 0.5). This event is left out. Engines that send usage in events with content do so for every
 * client (vLLM's --enable-force-include-usage). Then everything passes.
 *
 * vLLM writes `system_fingerprint` into the usage event if usage is requested, otherwise into the
 * event with the `finish_reason`. So the fingerprint is moved to the event with the
 * `finish_reason`. An event that ends a choice waits for the next event, which the engine sends at
 * once. If that is the usage event, the waiting event gets the fingerprint; otherwise it passes
 * unchanged. Nothing else is changed. Of several choices, only the choice that ends last, right
 * before the usage event, gets the fingerprint: the other ends would have to wait for the last
 * choice.
 *
 * Only complete events are forwarded, so the end of a piece may wait for the next piece. An event
 * of more than HTTP_USAGE_CUT_MAX bytes (such as a whole tool call) is not the usage event. Such an
 * event passes as it arrives, without a fingerprint.
 */
#ifndef HTTP_USAGE_CUT_H
#define HTTP_USAGE_CUT_H

#include "base/buf.h"
#include "base/slice.h"

enum { HTTP_USAGE_CUT_MAX = 64 * 1024 };

struct http_usage_cut {
    struct buf part;      /* an event begun in an earlier piece */
    size_t out;           /* forwarded or dropped bytes at the front of `part` */
    struct buf finish;    /* the waiting event at the end of a choice */
    size_t finish_out;    /* forwarded bytes at the front of `finish` */
    unsigned char place;  /* position in the event of `part`, at the end of the input (enum place in
                             usage_cut.c) */
    unsigned char handed; /* which memory the caller has: see http_usage_cut_settled() */
    bool whole;           /* the event of `part` is complete */
    bool is_long;         /* the current event is too long to store: the rest is forwarded as it
                           * arrives */
    bool passes;          /* everything passes unchanged */
};

/* Owns memory once an event comes in several parts: http_usage_cut_free() must follow. */
void http_usage_cut_init(struct http_usage_cut *c);
void http_usage_cut_free(struct http_usage_cut *c);

/* Takes bytes off the front of `in`, and sets `out` to the next bytes for the client. False: there
 * are none, and `in` is used up. `out` is valid as long as `in`. If `handed` is set, `out` is valid
 * until the caller releases it (_settled), which the caller must do before the next piece. If there
 * is no memory, an event in parts passes unchanged, and no fingerprint is moved. */
bool http_usage_cut_next(struct http_usage_cut *c, struct slice *in, struct slice *out);
static inline void http_usage_cut_settled(struct http_usage_cut *c)
{
    c->handed = 0;
}

/* The beginning of an incomplete event, which waits for the rest. */
struct slice http_usage_cut_rest(const struct http_usage_cut *c);

/* The complete event at the end of a choice, which waits for the next event. */
struct slice http_usage_cut_finish(const struct http_usage_cut *c);

#endif
