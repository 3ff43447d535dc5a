#include "node/replica/renderings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/print.h"

enum {
    WATCH = 64,       /* requests per watch; about 20 are enough for a fleet of six engines */
    QUIET_MAX = 4096, /* most answers between two watches without a change */
    TOKENS_MIN = 256, /* fewest tokens of a prompt that teaches; shorter prompts show little but the
                       * distance of checkpoints */
    NO_REPLICA = UINT16_MAX,
};
_Static_assert((int)NODE_REPLICAS_MAX < (int)NO_REPLICA, "each has a number");

/* Least bytes, besides tools, that a rendering must keep of a prompt whose lead it ignores. With
 * fewer the text has too few checkpoints: nearly any number of cached tokens would fit, so the
 * answer says nothing about the rendering. */
static const uint64_t least_bytes = (uint64_t)4 * CHECKPOINT_BLOCK_BYTES;
/* The losses of an answer are divided by the greatest of them, or by small_share if that is more.
 * Earlier losses fade by `fade` with each answer. A margin is the loss by which another rendering
 * must be better to replace the present one. margin_first applies at first, when a single clear
 * answer is enough (no cache has a prompt never sent). After a change, a margin is margin_min to
 * margin_max. */
static const float fade = 0.9f, margin_first = 0.9f, margin_min = 2.4f, margin_max = 9.6f,
                   margin_fade = 0.98f, margin_growth = 1.5f;
/* The first margin for late system messages: two answers about a quarter of the prompt. A single
 * answer may be due to a conversation lost by a cache. */
static const float margin_late_first = 0.75f;
/* told_apart: smallest difference between two losses that counts. small_share: share of a prompt in
 * which renderings must differ for an answer to count in full. */
static const float told_apart = 0.05f, small_share = 0.3f;
/* Weight of a loss if less was cached than predicted, because caches forget. */
static const float forgotten_weight = 0.5f;
/* Tolerances: bytes per token differ between the parts of a prompt, and the engine counts whole
 * blocks. */
static const double uneven = 0.15, grain_share = 0.02, grain_blocks = 2;
/* An answer contradicts the prediction if this share of the prompt more, or less, was cached.
 * surprise_enough is the required number of recent contradictions, fading by surprise_fade. */
static const double more_share = 0.1, less_share = 0.25;
static const float surprise_fade = 0.8f, surprise_enough = 1.2f;

/* The part of each print searched to find the prints at a replica. */
struct print_head {
    uint64_t key;   /* key of the print's kind */
    uint32_t stamp; /* 0: free */
    uint16_t replica;
    bool is_void; /* ignored for later prompts; an answer to this prompt still counts */
};

struct node_renderings {
    const struct hash_secret *secret;
    uint64_t keys[NODE_KINDS_MAX]; /* keys of the kinds, in a separate array, because each request
                                    * searches it */
    struct node_client_kind kinds[NODE_KINDS_MAX];
    struct node_renderings_stats stats;
    uint32_t stamp; /* stamp of the last print */
    struct print_head heads[NODE_PRINTS_MAX];
    struct node_print *prints; /* NODE_PRINTS_MAX */
    struct chain chain;        /* scratch of node_renderings_each() */
};

int node_renderings_create(struct node_renderings **out, const struct hash_secret *secret)
{
    struct node_renderings *r = calloc(1, sizeof *r);
    if (r == NULL || (r->prints = calloc(NODE_PRINTS_MAX, sizeof *r->prints)) == NULL) {
        free(r);
        return ERR_NOMEM;
    }
    r->secret = secret;
    *out = r;
    return ERR_OK;
}

void node_renderings_destroy(struct node_renderings *r)
{
    if (r == NULL)
        return;
    free(r->prints);
    free(r);
}

void node_renderings_check(const struct node_renderings *r)
{
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        const struct node_client_kind *k = &r->kinds[i];
        CHECK(k->watch <= WATCH && k->rendering.lead < RENDERING_LEADS);
        CHECK(k->key == r->keys[i]);
        CHECK(k->key == 0 || (k->margin >= margin_first && k->margin <= margin_max));
        CHECK(k->key == 0 || (k->margin_late >= margin_late_first && k->margin_late <= margin_max));
        for (unsigned n = 0; n < i; n++)
            CHECK(k->key == 0 || r->kinds[n].key != k->key);
    }
    for (unsigned i = 0; i < NODE_PRINTS_MAX; i++) {
        node_print_check(&r->prints[i]);
        CHECK(r->heads[i].stamp <= r->stamp);
    }
}

/* --- kinds --------------------------------------------------------------------------------- */

static size_t put(char *to, size_t size, struct slice text)
{
    size_t len = text.len < size ? text.len : size;
    if (len > 0)
        memcpy(to, text.at, len);
    return len;
}

static uint64_t key_of(const struct node_renderings *r, struct slice agent, const char *form,
                       struct slice model)
{
    char bytes[NODE_KIND_AGENT_MAX + 1 + NODE_MODEL_NAME_MAX];
    size_t len = put(bytes, NODE_KIND_AGENT_MAX, agent);
    bytes[len++] = form[0]; /* no two forms begin with the same letter */
    len += put(bytes + len, NODE_MODEL_NAME_MAX, model);
    uint64_t key = hash64(r->secret, bytes, len);
    return key != 0 ? key : 1;
}

/* A free place, or the place of the least recently used kind. */
static struct node_client_kind *place_for(struct node_renderings *r)
{
    struct node_client_kind *oldest = &r->kinds[0];
    for (unsigned i = 0; i < NODE_KINDS_MAX && oldest->key != 0; i++) {
        if (r->kinds[i].key == 0 || r->kinds[i].used_ms < oldest->used_ms)
            oldest = &r->kinds[i];
    }
    r->stats.displaced += oldest->key != 0;
    return oldest;
}

struct node_client_kind *node_renderings_find(struct node_renderings *r, uint64_t key)
{
    for (unsigned i = 0; i < NODE_KINDS_MAX && key != 0; i++) {
        if (r->keys[i] == key)
            return &r->kinds[i];
    }
    return NULL;
}

static void watch_begin(struct node_client_kind *k)
{
    memset(k->loss, 0, sizeof k->loss);
    k->answers = 0;
    k->heads_changed = k->heads_kept = 0;
    k->surprise = 0;
    k->watch = WATCH;
    k->quiet = k->patience;
    k->patience = k->patience * 2 < QUIET_MAX ? k->patience * 2 : QUIET_MAX;
}

struct node_client_kind *node_renderings_kind(struct node_renderings *r, struct slice agent,
                                              const char *form, struct slice model, uint64_t now_ms)
{
    uint64_t key = key_of(r, agent, form, model);
    struct node_client_kind *k = node_renderings_find(r, key);
    if (k == NULL) {
        k = place_for(r);
        r->keys[k - r->kinds] = key;
        *k = (struct node_client_kind){.key = key,
                                       .model = hash64(r->secret, model.at, model.len),
                                       .form = form,
                                       .patience = WATCH,
                                       .margin = margin_first,
                                       .margin_late = margin_late_first};
        k->agent_len = (uint8_t)put(k->agent, sizeof k->agent, agent);
        watch_begin(k);
    }
    k->used_ms = now_ms;
    return k;
}

struct node_client_kind *node_renderings_kind_at(struct node_renderings *r, unsigned number)
{
    CHECK(number < NODE_KINDS_MAX);
    return &r->kinds[number];
}

const struct node_client_kind *node_renderings_latest(const struct node_renderings *r,
                                                      struct slice model)
{
    const struct node_client_kind *latest = NULL;
    uint64_t hash = hash64(r->secret, model.at, model.len);
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        const struct node_client_kind *k = &r->kinds[i];
        if (k->key != 0 && k->model == hash && (latest == NULL || k->used_ms > latest->used_ms))
            latest = k;
    }
    return latest;
}

void node_renderings_set(struct node_renderings *r, struct node_client_kind *k,
                         struct rendering rendering, enum node_rendering_from from)
{
    r->stats.learned += from == NODE_RENDERING_ANSWERS;
    r->stats.adopted += from == NODE_RENDERING_ROUTER;
    k->rendering = rendering;
    k->from = (uint8_t)from;
    k->taught = k->answers;
    k->patience = WATCH;
    watch_begin(k);
}

/* --- heads ---------------------------------------------------------------------------------- */

/* Compares the head of a new print with the heads of the same conversation's earlier prints. */
static void note_head(struct node_renderings *r, struct node_client_kind *k, unsigned number)
{
    const struct http_prompt_form *form = &r->prints[number].form;
    bool any = false;
    if (!form->goes_on || form->opening == 0)
        return;
    for (unsigned i = 0; i < NODE_PRINTS_MAX; i++) {
        const struct http_prompt_form *other = &r->prints[i].form;
        if (i == number || r->heads[i].key != k->key || other->opening != form->opening)
            continue;
        any = true;
        if (node_print_same_head(&r->prints[number], &r->prints[i])) {
            k->heads_kept++;
            return;
        }
    }
    k->heads_changed += any;
}

/* True if no engine can have cached the beginning of this prompt before this router kept prints. So
 * it is if the prompt opens a conversation, or if the client changes the head with each turn. */
static bool is_new(const struct node_client_kind *k, const struct http_prompt_form *form)
{
    return !form->goes_on || k->heads_changed > k->heads_kept;
}

/* --- prints -------------------------------------------------------------------------------- */

void node_renderings_print(struct node_renderings *r, struct node_client_kind *k,
                           const struct http_prompt_form *form, const struct chain *chain,
                           struct node_rendered *out)
{
    if (http_prompt_has_late(form) && !k->had_late) {
        k->had_late = true;
        k->watch = WATCH;
    }
    if (k->watch == 0)
        return;
    k->watch--;
    r->stamp++;
    unsigned number = r->stamp % NODE_PRINTS_MAX;
    node_print_set(&r->prints[number], form, chain);
    r->heads[number] = (struct print_head){.key = k->key, .stamp = r->stamp, .replica = NO_REPLICA};
    out->stamp = r->stamp;
    note_head(r, k, number);
}

/* The prompt's print; NULL: none, or no longer remembered. */
static struct print_head *head_of(struct node_renderings *r, const struct node_rendered *what)
{
    struct print_head *head = &r->heads[what->stamp % NODE_PRINTS_MAX];
    return what->stamp != 0 && head->stamp == what->stamp ? head : NULL;
}

void node_renderings_sent(struct node_renderings *r, const struct node_rendered *what,
                          unsigned replica)
{
    struct print_head *head = head_of(r, what);
    if (head == NULL)
        return;
    head->replica = (uint16_t)replica;
    head->is_void = false;
}

void node_renderings_void(struct node_renderings *r, const struct node_rendered *what)
{
    struct print_head *head = head_of(r, what);
    if (head != NULL)
        head->is_void = true;
}

void node_renderings_forget(struct node_renderings *r, unsigned replica)
{
    for (unsigned i = 0; i < NODE_PRINTS_MAX; i++) {
        if (r->heads[i].replica == replica)
            r->heads[i].replica = NO_REPLICA;
    }
}

/* --- what a rendering explains ---------------------------------------------------------------- */

/* A print, and the earlier prints of the same kind at the same replica. */
struct trail {
    const struct node_print *print;
    unsigned count;
    uint16_t earlier[NODE_PRINTS_MAX]; /* numbers of the earlier prints */
};

static void trail_find(const struct node_renderings *r, unsigned number, struct trail *out)
{
    const struct print_head *own = &r->heads[number];
    out->print = &r->prints[number];
    out->count = 0;
    for (unsigned i = 0; i < NODE_PRINTS_MAX; i++) {
        const struct print_head *head = &r->heads[i];
        if (head->stamp < own->stamp && !head->is_void && head->key == own->key &&
            head->replica == own->replica)
            out->earlier[out->count++] = (uint16_t)i;
    }
}

/* The longest prefix that the print shares with any of the earlier prints, in this reading. */
static struct node_shared shared_with(const struct node_renderings *r, const struct trail *trail,
                                      const struct node_reading *of)
{
    struct node_shared most = {0};
    for (unsigned i = 0; i < trail->count; i++) {
        struct node_shared one = node_print_shared(trail->print, &r->prints[trail->earlier[i]], of);
        most.from = one.from > most.from ? one.from : most.from;
        most.to = one.to > most.to ? one.to : most.to;
    }
    return most;
}

/* Tokens recorded at the replica by any router: `from` of them must be cached, `to` may be. */
struct witness {
    double from, to;
};

/* Cached tokens by the answer, less those that the rendering predicts, as a share of the prompt. 0
 * if within the tolerances, or if the rendering predicts nothing. */
static float off_by(const struct node_renderings *r, const struct trail *trail,
                    struct rendering rendering, const struct node_rendered_answer *answer,
                    const struct witness *known)
{
    struct node_reading of = node_print_read(trail->print, rendering);
    if (of.all == 0 || trail->count == 0)
        return 0;
    struct node_shared shared = shared_with(r, trail, &of);
    double scale = answer->prompt_tokens / (double)of.all;
    double from = number_max((double)shared.from * scale, known->from) * (1 - uneven);
    double to = number_max((double)shared.to * scale, known->to) * (1 + uneven);
    double grain =
        number_max(answer->block_tokens * grain_blocks, answer->prompt_tokens * grain_share);
    double more = number_max(answer->cached_tokens - to - grain, 0);
    double less = number_max(from - grain - answer->cached_tokens, 0);
    return (float)number_max(number_min((more - less) / answer->prompt_tokens, 1), -1);
}

/* --- learning ------------------------------------------------------------------------------ */

/* Number of properties in which two renderings differ. */
static unsigned distance(struct rendering a, struct rendering b)
{
    return (a.lead != b.lead) + (a.no_arguments != b.no_arguments) +
           (a.tools_sorted != b.tools_sorted) + (a.tools_after != b.tools_after) +
           (a.counts_header != b.counts_header) + (a.late_first != b.late_first);
}

/* The bits of a code by which renderings of this prompt differ. The place of late messages is left
 * to weigh_late(). */
static uint8_t telling_bits(const struct http_prompt_form *form)
{
    bool tools = http_prompt_fills(form, HTTP_PROMPT_TOOLS);
    return rendering_code(
        (struct rendering){.lead = 3,
                           .no_arguments = (form->arguments.low | form->arguments.high) != 0,
                           .tools_sorted = tools,
                           .tools_after = tools,
                           .counts_header = http_prompt_fills(form, HTTP_PROMPT_HEADER)});
}

static float loss_by(float off)
{
    return off > 0 ? off : -off * forgotten_weight;
}

/* Lets a margin fade. The first margin does not fade. */
static float margin_faded(float margin)
{
    return margin > margin_min ? fmaxf(margin * margin_fade, margin_min) : margin;
}

/* Adds an answer's `losses`, by rendering, divided by `widest`. Returns false, and adds nothing, if
 * all losses are equal or no rendering explains the answer. */
static bool add_losses(struct node_client_kind *k, const float losses[RENDERING_CODES],
                       float widest)
{
    float least = 2, most = 0;
    for (unsigned i = 0; i < RENDERING_CODES; i++) {
        least = fminf(losses[i], least);
        most = fmaxf(losses[i], most);
    }
    if (most - least < told_apart || least > told_apart)
        return false;
    for (unsigned i = 0; i < RENDERING_CODES; i++)
        k->loss[i] = k->loss[i] * fade + losses[i] / widest;
    k->answers++;
    k->margin = margin_faded(k->margin);
    k->margin_late = margin_faded(k->margin_late);
    return true;
}

/* True if the rendering ignores the prompt's lead, and leaves too few bytes besides the tools. */
static bool leaves_little(const struct node_print *print, struct rendering rendering)
{
    const struct http_prompt_form *form = &print->form;
    bool tools = http_prompt_fills(form, HTTP_PROMPT_TOOLS);
    uint64_t aside = tools ? form->parts[HTTP_PROMPT_TOOLS].end.bytes : 0;
    return rendering.lead != RENDERING_LEAD_ALL &&
           node_print_read(print, rendering).all - aside < least_bytes;
}

/* Adds each rendering's loss for the answer, apart from the place of late system messages. Returns
 * false if the answer says nothing. */
static bool weigh(struct node_renderings *r, struct node_client_kind *k, const struct trail *trail,
                  const struct node_rendered_answer *answer)
{
    static const struct witness nobody = {0};
    const struct witness index = {.to = answer->predicted_tokens};
    float losses[RENDERING_CODES], widest = small_share;
    const struct http_prompt_form *form = &trail->print->form;
    uint8_t now = rendering_code(k->rendering), telling = telling_bits(form);
    if (!is_new(k, form) || leaves_little(trail->print, k->rendering))
        return false;
    /* If only the index explains an answer, the cached prefix was sent while no prints were kept,
     * or by another router. The index cannot explain answers for other renderings. */
    if (off_by(r, trail, k->rendering, answer, &nobody) > told_apart &&
        off_by(r, trail, k->rendering, answer, &index) <= told_apart)
        return false;
    for (unsigned i = 0; i < RENDERING_CODES; i++)
        losses[i] = -1;
    for (unsigned i = 0; i < RENDERING_CODES; i++) {
        uint8_t alike = (uint8_t)((i & telling) | (now & ~telling));
        if (rendering_of(alike).lead >= RENDERING_LEADS || /* not a code: the loss is never read */
            leaves_little(trail->print, rendering_of(alike)))
            alike = now;
        if (losses[alike] < 0) {
            float off =
                off_by(r, trail, rendering_of(alike), answer, alike == now ? &index : &nobody);
            losses[alike] = loss_by(off);
            widest = fmaxf(fabsf(off), widest);
        }
        losses[i] = losses[alike];
    }
    return add_losses(k, losses, widest);
}

/* Adds the losses of both places of late system messages that are new to this replica: the engine
 * found the part before them, or the head alone. The head is the same in both readings, so the
 * index knows it in both. Returns false if the answer says nothing. */
static bool weigh_late(struct node_renderings *r, struct node_client_kind *k,
                       const struct trail *trail, const struct node_rendered_answer *answer)
{
    struct rendering now = k->rendering, other = now;
    other.late_first = !now.late_first;
    struct node_reading of = node_print_read(trail->print, now);
    if (of.all == 0)
        return false;
    double recorded = answer->predicted_tokens;
    double head = number_min(recorded, answer->prompt_tokens * (double)of.head / (double)of.all);
    const struct witness index = {answer->sure ? recorded : 0, recorded}, of_head = {0, head};
    float off = off_by(r, trail, now, answer, &index);
    float off_other = off_by(r, trail, other, answer, &of_head);
    float loss = off < 0 && !answer->sure ? 0 : loss_by(off), loss_other = loss_by(off_other);
    float losses[RENDERING_CODES];
    for (unsigned i = 0; i < RENDERING_CODES; i++)
        losses[i] = rendering_of((uint8_t)i).late_first == now.late_first ? loss : loss_other;
    return add_losses(k, losses, fmaxf(small_share, fmaxf(fabsf(off), fabsf(off_other))));
}

/* Replaces the kind's rendering if its loss is clearly more than the least; returns true if so. Of
 * several renderings with the least loss, the one closest to the present rendering wins, then the
 * plainest. */
static bool change(struct node_renderings *r, struct node_client_kind *k)
{
    struct rendering best = k->rendering;
    float now = k->loss[rendering_code(k->rendering)], least = now;
    if (now < fminf(k->margin, k->margin_late)) /* no rendering can lose so much less */
        return false;
    for (unsigned i = 0; i < RENDERING_CODES; i++) {
        struct rendering other = rendering_of((uint8_t)i);
        float less = least - k->loss[i];
        bool nearer = distance(other, k->rendering) < distance(best, k->rendering);
        if (other.lead < RENDERING_LEADS && (less > told_apart || (less > -told_apart && nearer))) {
            least = k->loss[i];
            best = other;
        }
    }
    bool late_alone = distance(best, k->rendering) == (best.late_first != k->rendering.late_first);
    float *margin = late_alone ? &k->margin_late : &k->margin;
    if (now - least < *margin || least > now / 2)
        return false;
    node_renderings_set(r, k, best, NODE_RENDERING_ANSWERS);
    *margin = fminf(fmaxf(*margin, margin_min) * margin_growth, margin_max);
    return true;
}

/* True if the answer contradicted the prediction. */
static bool surprises(const struct node_rendered_answer *answer)
{
    double off = answer->cached_tokens - answer->predicted_tokens;
    double grain = answer->block_tokens * grain_blocks;
    double prompt = answer->prompt_tokens;
    return off > number_max(grain, more_share * prompt) ||
           (answer->sure && -off > number_max(grain, less_share * prompt));
}

bool node_renderings_answered(struct node_renderings *r, const struct node_rendered *what,
                              const struct node_rendered_answer *answer)
{
    struct node_client_kind *k = node_renderings_find(r, what->key);
    if (LEFT_OUT(RENDERINGS) || k == NULL || answer->prompt_tokens < TOKENS_MIN)
        return false;
    k->surprise = k->surprise * surprise_fade + (surprises(answer) ? 1 : 0);
    k->quiet -= k->watch == 0 && k->quiet > 0;
    if (k->watch == 0 && k->quiet == 0 && k->surprise >= surprise_enough)
        watch_begin(k);
    const struct print_head *head = head_of(r, what);
    if (head == NULL || head->replica == NO_REPLICA ||
        rendering_code(what->rendering) != rendering_code(k->rendering))
        return false;
    struct trail trail;
    trail_find(r, (unsigned)(head - r->heads), &trail);
    bool says = weigh(r, k, &trail, answer);
    if (what->late_new)
        says |= weigh_late(r, k, &trail, answer);
    return says && change(r, k);
}

void node_renderings_each(struct node_renderings *r, const struct node_client_kind *k, unsigned max,
                          void (*each)(void *context, const struct chain *chain, unsigned replica),
                          void *context)
{
    for (uint32_t back = 0; back < NODE_PRINTS_MAX && back < r->stamp && max > 0; back++) {
        unsigned number = (r->stamp - back) % NODE_PRINTS_MAX;
        const struct print_head *head = &r->heads[number];
        const struct node_print *print = &r->prints[number];
        if (head->key != k->key || head->replica == NO_REPLICA || head->is_void)
            continue;
        r->chain.length = print->length;
        r->chain.chunks = false;
        memcpy(r->chain.points, print->points, print->length * sizeof print->points[0]);
        http_prompt_join(&print->form, r->secret, k->rendering, &r->chain);
        if (r->chain.length > 0)
            each(context, &r->chain, head->replica);
        max--;
    }
}

struct node_renderings_stats node_renderings_stats(const struct node_renderings *r)
{
    struct node_renderings_stats stats = r->stats;
    stats.kinds = stats.watched = 0;
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        stats.kinds += r->kinds[i].key != 0;
        stats.watched += r->kinds[i].key != 0 && r->kinds[i].watch > 0;
    }
    return stats;
}

const char *node_rendering_text(struct rendering rendering, char *out, size_t size)
{
    const char *const parts[] = {
        rendering.lead == RENDERING_LEAD_NO_LINE    ? "the first line does not count"
        : rendering.lead == RENDERING_LEAD_NO_BLOCK ? "the first block of text does not count"
                                                    : NULL,
        rendering.no_arguments ? "template arguments do not count" : NULL,
        rendering.tools_sorted ? "the order of tools does not count" : NULL,
        rendering.tools_after ? "tools come after the system text" : NULL,
        rendering.counts_header ? "Claude Code's billing header counts" : NULL,
        rendering.late_first ? "later system messages come first" : NULL,
    };
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i] == NULL || len >= size)
            continue;
        int n = snprintf(out + len, size - len, "%s%s", len > 0 ? "; " : "", parts[i]);
        len += n > 0 ? (size_t)n : 0;
    }
    return out;
}
