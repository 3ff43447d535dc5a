#include "tests/bench/replay/prompt.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/bench/replay/text.h"

static void append(struct buf *b, const char *text)
{
    CHECK(buf_append_cstr(b, text) == 0);
}

void prompt_init(struct prompt *p, const char *model, bool stream)
{
    *p = (struct prompt){0};
    append(&p->body, "{\"model\":\"");
    text_escape(&p->body, slice_of_cstr(model));
    append(&p->body, stream ? "\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                              "\"messages\":["
                            : "\",\"messages\":[");
    p->start = p->body.len;
}

void prompt_free(struct prompt *p)
{
    buf_free(&p->body);
    free(p->ends);
    free(p->ids);
    *p = (struct prompt){0};
}

void prompt_reset(struct prompt *p, uint64_t seed)
{
    p->body.len = p->start;
    p->blocks = 0;
    p->seed = seed;
}

static void block_append(struct prompt *p, const struct trace *t, uint32_t id, size_t words)
{
    uint32_t i = p->blocks;
    bool system = (id & ID_SYSTEM) != 0;
    bool system_before = i > 0 && (p->ids[i - 1] & ID_SYSTEM) != 0;
    if (i == 0 || system != system_before || (!system && i % t->cut_blocks == 0)) {
        if (i > 0)
            append(&p->body, "\"},");
        append(&p->body, system                         ? "{\"role\":\"system\",\"content\":\""
                         : (i / t->cut_blocks) % 2 == 0 ? "{\"role\":\"user\",\"content\":\""
                                                        : "{\"role\":\"assistant\",\"content\":\"");
    }
    text_append(&p->body, (id & ID_SHARED) != 0 ? id : hash_mix(p->seed) + id, words);
    if (p->blocks == p->cap) {
        p->cap = p->cap == 0 ? 256 : p->cap * 2;
        p->ends = realloc(p->ends, p->cap * sizeof *p->ends);
        p->ids = realloc(p->ids, p->cap * sizeof *p->ids);
        CHECK(p->ends != NULL && p->ids != NULL);
    }
    p->ends[p->blocks] = p->body.len;
    p->ids[p->blocks] = id;
    p->blocks++;
}

/* Traces have answers of no tokens; engines refuse requests for those. */
static uint32_t output_tokens(const struct trace_turn *turn)
{
    return turn->out > 0 ? turn->out : 1;
}

/* The end of the body: the turn's own last message and the settings. */
static void finish(struct prompt *p, const struct trace_turn *turn, size_t words)
{
    if (p->blocks > 0)
        append(&p->body, "\"},");
    append(&p->body, "{\"role\":\"user\",\"content\":\"");
    text_append(&p->body, hash_mix(p->seed + turn->id_first) ^ turn->in, words);
    CHECK(buf_printf(&p->body, "\"}],\"max_tokens\":%u,\"ignore_eos\":true,\"temperature\":0.7}",
                     output_tokens(turn)) == 0);
}

void prompt_build(struct prompt *p, const struct trace *t, const struct trace_turn *turn)
{
    if (turn->text_len > 0) {
        p->body.len = p->start;
        append(&p->body, "{\"role\":\"user\",\"content\":\"");
        CHECK(buf_append(&p->body, t->texts.at + turn->text_at, turn->text_len) == 0);
        CHECK(buf_printf(&p->body, "\"}],\"max_tokens\":%u,\"ignore_eos\":true}",
                         output_tokens(turn)) == 0);
        return;
    }
    CHECK(turn->keep <= p->blocks);
    p->blocks = turn->keep;
    p->body.len = p->blocks == 0 ? p->start : p->ends[p->blocks - 1];
    size_t left =
        turn->in > p->blocks * t->block_tokens ? turn->in - p->blocks * t->block_tokens : 0;
    for (uint32_t i = 0; i < turn->more; i++) {
        size_t words = left < t->block_tokens ? left : t->block_tokens;
        if (words == 0)
            break;
        block_append(p, t, t->ids[turn->id_first + i], words);
        left -= words;
    }
    finish(p, turn, left < 4 ? 4 : left);
}
