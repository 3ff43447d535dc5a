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
    X(CLEARLY, 2, "times", "what differs by more differs clearly, by less perhaps", "by meaning")  \
    X(SLIGHTLY, 1.2, "times", "what differs by less is alike", "by meaning")                       \
    X(FEW, 2, "samples", "so many may be chance", "ADR 0042")                                      \
    X(PRIOR, 4, "samples", "that what is believed at first counts as", "by meaning")               \
    X(HALF_LIFE_MS, 16000, "ms", "samples and readings count half after this", "ADR 0030")         \
    X(FADED, 0.1, "samples", "are left of one that counts no more", "by meaning")                  \
    X(FADE_S, 1800, "s", "evidence of a cache counts 37 % after this", "ADR 0029")                 \
    X(TRUST, 8, "times", "one sample counts as at most so much more than expected", "by meaning")  \
    X(TIMED_S, 0.010, "s", "what took less says nothing: the clock has milliseconds", "the clock") \
    X(TIMED_TOKENS, 512, "tokens", "a shorter prompt is mostly overhead", "ADR 0030")              \
    X(TIMED_STEPS, 16, "tokens", "a shorter answer is mostly overhead", "ADR 0030")                \
    X(ENGINE_RUNS, 8, "requests", "so many run at once at any engine and hardly slow each other",  \
      "ADR 0031, 0038")                                                                            \
    /* The cost. */                                                                                \
    X(STEP_GROWTH, 1.5e-6, "1/token",                                                              \
      "by how much of itself a token of context makes a step "                                     \
      "longer: 70 to 300 KB of keys and values beside weights of 8 to 140 GB",                     \
      "hardware")                                                                                  \
    X(LATE_S, 0.1, "s", "what an engine takes beside its computing", "ADR 0065")                   \
    X(CROWD, 32, "requests", "from so many at each on they may seem CLEARLY apart", "ADR 0030")    \
    X(TURNED_OVER, 0.25, "share", "of what ran has ended: load rises no more", "ADR 0038")         \
    X(WAITED_STEPS, 2, "steps", "that a prompt may wait for: they are computed between steps",     \
      "ADR 0037")                                                                                  \
    /* The choice. */                                                                              \
    X(TIE_S, 0.001, "s", "costs that differ by less are equal", "the clock")                       \
    X(UNSEEN_MS, 50, "ms", "how old what is known of other routers is, but for its travel",        \
      "published every 20 ms")                                                                     \
    X(PLACED_MS, 1000, "ms", "how far back this router looks for how much one places", "ADR 0034") \
    X(DUE_SLOWER, 5, "times", "as late a first token may be at a slow replica", "ADR 0039")        \
    /* Speeds. */                                                                                  \
    X(NOISE, 0.6, "log", "one sample of a speed is off by", "ADR 0030")                            \
    X(PACE_HOLDS_MS, 120000, "ms", "a slow replica's decode is tried again after this, and",       \
      "ADR 0070")                                                                                  \
    X(PACE_HOLDS_ANSWERS, 100, "answers", "after so many", "ADR 0070")                             \
    X(STEP_MIN_S, 1e-4, "s", "no engine's step is shorter", "hardware")                            \
    X(WHOLE_ALIKE, 10, "answers", "until prefill and decode may differ apart", "ADR 0030")         \
    X(WHOLE_FLEET, 0.02, "share", "the same for a whole fleet", "ADR 0030")                        \
    /* Caches. */                                                                                  \
    X(SIZE_PROMPTS, 128, "prompts", "that show the size of a cache", "ADR 0029")                   \
    X(SIZE_DOUBT, 0.25, "prompts", "less than so many say nothing", "ADR 0029")                    \
    X(WINDOW_TOKENS, 4096, "tokens", "that an engine must count to be compared", "ADR 0029")       \
    X(WINDOW_OURS, 1.4, "times", "what is booked, may an engine count", "ADR 0029")                \
    X(WINDOW_PROMPTS, 8, "prompts", "a comparison counts as at most", "ADR 0029")                  \
    X(GRAIN, 16, "parts", "of a prompt: a hit may miss one", "ADR 0029")                           \
    /* Sizes of prompts and answers. */                                                            \
    X(BYTES_PRIOR, 2000, "tokens", "that the setting counts as", "ADR 0032")                       \
    X(BYTES_TOKENS, 1e6, "tokens", "that show bytes per token", "ADR 0032")                        \
    X(OUTPUT, 256, "tokens", "of an answer, before one ended", "by meaning")                       \
    X(OUTPUT_ANSWERS, 200, "answers", "that show how long they are", "by meaning")                 \
    X(RESTORE, 0.1, "share", "of computing it, bringing a token back from a tier takes",           \
      "25 GB/s of a host's memory")                                                                \
    X(RESTORE_PRIOR, 20000, "tokens", "that this counts as", "by meaning")                         \
    X(RESTORE_TOKENS, 500000, "tokens", "that show it", "by meaning")                              \
    X(TOKENS_ALIKE, 0.5, "correlation", "of what kinds of text have in tokens", "ADR 0032")        \
    X(TOKENS_NOISE, 0.1, "share", "prompts of one kind differ by", "ADR 0032")                     \
    X(TOKENS_TEMPLATE, 30, "tokens", "a chat template adds", "ADR 0032")                           \
    X(TOKENS_DRIFT, 0.01, "share",                                                                 \
      "a kind drifts by with each prompt: some twenty are remembered", "ADR 0032")                 \
    X(TOKENS_DEVIATIONS, 3, "deviations", "a prompt counts up to", "ADR 0032")                     \
    X(TOKENS_DOUBT, 1.1, "times", "more doubtful is a kind after one beyond: ten are a change",    \
      "ADR 0032")                                                                                  \
    X(TOKENS_MAX, 16, "times", "a kind may have of what is believed at first", "ADR 0032")         \
    /* Adapters. */                                                                                \
    X(ADAPTER_DEMAND_MS, 600000, "ms", "demand for an adapter counts half after this", "ADR 0034") \
    X(ADAPTER_POWER, 4, "exponent",                                                                \
      "asked for half as often as the marginal one, it is wanted 0.06", "ADR 0034")                \
    X(ADAPTER_WANTED, 2, "loads", "it costs to push out a wanted one", "ADR 0034")                 \
    X(ADAPTER_UNLIKE, 6, "loads", "it costs to bring one among others that are unlike it",         \
      "ADR 0034")                                                                                  \
    X(ADAPTER_LOAD_S, 0.3, "s", "to load one, before one was: between a host's memory and a disk", \
      "hardware")                                                                                  \
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
