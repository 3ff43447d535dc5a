#include "node/replica/scrape.h"

#include <math.h>

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
    .tier_hits = -1,
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
    .work = {{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}},
};

_Static_assert(NODE_WORK_SIGNS == 19, "all of them are unknown there");

/* A tally for each row of the table. Each data-parallel rank (vLLM's label `engine`, SGLang's
 * `dp_rank`) has a slot, and so have series without such a label. Tensor and pipeline ranks of an
 * engine repeat the same figure: only the lowest rank counts. Several series of the same engine and
 * rank (SGLang's `cache_source`) add. */

struct tally_slot {
    double engine; /* number of the data-parallel rank */
    double rank;   /* rank of tensor and pipeline parallelism */
    double value;
};

static const double unlabelled = -1, all_engines = -2;

struct tally {
    unsigned count;
    struct tally_slot slots[NODE_RANKS_MAX];
};

struct scraper {
    struct tally tallies[NODE_SCRAPE_ROWS];
    double adapters_at_s; /* timestamp of the series in `adapters` */
    struct slice adapters;
    bool vllm;
    bool sglang;
    bool known;
};

/* Labels of a series, as in the text. */
enum { LABELS_MAX = 64 }; /* vLLM's cache_config_info has some 30; more are ignored */
struct labels {
    unsigned count;
    struct {
        struct slice name, value;
    } each[LABELS_MAX];
};

static void label_keep(void *context, struct slice name, struct slice value)
{
    struct labels *labels = context;
    if (labels->count == LABELS_MAX)
        return;
    labels->each[labels->count].name = name;
    labels->each[labels->count++].value = value;
}

/* The label's value; `at` is NULL if the label is missing. */
static struct slice label_of(const struct labels *labels, struct slice name)
{
    for (unsigned i = 0; i < labels->count; i++)
        if (slice_equal(name, labels->each[i].name))
            return labels->each[i].value;
    return slice_of(NULL, 0);
}

/* Doubles hold all whole numbers up to this limit. A negative or larger value, or a NaN, is
 * ignored. So all results computed from figures are numbers, and sizes fit into 64 bits. */
static const double figure_max = 0x1p53;

static bool is_figure(double value)
{
    return value >= 0 && value <= figure_max;
}

/* The label's whole number; -1 for `None` and the like. */
static double label_number(struct slice label)
{
    uint64_t value = 0;
    return slice_to_u64(label, &value) == 0 && is_figure((double)value) ? (double)value : -1;
}

static void tally_add(struct tally *t, enum node_scrape_how how, double engine, double rank,
                      double value)
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
        slot->value = how == MOST ? number_max(slot->value, value) : slot->value + value;
}

/* True if the slot's value counts for this engine, or if all engines are meant. Ratios, sizes per
 * rank and the start time count for each rank even if the process has a single value for all
 * ranks. */
static bool counts_for(const struct tally_slot *slot, enum node_scrape_how how, double engine)
{
    bool shared = how == RATIO || how == MOST;
    return engine == all_engines || slot->engine == engine ||
           (shared && slot->engine == unlabelled);
}

/* The value of all engines together, or of a single engine; -1: none. Sets *count to the number of
 * slots with a value. */
static double tally_told(const struct tally *t, enum node_scrape_how how, double engine,
                         unsigned *count)
{
    double sum = 0, most = 0;
    *count = 0;
    for (unsigned i = 0; i < t->count; i++) {
        if (!counts_for(&t->slots[i], how, engine))
            continue;
        sum += t->slots[i].value;
        most = number_max(most, t->slots[i].value);
        ++*count;
    }
    if (*count == 0)
        return -1;
    return how == MEAN ? sum / *count : how == MOST ? most : sum;
}

/* --- the text -------------------------------------------------------------------------------- */

/* The next row with this name, from `row` on; NODE_SCRAPE_ROWS: none. */
static unsigned row_find(unsigned row, struct slice name)
{
    while (row < NODE_SCRAPE_ROWS && !slice_equal(name, node_scrape_rows[row].name))
        row++;
    return row;
}

static void sample_keep(struct scraper *s, unsigned row, const struct labels *labels, double value)
{
    const struct node_scrape_row *wanted = &node_scrape_rows[row];
    bool sglang = slice_starts_with(wanted->name, SLICE("sglang:"));
    struct slice label = label_of(labels, wanted->label);
    bool is_size = wanted->label.len > 0 && wanted->is.len == 0;
    if (is_size)
        value = label_number(label);
    else if (!slice_equal(label, wanted->is))
        return;
    if (!is_figure(value) || (is_size && value == 0))
        return;
    double engine = label_number(label_of(labels, sglang ? SLICE("dp_rank") : SLICE("engine")));
    double rank = sglang ? label_number(label_of(labels, SLICE("tp_rank"))) * 4096 +
                               label_number(label_of(labels, SLICE("pp_rank")))
                         : 0;
    tally_add(&s->tallies[row], wanted->how, engine, rank, value);
}

/* Each set of adapters that ever ran has a series, whose value is the time when the set last
 * ran. */
static void adapters_keep(struct scraper *s, const struct labels *labels, double at_s)
{
    struct slice adapters = label_of(labels, SLICE("running_lora_adapters"));
    if (adapters.at == NULL || at_s < s->adapters_at_s)
        return;
    s->adapters_at_s = at_s;
    s->adapters = adapters;
}

static int line_parse(struct scraper *s, struct slice line)
{
    line = node_exposition_line(line);
    if (line.len == 0)
        return 0;
    struct slice rest = line;
    struct slice name = node_exposition_name(&rest);
    if (name.len == 0)
        return ERR_SYNTAX;
    s->vllm |= slice_starts_with(name, SLICE("vllm:"));
    s->sglang |= slice_starts_with(name, SLICE("sglang:"));
    unsigned row = row_find(0, name);
    if (row == NODE_SCRAPE_ROWS)
        return 0; /* no known name, as in most lines of the text */

    struct labels labels = {.count = 0};
    double value = 0;
    int err = node_exposition_sample(rest, label_keep, &labels, &value);
    if (err != 0)
        return err;
    s->known = true;
    if (!is_figure(value) || label_of(&labels, SLICE("priority")).len > 0)
        return 0;
    for (; row < NODE_SCRAPE_ROWS; row = row_find(row + 1, name))
        sample_keep(s, row, &labels, value);
    adapters_keep(s, &labels, value);
    return 0;
}

static int text_parse(struct scraper *s, struct slice text)
{
    for (unsigned i = 0; i < NODE_SCRAPE_ROWS; i++)
        s->tallies[i].count = 0;
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
    return s->known ? ERR_OK : ERR_NOT_FOUND;
}

/* --- figures ------------------------------------------------------------------------------- */

/* Cache tokens of each of `ranks` ranks. vLLM never hands out the first block of a pool. A hybrid
 * model spends blocks on several groups of layers, so the reported tokens may be less than blocks
 * times block size. */
static double vllm_rank_tokens(const struct node_scrape_figures *f, double ranks)
{
    if (f->told.block_tokens < 0 || f->blocks < 0)
        return f->rank_tokens;
    double product = (f->blocks / ranks - 1) * f->told.block_tokens;
    return f->rank_tokens > 0 ? number_min(f->rank_tokens, product) : product;
}

static double cache_tokens(const struct node_scrape_figures *f, double configs)
{
    if (f->configs > 0) { /* number of ranks in these figures: all ranks, or 1 */
        double tokens = vllm_rank_tokens(f, configs);
        return tokens < 0 ? -1 : tokens * f->configs;
    }
    bool derived = f->told.cache_tokens < 0 && f->pages > 0 && f->told.block_tokens > 0;
    return derived ? f->pages * f->told.block_tokens : f->told.cache_tokens;
}

/* Computed tokens of the prompts timed in prefill_s. If the engine does not report them, the
 * prompts' tokens are multiplied by the uncached share of all prompts. */
static double prefill_tokens(const struct node_scrape_figures *f)
{
    double queries = f->told.prefix_queries, hits = f->told.prefix_hits;
    bool derived = f->told.prefill_tokens < 0 && f->prompts >= 0 && queries > 0 && hits >= 0 &&
                   hits <= queries;
    return derived ? f->prompts * (1 - hits / queries) : f->told.prefill_tokens;
}

/* Sets the token counters of a single rank from the rank's scheduler: SGLang's server counts the
 * tokens of all ranks together. */
static void sglang_rank_counts(struct node_scrape_figures *f)
{
    if (f->told.generation_tokens < 0)
        f->told.generation_tokens = f->decoded;
    if (f->told.prefix_queries >= 0 || f->computed < 0)
        return;
    f->told.prefix_hits = number_max(f->reused, 0);
    f->told.prefix_queries = f->computed + f->told.prefix_hits;
}

static double *figure_at(struct node_scrape_figures *f, unsigned row)
{
    return (double *)((char *)f + node_scrape_rows[row].figure);
}

/* Reads the figures of all engines together, or of a single engine. A sign of work without a rank
 * is no sign of any single rank. */
static void figures_read(const struct scraper *s, double engine, struct node_scrape_figures *f)
{
    unsigned count;
    double series = 0;
    f->told = node_scrape_unknown;
    f->told.vllm = s->vllm;
    f->told.sglang = s->sglang;
    for (unsigned i = 0; i < NODE_SCRAPE_ROWS; i++)
        *figure_at(f, i) = -1;
    for (unsigned i = 0; i < NODE_SCRAPE_ROWS; i++) {
        enum node_scrape_how how = node_scrape_rows[i].how;
        double told = tally_told(&s->tallies[i], how, engine, &count);
        if (*figure_at(f, i) < 0)
            *figure_at(f, i) = told;
        series += how == COUNTER ? count : 0; /* a name may be missing for a single rank only */
        if (i < NODE_WORK_TOLD)
            f->told.work.value[i] = tally_told(&s->tallies[i], ADD, engine, &count);
    }
    f->told.series = series > 0 ? series : -1;
}

/* Derives the other figures; `configs` is the number of all ranks with a known cache. */
static void figures_finish(struct node_scrape_figures *f, double configs, bool one_rank)
{
    struct node_scrape *told = &f->told;
    if (told->sglang && told->prefix_queries < 0)
        told->prefix_queries = told->prompt_tokens;
    if (told->prefix_hits >= 0)
        told->prefix_hits += number_max(told->tier_hits, 0);
    if (one_rank)
        sglang_rank_counts(f);
    double cache = cache_tokens(f, configs);
    told->cache_tokens = is_figure(cache) ? cache : -1; /* a product of figures may be out of
                                                         * range */
    told->prefill_tokens = prefill_tokens(f);
    told->sleeping = f->awake < 0 ? -1 : f->awake < 1;
}

/* Sets `out` to the labels of the ranks, ascending, and returns their number. In vLLM's hybrid mode
 * labels are global numbers, while the header for pinning a request counts the ranks behind the
 * address from 0. */
static unsigned engines_find(const struct scraper *s, double out[NODE_RANKS_MAX])
{
    unsigned row = row_find(0, s->vllm ? SLICE("vllm:num_requests_running")
                                       : SLICE("sglang:num_running_reqs"));
    const struct tally *t = &s->tallies[row];
    unsigned count = 0;
    for (unsigned i = 0; i < t->count; i++) {
        double engine = t->slots[i].engine;
        if (engine == unlabelled)
            continue;
        unsigned at = count++;
        for (; at > 0 && out[at - 1] > engine; at--)
            out[at] = out[at - 1];
        out[at] = engine;
    }
    return count;
}

int node_scrape_parse(struct slice text, struct node_scrape *out,
                      struct node_scrape ranks[NODE_RANKS_MAX])
{
    struct scraper s;
    struct node_scrape_figures f;
    double engines[NODE_RANKS_MAX];
    int err = text_parse(&s, text);
    if (err != ERR_OK)
        return err;
    figures_read(&s, all_engines, &f);
    double configs = f.configs;
    figures_finish(&f, configs, false);
    *out = f.told;
    out->adapters = s.adapters; /* the adapters of all ranks together; unknown for a single rank */
    out->ranks = engines_find(&s, engines);
    for (unsigned i = 0; i < out->ranks && ranks != NULL; i++) {
        figures_read(&s, engines[i], &f);
        figures_finish(&f, configs, true);
        ranks[i] = f.told;
    }
    return ERR_OK;
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
