/* Calls to show and forget poison: requests after which engines died. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/admin/admin_internal.h"
#include "node/route/poison.h"

enum { HASH_DIGITS = 16 };

void admin_poison(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    admin_answer_json(x, node_poison_json(a->config.router, &out), &out);
}

static bool read_hash(const struct http_head *head, char *text, size_t size, uint64_t *hash)
{
    char *end;
    if (!admin_query(head, SLICE("hash"), text, size) || strlen(text) != HASH_DIGITS)
        return false;
    *hash = strtoull(text, &end, 16);
    return *end == '\0';
}

void admin_poison_forget(struct admin *a, struct exchange *x, const struct http_head *head)
{
    char text[HASH_DIGITS + 8];
    uint64_t hash = 0;
    if (!read_hash(head, text, sizeof text, &hash)) {
        exchange_answer_error(
            x, 400, SLICE("hash"),
            "Want ?hash= with the 16 digits that gvctl poison (GET /poison) shows.");
        return;
    }
    if (node_poison_forget(a->config.router, hash) != 0) {
        exchange_answer_error(
            x, 404, SLICE("hash"),
            "No such request is remembered; gvctl poison (GET /poison) lists them.");
        return;
    }
    struct admin_who who;
    admin_who(a, x, head, &who);
    log_event(a->config.log, LOG_INFO, "poison_forgotten", LOG_CSTR("hash", text),
              LOG_CSTR("from", who.from), LOG_CSTR("token", who.token));
    exchange_answer(x, 200, ADMIN_JSON, SLICE("{\"ok\":true}"), NULL, 0);
}
