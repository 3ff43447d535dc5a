/* Workloads from the traces of ../shared/traces (the README.md there gives the sources). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/bench/quality/workload.h"
#include "tests/lib/coding_sessions.h"

enum { CODING_PROMPT_MAX = 128000 };
static const double think_max_s = 60;

static void coding_free(void *units)
{
    coding_sessions_free(units);
    free(units);
}

static struct talk coding_talk(const struct session *s)
{
    struct talk t = {.count = s->count, .asks = calloc(s->count, sizeof *t.asks)};
    CHECK(t.asks != NULL);
    (void)snprintf(t.session, sizeof t.session, "%.31s", s->id);
    for (unsigned j = 0; j < s->count; j++) {
        const struct session_request *q = &s->requests[j];
        t.asks[j] = (struct ask){
            .think_s = q->think_s < think_max_s ? q->think_s : think_max_s,
            .output_tokens = q->output_tokens ? q->output_tokens : 1,
            .prompt = {.unit_tokens = SESSION_BLOCK_TOKENS,
                       .count = q->block_count,
                       .units = q->blocks,
                       .tail_tokens = q->prompt_tokens - q->block_count * SESSION_BLOCK_TOKENS},
        };
    }
    return t;
}

bool workload_coding(struct workload *out, const char *folder, unsigned half, unsigned talks_max)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/coding", folder);
    struct coding_sessions *all = calloc(1, sizeof *all);
    CHECK(all != NULL);
    if (coding_sessions_load(all, path, talks_max, CODING_PROMPT_MAX) != ERR_OK) {
        free(all);
        return false;
    }
    unsigned from = half == 2 ? all->count / 2 : 0;
    unsigned to = half == 1 ? all->count / 2 : all->count;
    *out = (struct workload){.count = to - from, .units = all, .units_free = coding_free};
    out->talks = calloc(out->count, sizeof *out->talks);
    CHECK(out->talks != NULL);
    for (unsigned i = from; i < to; i++)
        out->talks[i - from] = coding_talk(&all->sessions[i]);
    return true;
}

/* --- one request each, at its time ------------------------------------------------------------ */

struct list { /* memory that prompts borrow */
    struct list *next;
    uint32_t units[];
};

struct singles {
    struct workload *w;
    unsigned room;
    uint32_t next_unit;
};

static void list_free(void *units)
{
    for (struct list *l = units, *next; l; l = next) {
        next = l->next;
        free(l);
    }
}

/* Returns the units, for the caller to fill in. */
static uint32_t *single_add(struct singles *s, double start_s, struct prompt prompt,
                            unsigned output)
{
    struct workload *w = s->w;
    if (w->count == s->room) {
        s->room = s->room ? s->room * 2 : 1024;
        w->talks = realloc(w->talks, s->room * sizeof *w->talks);
    }
    struct list *l = malloc(sizeof *l + prompt.count * sizeof *l->units);
    struct ask *a = calloc(1, sizeof *a);
    CHECK(w->talks != NULL && l != NULL && a != NULL);
    l->next = w->units;
    w->units = l;
    prompt.units = l->units;
    *a = (struct ask){.prompt = prompt, .output_tokens = output ? output : 1};
    struct talk *t = &w->talks[w->count++];
    *t = (struct talk){.start_s = start_s, .count = 1, .asks = a};
    (void)snprintf(t->session, sizeof t->session, "request-%u", w->count);
    return l->units;
}

static void conversation_add(struct singles *s, const json_t *json)
{
    enum { UNIT = 512 };
    static const double rounded_s = 3, places = 11;
    const json_t *ids = json_object_get(json, "hash_ids");
    uint32_t tokens = (uint32_t)json_integer_value(json_object_get(json, "input_length"));
    uint32_t count = (uint32_t)json_array_size(ids);
    count = count > tokens / UNIT ? tokens / UNIT : count;
    double at_s = json_number_value(json_object_get(json, "timestamp")) / 1000 +
                  (s->w->count % (unsigned)places) * rounded_s / places;
    uint32_t *units = single_add(
        s, at_s,
        (struct prompt){.unit_tokens = UNIT, .count = count, .tail_tokens = tokens - count * UNIT},
        (unsigned)json_integer_value(json_object_get(json, "output_length")));
    for (uint32_t i = 0; i < count; i++)
        units[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
}

static bool azure_add(struct singles *s, const char *line)
{
    enum { UNIT = 64 };
    unsigned day, hour, minute, tokens, output;
    double second;
    if (sscanf(line, "%*u-%*u-%u %u:%u:%lf,%u,%u", &day, &hour, &minute, &second, &tokens,
               &output) != 6 ||
        tokens == 0)
        return false;
    double at_s = ((day * 24.0 + hour) * 60 + minute) * 60 + second;
    uint32_t count = tokens / UNIT;
    uint32_t *units = single_add(
        s, at_s, (struct prompt){.unit_tokens = UNIT, .count = count, .tail_tokens = tokens % UNIT},
        output);
    for (uint32_t i = 0; i < count; i++)
        units[i] = s->next_unit++;
    return true;
}

static bool lines_read(struct workload *out, const char *folder, const char *file, bool azure)
{
    enum { LINE_MAX_BYTES = 1 << 16 };
    static char line[LINE_MAX_BYTES];
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *from = fopen(path, "r");
    if (!from)
        return false;
    *out = (struct workload){.open = true, .units_free = list_free};
    struct singles s = {.w = out};
    while (fgets(line, sizeof line, from)) {
        json_t *json = azure ? NULL : json_loads(line, 0, NULL);
        if (json)
            conversation_add(&s, json);
        else if (azure)
            (void)azure_add(&s, line);
        json_decref(json);
    }
    (void)fclose(from);
    double first_s = out->count > 0 ? out->talks[0].start_s : 0;
    for (unsigned i = 0; i < out->count; i++)
        out->talks[i].start_s -= first_s;
    return out->count > 0;
}

bool workload_conversation(struct workload *out, const char *folder)
{
    return lines_read(out, folder, "conversation/conversation.jsonl", false);
}

bool workload_azure(struct workload *out, const char *folder)
{
    return lines_read(out, folder, "azure/azure.csv", true);
}
