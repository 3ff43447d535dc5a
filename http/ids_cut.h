/* Removes token ids from an answer if the router asked for them and the client did not (vLLM's
 * return_token_ids), and reports the prompt's ids.
 *
 *     http_ids_cut_init(&cut, is_stream, &user);
 *     for each piece of the body, in any splits:
 *         while (http_ids_cut_next(&cut, &piece, &out))
 *             `out` goes on to the client
 *     http_ids_cut_end(&cut);                then the loop again, with an empty piece
 *
 * If ids are not requested, vLLM (0.10.2 to 0.33) writes null. So these arrays of ids become null:
 * `prompt_token_ids` in the answer or a choice, and `token_ids` in a choice. Events that vLLM sends
 * only for their ids are left out: `delta` is empty there, because a parser of tool calls or
 * reasoning keeps the text back. Nothing else is changed.
 *
 * 1. An array with other elements than ids passes unchanged, and so does text that is no JSON.
 * 2. An event, or an unstreamed body, waits until complete. Everything passes unchanged if this
 *    needs more than HTTP_IDS_CUT_MAX bytes, if there is no memory, or if lines end with CR.
 */
#ifndef HTTP_IDS_CUT_H
#define HTTP_IDS_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum { HTTP_IDS_CUT_MAX = 2 << 20 };

struct http_ids_user {
    void (*id)(void *context, uint32_t id); /* called with each token id of the first prompt in the
                                             * answer */
    void *context;
};

struct http_ids_cut {
    struct http_ids_user user;
    struct buf part;  /* the beginning of an incomplete event or body */
    struct buf out;   /* rewritten output */
    size_t looked;    /* bytes of `part` in which no event ends */
    unsigned prompts; /* prompts with ids so far: if several, each belongs to a choice */
    bool is_stream;
    bool ended;
    bool passes; /* everything passes unchanged */
    bool handed; /* `out` of _next() is memory of this struct: see http_ids_cut_settled() */
};

void http_ids_cut_init(struct http_ids_cut *c, bool is_stream, const struct http_ids_user *user);
void http_ids_cut_free(struct http_ids_cut *c);

/* Takes bytes off the front of `in`, and sets `out` to the next bytes for the client. False: there
 * are none, and `in` is used up. `out` is valid as long as `in`. If `handed` is set, `out` is valid
 * until the caller releases it (_settled), which the caller must do before the next piece. */
bool http_ids_cut_next(struct http_ids_cut *c, struct slice *in, struct slice *out);
static inline void http_ids_cut_settled(struct http_ids_cut *c)
{
    c->handed = false;
}
void http_ids_cut_end(struct http_ids_cut *c);

#endif
