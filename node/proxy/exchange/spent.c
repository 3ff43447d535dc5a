/* What a request used, counted for its client's key. */
#include "node/proxy/exchange/exchange_internal.h"

/* What it used. Where the engine did not say, the prompt is worked out from its bytes; and so it is
 * where the client left before the answer began, for by then the engine may have read it. */
static void count_tokens(struct exchange *x)
{
    bool answered = x->status / 100 == 2;
    bool left = x->status == 0 && x->reached;
    if (x->attempts == 0 || (!answered && !left))
        return;
    bool read = answered && x->scan == EXCHANGE_SCAN_USAGE;
    int64_t prompt = read ? x->usage.prompt_tokens : -1;
    int64_t completion = read ? x->usage.completion_tokens : 0;
    if (prompt < 0 && x->skimming)
        prompt =
            (int64_t)((double)x->request.body->bytes / x->proxy->config.options->bytes_per_token);
    if (read && completion < 0)
        completion = x->usage.token_events;
    const struct access_tokens tokens = {
        .prompt = prompt > 0 ? (uint64_t)prompt : 0,
        .cached = read && x->usage.cached_tokens > 0 ? (uint64_t)x->usage.cached_tokens : 0,
        .completion = completion > 0 ? (uint64_t)completion : 0};
    access_tokens(x->proxy->config.access, x->key, &tokens, x->proxy->now_ms);
}

void exchange_spent(struct exchange *x)
{
    if (x->key == NULL)
        return;
    if (x->key_counts) {
        count_tokens(x);
        access_end(x->proxy->config.access, x->key);
    }
    access_key_drop(x->key);
    x->key = NULL;
}
