#include "tests/bench/quality/leading.h"

#include <stdio.h>

#include "base/check.h"

void leading_read(const struct prompt *p, double bytes_per_token, enum leading leading,
                  uint64_t unique, uint64_t conversation, unsigned turn,
                  const struct hash_secret *secret, struct http_prompt *out)
{
    http_prompt_init(out, secret);
    http_prompt_open_head(out, HTTP_PROMPT_SYSTEM, true);
    int len = snprintf(http_prompt_at(out), 64, "x-client: build=2.1.197; id=%016llx;\n",
                       (unsigned long long)(leading == LEADING_CONSTANT ? 0 : hash_mix(unique)));
    http_prompt_commit(out, (size_t)len);
    http_prompt_text_end(out);
    http_prompt_close(out);
    http_prompt_open(out, HTTP_PROMPT_TEXT);
    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t words[] = {p->units[i], p->space};
        http_prompt_atom(out, hash128(secret, words, sizeof words),
                         prompt_unit_bytes(p, i, bytes_per_token));
    }
    http_prompt_atom(out, (struct hash128){.low = hash_mix(unique + 1)},
                     (uint64_t)(p->tail_tokens * bytes_per_token));
    http_prompt_close(out);
    http_prompt_end(out, (struct hash128){.low = p->space}, (struct hash128){.low = 0});
    out->form.opening = hash_mix(conversation);
    out->form.goes_on = turn > 0;
}
