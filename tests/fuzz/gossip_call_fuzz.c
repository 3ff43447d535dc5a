/* A call with bytes cut and changed by the fuzzer. Each byte is a step: carry some bytes one way,
 * or change a byte on the way. Unchanged, the answer arrives; changed anywhere, neither the request
 * nor the answer arrives with other contents. Mode 1 feeds the bytes to a fresh server as they
 * are. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "gossip/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUEST SLICE("a request")
#define ANSWER  SLICE("an answer of some length, in several pieces")

struct run {
    struct gossip_call *client, *server;
    struct buf answer;
    size_t made;
    bool asked, ended, done;
};

static const uint8_t random_client[32] = {1};
static const uint8_t random_server[32] = {2};

static int server_step(struct run *r)
{
    enum gossip_call_step step = GOSSIP_CALL_REQUEST;
    int err = ERR_OK;
    while (err == ERR_OK && step != GOSSIP_CALL_WAIT) {
        uint8_t kind = 0;
        struct slice chunk;
        err = gossip_call_step(r->server, &step, &kind, &chunk);
        if (err == ERR_OK && step == GOSSIP_CALL_REQUEST) {
            CHECK(!r->asked && kind == 9 && slice_equal(chunk, REQUEST));
            r->asked = true;
        }
    }
    while (err == ERR_OK && !r->ended && gossip_call_wants(r->server)) {
        struct slice rest = slice_skip(ANSWER, r->made);
        size_t len = rest.len < 10 ? rest.len : 10;
        if (len == 0) {
            CHECK(gossip_call_end(r->server) == ERR_OK);
            r->ended = true;
        } else {
            CHECK(gossip_call_answer(r->server, slice_of(rest.at, len)) == ERR_OK);
            r->made += len;
        }
    }
    return err;
}

static int client_step(struct run *r)
{
    enum gossip_call_step step = GOSSIP_CALL_CHUNK;
    int err = ERR_OK;
    while (err == ERR_OK && step != GOSSIP_CALL_WAIT) {
        uint8_t kind = 0;
        struct slice chunk;
        err = gossip_call_step(r->client, &step, &kind, &chunk);
        if (err == ERR_OK && step == GOSSIP_CALL_CHUNK)
            CHECK(buf_append_slice(&r->answer, chunk) == 0);
        if (err == ERR_OK && step == GOSSIP_CALL_DONE)
            r->done = true;
    }
    CHECK(slice_starts_with(ANSWER, buf_slice(&r->answer)));
    CHECK(!r->done || slice_equal(ANSWER, buf_slice(&r->answer)));
    return err;
}

static int carry(struct gossip_call *from, struct gossip_call *to, size_t piece)
{
    struct buf *out = gossip_call_out(from);
    size_t len = out->len < piece ? out->len : piece;
    int err = gossip_call_feed(to, slice_of(out->at, len));
    buf_consume(out, len);
    return err;
}

static void run_script(struct run *r, const uint8_t *data, size_t size)
{
    bool changed = false;
    int err = ERR_OK;
    for (size_t i = 0; i < size && err == ERR_OK; i++) {
        size_t piece = data[i] & 63;
        bool to_server = (data[i] & 64) != 0;
        struct buf *out = gossip_call_out(to_server ? r->client : r->server);
        if ((data[i] & 128) != 0) {
            if (piece < out->len && ++i < size && data[i] != 0) {
                out->at[piece] = (char)(out->at[piece] ^ data[i]);
                changed = true;
            }
        } else if (to_server) {
            err = carry(r->client, r->server, piece);
            err = err == ERR_OK ? server_step(r) : err;
        } else {
            err = carry(r->server, r->client, piece);
            err = err == ERR_OK ? client_step(r) : err;
        }
    }
    if (changed)
        return;
    CHECK(err == ERR_OK);
    for (unsigned i = 0; i < 8; i++) {
        CHECK(carry(r->client, r->server, 1000) == ERR_OK && server_step(r) == ERR_OK);
        if (gossip_call_out(r->server)->len > 0)
            CHECK(carry(r->server, r->client, 1000) == ERR_OK && client_step(r) == ERR_OK);
    }
    CHECK(r->done);
}

static void run_raw(struct run *r, const uint8_t *data, size_t size)
{
    int err = ERR_OK;
    for (size_t at = 0; at < size && err == ERR_OK; at += 50) {
        size_t len = size - at < 50 ? size - at : 50;
        err = gossip_call_feed(r->server, slice_of((const char *)data + at, len));
        err = err == ERR_OK ? server_step(r) : err;
    }
    /* The bytes may contain a recorded hello, but never a request. */
    CHECK(!r->asked && gossip_call_out(r->server)->len <= 50);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gossip_keyring ring;
    struct run r = {0};
    if (size == 0)
        return 0;
    gossip_keyring_insecure(&ring);
    CHECK(gossip_call_open(&r.client, &ring, (struct gossip_versions){1, 1}, random_client, 9,
                           REQUEST) == ERR_OK);
    CHECK(gossip_call_accept(&r.server, &ring, (struct gossip_versions){1, 1}, random_server) ==
          ERR_OK);
    if ((data[0] & 1) == 0)
        run_script(&r, data + 1, size - 1);
    else
        run_raw(&r, data + 1, size - 1);
    gossip_call_free(r.client);
    gossip_call_free(r.server);
    buf_free(&r.answer);
    return 0;
}
