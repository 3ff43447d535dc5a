#include "node/proxy/net.h"

#include "base/check.h"

static const struct {
    const char *name, *want;
} shortages[NET_SHORTAGES] = {
    [NET_SHORT_OF_PORTS] = {"ports", "widen net.ipv4.ip_local_port_range, set "
                                     "net.ipv4.tcp_tw_reuse=1, or lengthen upstream-keepalive"},
    [NET_SHORT_OF_FILES] = {"files", "raise the limit of open files (LimitNOFILE, ulimit -n, "
                                     "fs.file-max), or lower connections-max"},
    [NET_SHORT_OF_MEMORY] = {"memory", "give the process or its sockets more memory "
                                       "(net.ipv4.tcp_mem), or lower connections-max"},
};

const char *net_shortage_name(enum net_shortage kind)
{
    CHECK(kind < NET_SHORTAGES);
    return shortages[kind].name;
}

const char *net_shortage_want(enum net_shortage kind)
{
    CHECK(kind < NET_SHORTAGES);
    return shortages[kind].want;
}
