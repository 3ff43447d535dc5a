/* Stores a rejection while another replica is tried. The client gets the rejection unless a better
 * answer comes. The rejection is open until another replica accepts or rejects the request, or the
 * exchange ends. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "node/replica/engine_json.h"

static int keep_error(struct exchange_kept *k, const struct node_engine_error *said)
{
    buf_init(&k->bytes, 0);
    int err = buf_append_cstr(&k->bytes, said->type);
    err = err == 0 ? buf_append_char(&k->bytes, '\0') : err;
    k->head = k->bytes.len; /* start of the message */
    err = err == 0 ? buf_append_cstr(&k->bytes, said->message) : err;
    err = err == 0 ? buf_append_char(&k->bytes, '\0') : err;
    if (err != 0)
        buf_free(&k->bytes);
    return err;
}

/* Keeps the beginning of a long answer, which names the mistake. */
static int keep_beginning(struct exchange *x, unsigned status)
{
    struct node_engine_error error;
    node_error_read(slice_skip(buf_slice(&x->now.held), x->now.held_head), &error);
    if (error.message[0] == '\0')
        (void)snprintf(error.message, sizeof error.message,
                       "The replica returned status %u, with more text than the router buffers.",
                       status);
    return keep_error(&x->kept, &error);
}

int exchange_kept_keep(struct exchange *x, const struct node_rejection *what,
                       const struct node_engine_error *said, bool says_why)
{
    struct exchange_kept *k = &x->kept;
    bool cut = said == NULL && x->now.held.len - x->now.held_head > EXCHANGE_HELD_ERROR_MAX;
    CHECK(!k->open && k->bytes.cap == 0);
    int err = 0;
    if (cut) {
        err = keep_beginning(x, what->status);
    } else if (said != NULL) {
        err = keep_error(k, said);
    } else {
        k->bytes = x->now.held;
        k->head = x->now.held_head;
        x->now.held = (struct buf){0};
        x->now.held_head = 0;
    }
    if (err != 0)
        return err;
    k->is_error = cut || said != NULL;
    k->cut = cut;
    k->framing = x->out_framing;
    k->last = x->client->last;
    k->what = *what;
    k->life = node_router_replica(x->proxy->config.router, what->replica)->life;
    k->open = true;
    k->says_why = says_why;
    if (!says_why)
        node_router_reject_doubt(x->proxy->config.router, what, true);
    return 0;
}

void exchange_kept_unkeep(struct exchange *x)
{
    struct exchange_kept *k = &x->kept;
    CHECK(k->open);
    if (!k->is_error) {
        x->now.held = k->bytes;
        x->now.held_head = k->head;
        k->bytes = (struct buf){0};
    }
    exchange_kept_drop(x);
}

void exchange_kept_drop(struct exchange *x)
{
    struct exchange_kept *k = &x->kept;
    if (k->open && !k->says_why)
        node_router_reject_doubt(x->proxy->config.router, &k->what, false);
    k->open = false;
    if (k->bytes.cap > 0)
        buf_free(&k->bytes);
    k->bytes = (struct buf){0};
}

/* A rejection does not stand if the replica is known to reject acceptable requests, unless the text
 * gives the reason. */
bool exchange_kept_stands(const struct exchange *x)
{
    const struct exchange_kept *k = &x->kept;
    return k->open && !x->alive && !exchange_is_committed(x) &&
           (k->says_why ||
            node_router_reject_guilt(x->proxy->config.router, &k->what) != NODE_REJECT_CAUGHT);
}
