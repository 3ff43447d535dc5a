/* Workloads from the traces of ../shared/traces (its README.md says where they come from). */
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
