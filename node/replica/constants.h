/* The fixed numbers of the routing rule; everything else is learned. A table: name, value, unit,
 * meaning, and the source (an ADR of docs/adr, a measurement, or hardware).
 * docs/routing-evidence.md shows the effect of each on the bench.
 *
 * The numbers for "clearly", "few" and "recent" are the same everywhere, so that the rule is easy
 * to remember. Limits of tables are in limits.h; operators' settings are elsewhere.
 *
 * With VARIANT=ablation the bench can multiply each number (quality-bench --times NAME=0.5). In
 * other builds the numbers are constants. */
#ifndef NODE_REPLICA_CONSTANTS_H
#define NODE_REPLICA_CONSTANTS_H

#define NODE_RULE_MAP(X)                                                                           \
    /* Yardsticks. */                                                                              \
    X(CLEARLY, 2, "times", "a greater ratio is a clear difference", "by meaning")                  \
    X(SLIGHTLY, 1.2, "times", "a smaller ratio counts as equal", "by meaning")                     \
    X(FEW, 2, "samples", "at most this number may be chance", "ADR 0042")                          \
    X(PRIOR, 4, "samples", "weight of the initial belief", "by meaning")                           \
    X(HALF_LIFE_MS, 16000, "ms", "samples and readings count half after this time", "ADR 0030")    \
    X(FADED, 0.1, "samples", "a weight below this counts as 0", "by meaning")                      \
    X(FADE_S, 1800, "s", "evidence about a cache counts 37 % after this time", "ADR 0029")         \
    X(TRUST, 8, "times", "limit of a sample against its expected value, up or down", "by meaning") \
    X(TIMED_S, 0.010, "s", "shorter times teach nothing: the clock has milliseconds", "the clock") \
    X(TIMED_TOKENS, 512, "tokens", "a shorter prompt is mostly overhead", "ADR 0030")              \
    X(TIMED_STEPS, 16, "tokens", "a shorter answer is mostly overhead", "ADR 0030")                \
    X(ENGINE_RUNS, 8, "requests", "any engine runs this number at once with hardly any slowdown",  \
      "ADR 0031, 0038")                                                                            \
    /* The cost. */                                                                                \
    X(STEP_GROWTH, 1.5e-6, "1/token",                                                              \
      "share by which a token of context lengthens a step: 70 to 300 KB of keys and values "       \
      "beside weights of 8 to 140 GB",                                                             \
      "hardware")                                                                                  \
    X(LATE_S, 0.1, "s", "time that an engine takes besides computing", "ADR 0065")                 \
    X(CROWD, 32, "requests",                                                                       \
      "from this number at each replica on, CLEARLY replaces SLIGHTLY for steps", "ADR 0030")      \
    X(TURNED_OVER, 0.25, "share",                                                                  \
      "share of running requests that must end before load counts as steady", "ADR 0038")          \
    X(WAITED_STEPS, 2, "steps",                                                                    \
      "longest usual wait of a prompt: prompts are computed between steps", "ADR 0037")            \
    /* The choice. */                                                                              \
    X(TIE_S, 0.001, "s", "costs that differ by less are equal", "the clock")                       \
    X(UNSEEN_MS, 50, "ms", "age of the news from other routers, without the network's delay",      \
      "published every 20 ms")                                                                     \
    X(PLACED_MS, 1000, "ms", "half-life of the work that this router has placed", "ADR 0034")      \
    X(DUE_SLOWER, 5, "times",                                                                      \
      "limit of the first token at an idle slow replica, against the cheapest replica",            \
      "ADR 0039")                                                                                  \
    /* Speeds. */                                                                                  \
    X(NOISE, 0.6, "log", "standard deviation of a speed sample", "ADR 0030")                       \
    X(PACE_HOLDS_MS, 120000, "ms",                                                                 \
      "a slow replica's decode is tried again after this time and PACE_HOLDS_ANSWERS", "ADR 0070") \
    X(PACE_HOLDS_ANSWERS, 100, "answers",                                                          \
      "the fleet's answers that end before a slow decode is tried again", "ADR 0070")              \
    X(STEP_MIN_S, 1e-4, "s", "no engine's step is shorter", "hardware")                            \
    X(WHOLE_ALIKE, 10, "answers", "weight of the belief that prefill and decode deviate alike",    \
      "ADR 0030")                                                                                  \
    X(WHOLE_FLEET, 0.02, "share", "weight of that belief for a whole fleet", "ADR 0030")           \
    /* Caches. */                                                                                  \
    X(SIZE_PROMPTS, 128, "prompts",                                                                \
      "prompts after which older evidence of a cache size counts 37 %", "ADR 0029")                \
    X(SIZE_DOUBT, 0.25, "prompts", "evidence of a cache size counts half at this weight",          \
      "ADR 0029")                                                                                  \
    X(WINDOW_TOKENS, 4096, "tokens",                                                               \
      "tokens that an engine must count before the router compares", "ADR 0029")                   \
    X(WINDOW_OURS, 1.4, "times",                                                                   \
      "limit of an engine's count against the booked tokens; beyond, others send too", "ADR 0029") \
    X(WINDOW_PROMPTS, 8, "prompts", "largest weight of a comparison with an engine's counters",    \
      "ADR 0029")                                                                                  \
    X(GRAIN, 16, "parts", "a prompt's parts; a hit may miss one of them", "ADR 0029")              \
    /* Sizes of prompts and answers. */                                                            \
    X(BYTES_PRIOR, 2000, "tokens", "weight of the setting bytes-per-token", "ADR 0032")            \
    X(BYTES_TOKENS, 1e6, "tokens", "largest weight of what is known of bytes per token",           \
      "ADR 0032")                                                                                  \
    X(OUTPUT, 256, "tokens", "expected length of an answer before any has ended", "by meaning")    \
    X(OUTPUT_ANSWERS, 200, "answers", "largest weight of what is known of answers' lengths",       \
      "by meaning")                                                                                \
    X(RESTORE, 0.1, "share", "time to load a token from a tier, against computing it",             \
      "25 GB/s of a host's memory")                                                                \
    X(RESTORE_PRIOR, 20000, "tokens", "weight of the initial value of RESTORE", "by meaning")      \
    X(RESTORE_TOKENS, 500000, "tokens", "largest weight of what is known of RESTORE",              \
      "by meaning")                                                                                \
    X(TOKENS_ALIKE, 0.5, "correlation",                                                            \
      "correlation between the token lengths of two kinds of text", "ADR 0032")                    \
    X(TOKENS_NOISE, 0.1, "share", "deviation between prompts of one kind of text", "ADR 0032")     \
    X(TOKENS_TEMPLATE, 30, "tokens", "tokens that a chat template adds", "ADR 0032")               \
    X(TOKENS_DRIFT, 0.01, "share",                                                                 \
      "drift of a kind of text per prompt: some twenty prompts are remembered", "ADR 0032")        \
    X(TOKENS_DEVIATIONS, 3, "deviations", "a prompt counts as at most this far off", "ADR 0032")   \
    X(TOKENS_DOUBT, 1.1, "times",                                                                  \
      "growth of a kind's deviation after a prompt beyond that: ten are a change", "ADR 0032")     \
    X(TOKENS_MAX, 16, "times",                                                                     \
      "limit of a kind's token length against the initial belief, up or down", "ADR 0032")         \
    /* Adapters. */                                                                                \
    X(ADAPTER_DEMAND_MS, 600000, "ms", "demand for an adapter counts half after this time",        \
      "ADR 0034")                                                                                  \
    X(ADAPTER_POWER, 4, "exponent",                                                                \
      "an adapter in half the demand of the marginal one is wanted by 0.06", "ADR 0034")           \
    X(ADAPTER_WANTED, 2, "loads", "cost of evicting a wanted adapter", "ADR 0034")                 \
    X(ADAPTER_UNLIKE, 6, "loads", "cost of loading an adapter among unlike ones", "ADR 0034")      \
    X(ADAPTER_LOAD_S, 0.3, "s",                                                                    \
      "time of a load before any was seen: between a host's memory and a disk", "hardware")        \
    X(ADAPTER_TOOK_MAX_S, 60, "s", "no load takes longer", "by meaning")

enum node_rule {
#define NODE_RULE_NAME(name, value, unit, says, by) NODE_RULE_##name,
    NODE_RULE_MAP(NODE_RULE_NAME)
#undef NODE_RULE_NAME
        NODE_RULES
};

#ifdef GRAPEVINE_ABLATION
extern double node_rules[NODE_RULES]; /* set by the bench before anything runs */
#define RULE(name) (node_rules[NODE_RULE_##name])
#else
#define NODE_RULE_VALUE(name, value, unit, says, by) static const double node_rule_##name = value;
NODE_RULE_MAP(NODE_RULE_VALUE)
#undef NODE_RULE_VALUE
#define RULE(name) (node_rule_##name)
#endif

#endif
