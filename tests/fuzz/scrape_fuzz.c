#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/scrape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node_scrape s, ranks[NODE_RANKS_MAX];
    int err = node_scrape_parse(slice_of((const char *)data, size), &s, ranks);
    CHECK(err == 0 || err == ERR_SYNTAX || err == ERR_NOT_FOUND);
    if (err == 0) {
        CHECK(s.running >= 0 || s.running == -1);
        CHECK(s.cache_tokens >= 0 || s.cache_tokens == -1);
        CHECK(!isnan(s.cache_usage) && !isnan(s.prefix_hits));
    }
    return 0;
}
