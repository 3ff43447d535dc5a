/* Changes by the engine to a client's prompt. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/engine-sim/ask_internal.h"

#define THINK_END "</think>"

static bool is_system(const struct sim_piece *p)
{
    return slice_equal(p->role, SLICE("system")) || slice_equal(p->role, SLICE("developer"));
}

/* --- what is left out ------------------------------------------------------------------------ */

static void piece_remove(struct sim_ask *a, size_t i)
{
    a->piece_count--;
    memmove(&a->pieces[i], &a->pieces[i + 1], (a->piece_count - i) * sizeof a->pieces[0]);
}

/* In /v1/messages vLLM drops such a block of a list; a system text in a single string stays. */
static void drop_leading(struct sim_ask *a, struct slice prefix)
{
    for (size_t i = 0; i < a->piece_count;) {
        const struct sim_piece *p = &a->pieces[i];
        if (p->section == SYSTEM && p->begins && slice_starts_with(p->text, prefix))
            piece_remove(a, i);
        else if (p->section == SYSTEM)
            return;
        else
            i++;
    }
}

static size_t last_user(const struct sim_ask *a)
{
    size_t last = 0;
    for (size_t i = 0; i < a->piece_count; i++)
        if (a->pieces[i].kind == MESSAGE && slice_equal(a->pieces[i].role, SLICE("user")))
            last = i;
    return last;
}

/* Like templates, drops the assistant's reasoning before the user's last message. */
static void trim_reasoning(struct sim_ask *a)
{
    bool assistant = false;
    size_t last = last_user(a);
    for (size_t i = 0; i < last; i++) {
        struct sim_piece *p = &a->pieces[i];
        if (p->kind == MESSAGE)
            assistant = slice_equal(p->role, SLICE("assistant"));
        if (!assistant || p->section != MESSAGES)
            continue;
        if (p->kind == REASONING) {
            piece_remove(a, i--);
            last--;
        } else if (p->kind == TEXT && p->text.len > 0) {
            const char *end = memmem(p->text.at, p->text.len, THINK_END, sizeof THINK_END - 1);
            if (end != NULL)
                p->text = slice_skip(p->text, (size_t)(end - p->text.at) + sizeof THINK_END - 1);
        }
    }
}

/* --- what is moved --------------------------------------------------------------------------- */

/* Pieces that stay together: a message and the parts, a tool. */
struct group {
    uint64_t order;
    size_t first, count;
};

static int by_order(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

static uint64_t text_hash(const struct sim_ask *a, const struct group *g)
{
    uint64_t hash = 1;
    for (size_t i = g->first; i < g->first + g->count; i++)
        for (size_t at = 0; at < a->pieces[i].text.len; at++)
            hash = hash_mix(hash * 31 + (unsigned char)a->pieces[i].text.at[at]);
    return hash;
}

/* Sorts the groups of a section, which are then adjacent. */
static void section_sort(struct sim_ask *a, enum section section)
{
    struct group *groups = calloc(a->piece_count + 1, sizeof *groups);
    struct sim_piece *pieces = calloc(a->piece_count + 1, sizeof *pieces);
    struct sim_piece *own = calloc(a->piece_count + 1, sizeof *own);
    size_t n = 0, own_count = 0, out = 0;
    CHECK(groups != NULL && pieces != NULL && own != NULL);
    for (size_t i = 0; i < a->piece_count; i++) {
        const struct sim_piece *p = &a->pieces[i];
        if (p->section != section) {
            pieces[out++] = *p;
            continue;
        }
        bool begins = section == TOOLS ? p->begins : p->kind == MESSAGE;
        if (n == 0 || begins)
            groups[n++] = (struct group){.order = is_system(p) ? 0 : 1, .first = own_count};
        groups[n - 1].count++;
        own[own_count++] = *p;
    }
    struct sim_piece *all = a->pieces;
    a->pieces = own;
    for (size_t i = 0; section == TOOLS && i < n; i++)
        groups[i].order = text_hash(a, &groups[i]);
    a->pieces = all;
    qsort(groups, n, sizeof *groups, by_order);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < groups[i].count; k++)
            pieces[out++] = own[groups[i].first + k];
    memcpy(a->pieces, pieces, out * sizeof *pieces);
    free(groups);
    free(pieces);
    free(own);
}

/* --- what is added --------------------------------------------------------------------------- */

static void add_lead(struct sim_ask *a, struct slice text)
{
    a->pieces = realloc(a->pieces, (a->piece_count + 1) * sizeof *a->pieces);
    CHECK(a->pieces != NULL);
    memmove(a->pieces + 1, a->pieces, a->piece_count * sizeof *a->pieces);
    a->pieces[0] = (struct sim_piece){.section = TOOLS, .kind = TEXT, .text = text};
    a->piece_count++;
    a->piece_cap = a->piece_count;
}

void sim_ask_rewrite(struct sim_ask *a, const struct sim_rewrite *how)
{
    if (how->drop.len > 0)
        drop_leading(a, how->drop);
    if (how->trim_reasoning)
        trim_reasoning(a);
    if (how->system_first)
        section_sort(a, MESSAGES);
    if (how->sort_tools)
        section_sort(a, TOOLS);
    if (how->lead.len > 0 && a->has_messages)
        add_lead(a, how->lead);
}
