/* The simulator's command line; see docs/simulation.md.
 *
 *   sim run SEED [profile=NAME] [nodes=N] [seconds=S] [bug=NAME] [verbose]
 *   sim seeds FIRST COUNT [...]         several runs, a line each
 *   sim steps PROFILE COUNT [FIRST]     seeds one after another, until so many steps are done
 *   sim bugs                            known bugs: base/bug.h
 *   sim controls [SEEDS [NAME]]         for each: share of seeds that catch it, and rules
 *   sim caught [NAME]                   checks that each is caught at all
 *   sim latency [N...]                  time until all nodes hold one observation
 *   sim bytes [N]                       bytes on the wire per observation
 *   sim death [N [AT_ONCE [TIMES]]]     time until the load of killed routers is gone
 *   sim idle [N...]                     packets of each router while nothing happens
 *   sim regions [N [ONE_WAY_MS]]        two regions: spread, joins, agreement after a partition
 *   sim broadcast [N [DELAY_MS]]        Maelstrom's broadcast: messages per operation, latency
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/sim/controls.h"
#include "tests/sim/measure.h"

static int profile_of(const char *name)
{
    for (int i = 0; i < SIM_NAMES; i++) {
        if (strcmp(sim_profile_text((enum sim_profile)i), name) == 0)
            return i;
    }
    (void)fprintf(stderr, "no such profile: %s\n", name);
    exit(2);
}

static uint64_t number_of(const char *word)
{
    char *end;
    uint64_t number = strtoull(word, &end, 10);
    if (*end != '\0' || end == word) {
        (void)fprintf(stderr, "%s is no number\n", word);
        exit(2);
    }
    return number;
}

static void setting(struct sim_settings *s, const char *word)
{
    if (strncmp(word, "nodes=", 6) == 0)
        s->nodes = (int)number_of(word + 6);
    else if (strncmp(word, "seconds=", 8) == 0)
        s->seconds = (int)number_of(word + 8);
    else if (strncmp(word, "profile=", 8) == 0)
        s->profile = profile_of(word + 8);
    else if (strncmp(word, "bug=", 4) == 0)
        s->bug = sim_bug_of(word + 4);
    else if (strcmp(word, "verbose") == 0)
        s->verbose = true;
    else {
        (void)fprintf(stderr, "what is %s?\n", word);
        exit(2);
    }
}

/* Figures of the simulated network. False: unknown name. */
static bool figures(const char *what, int argc, char **argv)
{
    static const unsigned all[] = {3, 8, 16, 64, 256};
    unsigned n = argc > 0 ? (unsigned)number_of(argv[0]) : 0;
    unsigned second = argc > 1 ? (unsigned)number_of(argv[1]) : 0;
    unsigned count = argc > 0 ? (unsigned)argc : ARRAY_LEN(all);
    bool each = strcmp(what, "latency") == 0 || strcmp(what, "idle") == 0;
    for (unsigned i = 0; each && i < count; i++) {
        unsigned nodes = argc > 0 ? (unsigned)number_of(argv[i]) : all[i];
        unsigned samples = nodes > 64 ? 60 : 500;
        if (strcmp(what, "idle") == 0) {
            sim_measure_idle(1, nodes);
        } else {
            sim_measure_latency(1, nodes, 0.001, samples);
            sim_measure_latency(1, nodes, 0.01, samples);
        }
    }
    if (each)
        return true;
    if (strcmp(what, "bytes") == 0)
        sim_measure_bytes(1, n ? n : 3, 10000);
    else if (strcmp(what, "death") == 0)
        sim_measure_death(1, n ? n : 16, second ? second : 1,
                          argc > 2 ? (unsigned)number_of(argv[2]) : 50);
    else if (strcmp(what, "regions") == 0)
        sim_measure_regions(1, n ? n : 6, second ? second : 150, 0.005, 500);
    else if (strcmp(what, "broadcast") == 0)
        sim_measure_broadcast(n ? n : 25, second ? second : 100, 100, 0);
    else
        return false;
    return true;
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: sim run SEED | seeds FIRST COUNT | steps PROFILE COUNT | bugs | "
                          "controls | caught | latency | bytes | death | idle | "
                          "regions | broadcast; see docs/simulation.md\n");
    return 2;
}

/* The words after `what`. */
static int command(const char *what, int argc, char **argv)
{
    struct sim_settings s = {.seed = 1, .profile = -1, .nodes = -1, .seconds = -1};
    if (strcmp(what, "run") == 0 && argc > 0) {
        s.seed = number_of(argv[0]);
        for (int i = 1; i < argc; i++)
            setting(&s, argv[i]);
        (void)sim_run_seed(&s);
        return 0;
    }
    if (strcmp(what, "seeds") == 0 && argc > 1) {
        s.seed = number_of(argv[0]);
        for (int i = 2; i < argc; i++)
            setting(&s, argv[i]);
        return sim_seeds(&s, number_of(argv[1]));
    }
    if (strcmp(what, "steps") == 0 && argc > 1) {
        s.profile = profile_of(argv[0]);
        s.seed = argc > 2 ? number_of(argv[2]) : 1;
        return sim_steps(&s, number_of(argv[1]));
    }
    if (strcmp(what, "controls") == 0)
        return sim_controls(argc > 0 ? number_of(argv[0]) : 20,
                            argc > 1 ? sim_bug_of(argv[1]) : BUG_NONE);
    if (strcmp(what, "caught") == 0)
        return sim_controls(0, argc > 0 ? sim_bug_of(argv[0]) : BUG_NONE);
    if (strcmp(what, "bugs") == 0)
        return sim_bugs();
    return figures(what, argc, argv) ? 0 : usage();
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return argc > 1 ? command(argv[1], argc - 2, argv + 2) : usage();
}
