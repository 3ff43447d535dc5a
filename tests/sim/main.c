/* The simulator's command line; see docs/simulation.md.
 *
 *   sim run SEED [nodes=N] [profile=calm|strict|join|storm|pressure] [seconds=S] [bug=NAME]
 * [verbose] sim seeds FIRST COUNT [...]      several runs, one line each sim bugs the known bugs:
 * base/bug.h sim controls [SEEDS]             every known bug: how many seeds catch it sim caught
 * [SEEDS]               every known bug: does one of the seeds catch it? sim latency [N...] time
 * until all nodes hold one observation sim bytes [N]                    bytes on the wire per
 * observation sim death [N]                    time until the load of a killed router is gone
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/sim/measure.h"
#include "tests/sim/sim.h"

#ifdef GRAPEVINE_BUGS
enum bug bug_active;
#endif

static const struct {
    const char *name, *text;
    enum sim_profile profile;
    const char *rules;
} bugs[] = {{.name = "NONE"},
#define BUG_ROW(name, text, profile, rules) {#name, text, SIM_##profile, rules},
            BUG_MAP(BUG_ROW)};

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
        (void)fprintf(stderr, "bugs are compiled in with VARIANT=bugs only\n");
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
    uint64_t trace = w->world.trace;
    printf("ok seed %llu %s nodes %u: %llu events, %llu requests, %llu packets, %llu crashes, "
           "%llu replays, %llu damaged, %zu observations kept, rest %.1f s, trace %016llx\n",
           (unsigned long long)c.seed, sim_profile_text(c.profile), c.nodes,
           (unsigned long long)w->world.events, (unsigned long long)w->requests,
           (unsigned long long)w->world.net.packets, (unsigned long long)w->crashes,
           (unsigned long long)w->replays,
           (unsigned long long)w->world.net.damaged + (unsigned long long)w->garbage,
           (size_t)w->required, (double)w->rest_us / 1e6, (unsigned long long)trace);
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

/* --- controls ------------------------------------------------------------------------------- */

/* The rule that a line names. */
static void rule_of(char *rule, size_t size, const char *line)
{
    static const char broken[] = "BROKEN ";
    if (strncmp(line, broken, sizeof broken - 1) == 0) {
        line += sizeof broken - 1;
        (void)snprintf(rule, size, "%.*s", (int)strcspn(line, ":"), line);
    } else {
        (void)snprintf(rule, size, "_check()"); /* it aborted */
    }
}

/* Whether a list of words with commas between them has the word. */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; *at != '\0'; at += strspn(at, ", ")) {
        size_t item = strcspn(at, ",");
        if (item == len && strncmp(at, word, len) == 0)
            return true;
        at += item;
    }
    return false;
}

static void list_add(char *list, size_t size, const char *word)
{
    size_t len = strlen(list);
    if (!list_has(list, word))
        (void)snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", word);
}

/* How many of the seeds catch a bug by one of its rules, in a profile or in all of them (-1); or
 * just whether one does. All rules that break go to `rules`. */
static unsigned control(enum bug bug, int profile, uint64_t seeds, bool until, char *rules,
                        size_t rules_size)
{
    char line[1024];
    unsigned caught = 0;
    struct settings s = {.profile = profile, .nodes = -1, .seconds = -1, .bug = bug};
    for (s.seed = 1; s.seed <= seeds && !(until && caught > 0); s.seed++) {
        if (run_apart(&s, line, sizeof line))
            continue;
        char rule[64];
        rule_of(rule, sizeof rule, line);
        caught += list_has(bugs[bug].rules, rule);
        list_add(rules, rules_size, rule);
    }
    return caught;
}

/* Every known bug. `until` one seed catches it, or a table of how many do. */
static int run_controls(bool until, uint64_t seeds)
{
    unsigned missed = 0;
    for (unsigned i = 1; i < BUG_COUNT; i++) {
        enum sim_profile profile = bugs[i].profile;
        char rules[256] = "";
        unsigned own = control((enum bug)i, (int)profile, seeds, until, rules, sizeof rules);
        unsigned all = until ? 0 : control((enum bug)i, -1, seeds, false, rules, sizeof rules);
        missed += own == 0;
        printf("%-6s %-20s %-8s ", own ? "caught" : "MISSED", bugs[i].name,
               sim_profile_text(profile));
        if (!until)
            printf("%2u of %llu, all profiles %2u  ", own, (unsigned long long)seeds, all);
        puts(rules);
    }
    printf("%u missed\n", missed);
    return missed > 0;
}

/* The table of base/bug.h, a line each: docs/simulation.md is compared with it. */
static int print_bugs(void)
{
    for (unsigned i = 1; i < BUG_COUNT; i++)
        printf("%s | %s | %s | %s\n", bugs[i].name, bugs[i].text, sim_profile_text(bugs[i].profile),
               bugs[i].rules);
    return 0;
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
        return run_controls(false, argc > 2 ? strtoull(argv[2], NULL, 10) : 20);
    if (strcmp(what, "caught") == 0)
        return run_controls(true, argc > 2 ? strtoull(argv[2], NULL, 10) : 20);
    if (strcmp(what, "bugs") == 0)
        return print_bugs();
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
    (void)fprintf(stderr, "usage: sim run SEED | seeds FIRST COUNT | bugs | controls | caught | "
                          "latency | bytes | death; "
                          "see docs/simulation.md\n");
    return 2;
}
