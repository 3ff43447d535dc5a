/* Who made a stored response that this router does not know: each replica is asked with a small
 * GET, one after the other, and only the one that has it gets the request with its body. Where
 * nobody has it (or engines have no such GET) the request goes where any other would. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/err.h"
#include "http/forward.h"

enum { ROOT_MAX = 256 }; /* bytes of a root path of engines: nobody is asked behind a longer one */

/* As engines make them; anything else is no part of a path. */
static bool is_plain(struct slice id)
{
    static const char others[] = "-_.~";
    for (size_t i = 0; i < id.len; i++) {
        char c = id.at[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && memchr(others, c, sizeof others - 1) == NULL)
            return false;
    }
    return id.len <= HTTP_USAGE_ID_MAX;
}

/* The question has the head of the request, with the client's key. An image has no page of its own,
 * and its content is asked for by the request itself, which is a GET. */
int exchange_ask(struct exchange *x)
{
    struct http_head head;
    char target[ROOT_MAX + sizeof "/v1/responses/" + HTTP_USAGE_ID_MAX];
    const char *where = x->route.kind == HTTP_PATH_MEDIA_STORED ? "videos" : "responses";
    struct slice id = exchange_stored_response(x);
    struct slice own = buf_slice(&x->request.head);
    if (!is_plain(id) || x->route.prefix > ROOT_MAX ||
        http_request_parse(&head, own.at, own.len, &x->proxy->engines.limits) != 0) {
        x->asking_around = false; /* nobody can have it */
        x->asked = true;
        return 0;
    }
    int n = snprintf(target, sizeof target, "%.*s/v1/%s/%.*s", (int)x->route.prefix, head.path.at,
                     where, SLICE_ARG(id));
    head.method = HTTP_METHOD_GET;
    head.method_text = SLICE("GET");
    head.target = head.path = slice_of(target, (size_t)n);
    head.has_query = false;
    struct http_forward_request how = {.host_fallback = SLICE("grapevine"),
                                       .framing = HTTP_BODY_NONE};
    x->question.body = body_new();
    if (x->question.body == NULL)
        return ERR_NOMEM;
    x->question.body->complete = true;
    x->asking = true;
    return http_forward_request_write(&x->question.head, &head, &how);
}
