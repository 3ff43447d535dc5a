/* Pins a request to the chosen data-parallel rank (node/replica/rank.h). The client's own rank
 * counts only if the router has chosen none. Without memory for a pin the engine chooses. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "http/forward.h"
#include "node/replica/rank.h"

/* Returns the engines that ignore the pin in such requests, a bit each (vLLM 0.11.1 to 0.32, SGLang
 * 0.5). */
unsigned exchange_unpinned(const struct exchange *x)
{
    const unsigned all = ~0u, all_but_sglang = ~(1u << NODE_ENGINE_SGLANG);
    if (x->unpinned)
        return all;
    switch (x->route.kind) {
    case HTTP_PATH_CHAT:
    case HTTP_PATH_COMPLETIONS:
    case HTTP_PATH_MESSAGES:
        return 0;
    case HTTP_PATH_RESPONSES:
    case HTTP_PATH_GENERATE:
        return all_but_sglang;
    default:
        return all;
    }
}

static void pin_head(struct exchange *x, int rank)
{
    char digits[16] = "";
    if (rank >= 0)
        (void)snprintf(digits, sizeof digits, "%d", rank);
    DISCARD(
        http_forward_field_set(&x->request.head, SLICE(NODE_RANK_HEADER), slice_of_cstr(digits)));
}

/* Returns true if the body has fields. In a body without fields, the rank's field would leave an
 * extra comma. The engine itself should report the mistake in such a body. */
static bool has_fields(const struct body *body, size_t behind_brace)
{
    const struct segment *first = body->first;
    size_t at = behind_brace;
    while (at < first->len && (unsigned char)first->data[at] <= ' ')
        at++;
    return at == first->len || first->data[at] != '}';
}

/* Writes the rank into the body, for SGLang's native path. The field keeps place and length, so
 * another attempt can have another rank, or none. */
static void pin_body(struct exchange *x, int rank)
{
    enum { LEN = sizeof "\"routed_dp_rank\":63," - 1 };
    char field[LEN + 1] = "                    ";
    struct body *body = x->request.body;
    if (rank >= 0)
        (void)snprintf(field, sizeof field, "\"routed_dp_rank\":%2u,", (unsigned)rank % 100);
    if (x->rank_field == NULL) {
        size_t at = exchange_behind_brace(body);
        if (at == 0 || !x->skim.understood || !has_fields(body, at) || body->refs != 1 ||
            buf_reserve(&x->request.head, HTTP_LENGTH_ROOM) != ERR_OK ||
            body_insert(&x->proxy->segments, body, at, slice_of(field, LEN)) != ERR_OK)
            return;
        x->rank_field = body->first->data + at;
        CHECK(http_forward_length_change(&x->request.head, body->bytes) == ERR_OK);
        return;
    }
    memcpy(x->rank_field, field, LEN);
}

void exchange_pin(struct exchange *x)
{
    int rank = x->now.decision.rank;
    if (rank < 0 && !x->pinned)
        return;
    x->pinned = true;
    if (x->route.kind == HTTP_PATH_GENERATE)
        pin_body(x, rank);
    else
        pin_head(x, rank);
}
