/* Finds the conversation of a request: by the session that the client names, otherwise by the
 * prompt's beginning or by the client. */
#include <string.h>

#include "base/check.h"
#include "http/json.h"
#include "node/proxy/exchange/exchange_internal.h"
#include "node/route/policy.h"

/* Headers of known clients: docs/policies.md lists them. */
static const char agents[] = "x-session-id, x-claude-code-session-id, session-id, session_id, "
                             "x-session-affinity, x-multi-turn-session-id";

void exchange_session_set(struct exchange *x, struct slice value)
{
    size_t n = value.len < EXCHANGE_SESSION_MAX ? value.len : EXCHANGE_SESSION_MAX;
    memcpy(x->session, value.at, n);
    x->session_len = (uint8_t)n;
}

/* Returns true if a policy, or a split between models, uses sessions. */
static bool is_wanted(const struct proxy *p)
{
    return node_router_wants_session(p->config.router) || p->aliases.splits;
}

void exchange_read_session(struct exchange *x, const struct http_head *head)
{
    const struct proxy *p = x->proxy;
    if (!is_wanted(p))
        return;
    struct slice names = slice_of_cstr(p->config.options->session_header);
    if (slice_equal(names, SLICE("auto")))
        names = slice_of_cstr(agents);
    while (names.len > 0) {
        struct slice value = http_head_find(head, slice_trim(slice_cut(&names, ',')));
        if (value.len > 0) {
            exchange_session_set(x, value);
            return;
        }
    }
}

/* Returns session_id of {"device_id":...,"account_uuid":...,"session_id":"..."}, a string from
 * Claude Code. `out` has EXCHANGE_SESSION_MAX bytes and HTTP_JSON_SLACK. Empty: the text has no
 * session_id. */
static struct slice session_in(struct slice json, char *out)
{
    struct http_json j;
    char key[16 + HTTP_JSON_SLACK];
    bool is_session = false;
    enum http_json_token token;
    http_json_init(&j);
    while ((token = http_json_next(&j, &json)) > HTTP_JSON_MORE) {
        bool wanted = is_session && token == HTTP_JSON_STRING;
        char *to = token == HTTP_JSON_KEY ? key : out;
        size_t room = token == HTTP_JSON_KEY ? 16 : EXCHANGE_SESSION_MAX;
        size_t len = 0;
        while (http_json_in_text(&j) && json.len > 0 && len < room)
            len += http_json_text(&j, &json, to + len, room - len);
        if (wanted && !http_json_in_text(&j))
            return slice_of(out, len);
        if (http_json_in_text(&j)) /* longer than any session */
            return slice_of(NULL, 0);
        is_session = token == HTTP_JSON_KEY && j.depth == 1 &&
                     slice_equal(slice_of(key, len), SLICE("session_id"));
    }
    return slice_of(NULL, 0);
}

void exchange_session_from_body(struct exchange *x)
{
    static const enum http_skim_name keys[] = {HTTP_SKIM_PROMPT_CACHE_KEY, HTTP_SKIM_SESSION_ID,
                                               HTTP_SKIM_METADATA_USER_ID, HTTP_SKIM_USER};
    if (x->session_len > 0 || !x->skim.understood || !is_wanted(x->proxy))
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct slice value = http_skim_field(&x->skim, keys[i]);
        if (value.len == 0)
            continue;
        char inside[EXCHANGE_SESSION_MAX + HTTP_JSON_SLACK];
        struct slice session = value.at[0] == '{' ? session_in(value, inside) : value;
        exchange_session_set(x, session.len > 0 ? session : value);
        return;
    }
}

/* Returns a hash of the common beginning of a conversation's turns; 0: unknown. Without a system
 * text the user's first message may be all head (http/prompt.h). */
static uint64_t beginning(const struct exchange *x)
{
    const struct http_prompt_form *form = http_skim_form(&x->skim);
    const struct http_prompt_piece *text = &form->parts[HTTP_PROMPT_TEXT];
    uint64_t head = 0;
    for (int i = HTTP_PROMPT_TEXT_LINE; i < HTTP_PROMPT_TEXT && form->opening == 0; i++) {
        if (http_prompt_fills(form, i))
            head = hash_mix(head ^ form->parts[i].end.state.low);
    }
    if (form->opening != 0 || head != 0)
        return form->opening != 0 ? form->opening : head;
    if (!http_prompt_fills(form, HTTP_PROMPT_TEXT))
        return 0;
    return text->count > 0 ? http_skim_chain(&x->skim)->points[text->first].id
                           : text->end.state.low;
}

uint64_t exchange_conversation(const struct exchange *x)
{
    if (x->session_len > 0)
        return hash64(&x->proxy->config.secret, x->session, x->session_len);
    return x->skimming && beginning(x) != 0 ? beginning(x) : x->client_id;
}
