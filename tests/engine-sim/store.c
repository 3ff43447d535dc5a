#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/engine-sim/job.h"

struct sim_stored {
    struct sim_stored *next; /* older */
    struct sim_job *job;     /* NULL: the answer is complete */
    char id[SIM_ID_BYTES];
    bool background;
    struct buf body;
    struct sim_chain chain;
};

static struct sim_stored *find(const struct sim_engine *e, struct slice id)
{
    struct sim_stored *s = e->stored;
    while (s != NULL && !slice_equal(id, slice_of_cstr(s->id)))
        s = s->next;
    return s;
}

static void stored_free(struct sim_stored *s)
{
    buf_free(&s->body);
    sim_chain_free(&s->chain);
    free(s);
}

static void drop_oldest(struct sim_engine *e)
{
    struct sim_stored **at = &e->stored;
    while ((*at)->next != NULL)
        at = &(*at)->next;
    stored_free(*at);
    *at = NULL;
    e->stored_count--;
}

void sim_store_put(struct sim_job *job, const char *status)
{
    struct sim_engine *e = job->engine;
    struct sim_stored *s = find(e, slice_of_cstr(job->id));
    if (s == NULL) {
        if (e->stored_count == SIM_STORED_MAX)
            drop_oldest(e);
        s = calloc(1, sizeof *s);
        CHECK(s != NULL);
        (void)slice_to_cstr(slice_of_cstr(job->id), s->id, sizeof s->id);
        s->next = e->stored;
        s->background = job->conn == NULL;
        e->stored = s;
        e->stored_count++;
    }
    bool over = job->request.state == SIM_DONE;
    s->job = over ? NULL : job;
    buf_clear(&s->body);
    sim_response_write(job, status, &s->body);
    sim_chain_free(&s->chain);
    if (over)
        sim_chain_copy(&s->chain, &job->request.chain);
}

int sim_store_chain(struct sim_engine *e, struct slice id, struct sim_chain *chain)
{
    const struct sim_stored *s = find(e, id);
    if (s == NULL || s->chain.tokens == 0)
        return ERR_NOT_FOUND;
    sim_chain_copy(chain, &s->chain);
    return 0;
}

static struct sim_stored *find_or_404(struct sim_engine *e, struct sim_conn *c, struct slice id)
{
    struct sim_stored *s = find(e, id);
    if (s == NULL)
        sim_answer_error(e, c, 404, "NotFoundError", "response_id",
                         "Response with id '%.*s' not found.", SLICE_ARG(id));
    return s;
}

void sim_store_answer(struct sim_engine *e, struct sim_conn *c, struct slice id)
{
    struct sim_stored *s = find_or_404(e, c, id);
    if (s == NULL)
        return;
    if (s->job != NULL)
        sim_store_put(s->job, s->job->request.generated > 0 ? "in_progress" : "queued");
    sim_answer_json(c, 200, &s->body);
}

void sim_store_cancel(struct sim_engine *e, struct sim_conn *c, struct slice id)
{
    struct sim_stored *s = find_or_404(e, c, id);
    if (s == NULL)
        return;
    if (!s->background) {
        sim_answer_error(e, c, 400, NULL, "response_id", "Cannot cancel a synchronous response.");
        return;
    }
    if (s->job != NULL)
        sim_job_abort(s->job);
    sim_answer_json(c, 200, &s->body);
}

void sim_store_clear(struct sim_engine *e)
{
    struct sim_stored *next;
    for (struct sim_stored *s = e->stored; s != NULL; s = next) {
        next = s->next;
        stored_free(s);
    }
    e->stored = NULL;
    e->stored_count = 0;
}
