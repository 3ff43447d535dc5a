/* Traces with a file per session: coding agents (ids) and software-engineering agents (text). */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/prng.h"
#include "tests/bench/replay/text.h"
#include "tests/bench/replay/trace.h"

struct files {
    char **paths;
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void files_free(struct files *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->paths[i]);
    free(f->paths);
}

/* The files of a folder that end in `suffix`, in an order that depends only on the seed. */
static int files_list(struct files *f, const char *dir, const char *suffix, uint64_t seed)
{
    *f = (struct files){0};
    DIR *d = opendir(dir);
    if (d == NULL)
        return ERR_NOT_FOUND;
    struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        if (!slice_ends_with(slice_of_cstr(e->d_name), slice_of_cstr(suffix)))
            continue;
        char **paths = realloc(f->paths, (f->count + 1) * sizeof *paths);
        CHECK(paths != NULL);
        f->paths = paths;
        CHECK(asprintf(&f->paths[f->count], "%s/%s", dir, e->d_name) > 0);
        f->count++;
    }
    (void)closedir(d);
    if (f->count == 0)
        return ERR_NOT_FOUND;
    qsort(f->paths, f->count, sizeof *f->paths, by_name);
    struct prng random;
    prng_seed(&random, seed);
    for (size_t i = f->count - 1; i > 0; i--) {
        size_t j = (size_t)prng_below(&random, i + 1);
        char *swap = f->paths[i];
        f->paths[i] = f->paths[j];
        f->paths[j] = swap;
    }
    return 0;
}

/* Enough sessions to reach requests_max without running dry towards the end. */
static bool enough(const struct trace *t, const struct trace_options *o, size_t *beyond)
{
    if (o->requests_max == 0 || t->turn_count < o->requests_max)
        return false;
    return ++*beyond > o->sessions;
}

static struct slice base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct slice name = slice_of_cstr(slash == NULL ? path : slash + 1);
    return slice_of(name.at, slice_find(name, '.'));
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static double think(double seconds, const struct trace_options *o)
{
    if (seconds < 0)
        return 0;
    return seconds > o->think_max_s ? o->think_max_s : seconds;
}

/* Ids are local to the session. As in the publisher's own default, the first half of tools and
 * system prompt is the same text in all sessions. */
static void coding_session(struct trace *t, const char *path, const json_t *doc, uint64_t seed,
                           const struct trace_options *o)
{
    (void)trace_add_session(t, base_name(path), seed);
    uint32_t common = (uint32_t)((number(doc, "tool_tokens") + number(doc, "system_tokens")) / 2 /
                                 t->block_tokens);
    struct trace_ids before = {0}, ids = {0};
    size_t i, k;
    json_t *request, *id;
    json_array_foreach(json_object_get(doc, "requests"), i, request)
    {
        json_t *hash_ids = json_object_get(request, "hash_ids");
        uint32_t in = (uint32_t)number(request, "in");
        if (hash_ids == NULL || in > o->prompt_max) /* without ids: the summary of a sub-agent */
            continue;
        ids.count = 0;
        json_array_foreach(hash_ids, k, id)
        {
            uint32_t v = (uint32_t)json_integer_value(id);
            trace_ids_push(&ids, v <= common ? v | ID_SHARED | ID_SYSTEM : v);
        }
        struct trace_turn *turn = trace_add_turn_ids(t, &before, &ids);
        turn->in = in;
        turn->out = (uint32_t)number(request, "out");
        turn->think_s = think(number(request, "think_time"), o);
    }
    free(before.at);
    free(ids.at);
    trace_drop_empty(t);
}

int trace_load_coding(struct trace *t, const char *dir, const struct trace_options *o)
{
    struct files files;
    int err = files_list(&files, dir, ".json", o->seed);
    size_t beyond = 0;
    for (size_t i = 0; err == 0 && i < files.count && !enough(t, o, &beyond); i++) {
        json_error_t where;
        json_t *doc = json_load_file(files.paths[i], 0, &where);
        if (doc == NULL) {
            (void)fprintf(stderr, "replay: %s:%d: %s\n", files.paths[i], where.line, where.text);
            err = ERR_SYNTAX;
            break;
        }
        coding_session(t, files.paths[i], doc, o->seed * 1000003 + i + 1, o);
        json_decref(doc);
    }
    files_free(&files);
    return err;
}

struct step {
    double at_us;
    json_t *line;
};

static int by_time(const void *a, const void *b)
{
    double x = ((const struct step *)a)->at_us, y = ((const struct step *)b)->at_us;
    return x < y ? -1 : x > y;
}

/* The lines of a run, sorted by time: the publisher wrote them in logging order. */
static int miniswe_session(struct trace *t, const char *path, uint64_t seed,
                           const struct trace_options *o)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return ERR_NOT_FOUND;
    (void)trace_add_session(t, base_name(path), seed);
    struct step *steps = NULL;
    size_t count = 0, cap = 0;
    json_t *line;
    while ((line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        if (count == cap) {
            cap = cap == 0 ? 64 : cap * 2;
            steps = realloc(steps, cap * sizeof *steps);
            CHECK(steps != NULL);
        }
        steps[count++] = (struct step){number(line, "timestamp"), line};
    }
    (void)fclose(f);
    if (count > 0)
        qsort(steps, count, sizeof *steps, by_time);
    for (size_t i = 0; i < count; i++) {
        struct slice in = slice_of_cstr(json_string_value(json_object_get(steps[i].line, "input")));
        struct slice out =
            slice_of_cstr(json_string_value(json_object_get(steps[i].line, "output")));
        struct trace_turn *turn = trace_add_turn(t);
        turn->text_at = t->texts.len;
        text_escape(&t->texts, in);
        turn->text_len = t->texts.len - turn->text_at;
        turn->in = (uint32_t)(in.len / 4);
        turn->out = (uint32_t)(out.len / 4) + 1;
        if (i > 0)
            turn->think_s = think((steps[i].at_us - steps[i - 1].at_us) / 1e6, o);
        json_decref(steps[i].line);
    }
    free(steps);
    return count > 0 ? 0 : ERR_SYNTAX;
}

int trace_load_miniswe(struct trace *t, const char *dir, const struct trace_options *o)
{
    struct files files;
    int err = files_list(&files, dir, ".jsonl", o->seed);
    size_t beyond = 0;
    for (size_t i = 0; err == 0 && i < files.count && !enough(t, o, &beyond); i++)
        err = miniswe_session(t, files.paths[i], o->seed * 1000003 + i + 1, o);
    files_free(&files);
    return err;
}
