#include "node/io/local.h"

#include "base/check.h"
#include "node/io/model_list.h"

/* The value of a whole form field in `text`; `at` is NULL if there is none. */
static struct slice form_model(struct slice text)
{
    static const char needle[] = "name=\"model\"";
    const char *at = memmem(text.at, text.len, needle, sizeof needle - 1);
    if (at == NULL)
        return slice_of(NULL, 0);
    text = slice_skip(text, (size_t)(at - text.at));
    at = memmem(text.at, text.len, "\r\n\r\n", 4);
    if (at == NULL)
        return slice_of(NULL, 0);
    text = slice_skip(text, (size_t)(at - text.at) + 4);
    size_t len = slice_find(text, '\r');
    return len < text.len ? slice_of(text.at, len) : slice_of(NULL, 0);
}

struct slice local_multipart_model(const struct body *body)
{
    enum { SEAM = 1024 };
    static char seam[2 * SEAM]; /* a field that lies across two segments */
    for (const struct segment *s = body->first; s != NULL; s = s->next) {
        if (s != body->first && s->next != NULL && s->next != body->last)
            continue; /* the middle of a file */
        struct slice found = form_model(slice_of(s->data, s->len));
        if (found.at == NULL && s->next != NULL) {
            size_t before = s->len < SEAM ? s->len : SEAM;
            size_t after = s->next->len < SEAM ? s->next->len : SEAM;
            memcpy(seam, s->data + s->len - before, before);
            memcpy(seam + before, s->next->data, after);
            found = form_model(slice_of(seam, before + after));
        }
        if (found.at != NULL)
            return found;
    }
    return slice_of(NULL, 0);
}

static void answer_health(struct exchange *x)
{
    const char *why = shell_not_ready(x->shell);
    if (why == NULL)
        exchange_answer(x, 200, slice_of("", 0), slice_of("", 0), NULL, 0);
    else
        exchange_answer_error(x, 503, "ServiceUnavailableError", slice_of("", 0),
                              "The router is not ready: %s.", why);
}

void local_handle(struct exchange *x)
{
    static struct http_head head; /* not the shell's: answers may be written while it is read */
    int err = http_request_parse(&head, x->head.at, x->head.len, &x->shell->limits);
    CHECK(err == 0); /* it was parsed before */
    if (x->client->port == SHELL_PORT_ADMIN) {
        admin_handle(x, &head);
        return;
    }
    struct http_route route = http_path_lookup(head.path, head.method);
    switch (route.kind) {
    case HTTP_PATH_HEALTH:
        answer_health(x);
        return;
    case HTTP_PATH_MODELS:
        model_list_answer(x, &head, slice_of("", 0), false);
        return;
    case HTTP_PATH_MODEL_ONE:
        model_list_answer(x, &head, route.id, true);
        return;
    case HTTP_PATH_SERVER: {
        struct http_line allow = {SLICE("allow"), SLICE("GET, HEAD, POST, OPTIONS")};
        exchange_answer(x, 204, slice_of("", 0), slice_of("", 0), &allow, 1);
        return;
    }
    default:
        CHECK_UNREACHABLE();
    }
}
