#include "node/route/request.h"

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/wire.h"
#include "node/cluster/limits.h"

/* `rendered` is not sent: the numbers hold only in this router, and `chain` already includes the
 * rendering. */
enum { FLAG_CHAIN = 1, FLAG_TOKEN_IDS = 2, FLAG_WHOLE = 4, FLAG_CHUNKS = 8 };

static void put_text(struct wire_writer *w, struct slice text)
{
    size_t len = text.len < NODE_REQUEST_TEXT_MAX ? text.len : NODE_REQUEST_TEXT_MAX;
    wire_write_varint(w, len);
    wire_write_bytes(w, text.at, len);
}

/* The prompt's content follows the checkpoints: older routers skip and omit the content and the
 * fields after it. */
static void put_content(struct wire_writer *w, const struct chain *chain)
{
    const struct chain_content *c = &chain->content;
    const uint32_t counts[] = {c->letters, c->spaces, c->digits, c->marks,
                               c->wide,    c->leads,  c->sized,  c->kilopixels};
    for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
        wire_write_varint(w, counts[i]);
    for (unsigned i = 0; i < CHAIN_MEDIA; i++)
        wire_write_varint(w, c->media[i]);
    for (unsigned i = 0; i < chain->length; i++)
        wire_write_varint(w, chain->points[i].media);
}

static void read_content(struct wire_reader *r, struct chain *chain)
{
    struct chain_content *c = &chain->content;
    uint32_t *const counts[] = {&c->letters, &c->spaces, &c->digits,
                                &c->marks,   &c->wide,   &c->leads};
    for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
        *counts[i] = (uint32_t)wire_read_field(r, UINT32_MAX);
    c->sized = (uint16_t)wire_read_field(r, UINT16_MAX);
    c->kilopixels = (uint32_t)wire_read_field(r, UINT32_MAX);
    for (unsigned i = 0; i < CHAIN_MEDIA; i++)
        c->media[i] = (uint16_t)wire_read_field(r, UINT16_MAX);
    for (unsigned i = 0; i < chain->length; i++)
        chain->points[i].media = (uint16_t)wire_read_field(r, UINT16_MAX);
}

int node_request_pack(const struct node_request *request, struct buf *out)
{
    const struct chain *chain = request->chain;
    unsigned length = chain ? chain->length : 0;
    size_t room = 3 * (NODE_REQUEST_TEXT_MAX + WIRE_VARINT_MAX) + 128 +
                  (size_t)length * NODE_REQUEST_POINT_MAX;
    int err = buf_reserve(out, room);
    if (err != ERR_OK)
        return err;
    struct wire_writer w = wire_writer_of(out->at + out->len, room);
    wire_write_u8(&w, (uint8_t)((chain ? FLAG_CHAIN : 0) |
                                (chain && chain->token_ids ? FLAG_TOKEN_IDS : 0) |
                                (chain && chain->chunks ? FLAG_CHUNKS : 0) |
                                (request->answer_whole ? FLAG_WHOLE : 0)));
    put_text(&w, request->model);
    put_text(&w, request->session);
    wire_write_varint(&w, request->body_bytes);
    wire_write_varint(&w, request->output_tokens_max);
    if (chain) {
        wire_write_varint(&w, chain->bytes);
        wire_write_varint(&w, length);
    }
    for (unsigned i = 0; i < length; i++) {
        wire_write_u64(&w, chain->points[i].id);
        wire_write_varint(&w, chain->points[i].blocks);
        wire_write_u8(&w, chain->points[i].code);
    }
    if (chain)
        put_content(&w, chain);
    put_text(&w, request->lora); /* older routers do not send this field and the fields below */
    wire_write_varint(&w, request->kind);
    wire_write_varint(&w, request->again);
    if (w.bad)
        return ERR_LIMIT;
    out->len += wire_written(&w);
    return ERR_OK;
}

int node_request_unpack(struct node_request_copy *out, struct slice bytes)
{
    struct wire_reader r = wire_reader_of(bytes.at, bytes.len);
    uint8_t flags = wire_read_u8(&r);
    out->request = (struct node_request){.replica_wanted = -1};
    out->request.answer_whole = (flags & FLAG_WHOLE) != 0;
    out->request.model =
        wire_read_bytes(&r, (size_t)wire_read_varint_max(&r, NODE_REQUEST_TEXT_MAX));
    out->request.session =
        wire_read_bytes(&r, (size_t)wire_read_varint_max(&r, NODE_REQUEST_TEXT_MAX));
    out->request.body_bytes = wire_read_varint(&r);
    out->request.output_tokens_max = (uint32_t)wire_read_varint_max(&r, UINT32_MAX);
    if (flags & FLAG_CHAIN) {
        struct chain *chain = &out->chain;
        chain->bytes = wire_read_varint(&r);
        chain->length = (uint16_t)wire_read_varint_max(&r, CHAIN_POINTS_MAX);
        chain->token_ids = (flags & FLAG_TOKEN_IDS) != 0;
        chain->chunks = (flags & FLAG_CHUNKS) != 0;
        uint32_t before = 0;
        for (unsigned i = 0; i < chain->length; i++) {
            struct chain_point *p = &chain->points[i];
            p->id = wire_read_u64(&r);
            p->blocks = (uint32_t)wire_read_varint_max(&r, UINT32_MAX);
            p->code = wire_read_u8(&r);
            if (p->blocks <= before || p->code > CHECKPOINT_CODE_MAX)
                r.bad = true;
            before = p->blocks;
        }
        read_content(&r, chain);
        out->request.chain = chain;
    }
    out->request.lora = wire_read_bytes(&r, (size_t)wire_read_field(&r, NODE_REQUEST_TEXT_MAX));
    out->request.kind = (uint8_t)wire_read_field(&r, NODE_REJECT_KINDS - 1);
    out->request.again = wire_read_field(&r, 1) != 0;
    return r.bad ? ERR_SYNTAX : ERR_OK; /* the rest is from a later version */
}
