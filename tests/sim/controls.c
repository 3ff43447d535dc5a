/* Many runs, each in a child: seeds, steps, and the known bugs that must be caught. */
#include "tests/sim/controls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/sim/service.h"

enum { LINE = 1024, SEEDS_MAX = 1000 };

static const struct {
    const char *name, *text;
    enum sim_profile profile;
    const char *rules;
    unsigned share; /* least number of seeds, of a hundred, that catch the bug */
} bugs[] = {{.name = "NONE"},
#define BUG_ROW(name, text, profile, rules, share) {#name, text, SIM_##profile, rules, share},
            BUG_MAP(BUG_ROW)};

enum bug sim_bug_of(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(bugs); i++) {
        if (strcmp(bugs[i].name, name) == 0)
            return (enum bug)i;
    }
    (void)fprintf(stderr, "no such bug: %s\n", name);
    exit(2);
}

static void bug_set(enum bug bug)
{
#ifdef GRAPEVINE_LAB
    bug_active = bug;
    bug_chances = 0;
#else
    if (bug != BUG_NONE) {
        (void)fprintf(stderr, "bugs are compiled in with VARIANT=lab only\n");
        exit(2);
    }
#endif
}

/* --- runs ----------------------------------------------------------------------------------- */

uint64_t sim_run_seed(const struct sim_settings *s)
{
    struct sim_config c;
    if (s->profile == SIM_SERVICE) {
        bug_set(s->bug);
        return service_run_seed(&(struct service_settings){
            .seed = s->seed, .routers = s->nodes, .seconds = s->seconds, .verbose = s->verbose});
    }
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
    uint64_t steps = w->world.events;
    printf("ok seed %llu %s nodes %u: %llu steps, %llu requests, %llu packets, %llu crashes, "
           "%llu replays, %llu damaged, %llu observations required, rest %.1f s, trace %016llx\n",
           (unsigned long long)c.seed, sim_profile_text(c.profile), c.nodes,
           (unsigned long long)steps, (unsigned long long)w->requests,
           (unsigned long long)w->world.net.packets, (unsigned long long)w->crashes,
           (unsigned long long)w->replays,
           (unsigned long long)w->world.net.damaged + (unsigned long long)w->garbage,
           (unsigned long long)w->required, (double)w->rest_us / 1e6,
           (unsigned long long)w->world.trace);
    (void)fflush(stdout);
    sim_world_close(w);
    return steps;
}

/* A run in a child, so that an abort is a result too. The child's last line goes to `line`; returns
 * true if the run was clean. */
static bool run_apart(const struct sim_settings *s, char *line, size_t line_size)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    (void)fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(dup2(ends[1], 1) >= 0 && dup2(ends[1], 2) >= 0);
        (void)close(ends[0]);
        (void)sim_run_seed(s);
        _exit(0);
    }
    (void)close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    CHECK(said != NULL);
    char text[LINE];
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

/* Prints the command that repeats a run. */
static void again_say(const struct sim_settings *s)
{
    enum sim_profile p = s->profile >= 0 ? (enum sim_profile)s->profile : s->seed % SIM_PROFILES;
    printf("  again: make sim SEED=%llu PROFILE=%s", (unsigned long long)s->seed,
           sim_profile_text(p));
    if (s->nodes > 0)
        printf(" NODES=%d", s->nodes);
    if (s->seconds > 0)
        printf(" STEPS=%d", s->seconds);
    puts(" VERBOSE=1");
}

int sim_seeds(struct sim_settings *s, uint64_t count)
{
    unsigned failed = 0;
    for (uint64_t i = 0; i < count; i++, s->seed++) {
        char line[LINE];
        bool well = run_apart(s, line, sizeof line);
        if (!well)
            printf("FAILED seed %llu: ", (unsigned long long)s->seed);
        puts(line);
        if (!well)
            again_say(s);
        failed += !well;
    }
    printf("%llu seeds, %u failed\n", (unsigned long long)count, failed);
    return failed > 0;
}

int sim_steps(struct sim_settings *s, uint64_t least)
{
    uint64_t steps = 0, first = s->seed;
    unsigned failed = 0;
    bool terminal = isatty(2) != 0;
    for (; steps < least && failed == 0; s->seed++) {
        char line[LINE];
        unsigned long long of_run = 0;
        if (run_apart(s, line, sizeof line)) {
            const char *at = strstr(line, ": ");
            CHECK(at != NULL && sscanf(at, ": %llu steps", &of_run) == 1);
            steps += of_run;
        } else {
            failed++;
            printf("FAILED seed %llu: %s\n", (unsigned long long)s->seed, line);
            again_say(s);
        }
        if (terminal)
            (void)fprintf(stderr, "\r%llu of %llu steps", (unsigned long long)steps,
                          (unsigned long long)least);
    }
    if (terminal)
        (void)fputc('\n', stderr);
    printf("%s: %llu steps in seeds %llu to %llu: %s\n",
           sim_profile_text((enum sim_profile)s->profile), (unsigned long long)steps,
           (unsigned long long)first, (unsigned long long)s->seed - 1, failed ? "FAILED" : "clean");
    return failed > 0;
}

/* --- rules ---------------------------------------------------------------------------------- */

/* The rule that a line names. */
static void rule_of(char *rule, size_t size, const char *line)
{
    static const char broken[] = "BROKEN ";
    if (strncmp(line, broken, sizeof broken - 1) == 0) {
        line += sizeof broken - 1;
        (void)snprintf(rule, size, "%.*s", (int)strcspn(line, ":"), line);
    } else {
        (void)snprintf(rule, size, "_check()"); /* aborted */
    }
}

/* True if a list of words, separated by commas, has the word. */
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

/* --- controls ------------------------------------------------------------------------------- */

struct control {
    unsigned ran, caught;
    unsigned unclean;     /* failed without the bug */
    char rules[256];      /* rules that caught the bug */
    char others[256];     /* such rules that are missing in the table */
    uint64_t others_seed; /* last seed at which those rules caught the bug */
};

/* Without the bug the run must be clean; the result is remembered. */
static bool clean(enum sim_profile profile, uint64_t seed)
{
    static enum { UNKNOWN, CLEAN, UNCLEAN } known[SIM_NAMES][SEEDS_MAX + 1];
    if (known[profile][seed] == UNKNOWN) {
        char line[LINE];
        struct sim_settings s = {.seed = seed, .profile = (int)profile, .nodes = -1, .seconds = -1};
        known[profile][seed] = run_apart(&s, line, sizeof line) ? CLEAN : UNCLEAN;
        if (known[profile][seed] == UNCLEAN) {
            printf("FAILED without a bug: %s\n", line);
            again_say(&s);
        }
    }
    return known[profile][seed] == CLEAN;
}

/* For bugs that few seeds catch: a seed that did, tried before all others. If a code change alters
 * that run, the seed costs an additional run. */
static const struct {
    enum bug bug;
    uint64_t seed;
} known_seeds[] = {
    {BUG_RELAY_NOT_FORWARDED, 10}, {BUG_RARE_RELAY, 10},        {BUG_LIMIT_UNARMED, 15},
    {BUG_DEED_TWICE, 5},           {BUG_SLOW_READER_KEPT, 5},   {BUG_REJECT_COUNTS_AS_SPARE, 2},
    {BUG_HOST_OF_CLIENT, 8},       {BUG_ERROR_EVENT_ENDS, 71},  {BUG_FINDING_KEPT, 26},
    {BUG_SHORTAGE_CHARGED, 4},     {BUG_INTERIM_BUYS_TIME, 22}, {BUG_PIPELINE_LOST, 3},
    {BUG_STALE_BY_CLOCK, 17},      {BUG_UNASKED_SERVED, 3},     {BUG_STALE_ANSWER, 8},
};

static uint64_t known_seed(enum bug bug)
{
    for (unsigned i = 0; i < ARRAY_LEN(known_seeds); i++) {
        if (known_seeds[i].bug == bug)
            return known_seeds[i].seed;
    }
    return 0;
}

static void control(enum bug bug, uint64_t seeds, bool until, struct control *out)
{
    char line[LINE], rule[64];
    enum sim_profile profile = bugs[bug].profile;
    struct sim_settings s = {.profile = (int)profile, .nodes = -1, .seconds = -1, .bug = bug};
    *out = (struct control){0};
    uint64_t known = until ? known_seed(bug) : 0;
    for (uint64_t at = known > 0 ? 0 : 1; at <= seeds && !(until && out->caught > 0); at++) {
        s.seed = at > 0 ? at : known;
        out->ran++;
        bool fine = run_apart(&s, line, sizeof line);
        if (!until || !fine) /* until the bug is caught, no other seed shows anything */
            out->unclean += !clean(profile, s.seed);
        if (fine)
            continue;
        rule_of(rule, sizeof rule, line);
        if (list_has(bugs[bug].rules, rule)) {
            out->caught++;
            list_add(out->rules, sizeof out->rules, rule);
        } else {
            list_add(out->others, sizeof out->others, rule);
            out->others_seed = s.seed;
        }
    }
}

/* Number of seeds that all miss a bug with this share once in a thousand times. */
static uint64_t enough(enum bug bug)
{
    double missed = 1;
    uint64_t seeds = 0;
    for (; missed > 0.001; seeds++)
        missed *= 1 - bugs[bug].share / 100.0;
    return seeds;
}

int sim_controls(uint64_t seeds, enum bug only)
{
    bool until = seeds == 0;
    unsigned failed = 0;
    CHECK(seeds <= SEEDS_MAX);
    for (unsigned i = 1; i < ARRAY_LEN(bugs); i++) {
        struct control c;
        if (only != BUG_NONE && i != only)
            continue;
        control((enum bug)i, until ? enough((enum bug)i) : seeds, until, &c);
        bool often = until ? c.caught > 0 : c.caught * 100 >= bugs[i].share * c.ran;
        const char *verdict = c.unclean > 0         ? "UNCLEAN"
                              : c.others[0] != '\0' ? "OTHER RULE"
                              : c.caught == 0       ? "MISSED"
                              : !often              ? "SELDOM"
                                                    : "caught";
        failed += strcmp(verdict, "caught") != 0;
        printf("%-10s %-20s %-8s %2u of %2u, at least %2u %%  %s", verdict, bugs[i].name,
               sim_profile_text(bugs[i].profile), c.caught, c.ran, bugs[i].share, c.rules);
        if (c.others[0] != '\0')
            printf("; not expected: %s (seed %llu)", c.others, (unsigned long long)c.others_seed);
        puts("");
    }
    printf("%u failed\n", failed);
    return failed > 0;
}

int sim_bugs(void)
{
    for (unsigned i = 1; i < ARRAY_LEN(bugs); i++)
        printf("%s | %s | %s | %u | %s\n", bugs[i].name, bugs[i].text,
               sim_profile_text(bugs[i].profile), bugs[i].share, bugs[i].rules);
    return 0;
}
