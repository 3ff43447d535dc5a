#include "node/replica/scrape.h"

#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "base/number.h"
#include "node/replica/exposition.h"
#include "node/replica/limits.h"
#include "node/replica/scrape_internal.h"

const struct node_scrape node_scrape_unknown = {
    .running = -1,
    .waiting = -1,
    .cache_usage = -1,
    .cache_tokens = -1,
    .block_tokens = -1,
    .prefix_queries = -1,
    .prefix_hits = -1,
    .prompt_tokens = -1,
    .generation_tokens = -1,
    .prefill_s = -1,
    .prefill_tokens = -1,
    .steps = -1,
    .steps_s = -1,
    .preemptions = -1,
    .evicted = -1,
    .evicted_idle_s = -1,
    .start_time_s = -1,
    .adapter_slots = -1,
    .sleeping = -1,
    .series = -1,
    .work = NODE_WORK_UNKNOWN,
};

/* One row per name and one tally per row. A tally has a slot per data-parallel rank (vLLM's label
 * `engine`, SGLang's `dp_rank`), and one for what has no such label. Tensor and pipeline ranks of
 * one engine repeat the same figure: of those
 * the lowest rank counts. Several series of one engine and rank (SGLang's `cache_source`) add. */

struct tally_slot {
    uint64_t engine;
    uint64_t rank;
    double value;
};

struct tally {
    unsigned count;
    struct tally_slot slots[NODE_RANKS_MAX];
};

/* By the labels of vllm:cache_config_info; -1 is unknown. */
struct vllm_cache {
    double block_tokens;
    double blocks; /* of all ranks behind the address together: the server adds up what they say */
    double told;   /* tokens of one rank */
};

struct scraper {
    struct tally tallies[NAMES];
    struct tally work[NODE_WORK_TOLD];
    struct vllm_cache vllm_cache; /* all ranks say the same */
    double block_tokens;
    double adapters_at_s; /* of the series that counts */
    double adapter_slots;
    struct slice adapters;
    bool vllm;
    bool sglang;
    bool known;
};

/* The labels that matter, each as it stands in the text; at is NULL where it is missing. */
struct labels {
    struct slice engine;
    struct slice dp_rank;
    struct slice tp_rank;
    struct slice pp_rank;
    struct slice priority;
    struct slice sleep_state;
    struct slice mode;
    struct slice block_size;
    struct slice page_size;
    struct slice num_gpu_blocks;
    struct slice num_pages;
    struct slice kv_cache_size_tokens;
    struct slice max_lora;
    struct slice running_adapters;
};

static void label_keep(void *context, struct slice name, struct slice value)
{
    struct labels *labels = context;
    struct {
        struct slice name;
        struct slice *value;
    } const wanted[] = {
        {SLICE("engine"), &labels->engine},
        {SLICE("dp_rank"), &labels->dp_rank},
        {SLICE("tp_rank"), &labels->tp_rank},
        {SLICE("pp_rank"), &labels->pp_rank},
        {SLICE("priority"), &labels->priority},
        {SLICE("sleep_state"), &labels->sleep_state},
        {SLICE("mode"), &labels->mode},
        {SLICE("block_size"), &labels->block_size},
        {SLICE("page_size"), &labels->page_size},
        {SLICE("num_gpu_blocks"), &labels->num_gpu_blocks},
        {SLICE("num_pages"), &labels->num_pages},
        {SLICE("kv_cache_size_tokens"), &labels->kv_cache_size_tokens},
        {SLICE("max_lora"), &labels->max_lora},
        {SLICE("running_lora_adapters"), &labels->running_adapters},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (slice_equal(name, wanted[i].name))
            *wanted[i].value = value;
}

/* Doubles count whole numbers up to here. What is larger, or no number, is no figure: so whatever
 * is reckoned of figures is a number, and fits into 64 bits where it is a size. */
static const double figure_max = 0x1p53;

static bool is_figure(double value)
{
    return value >= 0 && value <= figure_max;
}

static uint64_t label_u64(struct slice label)
{
    uint64_t value = 0;
    return slice_to_u64(label, &value) == 0 ? value : 0;
}

/* By the number of its data-parallel rank, from 1; UNLABELLED: it has none. */
enum { UNLABELLED = 0 };
static uint64_t engine_of(struct slice label)
{
    uint64_t value = 0;
    return slice_to_u64(label, &value) == 0 && value < UINT32_MAX ? value + 1 : UNLABELLED;
}

/* A size: a whole number above 0; `None` and the like are -1. */
static double label_size(struct slice label)
{
    uint64_t value = 0;
    bool is_size = slice_to_u64(label, &value) == 0 && value > 0 && is_figure((double)value);
    return is_size ? (double)value : -1;
}

static void tally_add(struct tally *t, uint64_t engine, uint64_t rank, double value)
{
    unsigned i = 0;
    while (i < t->count && t->slots[i].engine != engine)
        i++;
    if (i == NODE_RANKS_MAX)
        return;
    if (i == t->count) {
        t->slots[t->count++] = (struct tally_slot){engine, rank, value};
        return;
    }
    struct tally_slot *slot = &t->slots[i];
    if (rank < slot->rank)
        *slot = (struct tally_slot){engine, rank, value};
    else if (rank == slot->rank)
        slot->value += value;
}

static double tally_sum(const struct tally *t)
{
    double sum = t->count == 0 ? -1 : 0;
    for (unsigned i = 0; i < t->count; i++)
        sum += t->slots[i].value;
    return sum;
}

static double tally_mean(const struct tally *t)
{
    return t->count == 0 ? -1 : tally_sum(t) / t->count;
}

static double tally_max(const struct tally *t)
{
    double max = -1;
    for (unsigned i = 0; i < t->count; i++)
        if (t->slots[i].value > max)
            max = t->slots[i].value;
    return max;
}

/* Of one rank. vLLM never hands out the first block of a pool. A hybrid model spends blocks on
 * several layers' groups, so the tokens that it reports may be less than their product. */
static double vllm_cache_tokens(const struct vllm_cache *c, unsigned ranks)
{
    if (c->block_tokens < 0 || c->blocks < 0)
        return c->told;
    double product = (c->blocks / ranks - 1) * c->block_tokens;
    return c->told > 0 && c->told < product ? c->told : product;
}

/* Each set of adapters that ever ran has a series; its value is when that was last so. */
static void adapters_keep(struct scraper *s, const struct labels *labels, double at_s)
{
    double slots = label_size(labels->max_lora);
    if (slots > 0)
        s->adapter_slots = slots;
    if (at_s < s->adapters_at_s)
        return;
    s->adapters_at_s = at_s;
    s->adapters = labels->running_adapters;
}

/* Of one engine, or rank of it, among several of tensor and pipeline ranks. */
static uint64_t sglang_rank(const struct labels *labels)
{
    return label_u64(labels->tp_rank) * 4096 + label_u64(labels->pp_rank);
}

static void work_keep(struct scraper *s, struct slice name, const struct labels *labels,
                      double value)
{
    int row = node_work_row(name, labels->mode);
    if (row < 0 || !is_figure(value) || labels->priority.len > 0)
        return;
    bool sglang = node_work_is_sglang(row);
    tally_add(&s->work[row], engine_of(sglang ? labels->dp_rank : labels->engine),
              sglang ? sglang_rank(labels) : 0, value);
}

static void sample_keep(struct scraper *s, enum node_scrape_name name, const struct labels *labels,
                        double value)
{
    struct tally *t = &s->tallies[name];
    bool sglang = name >= SGLANG_RUNNING && name <= SGLANG_REUSED;
    uint64_t engine = engine_of(sglang ? labels->dp_rank : labels->engine);
    uint64_t rank = sglang ? sglang_rank(labels) : 0;

    s->known = true;
    if (!is_figure(value) || labels->priority.len > 0)
        return;
    if (name == VLLM_SLEEP) {
        if (slice_equal(labels->sleep_state, SLICE("awake")))
            tally_add(t, engine, 0, value == 0);
    } else if (name == VLLM_CONFIG) {
        s->vllm_cache = (struct vllm_cache){.block_tokens = label_size(labels->block_size),
                                            .blocks = label_size(labels->num_gpu_blocks),
                                            .told = label_size(labels->kv_cache_size_tokens)};
        tally_add(t, engine, rank, 0); /* vllm_cache_share() */
    } else if (name == SGLANG_CONFIG) {
        double page = label_size(labels->page_size);
        double pages = label_size(labels->num_pages);
        if (page > 0)
            s->block_tokens = page;
        if (page > 0 && pages > 0)
            tally_add(t, engine, rank, page * pages);
    } else if (name == SGLANG_PREFILLED) {
        if (slice_equal(labels->mode, SLICE("prefill_compute")))
            tally_add(t, engine, rank, value);
        else if (slice_equal(labels->mode, SLICE("prefill_cache")))
            tally_add(&s->tallies[SGLANG_REUSED], engine, rank, value);
        else if (slice_equal(labels->mode, SLICE("decode")))
            tally_add(&s->tallies[SGLANG_DECODED], engine, rank, value);
    } else if (name == VLLM_LORA) {
        adapters_keep(s, labels, value);
    } else {
        tally_add(t, engine, rank, value);
    }
}

static enum node_scrape_name name_find(struct slice name)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (slice_equal(name, names[i]))
            return (enum node_scrape_name)i;
    return NAMES;
}

static int line_parse(struct scraper *s, struct slice line)
{
    line = node_exposition_line(line);
    if (line.len == 0)
        return 0;
    struct slice rest = line;
    struct slice word = node_exposition_name(&rest);
    if (word.len == 0)
        return ERR_SYNTAX;
    bool vllm = slice_starts_with(line, SLICE(VLLM));
    bool sglang = !vllm && slice_starts_with(line, SLICE(SGLANG));
    if (!vllm && !sglang && line.at[0] != names[START_TIME].at[0])
        return 0; /* most of the text: histograms of the HTTP server */
    s->vllm |= vllm;
    s->sglang |= sglang;

    enum node_scrape_name name = name_find(word);
    bool work = node_work_names(word);
    if (name == NAMES && !work)
        return 0;
    struct labels labels = {.engine = {0}};
    double value = 0;
    int err = node_exposition_sample(rest, label_keep, &labels, &value);
    if (err != 0)
        return err;
    if (name != NAMES)
        sample_keep(s, name, &labels, value);
    if (work)
        work_keep(s, word, &labels, value);
    return 0;
}

static double first_told(double a, double b)
{
    return a >= 0 ? a : b;
}

/* Of the counters whose going back is a restart. A name may be missing of one rank alone. */
static double series_of(const struct tally *t)
{
    static const enum node_scrape_name counters[] = {VLLM_QUERIES,  VLLM_QUERIES_OLD,
                                                     VLLM_PROMPT,   VLLM_GENERATION,
                                                     SGLANG_PROMPT, SGLANG_GENERATION};
    double series = 0;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        series += t[counters[i]].count;
    return series > 0 ? series : -1;
}

/* Both are counted when a request ends. Where the engine does not say what it computed of the
 * prompts, the share that no cache had is taken as it was over all that the engine has seen. */
static double prefill_tokens(const struct tally *t, double queries, double hits)
{
    double prompts = tally_sum(&t[VLLM_PREFILL_PROMPTS]);
    bool derived = prompts >= 0 && queries > 0 && hits >= 0 && hits <= queries;
    return first_told(tally_sum(&t[VLLM_PREFILL_TOKENS]),
                      derived ? prompts * (1 - hits / queries) : -1);
}

/* The labels of the ranks, ascending: in vLLM's hybrid mode they are global numbers, while the
 * header that pins a request counts the ranks behind the address from 0. */
static unsigned engines_find(const struct scraper *s, uint64_t out[NODE_RANKS_MAX])
{
    const struct tally *t = &s->tallies[s->vllm ? VLLM_RUNNING : SGLANG_RUNNING];
    unsigned count = 0;
    for (unsigned i = 0; i < t->count; i++) {
        uint64_t engine = t->slots[i].engine;
        if (engine == UNLABELLED)
            continue;
        unsigned at = count++;
        for (; at > 0 && out[at - 1] > engine; at--)
            out[at] = out[at - 1];
        out[at] = engine;
    }
    return count;
}

static void scraper_finish(const struct scraper *s, struct node_scrape *out)
{
    const struct tally *t = s->tallies;
    uint64_t engines[NODE_RANKS_MAX];
    double page = tally_max(&t[SGLANG_PAGE]);
    double sglang_cache = first_told(tally_sum(&t[SGLANG_CACHE]), tally_sum(&t[SGLANG_CONFIG]));
    double cache = first_told(tally_sum(&t[VLLM_CONFIG]), sglang_cache);
    double queries = first_told(tally_sum(&t[VLLM_QUERIES]), tally_sum(&t[VLLM_QUERIES_OLD]));
    double hits = first_told(tally_sum(&t[VLLM_HITS]), tally_sum(&t[VLLM_HITS_OLD]));
    /* SGLang's counter has those of its tiers already. */
    hits += hits >= 0 ? number_max(tally_sum(&t[VLLM_TIER_HITS]), 0) : 0;
    double usage = first_told(tally_mean(&t[VLLM_USAGE]), tally_mean(&t[VLLM_USAGE_OLD]));

    *out = (struct node_scrape){
        .running = first_told(tally_sum(&t[VLLM_RUNNING]), tally_sum(&t[SGLANG_RUNNING])),
        .waiting = first_told(tally_sum(&t[VLLM_WAITING]), tally_sum(&t[SGLANG_WAITING])),
        .cache_usage = first_told(usage, tally_mean(&t[SGLANG_USAGE])),
        .cache_tokens = is_figure(cache) ? cache : -1, /* a product */
        .block_tokens = first_told(s->block_tokens, page),
        .prefix_queries = first_told(queries, tally_sum(&t[SGLANG_PROMPT])),
        .prefix_hits = first_told(hits, tally_sum(&t[SGLANG_CACHED])),
        .prompt_tokens = first_told(tally_sum(&t[VLLM_PROMPT]), tally_sum(&t[SGLANG_PROMPT])),
        .generation_tokens =
            first_told(tally_sum(&t[VLLM_GENERATION]), tally_sum(&t[SGLANG_GENERATION])),
        .prefill_s = tally_sum(&t[VLLM_PREFILL_S]),
        .prefill_tokens = prefill_tokens(t, queries, hits),
        .steps = first_told(first_told(tally_sum(&t[VLLM_STEPS]), tally_sum(&t[VLLM_STEPS_OLD])),
                            tally_sum(&t[SGLANG_STEPS])),
        .steps_s =
            first_told(first_told(tally_sum(&t[VLLM_STEPS_S]), tally_sum(&t[VLLM_STEPS_S_OLD])),
                       tally_sum(&t[SGLANG_STEPS_S])),
        .preemptions = tally_sum(&t[VLLM_PREEMPTIONS]),
        .evicted = tally_sum(&t[VLLM_EVICTED]),
        .evicted_idle_s = tally_sum(&t[VLLM_EVICTED_IDLE_S]),
        .start_time_s = tally_max(&t[START_TIME]),
        .adapter_slots = first_told(s->adapter_slots, tally_max(&t[SGLANG_LORA])),
        .adapters = s->adapters,
        .sleeping = tally_max(&t[VLLM_SLEEP]),
        .series = series_of(t),
        .ranks = engines_find(s, engines),
        .vllm = s->vllm,
        .sglang = s->sglang,
        .work = NODE_WORK_UNKNOWN,
    };
    for (unsigned i = 0; i < NODE_WORK_TOLD; i++)
        out->work.value[i] = tally_sum(&s->work[i]);
}

/* How many ranks there are is known at the end of the text. */
static void vllm_cache_share(struct scraper *s)
{
    struct tally *t = &s->tallies[VLLM_CONFIG];
    double tokens = t->count > 0 ? vllm_cache_tokens(&s->vllm_cache, t->count) : -1;
    if (t->count > 0 && s->vllm_cache.block_tokens > 0)
        s->block_tokens = s->vllm_cache.block_tokens;
    if (tokens < 0)
        t->count = 0;
    for (unsigned i = 0; i < t->count; i++)
        t->slots[i].value = tokens;
}

static int text_parse(struct scraper *s, struct slice text)
{
    for (unsigned i = 0; i < NAMES; i++)
        s->tallies[i].count = 0;
    for (unsigned i = 0; i < NODE_WORK_TOLD; i++)
        s->work[i].count = 0;
    s->block_tokens = s->adapter_slots = -1;
    s->adapters_at_s = 0;
    s->adapters = slice_of(NULL, 0);
    s->vllm = s->sglang = s->known = false;
    while (text.len > 0) {
        struct slice line = slice_cut(&text, '\n');
        if (slice_equal(line, SLICE("# EOF")))
            break;
        int err = line_parse(s, line);
        if (err != 0)
            return err;
    }
    vllm_cache_share(s);
    return s->known ? ERR_OK : ERR_NOT_FOUND;
}

int node_scrape_parse(struct slice text, struct node_scrape *out)
{
    struct scraper s;
    int err = text_parse(&s, text);
    if (err == ERR_OK)
        scraper_finish(&s, out);
    return err;
}

/* --- data-parallel ranks -------------------------------------------------------------------- */

/* What one process says for all its ranks is true of each: ratios, sizes of one, its start. */
static bool is_shared(enum node_scrape_name name)
{
    switch (name) {
    case VLLM_STEPS:
    case VLLM_STEPS_OLD:
    case VLLM_STEPS_S:
    case VLLM_STEPS_S_OLD:
    case VLLM_SLEEP:
    case VLLM_CONFIG:
    case SGLANG_STEPS:
    case SGLANG_STEPS_S:
    case SGLANG_CONFIG:
    case SGLANG_PAGE:
    case SGLANG_LORA:
    case START_TIME:
        return true;
    default:
        return false;
    }
}

static void tally_pick(const struct tally *t, uint64_t engine, bool shared, struct tally *one)
{
    one->count = 0;
    for (unsigned i = 0; i < t->count; i++) {
        if (t->slots[i].engine == engine || (shared && t->slots[i].engine == UNLABELLED))
            one->slots[one->count++] = t->slots[i];
    }
}

static void engine_pick(const struct scraper *all, uint64_t engine, struct scraper *out)
{
    for (unsigned name = 0; name < NAMES; name++)
        tally_pick(&all->tallies[name], engine, is_shared((enum node_scrape_name)name),
                   &out->tallies[name]);
    for (unsigned i = 0; i < NODE_WORK_TOLD; i++)
        tally_pick(&all->work[i], engine, false, &out->work[i]);
    out->block_tokens = all->block_tokens;
    out->adapter_slots = all->adapter_slots;
    out->adapters = slice_of(NULL, 0); /* of all ranks, so of none for sure */
    out->vllm = all->vllm;
    out->sglang = all->sglang;
}

/* SGLang's server counts tokens of all ranks together; its schedulers count what they compute. */
static void sglang_rank_counts(const struct scraper *s, struct node_scrape *out)
{
    double computed = tally_sum(&s->tallies[SGLANG_PREFILLED]);
    double reused = number_max(tally_sum(&s->tallies[SGLANG_REUSED]), 0); /* missing until one is */
    if (out->generation_tokens < 0)
        out->generation_tokens = tally_sum(&s->tallies[SGLANG_DECODED]);
    if (out->prefix_queries >= 0 || computed < 0)
        return;
    out->prefix_queries = computed + reused;
    out->prefix_hits = reused;
}

int node_scrape_ranks_parse(struct slice text, struct node_scrape out[NODE_RANKS_MAX])
{
    struct scraper all, one;
    uint64_t engines[NODE_RANKS_MAX];
    int err = text_parse(&all, text);
    if (err != ERR_OK)
        return err;
    unsigned count = engines_find(&all, engines);
    for (unsigned i = 0; i < count; i++) {
        engine_pick(&all, engines[i], &one);
        scraper_finish(&one, &out[i]);
        sglang_rank_counts(&one, &out[i]);
    }
    return (int)count;
}

bool node_scrape_sizes_only(const struct node_scrape *s)
{
    return s->running < 0 && s->waiting < 0 && s->cache_usage < 0 && s->prefix_queries < 0 &&
           s->prefix_hits < 0 && s->prompt_tokens < 0 && s->generation_tokens < 0 &&
           s->start_time_s < 0 && s->sleeping < 0;
}

bool node_scrape_same_life(const struct node_scrape *a, const struct node_scrape *b)
{
    return a->start_time_s < 0 || b->start_time_s < 0 ||
           fabs(a->start_time_s - b->start_time_s) <= NODE_START_GRAIN_S;
}
