/* Reads the current string, in pieces, into the prompt or into the scratch memory. */
#include <string.h>

#include "base/check.h"
#include "http/engine_field.h"
#include "http/image.h"
#include "http/media_url.h"
#include "http/member.h"
#include "http/skim_internal.h"

void http_skim_scratch_start(struct http_skim *s)
{
    s->text = HTTP_SKIM_TO_SCRATCH;
    s->scratch_len = 0;
    s->scratch_total = 0;
    s->scratch_cut = false;
    s->scratch_state = (struct hash128){.low = 0};
}

struct slice http_skim_scratch_text(const struct http_skim *s)
{
    CHECK(s->scratch_len <= HTTP_SKIM_SCRATCH);
    return slice_of(s->scratch + sizeof s->scratch_state,
                    s->scratch_total == s->scratch_len ? s->scratch_len : 0);
}

static void scratch_fold(struct http_skim *s)
{
    if (s->scratch_total == s->scratch_len && s->kilopixels == 0)
        s->kilopixels = http_image_kilopixels(http_skim_scratch_text(s));
    size_t len = s->scratch_len;
    bool is_first = s->scratch_total == s->scratch_len;
    if (is_first && !s->json.is_key && s->depth > 0 && s->frames[s->depth - 1].is_media)
        len = http_media_url_trim(s->scratch + sizeof s->scratch_state, len, &s->scratch_cut);
    memcpy(s->scratch, &s->scratch_state, sizeof s->scratch_state);
    s->scratch_state = hash128(s->secret, s->scratch, sizeof s->scratch_state + len);
    s->scratch_len = 0;
}

struct hash128 http_skim_scratch_digest(struct http_skim *s)
{
    if (s->scratch_total == s->scratch_len)
        return hash128(s->secret, s->scratch + sizeof s->scratch_state, s->scratch_len);
    if (!s->scratch_cut)
        scratch_fold(s);
    return s->scratch_state;
}

struct hash128 http_skim_url_digest(struct http_skim *s)
{
    if (s->scratch_total != s->scratch_len)
        return http_skim_scratch_digest(s);
    char *at = s->scratch + sizeof s->scratch_state;
    bool is_signed = false;
    return hash128(s->secret, at, http_media_url_trim(at, s->scratch_len, &is_signed));
}

void http_skim_medium_past(struct http_skim *s, struct http_skim_frame *f)
{
    if (f->is_media)
        f->media.media[f->medium]++;
    if (f->is_media && f->medium == CHAIN_IMAGE && s->kilopixels > 0) {
        f->media.sized++;
        f->media.kilopixels += s->kilopixels;
    }
    s->kilopixels = 0;
}

/* The text that names engines in a request id; NULL: none. An id longer than the scratch is not
 * searched, and counts as naming engines. */
static const char *names_engines(const struct http_skim *s)
{
    return s->scratch_total != s->scratch_len ? "request_id"
                                              : http_engine_id_find(http_skim_scratch_text(s));
}

void http_skim_field_store(struct http_skim *s, uint64_t end)
{
    struct http_skim_field *field = &s->fields[s->member->index];
    const char *in_id = s->member->index == HTTP_SKIM_REQUEST_ID ? names_engines(s) : NULL;
    if (in_id != NULL)
        s->engine_field = in_id;
    uint32_t bit = UINT32_C(1) << s->member->index;
    if ((s->present & bit) != 0 && field->rank > s->member->rank)
        return;
    s->present |= bit;
    if (s->member->index == HTTP_SKIM_MODEL) {
        s->model_at = s->string_at - 1;
        s->model_bytes = end - s->model_at;
    }
    field->rank = s->member->rank;
    field->is_digest = s->scratch_total > HTTP_SKIM_FIELD_MAX;
    if (!field->is_digest) {
        struct slice text = http_skim_scratch_text(s);
        memcpy(field->text, text.at, text.len);
        field->len = (uint8_t)text.len;
        return;
    }
    struct hash128 digest = http_skim_scratch_digest(s);
    const uint64_t words[] = {digest.high, digest.low};
    for (unsigned i = 0; i < 32; i++)
        field->text[i] = "0123456789abcdef"[words[i / 16] >> (60 - i % 16 * 4) & 15];
    field->len = 32;
}

void http_skim_draw(struct http_skim *s, struct slice *in)
{
    while (http_json_in_text(&s->json) && in->len > 0) {
        if (s->text == HTTP_SKIM_TO_PROMPT) {
            size_t n = http_json_text(&s->json, in, http_prompt_at(&s->prompt),
                                      http_prompt_room(&s->prompt));
            http_prompt_commit(&s->prompt, n);
            continue;
        }
        if (s->scratch_len == HTTP_SKIM_SCRATCH) {
            if (s->text == HTTP_SKIM_TO_SCRATCH && !s->scratch_cut)
                scratch_fold(s);
            s->scratch_len = 0;
        }
        char *at = s->scratch + sizeof s->scratch_state + s->scratch_len;
        size_t n = http_json_text(&s->json, in, at, HTTP_SKIM_SCRATCH - s->scratch_len);
        CHECK(n <= (size_t)HTTP_SKIM_SCRATCH - s->scratch_len);
        s->scratch_len = (uint16_t)(s->scratch_len + n);
        s->scratch_total += n;
    }
}
