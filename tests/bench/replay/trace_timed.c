/* Traces with a line per request and a time of arrival: every request is a session with a single
 * turn. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/prng.h"
#include "tests/bench/replay/trace.h"

static int by_start(const void *a, const void *b)
{
    double x = ((const struct trace_session *)a)->start_s;
    double y = ((const struct trace_session *)b)->start_s;
    return x < y ? -1 : x > y;
}

static bool enough(const struct trace *t, const struct trace_options *o)
{
    return o->requests_max != 0 && t->turn_count >= o->requests_max;
}

static struct trace_turn *arrival(struct trace *t, double at_s, const struct trace_options *o,
                                  struct prng *random)
{
    char name[48];
    (void)snprintf(name, sizeof name, "r%zu", t->session_count);
    struct trace_session *s =
        trace_add_session(t, slice_of_cstr(name), o->seed * 1000003 + t->session_count + 1);
    s->start_s = at_s + prng_unit(random) * o->spread_ms / 1000;
    return trace_add_turn(t);
}

/* Mooncake: equal ids are equal prefixes up to and including the block of 512 tokens. */
int trace_load_conversation(struct trace *t, const char *file, const struct trace_options *o)
{
    FILE *f = fopen(file, "rb");
    if (f == NULL)
        return ERR_NOT_FOUND;
    t->timed = true;
    t->block_tokens = 512;
    t->cut_blocks = 4;
    struct prng random;
    prng_seed(&random, o->seed);
    json_t *line;
    while (!enough(t, o) && (line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        double at_s = json_number_value(json_object_get(line, "timestamp")) / 1000;
        struct trace_turn *turn = arrival(t, at_s, o, &random);
        turn->in = (uint32_t)json_integer_value(json_object_get(line, "input_length"));
        turn->out = (uint32_t)json_integer_value(json_object_get(line, "output_length"));
        size_t i;
        json_t *id;
        json_array_foreach(json_object_get(line, "hash_ids"), i, id)
            trace_add_id(t, (uint32_t)json_integer_value(id) | ID_SHARED);
        json_decref(line);
    }
    (void)fclose(f);
    if (t->session_count > 0)
        qsort(t->sessions, t->session_count, sizeof *t->sessions, by_start);
    return 0;
}

/* Azure: arrivals and lengths only, so every prompt is new text. */
int trace_load_azure(struct trace *t, const char *file, const struct trace_options *o)
{
    FILE *f = fopen(file, "rb");
    if (f == NULL)
        return ERR_NOT_FOUND;
    t->timed = true;
    struct prng random;
    prng_seed(&random, o->seed);
    char line[256];
    double first_s = -1;
    while (!enough(t, o) && fgets(line, sizeof line, f) != NULL) {
        int day, hour, minute;
        double second;
        unsigned in, out;
        /* NOLINTNEXTLINE(cert-err34-c): an invalid line is skipped, the header is one */
        if (sscanf(line, "%*d-%*d-%d %d:%d:%lf,%u,%u", &day, &hour, &minute, &second, &in, &out) !=
            6)
            continue;
        double at_s = ((day * 24.0 + hour) * 60 + minute) * 60 + second;
        if (first_s < 0)
            first_s = at_s;
        struct trace_turn *turn = arrival(t, at_s - first_s, o, &random);
        turn->in = in;
        turn->out = out;
        for (uint32_t i = 0; i < in / t->block_tokens; i++)
            trace_add_id(t, i + 1);
    }
    (void)fclose(f);
    if (t->session_count > 0)
        qsort(t->sessions, t->session_count, sizeof *t->sessions, by_start);
    return 0;
}
