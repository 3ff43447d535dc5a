#include "node/io/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "node/proxy/proxy.h"

enum {
    RESERVE = 256, /* files kept for uses other than clients, but at most half of the limit */
    SURPLUS = 16,  /* 1/16 of connections-max: surplus connections that get the answer "too many" */
};

static uint64_t limit_raised(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UINT64_MAX;
    if (limit.rlim_cur != limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void io_files_fit(struct node_options *o, struct io_files *out)
{
    *out = (struct io_files){.max = limit_raised(), .connections_asked = o->connections_max};
    uint64_t reserve = out->max / 2 < RESERVE ? out->max / 2 : RESERVE;
    uint64_t left = out->max - reserve;
    uint64_t fit = left > 2 ? (left - 1) / (2 * SURPLUS + 1) * SURPLUS +
                                  (left - 1) % (2 * SURPLUS + 1) * SURPLUS / (2 * SURPLUS + 1)
                            : 1;
    out->client_max = out->max - reserve / 2;
    out->admin_max = (unsigned)(reserve * PROXY_ADMIN_CONNECTIONS_MAX / RESERVE);
    out->is_short = fit < o->connections_max;
    if (!out->is_short)
        return;
    o->lowered =
        (struct node_option_lowered){.name = "connections-max", .configured = o->connections_max};
    (void)snprintf(o->lowered.why, sizeof o->lowered.why,
                   "at most %" PRIu64 " files may be open (ulimit -n)", out->max);
    o->connections_max = fit;
}
