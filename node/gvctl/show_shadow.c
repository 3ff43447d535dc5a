/* Shows how the routers' policy compares with a plain policy: in shadow mode, or by a control
 * group. */
#include "node/gvctl/show_internal.h"
#include "node/route/shadow.h"

/* Sums over the routers in the same mode. */
struct side {
    double requests, prompt_tokens, cached_tokens, first_tokens, ttft_s;
};

struct comparison {
    unsigned routers;
    struct side plain, policy;
    double moved, control_share;
    double minutes; /* duration of the sums, at most 60 */
    const char *plain_name, *policy_name;
};

static void side_add(struct side *s, const json_t *from)
{
    s->requests += fields_number(from, "requests");
    s->prompt_tokens += fields_number(from, "prompt_tokens");
    s->cached_tokens += fields_number(from, "cached_tokens");
    s->first_tokens += fields_number(from, "first_tokens");
    s->ttft_s += fields_number(from, "ttft_sum_s");
}

/* Adds the sums of a router under `key`: "hour" for the last hour, or "shadow" for all time in
 * shadow mode. */
static void comparison_add(struct comparison *c, const json_t *shadow, const char *key)
{
    const json_t *sums = json_object_get(shadow, key);
    c->routers++;
    c->plain_name = fields_text(shadow, "plain_policy");
    c->policy_name = fields_text(shadow, "policy");
    c->control_share = fields_number(shadow, "control_share");
    double minutes = fields_number(shadow, "minutes");
    c->minutes = minutes > c->minutes ? minutes : c->minutes;
    side_add(&c->plain, json_object_get(sums, "plain"));
    side_add(&c->policy, json_object_get(sums, "policy"));
    c->moved += fields_number(sums, "moved");
}

static const char *percent(const struct side *s, char out[24])
{
    if (s->prompt_tokens > 0)
        (void)snprintf(out, 24, "%.0f %%", 100 * s->cached_tokens / s->prompt_tokens);
    else
        (void)snprintf(out, 24, "an unknown share");
    return out;
}

static const char *mean_ttft(const struct side *s, char out[24])
{
    double seconds = s->ttft_s / s->first_tokens;
    if (seconds < 1)
        (void)snprintf(out, 24, "%.0f ms", 1000 * seconds);
    else
        (void)snprintf(out, 24, "%.2f s", seconds);
    return out;
}

/* Returns "in the last hour", or the time since the mode began. */
static const char *period(const struct comparison *c, char out[40])
{
    if (c->minutes >= NODE_SHADOW_MINUTES || c->minutes <= 0)
        (void)snprintf(out, 40, "in the last hour");
    else if (c->minutes <= 1)
        (void)snprintf(out, 40, "in the last minute");
    else
        (void)snprintf(out, 40, "in the last %.0f minutes", c->minutes);
    return out;
}

static void show_ttft(const struct comparison *c, const char *after)
{
    char plain[24], policy[24];
    if (c->plain.first_tokens > 0 && c->policy.first_tokens > 0)
        printf("Mean time to first token: %s with %s, %s with %s%s.\n", mean_ttft(&c->plain, plain),
               c->plain_name, mean_ttft(&c->policy, policy), c->policy_name, after);
}

static const char how_to_tell[] =
    "vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report";

static void show_untold(const struct comparison *c)
{
    if (c->plain.requests > 0 && c->plain.prompt_tokens == 0)
        printf("The engines' answers do not report cached tokens (%s).\n", how_to_tell);
}

/* If some engines do not report cached tokens, the two shares cover different requests. */
static void show_told(const struct comparison *c)
{
    double told = c->plain.prompt_tokens / c->policy.prompt_tokens;
    if (told > 0 && told < 0.98)
        printf("Of %.0f %% of the prompt tokens, answers report how many were cached: the share as "
               "it is counts these alone (%s).\n",
               100 * told, how_to_tell);
}

static void show_before(const struct comparison *before)
{
    char plain[24], policy[24];
    if (before->plain.requests > 0)
        printf("Before the switch, shadow mode measured %s from cache and predicted %s.\n",
               percent(&before->plain, plain), percent(&before->policy, policy));
}

static void show_on(const struct comparison *c)
{
    char as_it_is[24], predicted[24], when[40];
    if (c->plain.requests == 0) {
        printf("Shadow mode is on; no request has ended in the last hour.\n");
        return;
    }
    printf("Prompt tokens from cache %s: %s with %s (in use), %s with %s (predicted).\n",
           period(c, when), percent(&c->plain, as_it_is), c->plain_name,
           percent(&c->policy, predicted), c->policy_name);
    printf("%s would have sent %.0f %% of %.0f requests to another replica.\n", c->policy_name,
           100 * c->moved / c->plain.requests, c->plain.requests);
    show_ttft(c, " (predicted)");
    show_untold(c);
    show_told(c);
    if (c->minutes > 0 && c->minutes < NODE_SHADOW_MINUTES)
        printf(
            "The prediction starts with empty caches and rises as they fill: wait for an hour.\n");
}

static void show_control(const struct comparison *c, const struct comparison *before)
{
    char here[24], control[24], when[40];
    if (c->plain.requests + c->policy.requests == 0) {
        printf("A control group is running; no request has ended in the last hour.\n");
        show_before(before);
        return;
    }
    printf("Prompt tokens from cache %s: %s with %s, %s with %s (control group).\n",
           period(c, when), percent(&c->policy, here), c->policy_name, percent(&c->plain, control),
           c->plain_name);
    printf("The control group has %.0f of %.0f requests (control-share: %g %% of conversations).\n",
           c->plain.requests, c->plain.requests + c->policy.requests, 100 * c->control_share);
    show_ttft(c, "");
    show_untold(c);
    show_before(before);
}

/* Names routers that are not in the mode of the others, or did not answer. */
static void show_others(json_t *nodes, const char *mode)
{
    const char *name;
    json_t *node;
    json_object_foreach(nodes, name, node)
    {
        const json_t *shadow = json_object_get(node, "shadow");
        if (json_object_get(node, "error") != NULL)
            printf("%s did not answer and is not counted.\n", name);
        else if (shadow == NULL || !fields_equal(shadow, "mode", mode))
            printf("%s has other settings for shadow or control-share and is not counted: all "
                   "routers need the same.\n",
                   name);
    }
}

int show_shadow(const struct show *how, const json_t *answer)
{
    json_t *nodes = json_object_get(answer, "nodes");
    struct comparison on = {0}, control = {0}, before = {0};
    const char *name;
    json_t *node;
    (void)how;
    if (!json_is_object(nodes))
        return ERR_SYNTAX;
    json_object_foreach(nodes, name, node)
    {
        const json_t *shadow = json_object_get(node, "shadow");
        if (shadow == NULL)
            continue;
        if (fields_equal(shadow, "mode", "shadow"))
            comparison_add(&on, shadow, "hour");
        if (fields_equal(shadow, "mode", "control"))
            comparison_add(&control, shadow, "hour");
        comparison_add(&before, shadow, "shadow");
    }
    if (on.routers > 0)
        show_on(&on);
    else if (control.routers > 0)
        show_control(&control, &before);
    else {
        printf("Neither shadow mode nor a control group is on. Set shadow: on, or control-share: "
               "0.05, and reload.\n");
        show_before(&before);
    }
    if (on.routers + control.routers > 0)
        show_others(nodes, on.routers > 0 ? "shadow" : "control");
    return 0;
}
