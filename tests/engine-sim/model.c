#include "tests/engine-sim/model.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

struct list {
    struct sim_request *first;
    struct sim_request *last;
    uint32_t count;
};

struct sim_model {
    struct sim_model_config config;
    struct sim_cache *cache;
    struct sim_cache *tier; /* NULL: none */
    struct sim_adapters adapters;
    struct sim_counters counters;
    struct list waiting;
    struct list decoding; /* in order of admission */
    struct sim_request *prefilling;
    uint64_t prefill_end_ns;
    uint64_t step; /* number of the current step */
    uint64_t step_end_ns;
    struct sim_request *changed_first;
    struct sim_request *changed_last;
    const struct sim_model_watch *watch; /* NULL: none */
};

static void list_insert(struct list *l, struct sim_request *r, struct sim_request *before)
{
    r->next = before;
    r->prev = before == NULL ? l->last : before->prev;
    *(r->prev == NULL ? &l->first : &r->prev->next) = r;
    *(before == NULL ? &l->last : &before->prev) = r;
    l->count++;
}

static void list_remove(struct list *l, struct sim_request *r)
{
    *(r->prev == NULL ? &l->first : &r->prev->next) = r->next;
    *(r->next == NULL ? &l->last : &r->next->prev) = r->prev;
    r->prev = r->next = NULL;
    l->count--;
}

struct sim_model *sim_model_create(const struct sim_model_config *config)
{
    struct sim_model *m = calloc(1, sizeof *m);
    CHECK(m != NULL && config->prefill_tokens_per_s > 0 && config->running_max > 0);
    m->config = *config;
    m->cache = sim_cache_create(config->cache_blocks);
    sim_cache_evicts(m->cache, config->evict);
    CHECK(config->tier_blocks == 0 || (config->tier_tokens_per_s > 0 && !config->any_place));
    if (config->tier_blocks > 0)
        m->tier = sim_cache_create(config->tier_blocks);
    m->adapters.slots_max = config->adapters_max;
    m->prefill_end_ns = SIM_NEVER;
    m->step_end_ns = SIM_NEVER;
    return m;
}

void sim_model_destroy(struct sim_model *m)
{
    if (m == NULL)
        return;
    CHECK(m->waiting.count == 0 && m->decoding.count == 0 && m->prefilling == NULL);
    sim_cache_destroy(m->cache);
    sim_cache_destroy(m->tier);
    free(m);
}

static void mark_changed(struct sim_model *m, struct sim_request *r)
{
    if (r->is_changed)
        return;
    r->is_changed = true;
    r->changed_next = NULL;
    *(m->changed_last == NULL ? &m->changed_first : &m->changed_last->changed_next) = r;
    m->changed_last = r;
}

struct sim_request *sim_model_changed(struct sim_model *m)
{
    struct sim_request *r = m->changed_first;
    if (r == NULL)
        return NULL;
    m->changed_first = r->changed_next;
    if (m->changed_first == NULL)
        m->changed_last = NULL;
    r->is_changed = false;
    return r;
}

static void forget_changed(struct sim_model *m, struct sim_request *r)
{
    struct sim_request *before = NULL;
    if (!r->is_changed)
        return;
    for (struct sim_request *i = m->changed_first; i != r; i = i->changed_next)
        before = i;
    *(before == NULL ? &m->changed_first : &before->changed_next) = r->changed_next;
    if (m->changed_last == r)
        m->changed_last = before;
    r->is_changed = false;
}

static size_t blocks_for(const struct sim_model *m, uint64_t tokens)
{
    return (size_t)((tokens + m->config.block_tokens - 1) / m->config.block_tokens);
}

static uint32_t *blocks_reserve(struct sim_request *r, size_t count)
{
    if (count > r->block_cap) {
        r->block_cap = count < 16 ? 16 : count * 2;
        r->blocks = realloc(r->blocks, r->block_cap * sizeof *r->blocks);
        CHECK(r->blocks != NULL);
    }
    return r->blocks;
}

static void blocks_release(struct sim_model *m, struct sim_request *r)
{
    sim_cache_release(m->cache, r->blocks, r->block_count);
    r->block_count = 0;
    if (r->holds_adapter)
        sim_adapters_release(&m->adapters, r->adapter);
    r->holds_adapter = false;
}

/* Marks the block as used in the tier now, new or not. */
static void tier_use(struct sim_model *m, uint64_t name)
{
    uint32_t block;
    size_t known = sim_cache_match(m->tier, &name, 1);
    if (sim_cache_take(m->tier, &name, known, 1 - known, &block) != 0)
        return;
    if (known == 0)
        (void)sim_cache_name(m->tier, block, name);
    sim_cache_release(m->tier, &block, 1);
}

/* Names blocks of the request, and reports the new blocks, in runs. */
static void name_run(struct sim_model *m, struct sim_request *r, size_t from, size_t to)
{
    size_t begin = from;
    for (size_t i = from; i < to; i++) {
        bool is_new = sim_cache_name(m->cache, r->blocks[i], r->chain.blocks[i]);
        if (m->watch != NULL && !is_new && begin < i)
            m->watch->stored(m->watch->context, &r->chain, begin, i);
        begin = is_new ? begin : i + 1;
    }
    if (m->watch != NULL && begin < to)
        m->watch->stored(m->watch->context, &r->chain, begin, to);
}

/* Names the full blocks among the first `tokens`. */
static void blocks_name(struct sim_model *m, struct sim_request *r, uint64_t tokens)
{
    size_t full = (size_t)(tokens / m->config.block_tokens);
    if (full > r->chain.block_count)
        full = r->chain.block_count;
    name_run(m, r, r->hits, full);
    for (size_t i = full; m->tier != NULL && i-- > 0;)
        tier_use(m, r->chain.blocks[i]);
}

/* Begins a step if requests are decoding; new requests join the next step. */
static void step_begin(struct sim_model *m, uint64_t now_ns)
{
    m->step_end_ns = SIM_NEVER;
    if (m->decoding.count == 0)
        return;
    double context = 0;
    for (const struct sim_request *r = m->decoding.first; r != NULL; r = r->next)
        context += (double)r->chain.tokens;
    double ns = m->config.decode_base_ns + m->config.decode_context_token_ns * context;
    if (m->prefilling != NULL) {
        double left_ns = (double)(m->prefill_end_ns - now_ns);
        double chunk_ns = m->config.prefill_chunk * 1e9 / m->config.prefill_tokens_per_s;
        ns += left_ns < chunk_ns ? left_ns : chunk_ns;
    }
    m->step++;
    m->step_end_ns = now_ns + (ns < 1 ? 1 : (uint64_t)ns);
}

static bool wants_adapter(const struct sim_model *m, const struct sim_request *r)
{
    return r->adapter != 0 && m->config.adapters_max > 0;
}

/* The first request whose adapter has a slot or can get a slot. */
static struct sim_request *waiting_first(const struct sim_model *m)
{
    struct sim_request *r = m->waiting.first;
    while (r != NULL && wants_adapter(m, r) && !sim_adapters_can(&m->adapters, r->adapter))
        r = r->next;
    return r;
}

/* Returns the time of the load. */
static uint64_t adapter_take(struct sim_model *m, struct sim_request *r)
{
    if (!wants_adapter(m, r))
        return 0;
    bool loads = sim_adapters_take(&m->adapters, r->adapter);
    r->holds_adapter = true;
    m->counters.adapter_loads += loads;
    return loads ? m->config.adapter_load_ns : 0;
}

/* Moves the cached names to the front, in order: if blocks are reused at any place, the place does
 * not matter. */
static void sort_held(const struct sim_model *m, uint64_t *names, size_t count)
{
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        if (sim_cache_match(m->cache, &names[i], 1) == 0)
            continue;
        uint64_t name = names[i];
        names[i] = names[held];
        names[held++] = name;
    }
}

static void prefill_begin(struct sim_model *m, uint64_t now_ns)
{
    struct sim_request *r = waiting_first(m);
    if (m->prefilling != NULL || r == NULL || m->decoding.count >= m->config.running_max)
        return;
    /* The last token is always computed: the result is the first output. */
    size_t hits_max = (size_t)((r->chain.tokens - 1) / m->config.block_tokens);
    size_t total = blocks_for(m, r->chain.tokens);
    if (m->config.any_place)
        sort_held(m, r->chain.blocks, hits_max);
    size_t hits = sim_cache_match(m->cache, r->chain.blocks, hits_max);
    uint32_t *blocks = blocks_reserve(r, total);
    if (sim_cache_take(m->cache, r->chain.blocks, hits, total - hits, blocks) != 0)
        return;
    list_remove(&m->waiting, r);
    r->block_count = total;
    r->hits = hits;
    r->state = SIM_PREFILL;
    r->prefill_from_ns = now_ns + adapter_take(m, r);
    size_t kept =
        m->tier == NULL ? 0 : sim_cache_match(m->tier, r->chain.blocks + hits, hits_max - hits);
    uint64_t restored = (uint64_t)kept * m->config.block_tokens;
    uint64_t cached = (uint64_t)hits * m->config.block_tokens + restored;
    if (!r->looked_up) {
        r->looked_up = true;
        r->cached_tokens = cached;
        r->tier_tokens = restored;
        r->created_tokens = (r->chain.block_count - hits - kept) * m->config.block_tokens;
        m->counters.prefix_queries += r->prompt_tokens;
        m->counters.prefix_hits += cached - restored;
        m->counters.tier_queries += m->tier == NULL ? 0 : r->prompt_tokens - (cached - restored);
        m->counters.tier_hits += restored;
    }
    double computed = (double)(r->chain.tokens - cached) + m->config.again * (double)cached;
    double ns = computed * 1e9 / m->config.prefill_tokens_per_s;
    if (restored > 0)
        ns += (double)restored * 1e9 / m->config.tier_tokens_per_s;
    m->prefilling = r;
    m->prefill_end_ns = r->prefill_from_ns + (ns < 1 ? 1 : (uint64_t)ns);
}

uint64_t sim_step_bucket(unsigned i)
{
    return i == 0 ? 1 : i + 1 == SIM_STEP_BUCKETS ? UINT64_MAX : UINT64_C(4) << i;
}

static void step_count(struct sim_model *m, uint64_t tokens)
{
    unsigned i = 0;
    while (tokens > sim_step_bucket(i))
        i++;
    m->counters.steps++;
    m->counters.step_tokens += tokens;
    m->counters.step_buckets[i]++;
}

static void preempt(struct sim_model *m, struct sim_request *r)
{
    list_remove(&m->decoding, r);
    blocks_release(m, r);
    r->state = SIM_WAITING;
    list_insert(&m->waiting, r, m->waiting.first);
    m->counters.preemptions++;
}

/* Adds a token, unless no block is left and the request has to be preempted. */
static void token_add(struct sim_model *m, struct sim_request *r)
{
    uint64_t index = r->generated;
    size_t needed = blocks_for(m, r->chain.tokens + 1);
    while (needed > r->block_count) {
        uint32_t *blocks = blocks_reserve(r, needed);
        if (sim_cache_take(m->cache, NULL, 0, 1, blocks + r->block_count) == 0) {
            r->block_count++;
            continue;
        }
        struct sim_request *victim = m->decoding.last;
        preempt(m, victim);
        if (victim == r)
            return;
    }
    sim_chain_add(&r->chain, sim_token_id(sim_output_token(r->output_seed, index)));
    if (r->chain.tokens % m->config.block_tokens == 0)
        name_run(m, r, needed - 1, needed);
    r->generated++;
    m->counters.generation_tokens++;
    mark_changed(m, r);
    if (r->generated == r->output_tokens) {
        list_remove(&m->decoding, r);
        blocks_release(m, r);
        r->state = SIM_DONE;
    }
}

static void prefill_end(struct sim_model *m)
{
    struct sim_request *r = m->prefilling;
    CHECK(r != NULL);
    m->prefilling = NULL;
    m->prefill_end_ns = SIM_NEVER;
    blocks_name(m, r, r->chain.tokens);
    if (r->generated == 0)
        m->counters.prompt_tokens += r->prompt_tokens;
    step_count(m, (r->generated == 0 ? r->prompt_tokens : 0) + 1);
    r->state = SIM_DECODE;
    r->first_step = m->step + 1;
    list_insert(&m->decoding, r, NULL);
    token_add(m, r);
}

static void step_end(struct sim_model *m)
{
    struct sim_request *next;
    uint64_t before = m->counters.generation_tokens;
    for (struct sim_request *r = m->decoding.first; r != NULL; r = next) {
        next = r->next;
        if (r->first_step <= m->step)
            token_add(m, r);
        /* The preempted request is always the last of the list. */
        if (next != NULL && next->state != SIM_DECODE)
            next = NULL;
    }
    step_count(m, m->counters.generation_tokens - before);
}

void sim_model_advance(struct sim_model *m, uint64_t now_ns)
{
    uint64_t at_ns;
    while ((at_ns = sim_model_next_event_ns(m)) <= now_ns) {
        sim_cache_clock(m->cache, at_ns);
        if (m->prefill_end_ns <= m->step_end_ns) {
            prefill_end(m);
        } else {
            step_end(m);
            m->step_end_ns = SIM_NEVER;
        }
        prefill_begin(m, at_ns);
        if (m->step_end_ns == SIM_NEVER)
            step_begin(m, at_ns);
    }
    sim_cache_clock(m->cache, now_ns);
}

uint64_t sim_model_next_event_ns(const struct sim_model *m)
{
    return m->prefill_end_ns < m->step_end_ns ? m->prefill_end_ns : m->step_end_ns;
}

int sim_model_submit(struct sim_model *m, struct sim_request *r, uint64_t now_ns)
{
    CHECK(r->state == SIM_NEW && r->output_tokens > 0 && r->chain.tokens > 0);
    sim_model_advance(m, now_ns);
    uint32_t inside = sim_model_running(m) + m->waiting.count;
    if (blocks_for(m, r->chain.tokens + r->output_tokens) > m->config.cache_blocks)
        return ERR_LIMIT;
    if (m->config.queued_max != 0 && inside >= m->config.queued_max) {
        m->counters.rejected++;
        return ERR_FULL;
    }
    r->prompt_tokens = r->chain.tokens;
    r->state = SIM_WAITING;
    list_insert(&m->waiting, r, NULL);
    prefill_begin(m, now_ns);
    return 0;
}

void sim_model_abort(struct sim_model *m, struct sim_request *r, uint64_t now_ns)
{
    CHECK(r->state != SIM_NEW);
    sim_model_advance(m, now_ns);
    forget_changed(m, r);
    if (r->state == SIM_DONE)
        return;
    m->counters.aborted++;
    if (r->state == SIM_WAITING)
        list_remove(&m->waiting, r);
    if (r->state == SIM_DECODE)
        list_remove(&m->decoding, r);
    if (m->decoding.count == 0)
        m->step_end_ns = SIM_NEVER;
    if (r->state == SIM_PREFILL) {
        /* Blocks computed so far stay findable. */
        uint64_t spent_ns = now_ns > r->prefill_from_ns ? now_ns - r->prefill_from_ns : 0;
        double done = (double)spent_ns * m->config.prefill_tokens_per_s / 1e9;
        blocks_name(m, r, r->hits * m->config.block_tokens + (uint64_t)done);
        m->prefilling = NULL;
        m->prefill_end_ns = SIM_NEVER;
    }
    blocks_release(m, r);
    r->state = SIM_DONE;
    prefill_begin(m, now_ns);
}

uint32_t sim_model_running(const struct sim_model *m)
{
    return m->decoding.count + (m->prefilling != NULL);
}

uint32_t sim_model_waiting(const struct sim_model *m)
{
    return m->waiting.count;
}

const struct sim_cache *sim_model_cache(const struct sim_model *m)
{
    return m->cache;
}

size_t sim_model_reusable(const struct sim_model *m, const struct sim_chain *prompt)
{
    if (!m->config.any_place)
        return sim_cache_match(m->cache, prompt->blocks, prompt->block_count);
    size_t held = 0;
    for (size_t i = 0; i < prompt->block_count; i++)
        held += sim_cache_match(m->cache, &prompt->blocks[i], 1);
    return held;
}

double sim_model_displaced(struct sim_model *m, const struct sim_chain *prompt, size_t hits,
                           double horizon_ns)
{
    size_t fresh = blocks_for(m, prompt->tokens) - hits;
    size_t own = m->config.any_place ? prompt->block_count : hits;
    return sim_cache_displaced(m->cache, prompt->blocks, own, fresh, horizon_ns) *
           m->config.block_tokens;
}

const struct sim_adapters *sim_model_adapters(const struct sim_model *m)
{
    return &m->adapters;
}

uint64_t sim_model_adapter_waiting(const struct sim_model *m, const struct sim_request **at)
{
    do
        *at = *at == NULL ? m->waiting.first : (*at)->next;
    while (*at != NULL && (*at)->adapter == 0);
    return *at == NULL ? 0 : (*at)->adapter;
}

const struct sim_counters *sim_model_counters(const struct sim_model *m)
{
    return &m->counters;
}

void sim_model_watch(struct sim_model *m, const struct sim_model_watch *watch, bool copies)
{
    m->watch = watch;
    sim_cache_watch(m->cache, watch->removed, watch->context, copies);
}

void sim_model_forget(struct sim_model *m, bool tier)
{
    sim_cache_reset(m->cache);
    if (m->watch != NULL)
        m->watch->cleared(m->watch->context);
    if (tier && m->tier != NULL)
        sim_cache_reset(m->tier);
}

void sim_model_reset(struct sim_model *m)
{
    CHECK(sim_model_running(m) == 0 && m->waiting.count == 0);
    m->counters = (struct sim_counters){0};
    m->adapters = (struct sim_adapters){.slots_max = m->config.adapters_max};
    sim_model_forget(m, true);
}

void sim_model_check(const struct sim_model *m)
{
    uint32_t decoding = 0;
    uint64_t held = m->prefilling == NULL ? 0 : m->prefilling->block_count;
    for (const struct sim_request *r = m->decoding.first; r != NULL; r = r->next) {
        CHECK(r->state == SIM_DECODE && r->generated < r->output_tokens);
        CHECK(r->block_count == blocks_for(m, r->chain.tokens));
        held += r->block_count;
        decoding++;
    }
    CHECK(decoding == m->decoding.count && (decoding == 0) == (m->step_end_ns == SIM_NEVER));
    CHECK((m->prefilling == NULL) == (m->prefill_end_ns == SIM_NEVER));
    CHECK(sim_cache_used(m->cache) <= held);
    uint32_t waiting = 0;
    for (const struct sim_request *r = m->waiting.first; r != NULL; r = r->next) {
        CHECK(r->state == SIM_WAITING && r->block_count == 0);
        waiting++;
    }
    CHECK(waiting == m->waiting.count);
    sim_cache_check(m->cache);
}
