/* A replica as --replica writes it. */
#include <stdio.h>

#include "base/err.h"
#include "node/settings/options.h"

static int parse_engine(struct slice fragment, enum node_engine *out)
{
    if (slice_equal(fragment, SLICE("engine=vllm")))
        *out = NODE_ENGINE_VLLM;
    else if (slice_equal(fragment, SLICE("engine=sglang")))
        *out = NODE_ENGINE_SGLANG;
    else if (slice_equal(fragment, SLICE("engine=other")))
        *out = NODE_ENGINE_OTHER;
    else
        return ERR_SYNTAX;
    return 0;
}

int node_replica_parse(struct slice text, struct node_replica_option *out)
{
    static const uint16_t http_port = 80;
    struct node_replica_option parsed = {.engine = NODE_ENGINE_AUTO};
    struct slice rest = text;
    struct slice url = slice_cut(&rest, '#');
    if (url.len < text.len && parse_engine(rest, &parsed.engine) != 0)
        return ERR_SYNTAX;
    if (!slice_starts_with(url, SLICE("http://")))
        return ERR_SYNTAX;
    url = slice_skip(url, strlen("http://"));
    if (slice_ends_with(url, SLICE("/")))
        url.len--;
    if (node_address_parse_default(url, http_port, &parsed.address) != 0 ||
        parsed.address.port == 0)
        return ERR_SYNTAX;
    bool v6 = strchr(parsed.address.host, ':') != NULL;
    (void)snprintf(parsed.name, sizeof parsed.name, v6 ? "[%s]:%u" : "%s:%u", parsed.address.host,
                   parsed.address.port);
    *out = parsed;
    return 0;
}
