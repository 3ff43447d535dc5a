/* Takes token ids out of an answer again, where the router asked for them and the client did not
 * (vLLM's return_token_ids), and tells those of the prompt.
 *
 *     http_ids_cut_init(&cut, is_stream, &user);
 *     for each piece of the body, in any splits:
 *         while (http_ids_cut_next(&cut, &piece, &out))
 *             `out` goes on to the client
 *     http_ids_cut_end(&cut);                and once more, with an empty piece
 *
 * vLLM (0.10.2 to 0.33) has a null where it was not asked, so an array of ids becomes one: of
 * `prompt_token_ids` in the answer or a choice, and of `token_ids` in a choice. Nothing else is
 * changed, but for events that it sends for their ids alone: of tokens that its parser of tool
 * calls or reasoning keeps back, with an empty `delta`. They are left out.
 *
 * 1. An array that has anything but ids in it, and JSON that is none, passes as it is.
 * 2. An event, or a body that is no stream, waits until it is whole. Of more than HTTP_IDS_CUT_MAX
 *    all passes, and so it does without memory, and where lines end with CR.
 */
#ifndef HTTP_IDS_CUT_H
#define HTTP_IDS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum { HTTP_IDS_CUT_MAX = 2 << 20 };

struct http_ids_user {
    void (*id)(void *context, uint32_t id); /* the next token of the first prompt that came */
    void *context;
};

struct http_ids_cut {
    struct http_ids_user user;
    struct buf part;  /* what waits for the rest of its event, or body */
    struct buf out;   /* what goes on, rewritten */
    size_t looked;    /* bytes of `part` in which no event ends */
    unsigned prompts; /* whose ids came: of several they are one choice's each */
    bool is_stream;
    bool ended;
    bool passes; /* all that comes */
    bool handed; /* memory of its own was handed out: see http_ids_cut_settled() */
};

void http_ids_cut_init(struct http_ids_cut *c, bool is_stream, const struct http_ids_user *user);
void http_ids_cut_free(struct http_ids_cut *c);

/* Takes bytes off the front of `in`. False: it is used up. `out` is good until `in` goes or, if
 * `handed` is set, until the caller says that it needs it no more (_settled), which it does before
 * the next piece. */
bool http_ids_cut_next(struct http_ids_cut *c, struct slice *in, struct slice *out);
static inline void http_ids_cut_settled(struct http_ids_cut *c)
{
    c->handed = false;
}
void http_ids_cut_end(struct http_ids_cut *c);

#endif
