/* Framings of an answer's bytes: the same events in the forms of proxies and other servers. */
#include "base/check.h"
#include "tests/engine-sim/job.h"

static void put(struct buf *out, struct slice bytes)
{
    CHECK(buf_append_slice(out, bytes) == 0);
}

/* A line of an event, without the line's end. */
static void put_line(struct slice line, unsigned how, struct buf *out)
{
    static const struct slice fields[] = {SLICE("data: "), SLICE("event: ")};
    for (size_t i = 0; i < ARRAY_LEN(fields) && (how & SIM_FRAMING_NO_SPACE); i++) {
        if (!slice_starts_with(line, fields[i]))
            continue;
        put(out, slice_of(line.at, fields[i].len - 1));
        line = slice_skip(line, fields[i].len);
        break;
    }
    put(out, line);
}

void sim_frame(unsigned how, struct slice events, struct buf *out)
{
    struct slice end = (how & SIM_FRAMING_CRLF) ? SLICE("\r\n") : SLICE("\n");
    bool first = true;
    while (events.len > 0) {
        struct slice line = slice_cut(&events, '\n');
        if (first && line.len > 0 && (how & SIM_FRAMING_COMMENTS)) {
            put(out, SLICE(": engine-sim"));
            put(out, end);
        }
        first = line.len == 0;
        put_line(line, how, out);
        put(out, end);
    }
}

void sim_frame_write(const struct sim_engine *e, struct sim_conn *c, struct slice events)
{
    enum { CHANGED = SIM_FRAMING_COMMENTS | SIM_FRAMING_CRLF | SIM_FRAMING_NO_SPACE };
    struct buf out = {.at = NULL};
    if (e->options.framing & CHANGED) {
        sim_frame(e->options.framing, events, &out);
        events = buf_slice(&out);
    }
    sim_http_stream_write(c, events);
    buf_free(&out);
}

static bool accepts_gzip(const struct sim_conn *c)
{
    struct slice list = http_head_find(&c->head, SLICE("accept-encoding"));
    while (list.len > 0) {
        struct slice word = slice_cut(&list, ',');
        if (slice_equal_nocase(slice_trim(slice_cut(&word, ';')), SLICE("gzip")))
            return true;
    }
    return false;
}

void sim_frame_begin(const struct sim_engine *e, struct sim_conn *c)
{
    unsigned how = e->options.framing;
    bool gzip = (how & SIM_FRAMING_GZIP_ALWAYS) || ((how & SIM_FRAMING_GZIP) && accepts_gzip(c));
    c->coding = gzip                           ? SIM_CODING_GZIP
                : (how & SIM_FRAMING_IDENTITY) ? SIM_CODING_IDENTITY
                                               : SIM_CODING_NONE;
    c->by_bytes = (how & SIM_FRAMING_BYTES) != 0;
}

/* --- comments in a silent stream ------------------------------------------------------ */

static uint64_t ping_ns(const struct sim_job *job)
{
    return job->wrote_ns + (uint64_t)(job->engine->options.ping_s * 1e9);
}

static bool may_ping(const struct sim_job *job)
{
    return job->begun && job->conn != NULL && !job->silent;
}

uint64_t sim_ping_due_ns(const struct sim_engine *e)
{
    uint64_t due_ns = UINT64_MAX;
    for (const struct sim_job *job = e->jobs; e->options.ping_s > 0 && job != NULL; job = job->next)
        if (may_ping(job) && ping_ns(job) < due_ns)
            due_ns = ping_ns(job);
    return due_ns;
}

void sim_ping_run(struct sim_engine *e, uint64_t now_ns)
{
    for (struct sim_job *job = e->jobs; e->options.ping_s > 0 && job != NULL; job = job->next)
        if (may_ping(job) && ping_ns(job) <= now_ns)
            sim_job_write(job, SLICE(": ping\n\n"));
}
