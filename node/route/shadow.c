#include "node/route/shadow.h"

#include <string.h>

#include "base/hash.h"
#include "base/number.h"
#include "crdt/index.h"

static const uint64_t control_salt = 0x9d1c0b5fa5d3e7c1; /* any constant */

const char *node_shadow_mode_text(enum node_shadow_mode mode)
{
    static const char *const texts[NODE_SHADOW_MODES] = {"off", "shadow", "control"};
    return texts[mode];
}

const char *node_shadow_side_text(enum node_shadow_side side)
{
    static const char *const texts[NODE_SHADOW_SIDES] = {"plain", "policy"};
    return texts[side];
}

void node_shadow_mode_set(struct node_shadow *s, enum node_shadow_mode mode, bool anew)
{
    if (mode != s->mode || anew)
        memset(s->minutes, 0, sizeof s->minutes);
    s->mode = mode;
}

static uint64_t minute_of(uint64_t now_ms)
{
    return now_ms / 60000 + 1;
}

static struct node_shadow_sums *minute_at(struct node_shadow *s, uint64_t now_ms)
{
    uint64_t number = minute_of(now_ms);
    struct node_shadow_minute *m = &s->minutes[number % NODE_SHADOW_MINUTES];
    if (m->number != number)
        *m = (struct node_shadow_minute){.number = number};
    return &m->sums;
}

static void counts_add(struct node_shadow_counts *to, const struct node_shadow_counts *more)
{
    to->requests += more->requests;
    to->prompt_tokens += more->prompt_tokens;
    to->cached_tokens += more->cached_tokens;
    to->first_tokens += more->first_tokens;
    to->ttft_s += more->ttft_s;
    to->estimated_s += more->estimated_s;
}

void node_shadow_sums_add(struct node_shadow_sums *to, const struct node_shadow_sums *more)
{
    for (unsigned side = 0; side < NODE_SHADOW_SIDES; side++)
        counts_add(&to->sides[side], &more->sides[side]);
    to->moved += more->moved;
}

void node_shadow_sums_subtract(struct node_shadow_sums *from, const struct node_shadow_sums *less)
{
    for (unsigned side = 0; side < NODE_SHADOW_SIDES; side++) {
        struct node_shadow_counts *to = &from->sides[side];
        const struct node_shadow_counts *c = &less->sides[side];
        to->requests -= c->requests;
        to->prompt_tokens -= c->prompt_tokens;
        to->cached_tokens -= c->cached_tokens;
        to->first_tokens -= c->first_tokens;
        to->ttft_s -= c->ttft_s;
        to->estimated_s -= c->estimated_s;
    }
    from->moved -= less->moved;
}

void node_shadow_add(struct node_shadow *s, enum node_shadow_side side,
                     const struct node_shadow_answer *a, uint64_t now_ms)
{
    bool timed = a->ttft_s >= 0;
    const struct node_shadow_counts one = {
        .requests = 1,
        .prompt_tokens = a->prompt_tokens,
        .cached_tokens = a->cached_tokens,
        .first_tokens = timed,
        .ttft_s = timed ? a->ttft_s : 0,
        .estimated_s = timed ? a->estimated_s : 0,
    };
    counts_add(&s->totals[s->mode].sides[side], &one);
    counts_add(&minute_at(s, now_ms)->sides[side], &one);
}

void node_shadow_moved(struct node_shadow *s, uint64_t now_ms)
{
    s->totals[s->mode].moved++;
    minute_at(s, now_ms)->moved++;
}

static bool is_recent(const struct node_shadow_minute *m, uint64_t now_ms)
{
    return m->number > 0 && m->number + NODE_SHADOW_MINUTES > minute_of(now_ms);
}

struct node_shadow_sums node_shadow_hour(const struct node_shadow *s, uint64_t now_ms)
{
    struct node_shadow_sums sums = {0};
    for (unsigned i = 0; i < NODE_SHADOW_MINUTES; i++) {
        if (is_recent(&s->minutes[i], now_ms))
            node_shadow_sums_add(&sums, &s->minutes[i].sums);
    }
    return sums;
}

unsigned node_shadow_minutes(const struct node_shadow *s, uint64_t now_ms)
{
    uint64_t first = minute_of(now_ms) + 1;
    for (unsigned i = 0; i < NODE_SHADOW_MINUTES; i++) {
        if (is_recent(&s->minutes[i], now_ms) && s->minutes[i].number < first)
            first = s->minutes[i].number;
    }
    return (unsigned)(minute_of(now_ms) + 1 - first);
}

double node_shadow_predicted_s(const struct node_shadow_sums *sums)
{
    const struct node_shadow_counts *plain = &sums->sides[NODE_SHADOW_PLAIN];
    return sums->sides[NODE_SHADOW_POLICY].ttft_s +
           number_max(plain->ttft_s - plain->estimated_s, 0);
}

bool node_shadow_is_control(uint64_t conversation, double share)
{
    return (double)hash_mix(conversation ^ control_salt) * 0x1p-64 < share;
}

void node_shadow_chain(struct chain *out, const struct chain *chain)
{
    size_t unused = (size_t)(CHAIN_POINTS_MAX - chain->length) * sizeof chain->points[0];
    memcpy(out, chain, sizeof *chain - unused);
    for (unsigned i = 0; i < chain->length; i++)
        out->points[i].id = crdt_index_id_apart(chain->points[i].id);
}

static void put_sums(struct json_writer *w, const char *key, enum node_shadow_mode mode,
                     const struct node_shadow_sums *sums)
{
    json_put_object(w, key);
    for (unsigned i = 0; i < NODE_SHADOW_SIDES; i++) {
        const struct node_shadow_counts *c = &sums->sides[i];
        bool predicted = mode == NODE_SHADOW_ON && i == NODE_SHADOW_POLICY;
        double ttft_s = predicted ? node_shadow_predicted_s(sums) : c->ttft_s;
        json_put_object(w, node_shadow_side_text((enum node_shadow_side)i));
        json_put_u64(w, "requests", c->requests);
        json_put_u64(w, "prompt_tokens", c->prompt_tokens);
        json_put_u64(w, "cached_tokens", c->cached_tokens);
        json_put_u64(w, "first_tokens", c->first_tokens);
        json_put_double(w, "ttft_sum_s", (double)(int64_t)(ttft_s * 1e3 + 0.5) / 1e3);
        json_object_end(w);
    }
    json_put_u64(w, "moved", sums->moved);
    json_object_end(w);
}

void node_shadow_write(const struct node_shadow *s, const char *policy, const char *plain,
                       double control_share, uint64_t now_ms, struct json_writer *w)
{
    struct node_shadow_sums hour = node_shadow_hour(s, now_ms);
    json_object_begin(w);
    json_put_cstr(w, "mode", node_shadow_mode_text(s->mode));
    json_put_cstr(w, "policy", policy);
    json_put_cstr(w, "plain_policy", plain);
    json_put_double(w, "control_share", control_share);
    json_put_u64(w, "minutes", node_shadow_minutes(s, now_ms)); /* minutes covered by `hour` */
    put_sums(w, "hour", s->mode, &hour); /* the last hour, in the present mode */
    put_sums(w, "shadow", NODE_SHADOW_ON, &s->totals[NODE_SHADOW_ON]);
    put_sums(w, "control", NODE_SHADOW_CONTROL, &s->totals[NODE_SHADOW_CONTROL]);
    json_object_end(w);
}
