#include "node/admin/together.h"

#include "base/histogram.h"
#include "node/admin/figures.h"

void admin_together_init(struct admin_together *t, struct admin *admin)
{
    *t = (struct admin_together){.admin = admin};
    buf_init(&t->nodes, TOGETHER_BYTES_MAX);
}

void admin_together_free(struct admin_together *t)
{
    buf_free(&t->nodes);
}

int admin_together_answer(void *admin, struct slice request, struct buf *out)
{
    const struct admin *a = admin;
    struct json_writer w = json_writer_of(out);
    if (slice_equal(request, TOGETHER_SHADOW)) {
        json_object_begin(&w);
        node_router_shadow_write(a->config.router, "shadow", proxy_now_ms(a->proxy), &w);
        json_object_end(&w);
    } else {
        admin_figures_counters_write(a->proxy, a->config.router, a->since_ms, admin_unix_ms(a), &w);
    }
    return json_writer_finish(&w);
}

static void take(struct admin_together *t, struct slice nodes)
{
    buf_clear(&t->nodes);
    if (buf_append_slice(&t->nodes, nodes) != 0)
        buf_clear(&t->nodes);
}

static void on_answers(void *context, struct slice nodes)
{
    struct admin_together *t = context;
    t->asking = false;
    if (nodes.len > 0)
        take(t, nodes);
}

/* The object's only key is empty, because a router that runs alone has no name. */
int admin_together_alone(struct admin *a, struct slice request, struct buf *out)
{
    struct buf own = {0};
    int err = admin_together_answer(a, request, &own);
    if (err == 0)
        err = buf_printf(out, "{\"\":%.*s}", SLICE_ARG(buf_slice(&own)));
    buf_free(&own);
    return err;
}

void admin_shadow(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    if (a->config.replication != NULL) {
        admin_ask_all(a, x, NODE_CALL_FIGURES, TOGETHER_SHADOW, ADMIN_ASK_TIMEOUT_US);
        return;
    }
    struct buf nodes = {0}, out = {0};
    int err = admin_together_alone(a, TOGETHER_SHADOW, &nodes);
    if (err == 0)
        err = buf_printf(&out, "{\"self\":\"\",\"nodes\":%.*s,\"not_asked\":{}}",
                         SLICE_ARG(buf_slice(&nodes)));
    buf_free(&nodes);
    admin_answer_json(x, err, &out);
}

static void take_own(struct admin_together *t)
{
    struct buf all = {0};
    if (admin_together_alone(t->admin, slice_of("", 0), &all) == 0)
        take(t, buf_slice(&all));
    buf_free(&all);
}

void admin_together_tick(struct admin_together *t, uint64_t now_ms)
{
    struct node_replication *n = t->admin->config.replication;
    if (t->asking || now_ms < t->asked_ms + TOGETHER_EVERY_MS)
        return;
    t->asked_ms = now_ms;
    if (n == NULL) {
        take_own(t);
        return;
    }
    t->asking = true;
    /* The answer may come before the call returns. */
    if (node_replication_ask(n, NODE_CALL_FIGURES, slice_of("", 0), TOGETHER_TIMEOUT_US,
                             admin_now_us(t->admin, n), on_answers, t) != 0)
        t->asking = false;
}

void admin_together_write(const struct admin_together *t, struct json_writer *w)
{
    json_put_object(w, "cluster");
    json_put_array(w, "ttft_bounds_s");
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
        json_double(w, histogram_bounds_s[i]);
    json_array_end(w);
    json_key(w, "nodes");
    json_raw(w, t->nodes.len > 0 ? buf_slice(&t->nodes) : SLICE("{}"));
    json_object_end(w);
}
