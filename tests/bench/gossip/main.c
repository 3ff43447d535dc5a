/* gossip-bench: real processes that gossip on loopback, and their costs. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gossip/bench.h"

static const struct {
    const char *name;
    void (*run)(const struct bench *b);
} cases[] = {
    {"spread", case_spread}, {"bytes", case_bytes},   {"idle", case_idle},
    {"killed", case_killed}, {"forged", case_forged}, {"reconcile", case_reconcile},
    {"join", case_join},
};

unsigned bench_wrong;

enum { CASES = sizeof cases / sizeof *cases };

static void help(void)
{
    printf("gossip-bench [--quick] [--rounds N] [CASE ...]\ncases (all by default):");
    for (unsigned i = 0; i < CASES; i++)
        printf(" %s", cases[i].name);
    printf("\n");
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as in the daemon: a peer's death is an error of the call */
    struct bench b = {0};
    bool chosen[CASES] = {false}, any = false;
    for (int i = 1; i < argc; i++) {
        unsigned found = CASES;
        for (unsigned j = 0; j < CASES; j++)
            if (strcmp(argv[i], cases[j].name) == 0)
                found = j;
        if (found < CASES) {
            chosen[found] = any = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            b.quick = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            b.rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        } else {
            help();
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    for (unsigned i = 0; i < CASES; i++) {
        if (any && !chosen[i])
            continue;
        cases[i].run(&b);
        printf("\n");
    }
    if (bench_wrong > 0)
        printf("%u WRONG\n", bench_wrong);
    return bench_wrong > 0;
}
