#include "node/proxy/limit/verdict.h"

#include <string.h>

#include "base/check.h"

const char *verdict_reason_name(enum verdict_reason reason)
{
    static const char *const names[RETRY_REASONS] = {
        [RETRY_CONNECT] = "connect",     [RETRY_BROKEN] = "broken",
        [RETRY_MALFORMED] = "malformed", [RETRY_TIMEOUT] = "timeout",
        [RETRY_BUSY] = "busy",           [RETRY_GATEWAY] = "gateway",
        [RETRY_ERROR] = "error",         [RETRY_DRAINS] = "drains",
        [RETRY_MODEL] = "model",         [RETRY_STORED] = "stored_response",
        [RETRY_ABORTED] = "aborted",     [RETRY_RANK] = "rank",
        [RETRY_CONTEXT] = "context",     [RETRY_REJECTED] = "rejected"};
    return names[reason];
}

/* On paths of stored responses SGLang reports a full queue as a 400 ("503: The request queue is
 * full."). */
bool verdict_needs_body(unsigned status, bool stored_responses)
{
    return (status >= 500 &&
            verdict_of_answer(status, slice_of("", 0)).verdict == VERDICT_IN_DOUBT) ||
           (status == 400 && stored_responses);
}

static bool says(struct slice message, const char *words)
{
    return message.len > 0 && memmem(message.at, message.len, words, strlen(words)) != NULL;
}

/* Returns true for vLLM's messages after the death of the engine's core. */
static bool core_is_dead(struct slice message)
{
    return says(message, "EngineCore encountered an issue") || says(message, "EngineDeadError");
}

/* vLLM: "data_parallel_rank 1 is out of range [0, 1)."; SGLang: "routed_dp_rank=1 out of range [0,
 * 1)". */
bool verdict_rank_is_unknown(struct slice message)
{
    return says(message, "_rank") && says(message, "out of range [0, ");
}

/* Returns true if the message contains any of the words. A client can make an engine repeat such
 * words, but the only effect is another attempt. */
static bool says_any(struct slice message, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (says(message, words[i]))
            return true;
    }
    return false;
}

bool verdict_context_is_short(struct slice message)
{
    static const char *const words[] = {
        /* vLLM 0.9 to 0.33, OpenAI; SGLang ("Requested token count exceeds the model's ...") */
        "maximum context length",
        "longer than the maximum model length",   /* vLLM, about a prompt alone */
        "max_model_len",                          /* vLLM, about max_tokens, and in /v1/responses */
        "longer than the model's context length", /* SGLang, about a prompt alone */
        "exceeds the maximum allowed length", /* SGLang, if the cache is smaller than the context */
        "max_completion_tokens is too large", /* SGLang; vLLM since 0.10 */
        "exceeds the available context size", /* llama.cpp */
        "prompt is too long",                 /* Anthropic */
        "context_length_exceeded",            /* OpenAI's code */
    };
    return says_any(message, words, sizeof words / sizeof words[0]);
}

bool verdict_adapter_is_unknown(struct slice message)
{
    static const char *const words[] = {
        "LoRA adapter that has never been loaded",
        "LoRA adapters are not loaded",
        "but LoRA is not enabled",
    };
    return says_any(message, words, sizeof words / sizeof words[0]);
}

/* Returns true for vLLM's message during a drain, in which /health stays 200. */
static bool engine_drains(struct slice message)
{
    return says(message, "cannot schedule new futures after shutdown");
}

/* Judges a 5xx without a more specific rule, or an error event without a status. Client errors are
 * not examined, because an engine repeats the client's text in their messages. */
static struct verdict_judgement judge_error(struct slice message)
{
    struct verdict_judgement j = {VERDICT_IN_DOUBT, NODE_OUTCOME_ENGINE_ERROR, RETRY_ERROR, false};
    j.core_dead = core_is_dead(message);
    bool drains = engine_drains(message);
    if (j.core_dead || drains)
        j.verdict = VERDICT_ELSEWHERE;
    if (drains)
        j.reason = RETRY_DRAINS;
    return j;
}

struct verdict_judgement verdict_of_answer(unsigned status, struct slice message)
{
    if (status == 400 && slice_starts_with(message, SLICE("503: ")))
        status = 503;
    switch (status) {
    case 429:
    case 503:
    case 529: /* Anthropic's "overloaded" */
        return (struct verdict_judgement){VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_BUSY, RETRY_BUSY,
                                          false};
    case 502:
    case 504:
        return (struct verdict_judgement){VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_ERROR,
                                          RETRY_GATEWAY, false};
    case 501: /* not implemented */
    case 505:
        return (struct verdict_judgement){VERDICT_CLIENT, NODE_OUTCOME_ENGINE_ERROR, RETRY_ERROR,
                                          false};
    default:
        break;
    }
    if (status == 0 || status >= 500)
        return judge_error(message);
    return (struct verdict_judgement){VERDICT_CLIENT, NODE_OUTCOME_REJECTED, RETRY_ERROR, false};
}

struct verdict_judgement verdict_of_abort(void)
{
    return (struct verdict_judgement){VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_ERROR, RETRY_ABORTED,
                                      false};
}
