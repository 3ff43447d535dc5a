/* Counts a request's use of tokens for the client's key (docs/how-to/client-keys.md). */
#include "node/proxy/exchange/exchange_internal.h"
#include "node/replica/usage.h"

/* The assumed speed of an engine that neither streams nor reports tokens. */
enum { UNTOLD_TOKENS_PER_S = 100 };

/* Estimates the completion tokens of an answer that reports none: by the request's own limit, or by
 * the time at the engine, whichever is less. On paths that serve more than text (such as
 * embeddings), only requests with a limit count. */
static int64_t untold_tokens(const struct exchange *x)
{
    int64_t most = x->skimming ? http_skim_output_max(&x->skim) : -1;
    if (most < 0 && !exchange_answers_tokens(x->route.kind))
        return 0;
    int64_t tokens = (int64_t)((x->proxy->now_ms - x->began_ms) * UNTOLD_TOKENS_PER_S / 1000);
    return most >= 0 && most < tokens ? most : tokens;
}

static int64_t tokens_of(const struct exchange *x, uint64_t text_bytes)
{
    return (int64_t)((double)text_bytes / x->proxy->config.options->bytes_per_token);
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the size of the body; if the prompt has pictures or sounds, the size of the canonical
 * prompt, in which each of these counts as CHAIN_MEDIUM_BYTES. */
static uint64_t prompt_bytes(const struct exchange *x)
{
    const struct chain *chain = http_skim_chain(&x->skim);
    bool media = x->skim.understood && chain_media(&chain->content) > 0;
    return media ? chain->bytes : x->request.body->bytes;
}

/* Returns the completion's tokens. `u`: what was read of the answer; NULL: nothing. `told`: the
 * reported tokens. If the engine did not report any, the received stream is measured, by events or
 * by text, because an event may have several tokens. */
static int64_t completion_of(const struct exchange *x, const struct http_usage *u, int64_t told)
{
    bool stream =
        u != NULL ? u->form != HTTP_USAGE_JSON : x->skimming && x->skim.flags[HTTP_SKIM_STREAM];
    if (u != NULL && u->done && told >= 0)
        return told;
    int64_t tokens = stream ? 0 : untold_tokens(x);
    if (u == NULL)
        return tokens;
    tokens = greater(tokens, greater(told, u->token_events));
    /* SGLang's native events repeat earlier text, and report the tokens of all text. */
    return x->route.kind == HTTP_PATH_GENERATE ? tokens
                                               : greater(tokens, tokens_of(x, u->text_bytes));
}

/* Counts tokens. If not reported, the prompt's tokens are estimated by the bytes, even if the
 * client left before the answer began, because the engine may have read the prompt. */
static void count_tokens(struct exchange *x)
{
    bool answered = x->now.status / 100 == 2;
    bool left = x->now.status == 0 && x->reached && !x->asking;
    if (x->attempts == 0 || (!answered && !left))
        return;
    const struct http_usage *u = answered && x->now.scan != EXCHANGE_SCAN_NONE ? &x->usage : NULL;
    struct node_usage told = {-1, -1, -1, {0}};
    if (u != NULL)
        told = (struct node_usage){u->prompt_tokens, u->cached_tokens, u->completion_tokens, {0}};
    (void)node_usage_clean(&told); /* counted by node_router_finish() */
    int64_t prompt = told.prompt_tokens;
    if (prompt < 0 && x->skimming)
        prompt = tokens_of(x, prompt_bytes(x));
    const struct access_tokens tokens = {
        .prompt = (uint64_t)greater(prompt, 0),
        .cached = (uint64_t)greater(told.cached_tokens, 0),
        .completion = (uint64_t)greater(completion_of(x, u, told.completion_tokens), 0)};
    access_tokens(x->proxy->config.access, x->key, &tokens, x->proxy->now_ms);
}

void exchange_spent(struct exchange *x)
{
    if (x->key == NULL)
        return;
    if (x->admission.counted) {
        count_tokens(x);
        access_end(x->proxy->config.access, x->key);
    }
    access_key_drop(x->key);
    x->key = NULL;
}
