#include "tests/bench/replay/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

/* Makes room for another element; the array doubles. */
static void *grown(void *array, size_t count, size_t *cap, size_t element_bytes)
{
    if (count < *cap)
        return array;
    *cap = *cap == 0 ? 256 : *cap * 2;
    array = realloc(array, *cap * element_bytes);
    CHECK(array != NULL);
    return array;
}

struct trace_session *trace_add_session(struct trace *t, struct slice name, uint64_t seed)
{
    t->sessions = grown(t->sessions, t->session_count, &t->session_cap, sizeof *t->sessions);
    struct trace_session *s = &t->sessions[t->session_count++];
    *s = (struct trace_session){.seed = seed, .turn_first = t->turn_count};
    (void)slice_to_cstr(name, s->name, sizeof s->name);
    return s;
}

struct trace_turn *trace_add_turn(struct trace *t)
{
    CHECK(t->session_count > 0);
    t->turns = grown(t->turns, t->turn_count, &t->turn_cap, sizeof *t->turns);
    struct trace_turn *turn = &t->turns[t->turn_count++];
    *turn = (struct trace_turn){.id_first = t->id_count};
    t->sessions[t->session_count - 1].turn_count++;
    return turn;
}

void trace_add_id(struct trace *t, uint32_t id)
{
    CHECK(t->turn_count > 0);
    t->ids = grown(t->ids, t->id_count, &t->id_cap, sizeof *t->ids);
    t->ids[t->id_count++] = id;
    t->turns[t->turn_count - 1].more++;
}

void trace_drop_empty(struct trace *t)
{
    if (t->session_count > 0 && t->sessions[t->session_count - 1].turn_count == 0)
        t->session_count--;
}

void trace_ids_push(struct trace_ids *ids, uint32_t id)
{
    ids->at = grown(ids->at, ids->count, &ids->cap, sizeof *ids->at);
    ids->at[ids->count++] = id;
}

struct trace_turn *trace_add_turn_ids(struct trace *t, struct trace_ids *before,
                                      const struct trace_ids *ids)
{
    struct trace_turn *turn = trace_add_turn(t);
    size_t keep = 0;
    while (keep < before->count && keep < ids->count && before->at[keep] == ids->at[keep])
        keep++;
    turn->keep = (uint32_t)keep;
    before->count = keep;
    for (size_t i = keep; i < ids->count; i++) {
        trace_add_id(t, ids->at[i]);
        trace_ids_push(before, ids->at[i]);
    }
    return turn;
}

void trace_free(struct trace *t)
{
    free(t->sessions);
    free(t->turns);
    free(t->ids);
    buf_free(&t->texts);
    *t = (struct trace){0};
}

int trace_load(struct trace *t, const char *spec, const struct trace_options *options)
{
    static const struct {
        const char *prefix;
        int (*load)(struct trace *, const char *, const struct trace_options *);
    } KINDS[] = {
        {"coding:", trace_load_coding},
        {"conversation:", trace_load_conversation},
        {"miniswe:", trace_load_miniswe},
        {"azure:", trace_load_azure},
    };
    *t = (struct trace){.block_tokens = 64, .cut_blocks = 16};
    if (strcmp(spec, "demo") == 0)
        return trace_load_demo(t, options);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        size_t n = strlen(KINDS[i].prefix);
        if (strncmp(spec, KINDS[i].prefix, n) != 0)
            continue;
        int err = KINDS[i].load(t, spec + n, options);
        if (err == 0 && t->turn_count == 0)
            err = ERR_NOT_FOUND;
        if (err != 0)
            (void)fprintf(stderr, "replay: trace %s: %s\n", spec, err_text(err));
        return err;
    }
    (void)fprintf(stderr,
                  "replay: --trace \"%s\" is not known; it is demo, coding:DIR, conversation:FILE, "
                  "miniswe:DIR or azure:FILE\n",
                  spec);
    return ERR_UNSUPPORTED;
}
