#include "tests/lib/alone.h"

#include "base/check.h"
#include "base/err.h"
#include "base/prng.h"

enum { ALONE_MAX = 16 };

static struct node *nodes[ALONE_MAX]; /* made and not destroyed */

static void on_random(void *context, void *out, size_t len)
{
    uint8_t *at = out;
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)prng_next(context);
}

struct node_config alone_config(void)
{
    struct node_config config;
    CHECK(node_config_default(&config) == ERR_OK);
    config.router.seed = 1;
    return config;
}

struct node_router *alone_router(const struct node_config *config)
{
    struct prng prng;
    prng_seed(&prng, 1);
    struct node_replication_io io = {.context = &prng, .random = on_random};
    unsigned at = 0;
    while (at < ALONE_MAX - 1 && nodes[at])
        at++;
    CHECK(!nodes[at] && node_create(&nodes[at], config, &io, 0) == ERR_OK);
    return nodes[at]->router;
}

void alone_destroy(struct node_router *r)
{
    for (unsigned i = 0; i < ALONE_MAX; i++) {
        if (nodes[i] && nodes[i]->router == r) {
            node_destroy(nodes[i]);
            nodes[i] = NULL;
        }
    }
}
