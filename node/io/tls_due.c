/* Work of TLS streams without a network event: bytes kept back, and handshakes waiting for the next
 * turn. */
#include "base/check.h"
#include "node/io/tls_internal.h"

void tls_link_add(struct tls_list *list, struct tls_stream *s, struct tls_link *link)
{
    ptrdiff_t offset = (char *)link - (char *)s;
    CHECK(link->in == NULL);
    *link = (struct tls_link){.in = list, .prev = list->last};
    if (list->last != NULL)
        ((struct tls_link *)((char *)list->last + offset))->next = s;
    else
        list->first = s;
    list->last = s;
}

void tls_link_remove(struct tls_stream *s, struct tls_link *link)
{
    ptrdiff_t offset = (char *)link - (char *)s;
    struct tls_list *list = link->in;
    if (list == NULL)
        return;
    if (link->prev != NULL)
        ((struct tls_link *)((char *)link->prev + offset))->next = link->next;
    else
        list->first = link->next;
    if (link->next != NULL)
        ((struct tls_link *)((char *)link->next + offset))->prev = link->prev;
    else
        list->last = link->prev;
    *link = (struct tls_link){0};
}

static void on_prepare(uv_prepare_t *handle)
{
    struct tls *t = handle->data;
    t->turn_ns = 0;
}

static void on_idle(uv_idle_t *handle)
{
    enum { DUE_MAX = 64 }; /* most streams run in a turn of the loop */
    struct tls *t = handle->data;
    struct tls_stream *s;
    for (unsigned i = 0; i < DUE_MAX && (s = t->due.first) != NULL; i++) {
        tls_link_remove(s, &s->due);
        t->run(s);
    }
    t->crowd_runs = true;
    while ((s = t->crowded.first) != NULL && t->turn_ns < TLS_TURN_NS) {
        tls_link_remove(s, &s->due);
        t->run(s);
    }
    t->crowd_runs = false;
    t->idling = t->due.first != NULL || t->crowded.first != NULL;
    if (!t->idling)
        (void)uv_idle_stop(handle);
}

void tls_due(struct tls_stream *s, bool crowded)
{
    struct tls *t = s->all;
    if (s->due.in != NULL)
        return;
    tls_link_add(crowded ? &t->crowded : &t->due, s, &s->due);
    if (!t->idling)
        (void)uv_idle_start(&t->idle, on_idle);
    t->idling = true;
}

void tls_due_start(struct tls *t, void (*run)(struct tls_stream *s))
{
    t->run = run;
    CHECK(uv_idle_init(t->shell->loop, &t->idle) == 0);
    CHECK(uv_prepare_init(t->shell->loop, &t->prepare) == 0);
    t->idle.data = t->prepare.data = t;
    CHECK(uv_prepare_start(&t->prepare, on_prepare) == 0);
}
