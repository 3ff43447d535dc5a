/* Finds the replica with a stored response unknown to this router. Replicas are asked in turn by a
 * small GET, and only the replica with the response gets the request itself. If none has the
 * response, or engines do not know such a GET, any replica gets the request. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/err.h"
#include "http/forward.h"

enum { ROOT_MAX = 256 }; /* if the engines' root path is longer, replicas are not asked */

/* Returns true if the id has only characters that engines use. Others must not get into a path. */
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

/* Writes x->question, a GET of the stored response with the other fields of the client's request,
 * such as the client's key. A request that only reads the response is itself a GET, and serves as
 * the question. */
int exchange_ask(struct exchange *x)
{
    struct http_head head;
    char target[ROOT_MAX + sizeof "/v1/responses/" + HTTP_USAGE_ID_MAX];
    const char *where = x->route.kind == HTTP_PATH_MEDIA_STORED ? "videos" : "responses";
    struct slice id = exchange_stored_response(x);
    struct slice own = buf_slice(&x->request.head);
    if (!is_plain(id) || x->route.prefix > ROOT_MAX ||
        http_request_parse(&head, own.at, own.len, &x->proxy->engines.limits) != 0) {
        x->asking_around = false; /* no replica can have this id */
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
