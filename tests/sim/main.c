/* The simulator's command line; see docs/simulation.md.
 *
 *   sim run SEED [nodes=N] [profile=calm|strict|storm|pressure] [seconds=S] [bug=NAME] [verbose]
 *   sim seeds FIRST COUNT [...]      several runs, one line each
 *   sim controls [SEEDS] [BUG=SEED...]  every known bug: how many seeds until it is caught
 *   sim latency [N...]               time until all nodes hold one observation
 *   sim bytes [N]                    bytes on the wire per observation
 *   sim death [N]                    time until the load of a killed router is gone
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/sim/measure.h"
#include "tests/sim/sim.h"

enum { NAMED_TRIES = 10 };

#ifdef GRAPEVINE_BUGS
enum bug bug_active;
#endif

static const struct {
    const char *name, *text;
} bugs[] = {{"NONE", ""},
#define BUG_ROW(name, text) {#name, text},
            BUG_MAP(BUG_ROW)
#undef BUG_ROW
};

struct settings {
    uint64_t seed;
    int profile, nodes, seconds;
    enum bug bug;
    bool verbose;
};

static enum bug bug_of(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(bugs); i++) {
        if (strcmp(bugs[i].name, name) == 0)
            return (enum bug)i;
    }
    (void)fprintf(stderr, "no such bug: %s\n", name);
    exit(2);
}

static int profile_of(const char *name)
{
    for (int i = 0; i < SIM_PROFILES; i++) {
        if (strcmp(sim_profile_text((enum sim_profile)i), name) == 0)
            return i;
    }
    (void)fprintf(stderr, "no such profile: %s\n", name);
    exit(2);
}

static void setting(struct settings *s, const char *word)
{
    if (strncmp(word, "nodes=", 6) == 0)
        s->nodes = atoi(word + 6);
    else if (strncmp(word, "seconds=", 8) == 0)
        s->seconds = atoi(word + 8);
    else if (strncmp(word, "profile=", 8) == 0)
        s->profile = profile_of(word + 8);
    else if (strncmp(word, "bug=", 4) == 0)
        s->bug = bug_of(word + 4);
    else if (strcmp(word, "verbose") == 0)
        s->verbose = true;
    else {
        (void)fprintf(stderr, "what is %s?\n", word);
        exit(2);
    }
}

static void bug_set(enum bug bug)
{
#ifdef GRAPEVINE_BUGS
    bug_active = bug;
#else
    if (bug != BUG_NONE) {
        (void)fprintf(stderr, "bugs are compiled in with VARIANT=sim only\n");
        exit(2);
    }
#endif
}

/* One run; returns the hash of its trace. */
static uint64_t run(const struct settings *s)
{
    struct sim_config c;
    sim_config_of_seed(&c, s->seed, s->profile, s->nodes);
    if (s->seconds > 0)
        c.seconds = (unsigned)s->seconds;
    if (c.nodes < 2 || c.nodes > SIM_NODES_MAX) {
        (void)fprintf(stderr, "2 to %u nodes\n", SIM_NODES_MAX);
        exit(2);
    }
    c.verbose = s->verbose;
    c.spread_start = c.nodes > 16;
    if (c.nodes > 16)
        c.check_every = (uint64_t)c.nodes * 4000;
    bug_set(s->bug);
    struct sim_world *w = sim_world_open(&c);
    sim_run(w);
    uint64_t trace = w->trace;
    printf("ok seed %llu %s nodes %u: %llu events, %llu requests, %llu packets, %llu crashes, "
           "%llu replays, %llu damaged, %zu observations kept, rest %.1f s, trace %016llx\n",
           (unsigned long long)c.seed, sim_profile_text(c.profile), c.nodes,
           (unsigned long long)w->events, (unsigned long long)w->requests,
           (unsigned long long)w->net.packets, (unsigned long long)w->crashes,
           (unsigned long long)w->replays,
           (unsigned long long)w->damaged + (unsigned long long)w->garbage, (size_t)w->required,
           (double)w->rest_us / 1e6, (unsigned long long)trace);
    (void)fflush(stdout);
    sim_world_close(w);
    return trace;
}

/* A run in a child, so that an abort is a result too. The last line that it said goes to `line`;
 * returns whether it went well. */
static bool run_apart(const struct settings *s, char *line, size_t line_size)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(dup2(ends[1], 1) >= 0 && dup2(ends[1], 2) >= 0);
        (void)close(ends[0]);
        (void)run(s);
        _exit(0);
    }
    (void)close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    CHECK(said != NULL);
    char text[1024];
    line[0] = '\0';
    while (fgets(text, sizeof text, said)) {
        text[strcspn(text, "\n")] = '\0';
        (void)snprintf(line, line_size, "%s", text);
    }
    (void)fclose(said);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int run_seeds(struct settings *s, uint64_t first, uint64_t count)
{
    unsigned failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        char line[1024];
        s->seed = first + i;
        if (!run_apart(s, line, sizeof line)) {
            failed++;
            printf("FAILED seed %llu: ", (unsigned long long)s->seed);
        }
        puts(line);
    }
    printf("%llu seeds, %u failed\n", (unsigned long long)count, failed);
    return failed > 0;
}

/* The seed that caught the bug, or 0. */
static uint64_t control(struct settings *s, enum bug bug, uint64_t first, uint64_t count,
                        unsigned step)
{
    char line[1024];
    for (uint64_t seed = first; seed < first + count * step; seed += step) {
        s->seed = seed;
        s->bug = bug;
        if (run_apart(s, line, sizeof line))
            continue;
        printf("caught %-20s with seed %-4llu %s\n", bugs[bug].name, (unsigned long long)seed,
               line);
        (void)fflush(stdout);
        return seed;
    }
    printf("MISSED %-20s with %llu seeds from %llu on\n", bugs[bug].name, (unsigned long long)count,
           (unsigned long long)first);
    (void)fflush(stdout);
    return 0;
}

/* All bugs with so many seeds each; or those named, each with the seed known to catch it. */
static int run_controls(struct settings *s, int count, char **words)
{
    unsigned missed = 0;
    uint64_t seeds = 20;
    bool named = false;
    for (int i = 0; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (!equals) {
            seeds = strtoull(words[i], NULL, 10);
        } else {
            *equals = '\0';
            named = true;
            /* A change of the code is another run for every seed: the next ones of its profile
             * may do as well. */
            missed += control(s, bug_of(words[i]), strtoull(equals + 1, NULL, 10), NAMED_TRIES,
                              SIM_PROFILES) == 0;
        }
    }
    for (unsigned i = 1; !named && i < BUG_COUNT; i++)
        missed += control(s, (enum bug)i, 1, seeds, 1) == 0;
    printf("%u missed\n", missed);
    return missed > 0;
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    struct settings s = {.seed = 1, .profile = -1, .nodes = -1, .seconds = -1};
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "run") == 0 && argc > 2) {
        s.seed = strtoull(argv[2], NULL, 10);
        for (int i = 3; i < argc; i++)
            setting(&s, argv[i]);
        (void)run(&s);
        return 0;
    }
    if (strcmp(what, "seeds") == 0 && argc > 3) {
        for (int i = 4; i < argc; i++)
            setting(&s, argv[i]);
        return run_seeds(&s, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    if (strcmp(what, "controls") == 0)
        return run_controls(&s, argc - 2, argv + 2);
    if (strcmp(what, "latency") == 0) {
        static const unsigned all[] = {3, 16, 64, 256};
        unsigned count = argc > 2 ? (unsigned)(argc - 2) : ARRAY_LEN(all);
        for (unsigned i = 0; i < count; i++) {
            unsigned nodes = argc > 2 ? (unsigned)atoi(argv[2 + i]) : all[i];
            unsigned samples = nodes > 64 ? 60 : 500;
            sim_measure_latency(1, nodes, 0.001, samples);
            sim_measure_latency(1, nodes, 0.01, samples);
        }
        return 0;
    }
    if (strcmp(what, "bytes") == 0) {
        sim_measure_bytes(1, argc > 2 ? (unsigned)atoi(argv[2]) : 3, 10000);
        return 0;
    }
    if (strcmp(what, "death") == 0) {
        sim_measure_death(1, argc > 2 ? (unsigned)atoi(argv[2]) : 16, 50);
        return 0;
    }
    (void)fprintf(stderr,
                  "usage: sim run SEED | seeds FIRST COUNT | controls | latency | bytes | death; "
                  "see docs/simulation.md\n");
    return 2;
}
