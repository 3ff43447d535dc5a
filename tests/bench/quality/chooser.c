#include "tests/bench/quality/chooser.h"

#include <string.h>

const struct chooser *const choosers[] = {&chooser_cache_aware,
                                          &chooser_round_robin,
                                          &chooser_least_request,
                                          &chooser_session,
                                          &chooser_prefix_hash,
                                          &chooser_longest_match,
                                          &chooser_blended,
                                          &chooser_queue_uncached,
                                          &chooser_perfect,
                                          &chooser_perfect_queue,
                                          NULL};

const struct chooser *chooser_find(const char *name)
{
    for (unsigned i = 0; choosers[i]; i++) {
        if (strcmp(choosers[i]->name, name) == 0)
            return choosers[i];
    }
    return NULL;
}
