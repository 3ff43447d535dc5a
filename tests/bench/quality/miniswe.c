/* Agent runs with the whole text of their prompts: prompts share as much as their texts. */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/bench/quality/workload.h"

enum { UNIT_TOKENS = 16, UNIT_BYTES = 58, RUNS_MAX = 256, ASKS_MAX = 512 };
static const double bytes_per_token = 3.6, step_s = 0.02, think_max_s = 60;

struct text { /* text that prompts borrow */
    struct text *next;
    uint32_t units[];
};

static void texts_free(void *units)
{
    for (struct text *t = units, *next; t; t = next) {
        next = t->next;
        free(t);
    }
}

static uint32_t unit_of(const char *at)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < UNIT_BYTES; i++)
        hash = hash_mix(hash * 31 + (unsigned char)at[i]);
    return (uint32_t)hash & ~PROMPT_IMAGE;
}

static void ask_read(struct workload *w, struct ask *a, const json_t *json)
{
    const json_t *input = json_object_get(json, "input"), *output = json_object_get(json, "output");
    const char *at = json_string_value(input);
    size_t bytes = json_string_length(input), count = bytes / UNIT_BYTES;
    struct text *t = malloc(sizeof *t + (count + 1) * sizeof *t->units);
    CHECK(at != NULL && t != NULL);
    t->next = w->units;
    w->units = t;
    for (size_t i = 0; i < count; i++)
        t->units[i] = unit_of(at + i * UNIT_BYTES);
    a->prompt = (struct prompt){.unit_tokens = UNIT_TOKENS,
                                .count = (uint32_t)count,
                                .units = t->units,
                                .tail_tokens = 1 + (uint32_t)(bytes % UNIT_BYTES) / 4};
    a->output_tokens = 1 + (uint32_t)((double)json_string_length(output) / bytes_per_token);
}

/* An agent's requests, in the order of the file. The pauses are the times between requests. */
static void run_read(struct workload *w, const char *path)
{
    FILE *from = fopen(path, "r");
    struct talk *t = &w->talks[w->count];
    double before_s = 0;
    json_t *json;
    if (!from)
        return;
    t->asks = calloc(ASKS_MAX, sizeof *t->asks);
    CHECK(t->asks != NULL);
    while (t->count < ASKS_MAX && (json = json_loadf(from, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        struct ask *a = &t->asks[t->count];
        double at_s = (double)json_integer_value(json_object_get(json, "timestamp")) / 1e6;
        double answer_s = t->count > 0 ? step_s * a[-1].output_tokens : at_s - before_s;
        ask_read(w, a, json);
        a->think_s = fmin(fmax(at_s - before_s - answer_s, 0), think_max_s);
        before_s = fmax(at_s, before_s);
        t->count++;
        json_decref(json);
    }
    (void)fclose(from);
    (void)snprintf(t->session, sizeof t->session, "run-%u", w->count);
    if (t->count > 0)
        w->count++;
    else
        free(t->asks);
}

bool workload_miniswe(struct workload *out, const char *folder)
{
    char path[4096];
    struct dirent **names;
    (void)snprintf(path, sizeof path, "%s/miniswe", folder);
    int count = scandir(path, &names, NULL, alphasort);
    if (count < 0)
        return false;
    *out =
        (struct workload){.talks = calloc(RUNS_MAX, sizeof *out->talks), .units_free = texts_free};
    CHECK(out->talks != NULL);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/miniswe/%s", folder, names[i]->d_name);
        if (strstr(names[i]->d_name, ".jsonl") && out->count < RUNS_MAX)
            run_read(out, path);
        free(names[i]);
    }
    free(names);
    return out->count > 0;
}
