/* Decodes compressed request bodies (http/coding.h). Engines do not accept compressed bodies, and
 * the router needs the model in the body. The body is decoded on arrival, and forwarded as if sent
 * plain: whole, with a length and without Content-Encoding.
 *
 * Answers are decoded too, if the router reads their tokens, errors and end. For these the router
 * requests no coding, but a proxy before the engine may still compress them. A few bytes may decode
 * to many, so each event decodes only a part of the read bytes. The rest waits in the connection
 * until the client has taken the output. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/err.h"

enum { DECODE_ROOM = 16384 }; /* most output per call */

bool exchange_decode_begin(struct exchange *x, const struct http_head *head)
{
    x->coding = http_coding_of(head);
    if (x->coding == HTTP_CODING_NONE)
        return true;
    if (x->coding == HTTP_CODING_OTHER) {
        struct http_line accepted = {SLICE("accept-encoding"), SLICE(HTTP_CODINGS_ACCEPTED)};
        x->refusal = REFUSED_CODING;
        exchange_answer_error_with(x, 415,
                                   "The router cannot decode the Content-Encoding of this body: "
                                   "send it uncompressed, or as one of " HTTP_CODINGS_ACCEPTED ".",
                                   &accepted);
        return false;
    }
    if (http_decoder_new(&x->decoder, x->coding, false) != 0) {
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
        return false;
    }
    x->chunked_body = true;
    x->proxy->stats.decoded[x->coding]++;
    return true;
}

static bool refuse_memory(struct exchange *x)
{
    exchange_refuse_because(x->client, REFUSED_MEMORY);
    return false;
}

static bool refuse(struct exchange *x, int err)
{
    char text[160];
    const char *coding = http_coding_name(x->coding);
    if (err == ERR_NOMEM)
        return refuse_memory(x);
    if (err == ERR_LIMIT) {
        (void)snprintf(text, sizeof text,
                       "The %s body decodes to more than %d times its size: send it uncompressed.",
                       coding, HTTP_CODING_RATIO_MAX);
        exchange_refuse(x->client, 413, text);
        return false;
    }
    if (err == ERR_RANGE)
        (void)snprintf(text, sizeof text,
                       "The %s body needs a window of more than %d MiB to be decoded: compress it "
                       "with a smaller one, or send it uncompressed.",
                       coding, HTTP_CODING_WINDOW_MAX >> 20);
    else
        (void)snprintf(text, sizeof text,
                       "The %s body is damaged or cut short: compress it again, or send it "
                       "uncompressed.",
                       coding);
    exchange_refuse(x->client, 400, text);
    return false;
}

/* Counts a decoder's memory of `bytes` towards the limit for bodies. `*counted`: the bytes counted
 * so far. Returns false if the limit is exceeded. */
static bool charge(struct exchange *x, size_t bytes, size_t *counted)
{
    if (bytes <= *counted)
        return true;
    if (!segment_pool_charge(&x->proxy->segments, bytes - *counted))
        return false;
    *counted = bytes;
    return true;
}

bool exchange_decode(struct exchange *x, struct slice *bytes, struct slice *added)
{
    struct body *body = x->request.body;
    struct segment *s = body_room(&x->proxy->segments, body, DECODE_ROOM);
    size_t n;
    *added = slice_of("", 0);
    if (s == NULL)
        return refuse_memory(x);
    int err = http_decoder_next(x->decoder, bytes, s->data + s->len, s->cap - s->len, &n);
    if (err != 0)
        return refuse(x, err);
    if (!charge(x, http_decoder_memory(x->decoder), &x->decoder_bytes))
        return refuse_memory(x);
    *added = slice_of(s->data + s->len, n);
    s->len += (uint32_t)n;
    body->bytes += n;
    return true;
}

bool exchange_decode_end(struct exchange *x)
{
    int err = x->decoder != NULL ? http_decoder_end(x->decoder) : ERR_OK;
    exchange_decode_drop(x);
    return err == ERR_OK || refuse(x, err);
}

static bool charge_unpack(struct exchange *x)
{
    size_t bytes = EXCHANGE_UNPACK_BYTES + http_decoder_memory(x->now.unpack);
    return charge(x, bytes, &x->now.unpack_bytes);
}

int exchange_unpack_begin(struct exchange *x, const struct http_head *head)
{
    enum http_coding coding = http_coding_of(head);
    bool known = coding == HTTP_CODING_GZIP || coding == HTTP_CODING_ZSTD;
    if (!known || !x->asks_plain || head->framing == HTTP_BODY_NONE || BUG(USAGE_SHOWN))
        return ERR_OK;
    if (http_decoder_new(&x->now.unpack, coding, true) != 0)
        return ERR_NOMEM;
    x->now.unpacked = malloc(EXCHANGE_UNPACK_BYTES);
    if (x->now.unpacked == NULL || !charge_unpack(x))
        return ERR_NOMEM;
    x->proxy->stats.unpacked[coding]++;
    return ERR_OK;
}

int exchange_unpack(struct exchange *x, struct slice *bytes, struct slice *out)
{
    size_t n;
    int err = http_decoder_next(x->now.unpack, bytes, x->now.unpacked, EXCHANGE_UNPACK_BYTES, &n);
    *out = slice_of(x->now.unpacked, n);
    if (err != 0)
        return err;
    return charge_unpack(x) ? ERR_OK : ERR_NOMEM;
}

void exchange_unpack_refuse(struct exchange *x)
{
    unsigned status = exchange_because(x, REFUSED_MEMORY);
    if (exchange_is_committed(x)) {
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
        return;
    }
    exchange_hang_up(x);
    exchange_release_booking(x, NODE_OUTCOME_CLIENT_GONE);
    exchange_forget_answer(x);
    exchange_answer_error(x, status, slice_of("", 0), "Too many bodies are held now.");
}
