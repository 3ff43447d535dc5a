/* Completes the skimmer's results at the end of a body. */
#include <string.h>

#include "base/check.h"
#include "http/member.h"
#include "http/skim.h"

/* Digest of the members that form the namespace: prompts with the same text share a cache only if
 * these members are equal. */
static struct hash128 namespace_digest(const struct http_skim *s)
{
    static const uint8_t names[] = {
        HTTP_SKIM_MODEL,
        HTTP_SKIM_LORA,
        HTTP_SKIM_CACHE_SALT,
        HTTP_SKIM_EXTRA_KEY,
        HTTP_SKIM_PREVIOUS_RESPONSE_ID,
    };
    char bytes[ARRAY_LEN(names) * (HTTP_SKIM_FIELD_MAX + 2)];
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct http_skim_field *field = &s->fields[names[i]];
        bool present = (s->present >> names[i] & 1) != 0;
        bytes[len++] = (char)(!present ? 0 : field->is_digest ? 2 : 1);
        if (!present)
            continue;
        bytes[len++] = (char)field->len;
        memcpy(bytes + len, field->text, field->len);
        len += field->len;
    }
    return hash128(s->secret, bytes, len);
}

void http_skim_end(struct http_skim *s)
{
    CHECK(!s->finished);
    s->finished = true;
    s->understood = !s->failed && s->has_body && s->depth == 0 && http_json_finish(&s->json);
    if (!s->understood) {
        s->prompt.chain.length = 0;
        s->prompt.chain.bytes = 0;
        return;
    }
    http_prompt_end(&s->prompt, namespace_digest(s), s->frames[0].sum);
}

void http_skim_model_set(struct http_skim *s, struct slice model)
{
    struct http_skim_field *field = &s->fields[HTTP_SKIM_MODEL];
    CHECK(s->finished && model.len <= HTTP_SKIM_FIELD_MAX);
    s->present |= UINT32_C(1) << HTTP_SKIM_MODEL;
    field->is_digest = false;
    field->len = (uint8_t)model.len;
    memcpy(field->text, model.at, model.len);
    s->prompt.form.namespace = namespace_digest(s);
}

void http_skim_join(struct http_skim *s, struct rendering rendering)
{
    CHECK(s->finished);
    if (s->understood)
        http_prompt_join(&s->prompt.form, s->secret, rendering, &s->prompt.chain);
}

int64_t http_skim_output_max(const struct http_skim *s)
{
    for (int i = HTTP_SKIM_MAX_COMPLETION_TOKENS; i <= HTTP_SKIM_MAX_NEW_TOKENS; i++)
        if (s->has_number[i] && s->numbers[i] >= 0)
            return s->numbers[i];
    return -1;
}

static bool came_from(const struct http_skim *s, struct slice name)
{
    const struct http_member *member = http_member_find(HTTP_IN_BODY, name);
    return s->ranks[member->index] == member->rank;
}

enum http_path_kind http_skim_path(const struct http_skim *s)
{
    static const struct {
        struct slice member;
        enum http_path_kind path;
    } apis[] = {
        {SLICE("prompt"), HTTP_PATH_COMPLETIONS}, {SLICE("input"), HTTP_PATH_RESPONSES},
        {SLICE("text"), HTTP_PATH_GENERATE},      {SLICE("input_ids"), HTTP_PATH_GENERATE},
        {SLICE("token_ids"), HTTP_PATH_TOKENS},   {SLICE("query"), HTTP_PATH_PROMPT},
    };
    if (came_from(s, SLICE("messages")))
        return came_from(s, SLICE("system")) ? HTTP_PATH_MESSAGES : HTTP_PATH_CHAT;
    for (size_t i = 0; i < ARRAY_LEN(apis); i++)
        if (came_from(s, apis[i].member))
            return apis[i].path;
    return HTTP_PATH_OTHER;
}
