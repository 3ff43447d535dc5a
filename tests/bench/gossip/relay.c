#include "tests/bench/gossip/relay.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/bench/gossip/group.h"

static struct sockaddr_in local(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static int bound(int type, uint16_t port)
{
    struct sockaddr_in at = local(port);
    int fd = socket(AF_INET, type, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

void relay_open(struct relay *r)
{
    memset(r, 0, sizeof *r);
    r->front = group_port();
    r->front_fd = bound(SOCK_DGRAM, r->front);
    r->tcp_fd = bound(SOCK_STREAM, r->front);
    r->back = group_port();
    r->back_fd = bound(SOCK_DGRAM, r->back);
    CHECK(listen(r->tcp_fd, 16) == 0);
    r->kept =
        mmap(NULL, sizeof *r->kept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(r->kept != MAP_FAILED);
}

static void forward(int from, int to, uint16_t port, struct relay *keep)
{
    uint8_t bytes[2048];
    struct sockaddr_in at = local(port);
    ssize_t n = recv(from, bytes, sizeof bytes, 0);
    if (n <= 0)
        return;
    (void)sendto(to, bytes, (size_t)n, 0, (struct sockaddr *)&at, sizeof at);
    uint32_t count = keep == NULL ? RELAY_KEPT : keep->kept->count;
    if (count < RELAY_KEPT && n <= GOSSIP_DATAGRAM_MAX) {
        memcpy(keep->kept->packets[count].bytes, bytes, (size_t)n);
        keep->kept->packets[count].len = (uint16_t)n;
        keep->kept->count = count + 1;
    }
}

/* Runs as a process for a single connection: copies until both ends are closed. */
static void call(const struct relay *r, int client)
{
    if (fork() != 0) {
        (void)close(client);
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sockaddr_in at = local(r->victim);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&at, sizeof at) != 0)
        _exit(1);
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    static uint8_t bytes[65536];
    while (poll(ends, 2, -1) > 0) {
        for (unsigned i = 0; i < 2; i++) {
            if (ends[i].revents == 0)
                continue;
            ssize_t n = recv(ends[i].fd, bytes, sizeof bytes, 0);
            if (n <= 0)
                _exit(0);
            for (ssize_t done = 0, sent; done < n; done += sent) {
                sent = send(ends[1 - i].fd, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
                if (sent <= 0)
                    _exit(0);
            }
        }
    }
    _exit(0);
}

void relay_start(struct relay *r, uint16_t victim, uint16_t peer)
{
    r->victim = victim;
    r->peer = peer;
    r->pid = fork();
    CHECK(r->pid >= 0);
    if (r->pid != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN);
    struct pollfd ends[3] = {{.fd = r->front_fd, .events = POLLIN},
                             {.fd = r->back_fd, .events = POLLIN},
                             {.fd = r->tcp_fd, .events = POLLIN}};
    while (poll(ends, 3, -1) > 0) {
        if (ends[0].revents != 0)
            forward(r->front_fd, r->back_fd, victim, r);
        if (ends[1].revents != 0) {
            r->kept->to_peer++;
            forward(r->back_fd, r->front_fd, peer, NULL);
        }
        if (ends[2].revents != 0)
            call(r, accept(r->tcp_fd, NULL, NULL));
    }
    _exit(0);
}

void relay_end(struct relay *r)
{
    (void)kill(r->pid, SIGKILL);
    (void)waitpid(r->pid, NULL, 0);
    (void)close(r->front_fd);
    (void)close(r->back_fd);
    (void)close(r->tcp_fd);
    (void)munmap(r->kept, sizeof *r->kept);
}
