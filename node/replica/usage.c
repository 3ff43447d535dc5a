#include "node/replica/usage.h"

#include "base/check.h"
#include "node/replica/limits.h"

static bool clean(int64_t *count, int64_t most, int64_t otherwise)
{
    if (*count <= most)
        return true;
    *count = otherwise;
    return false;
}

bool node_usage_clean(struct node_usage *u)
{
    bool good = clean(&u->prompt_tokens, NODE_USAGE_TOKENS_MAX, -1);
    good &= clean(&u->completion_tokens, NODE_USAGE_TOKENS_MAX, -1);
    good &= clean(&u->cached_tokens, NODE_USAGE_TOKENS_MAX, -1);
    int64_t prompt = u->prompt_tokens >= 0 ? u->prompt_tokens : NODE_USAGE_TOKENS_MAX;
    good &= clean(&u->cached_tokens, prompt, prompt);
    for (unsigned i = 0; i < ARRAY_LEN(u->media_tokens); i++)
        good &= clean(&u->media_tokens[i], prompt, 0);
    return good;
}
