#include "node/gvctl/show.h"

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

static json_t *parse(struct slice text)
{
    return json_loadb(text.at, text.len, 0, NULL);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

int show_replicas(struct slice text)
{
    json_t *list = parse(text);
    if (!json_is_array(list)) {
        json_decref(list);
        return ERR_SYNTAX;
    }
    printf("%-28s %-9s %-7s %8s %8s %9s %10s %9s %9s %9s\n", "REPLICA", "HEALTH", "ENGINE",
           "CHOSEN", "REQUESTS", "QUEUE s", "PREFILL/s", "CACHE", "HELD", "RESTARTS");
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
    {
        const json_t *load = json_object_get(r, "load");
        const json_t *learned = json_object_get(r, "learned");
        const json_t *cache = json_object_get(r, "cache");
        printf("%-28s %-9s %-7s %8.0f %8.0f %9.3f %10.0f %8.0fk %8.0fk %9.0f\n", text_of(r, "name"),
               json_is_true(json_object_get(r, "backing_off")) ? "avoided" : text_of(r, "health"),
               text_of(r, "engine"), number_of(r, "chosen"), number_of(load, "requests"),
               number_of(load, "queue_s"), number_of(learned, "prefill_tokens_per_s"),
               number_of(cache, "tokens") / 1000, number_of(cache, "present_bytes") / 4000,
               number_of(r, "restarts"));
    }
    printf("\nCACHE and HELD are thousands of tokens: the size of the replica's KV cache, and how "
           "much of it\nthis router believes to be filled (at 4 bytes a token).\n");
    json_decref(list);
    return 0;
}

int show_explain(struct slice text)
{
    json_t *e = parse(text);
    if (!json_is_object(e)) {
        json_decref(e);
        return ERR_SYNTAX;
    }
    const char *error = json_string_value(json_object_get(e, "error"));
    if (error != NULL) {
        printf("policy %s: %s (model \"%s\")\n", text_of(e, "policy"), error, text_of(e, "model"));
        json_decref(e);
        return 0;
    }
    printf("policy %s, about %.0f prompt tokens, %.0f expected output tokens, %.0f checkpoints\n\n",
           text_of(e, "policy"), number_of(e, "prompt_tokens"), number_of(e, "output_tokens"),
           number_of(e, "checkpoints"));
    printf("  %-28s %9s %9s %10s %12s %10s %10s\n", "REPLICA", "CACHED", "QUEUE s", "UNCACHED s",
           "DISPLACED s", "DECODE s", "COST s");
    const char *choice = text_of(e, "choice");
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(e, "replicas"), i, r)
    {
        const char *name = text_of(r, "replica");
        printf("%c %-28s %9.0f %9.3f %10.3f %12.3f %10.3f %10.3f\n",
               strcmp(name, choice) == 0 ? '>' : ' ', name, number_of(r, "cached_tokens"),
               number_of(r, "queue_s"), number_of(r, "uncached_s"), number_of(r, "displaced_s"),
               number_of(r, "decode_s"), number_of(r, "cost_s"));
    }
    json_array_foreach(json_object_get(e, "left_out"), i, r)
    {
        printf("- %-28s %s\n", text_of(r, "replica"), text_of(r, "why"));
    }
    if (strcmp(text_of(e, "policy"), "cache_aware") != 0)
        printf("\nThe choice is the policy's own; the costs are what cache_aware would weigh.");
    printf("\ncost = queue + uncached + %g x displaced + %g x decode; > marks the choice "
           "(near-equal costs are drawn among)\n",
           number_of(e, "displaced_weight"), number_of(e, "decode_weight"));
    json_decref(e);
    return 0;
}

void show_error(int status, struct slice text)
{
    json_t *body = parse(text);
    const char *message =
        json_string_value(json_object_get(json_object_get(body, "error"), "message"));
    if (message != NULL)
        (void)fprintf(stderr, "gvctl: %s (%d)\n", message, status);
    else
        (void)fprintf(stderr, "gvctl: %d: %.*s\n", status, SLICE_ARG(text));
    json_decref(body);
}
