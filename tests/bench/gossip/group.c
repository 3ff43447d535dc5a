#include "tests/bench/gossip/group.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/bench/gossip/child.h"

enum { START_US = 30000000 };

uint16_t group_port(void)
{
    for (;;) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof at;
        int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(udp >= 0 && tcp >= 0 && bind(udp, (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(udp, (struct sockaddr *)&at, &len) == 0);
        bool both = bind(tcp, (struct sockaddr *)&at, sizeof at) == 0;
        (void)close(udp);
        (void)close(tcp);
        if (both)
            return ntohs(at.sin_port);
    }
}

/* Writes a new random key. */
static void key_write(struct group *g)
{
    uint8_t random[2 * GOSSIP_KEY_BYTES];
    char text[512];
    CHECK(getrandom(random, sizeof random, 0) == sizeof random);
    gossip_keyring_format(random, text, sizeof text);
    (void)snprintf(g->key_file, sizeof g->key_file, "/tmp/gossip-bench-key.XXXXXX");
    int fd = mkstemp(g->key_file);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

void group_child_start(struct group *g, unsigned child, unsigned expected)
{
    struct group_child *c = &g->children[child];
    int pair[2];
    CHECK(c->pid == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    if (c->port == 0)
        c->port = group_port();
    c->started_us = bench_now_us();
    (void)fflush(stdout);
    c->pid = fork();
    CHECK(c->pid >= 0);
    if (c->pid == 0) {
        for (unsigned i = 0; i < GROUP_MAX; i++)
            if (g->children[i].fd > 0)
                (void)close(g->children[i].fd);
        (void)close(pair[0]);
        child_run(&(struct child_setup){.node = {.number = child,
                                                 .port = c->port,
                                                 .seed = c->seed != 0 ? c->seed
                                                         : child > 0  ? g->children[0].port
                                                                      : 0,
                                                 .told = c->told,
                                                 .index_bytes = g->index_bytes,
                                                 .key_file = g->key_file},
                                        .expected = expected,
                                        .fd = pair[1]});
    }
    (void)close(pair[1]);
    c->fd = pair[0];
}

void group_init(struct group *g, uint64_t index_bytes)
{
    memset(g, 0, sizeof *g);
    g->index_bytes = index_bytes;
    key_write(g);
}

void group_start(struct group *g, unsigned count, uint64_t index_bytes)
{
    CHECK(count <= GROUP_MAX);
    group_init(g, index_bytes);
    g->count = count;
    struct group_event e;
    for (unsigned i = 0; i < count; i++)
        group_child_start(g, i, i == 0 ? 0 : count - 1);
    for (unsigned i = 0; i < count; i++)
        if (!group_await(g, i, GROUP_READY, START_US, &e)) {
            (void)fprintf(stderr, "gossip-bench: node %u of %u does not know all others in 30 s\n",
                          i, count);
            group_end(g);
            exit(1);
        }
}

void group_kill(struct group *g, unsigned child)
{
    struct group_child *c = &g->children[child];
    if (c->pid <= 0)
        return;
    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
    (void)close(c->fd);
    c->pid = c->fd = 0;
}

void group_end(struct group *g)
{
    for (unsigned i = 0; i < GROUP_MAX; i++)
        group_kill(g, i);
    (void)unlink(g->key_file);
}

void group_tell(struct group *g, unsigned child, enum group_command_kind kind, uint64_t value)
{
    struct group_command command = {.kind = kind, .value = value};
    CHECK(send(g->children[child].fd, &command, sizeof command, 0) == sizeof command);
}

bool group_await(struct group *g, unsigned child, enum group_event_kind kind, uint64_t timeout_us,
                 struct group_event *out)
{
    uint64_t until = bench_now_us() + timeout_us;
    for (;;) {
        uint64_t now = bench_now_us();
        struct pollfd poll_for = {.fd = g->children[child].fd, .events = POLLIN};
        if (now >= until || poll(&poll_for, 1, (int)((until - now) / 1000 + 1)) < 0)
            return false;
        if (poll_for.revents == 0)
            continue;
        ssize_t n = recv(g->children[child].fd, out, sizeof *out, 0);
        if (n != sizeof *out) {
            (void)fprintf(stderr, "gossip-bench: node %u ended by itself\n", child);
            group_end(g);
            exit(1);
        }
        if (out->kind == kind)
            return true;
    }
}

struct group_counts group_counts_of(struct group *g, unsigned child)
{
    struct group_event e;
    group_tell(g, child, GROUP_COUNTS, 0);
    CHECK(group_await(g, child, GROUP_COUNTED, START_US, &e));
    return e.counts;
}
