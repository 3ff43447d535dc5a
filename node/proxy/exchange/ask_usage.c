/* Asks for usage not requested by the client. Streams report tokens only on request
 * (stream_options.include_usage), and the router learns from them. So the router requests usage,
 * and removes it from the answer. The client gets the same body as if usage had not been
 * requested. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"

static const struct slice question = SLICE("\"stream_options\":{\"include_usage\":true},");

size_t exchange_behind_brace(const struct body *body)
{
    const struct segment *first = body->first;
    const char *brace = first == NULL ? NULL : memchr(first->data, '{', first->len);
    return brace == NULL ? 0 : (size_t)(brace - first->data) + 1;
}

static bool usage_wanted(const struct exchange *x)
{
    return x->request.streams_tokens && !x->skim.flags[HTTP_SKIM_STREAM_OPTIONS] &&
           node_router_engines_tell_usage(x->proxy->config.router);
}

void exchange_questions_ask(struct exchange *x)
{
    struct proxy *p = x->proxy;
    bool asks = x->route.kind == HTTP_PATH_CHAT || x->route.kind == HTTP_PATH_COMPLETIONS;
    if (!asks || !p->config.options->ask_usage)
        return;
    struct slice usage = usage_wanted(x) ? question : SLICE("");
    struct slice ids = exchange_ids_wanted(x) ? exchange_ids_question : SLICE("");
    struct body *body = x->request.body;
    size_t at = exchange_behind_brace(body), len = usage.len + ids.len;
    if (len == 0 || at == 0 ||
        (!x->chunked_body && http_forward_length_change(&x->request.head, body->bytes + len) != 0))
        return;
    char text[128];
    CHECK(len <= sizeof text);
    memcpy(text, usage.at, usage.len);
    memcpy(text + usage.len, ids.at, ids.len);
    if (body_insert(&p->segments, body, at, slice_of(text, len)) == 0) {
        char *field = body->first->data + at;
        x->usage_field = usage.len > 0 ? field : NULL;
        x->ids_field = ids.len > 0 ? field + usage.len : NULL;
    } else if (!x->chunked_body) { /* the field did not fit: the length is as before */
        CHECK(http_forward_length_change(&x->request.head, body->bytes) == 0);
    }
}

/* Asks this attempt's replica for usage. Does not ask if the answer may be unreadable, because then
 * usage could not be removed. The field's place in the body is kept, so that another attempt can
 * use it. */
void exchange_usage_aim(struct exchange *x)
{
    x->now.usage_asked =
        !node_router_replica(x->proxy->config.router, x->now.decision.server)->server.packs;
    if (x->now.usage_asked)
        memcpy(x->usage_field, question.at, question.len);
    else
        memset(x->usage_field, ' ', question.len);
}

void exchange_usage_begin(struct exchange *x, const struct http_head *head)
{
    if (!x->now.usage_asked || head->status / 100 != 2)
        return;
    if (x->now.unpack == NULL && http_coding_of(head) != HTTP_CODING_NONE)
        return;
    x->now.cuts_usage = !exchange_is_json(head); /* regardless of the declared type */
    if (!x->now.cuts_usage)
        return;
    http_usage_cut_init(&x->now.cut);
    if (x->out_framing == HTTP_BODY_LENGTH) /* the answer gets shorter */
        x->out_framing = x->minor == 0 ? HTTP_BODY_UNTIL_CLOSE : HTTP_BODY_CHUNKED;
}
