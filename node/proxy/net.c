#include "node/proxy/net.h"

#include "base/check.h"

static const struct {
    const char *name, *want;
} shortages[NET_SHORTAGES] = {
    [NET_SHORT_OF_PORTS] = {"ports",
                            "a wider net.ipv4.ip_local_port_range, net.ipv4.tcp_tw_reuse=1, "
                            "or a longer upstream-keepalive"},
    [NET_SHORT_OF_FILES] = {"files", "a higher limit of open files (LimitNOFILE, ulimit -n, "
                                     "fs.file-max), or a lower connections-max"},
    [NET_SHORT_OF_MEMORY] = {"memory", "more memory for the process or for sockets "
                                       "(net.ipv4.tcp_mem), or a lower connections-max"},
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
