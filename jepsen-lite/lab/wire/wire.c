/* The network of jepsen-lite: a switch in user space. Each machine is a network namespace.
 *
 * Each machine has a TUN device. The switch reads the device's IPv4 packets and passes each to the
 * machine with the destination's address. The switch does not learn addresses: commands assign
 * them. The fate of a packet depends on the ordered pair of machines (struct link). A packet
 * without faults is written from the buffer into which it was read.
 *
 * Each link has a separate random generator, seeded from --seed and the pair. So the same packets
 * in the same order on a link meet the same fate, whatever other links carry.
 *
 *   wire --seed N
 *
 * reads commands from standard input, a line each, and answers each with a line: ok, or error WHY.
 *
 *   machine NAME NAMESPACE ADDRESS  makes the device eth0 in the network namespace (a path)
 *   address NAME ADDRESS            gives the machine another address
 *   link A B [SETTING=NUMBER]...    sets all faults of packets from A to B; none: no faults
 *   inject NAME HEX                 delivers this IPv4 packet to the machine, whatever the source
 *   capture PATH gossip|all T0      writes packets as they are sent to a pcap file, with times as
 *                                   seconds since T0 (CLOCK_MONOTONIC); gossip: UDP and TCP of
 *                                   port 7490
 *   flush                           flushes the capture to the file
 *   stats                           ok, and NAME=NUMBER...: packets taken, and their fates
 *
 * After half a second without running, because the host was busy or a disk was slow, it
 * writes to standard error: stalled FROM TO (CLOCK_MONOTONIC, s).
 *
 * Settings: cut (1: nothing passes), loss, duplicate, reorder, corrupt (shares from 0 to 1),
 * delay_ms, jitter_ms, rate_kbit, mtu (longer packets are dropped silently). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum {
    MACHINES_MAX = 64,
    PACKET_MAX = 65536,
    LINE_MAX_BYTES = 4096,
    BURST = 64,            /* packets of a machine before the next machine's turn */
    QUEUE_MAX_US = 200000, /* longest wait for a limited rate; beyond it, packets are dropped */
    OVERTAKEN_US = 10000,  /* longest delay of a reordered packet */
    DELAYED_MAX = 100000,  /* delayed packets at a time */
    WAKES_US = 100000,     /* period of reading the clock, with or without packets */
    STALLED_US = 500000,   /* a longer gap between two reads of the clock is a stall */
    GOSSIP_PORT = 7490,
    PROTOCOL_TCP = 6,
    PROTOCOL_UDP = 17,
    PCAP_RAW_IP = 101,
};

struct link {
    bool plain; /* no faults: packets pass at once */
    bool cut;
    double loss;
    double duplicate;
    double reorder;
    double corrupt;
    uint64_t delay_us;
    uint64_t jitter_us;
    uint64_t rate_kbit;
    uint64_t mtu;
    uint64_t free_us; /* when a limited rate has sent everything queued */
    uint64_t last_us; /* arrival of the last packet: jitter alone does not reorder */
    uint64_t random;
};

struct machine {
    char name[32];
    uint32_t address; /* network byte order */
    int fd;
};

/* A delayed packet. */
struct delayed {
    uint64_t due_us;
    uint64_t number; /* at equal times the lower number goes first */
    uint16_t to;
    uint16_t len;
    unsigned char *bytes;
};

static struct {
    uint64_t seed;
    unsigned count;
    struct machine machines[MACHINES_MAX];
    struct link links[MACHINES_MAX][MACHINES_MAX];
    int epoll;
    int home; /* the network namespace of the program's start */
    struct delayed *heap;
    size_t heap_len;
    uint64_t delayed_count;
    FILE *capture;
    bool capture_all;
    uint64_t capture_zero_us;
    uint64_t awake_us; /* time of the last read of the clock */
    uint64_t taken, passed, lost, repeated, overtaken, damaged, late, unknown;
} w;

static uint64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- chance --------------------------------------------------------------------------------- */

static uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double random_share(uint64_t *state)
{
    return (double)(random_next(state) >> 11) / 9007199254740992.0;
}

/* --- delayed packets: a heap by time ---------------------------------------------------------- */

static bool sooner(const struct delayed *a, const struct delayed *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->number < b->number;
}

static void heap_swap(size_t a, size_t b)
{
    struct delayed d = w.heap[a];
    w.heap[a] = w.heap[b];
    w.heap[b] = d;
}

static void heap_push(struct delayed d)
{
    size_t at = w.heap_len++;
    w.heap[at] = d;
    for (; at > 0 && sooner(&w.heap[at], &w.heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap_swap(at, (at - 1) / 2);
}

static struct delayed heap_pop(void)
{
    struct delayed first = w.heap[0];
    w.heap[0] = w.heap[--w.heap_len];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < w.heap_len; child++) {
            if (sooner(&w.heap[child], &w.heap[least]))
                least = child;
        }
        if (least == at)
            return first;
        heap_swap(at, least);
        at = least;
    }
}

/* --- a packet --------------------------------------------------------------------------------- */

static void capture(const unsigned char *bytes, size_t len)
{
    size_t head = (size_t)(bytes[0] & 15) * 4;
    if (!w.capture_all) {
        if ((bytes[9] != PROTOCOL_UDP && bytes[9] != PROTOCOL_TCP) || len < head + 8)
            return;
        unsigned from = bytes[head] * 256u + bytes[head + 1],
                 to = bytes[head + 2] * 256u + bytes[head + 3];
        if (from != GOSSIP_PORT && to != GOSSIP_PORT)
            return;
    }
    uint64_t t = now_us() - w.capture_zero_us;
    uint32_t record[4] = {(uint32_t)(t / 1000000), (uint32_t)(t % 1000000), (uint32_t)len,
                          (uint32_t)len};
    (void)fwrite(record, sizeof record, 1, w.capture);
    (void)fwrite(bytes, len, 1, w.capture);
}

static void deliver(unsigned to, const unsigned char *bytes, size_t len)
{
    if (write(w.machines[to].fd, bytes, len) == (ssize_t)len)
        w.passed++;
    else
        w.lost++; /* the device is down, or the queue is full */
}

/* Flips a bit of the payload. A datagram's checksum is removed, so that the receiving program has
 * to notice, as with errors that checksums miss. TCP's checksum is left wrong. */
static void damage(struct link *l, unsigned char *bytes, size_t len)
{
    size_t begin = (size_t)(bytes[0] & 15) * 4;
    if (bytes[9] == PROTOCOL_UDP && len > begin + 8) {
        bytes[begin + 6] = bytes[begin + 7] = 0; /* no checksum */
        begin += 8;
    }
    if (begin >= len)
        return;
    uint64_t bit = random_next(&l->random) % ((len - begin) * 8);
    bytes[begin + bit / 8] ^= (unsigned char)(1u << bit % 8);
    w.damaged++;
}

static void later(unsigned to, uint64_t due_us, const unsigned char *bytes, size_t len)
{
    unsigned char *copy = w.heap_len < DELAYED_MAX ? malloc(len) : NULL;
    if (copy == NULL) {
        w.lost++;
        return;
    }
    memcpy(copy, bytes, len);
    w.late++;
    heap_push((struct delayed){due_us, w.delayed_count++, (uint16_t)to, (uint16_t)len, copy});
}

/* When the packet arrives, us; 0: never. */
static uint64_t arrival_us(struct link *l, size_t len, uint64_t now)
{
    uint64_t due = now;
    if (l->rate_kbit > 0) {
        uint64_t begin = l->free_us > now ? l->free_us : now;
        if (begin - now > QUEUE_MAX_US)
            return 0;
        due = l->free_us = begin + len * 8000 / l->rate_kbit;
    }
    due += l->delay_us;
    if (l->jitter_us > 0)
        due += random_next(&l->random) % (l->jitter_us + 1);
    if (l->reorder > 0 && random_share(&l->random) < l->reorder) {
        w.overtaken++;
        return due + 1 + random_next(&l->random) % OVERTAKEN_US;
    }
    if (due < l->last_us)
        due = l->last_us;
    l->last_us = due;
    return due;
}

static void send_over(struct link *l, unsigned to, unsigned char *bytes, size_t len)
{
    if (l->cut || (l->mtu > 0 && len > l->mtu) ||
        (l->loss > 0 && random_share(&l->random) < l->loss)) {
        w.lost++;
        return;
    }
    if (l->corrupt > 0 && random_share(&l->random) < l->corrupt)
        damage(l, bytes, len);
    bool twice = l->duplicate > 0 && random_share(&l->random) < l->duplicate;
    w.repeated += twice;
    uint64_t now = now_us();
    for (int copies = 1 + twice; copies > 0; copies--) {
        uint64_t due = arrival_us(l, len, now);
        if (due == 0)
            w.lost++;
        else if (due <= now)
            deliver(to, bytes, len);
        else
            later(to, due, bytes, len);
    }
}

static void take(unsigned from, unsigned char *bytes, size_t len)
{
    uint32_t to_address;
    if (len < 20 || bytes[0] >> 4 != 4)
        return; /* IPv6: kernels look for neighbours */
    w.taken++;
    if (w.capture != NULL)
        capture(bytes, len);
    memcpy(&to_address, bytes + 16, 4);
    for (unsigned to = 0; to < w.count; to++) {
        if (w.machines[to].address != to_address)
            continue;
        struct link *l = &w.links[from][to];
        if (l->plain)
            deliver(to, bytes, len);
        else
            send_over(l, to, bytes, len);
        return;
    }
    w.unknown++;
}

static void on_packets(unsigned from)
{
    static unsigned char bytes[PACKET_MAX];
    for (int i = 0; i < BURST; i++) {
        ssize_t len = read(w.machines[from].fd, bytes, sizeof bytes);
        if (len <= 0)
            return;
        take(from, bytes, (size_t)len);
    }
}

/* --- commands --------------------------------------------------------------------------------- */

static const char *error_text; /* of the present command */

static bool fail(const char *why)
{
    error_text = why;
    return false;
}

static int find(const char *name)
{
    for (unsigned i = 0; i < w.count; i++) {
        if (strcmp(w.machines[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* A device in the namespace; the fd works from everywhere. */
static int device_in(const char *namespace)
{
    struct ifreq r = {.ifr_name = "eth0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    int there = open(namespace, O_RDONLY | O_CLOEXEC);
    int fd = -1;
    if (there < 0)
        return -1;
    if (setns(there, CLONE_NEWNET) == 0) {
        fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, TUNSETIFF, &r) != 0) {
            (void)close(fd);
            fd = -1;
        }
        CHECK(setns(w.home, CLONE_NEWNET) == 0);
    }
    (void)close(there);
    return fd;
}

static bool machine(const char *name, const char *namespace, const char *address)
{
    struct machine *m = &w.machines[w.count];
    if (w.count == MACHINES_MAX)
        return fail("too many machines");
    if (strlen(name) >= sizeof m->name || find(name) >= 0)
        return fail("no name for a machine");
    if (inet_pton(AF_INET, address, &m->address) != 1)
        return fail("no address");
    m->fd = device_in(namespace);
    if (m->fd < 0)
        return fail(strerror(errno));
    memcpy(m->name, name, strlen(name) + 1);
    for (unsigned i = 0; i <= w.count; i++) {
        uint64_t out = w.seed << 16 | w.count << 8 | i, in = w.seed << 16 | i << 8 | w.count;
        w.links[w.count][i] = (struct link){.plain = true, .random = out};
        w.links[i][w.count] = (struct link){.plain = true, .random = in};
    }
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = w.count};
    CHECK(epoll_ctl(w.epoll, EPOLL_CTL_ADD, m->fd, &e) == 0);
    w.count++;
    return true;
}

static bool set_address(const char *name, const char *address)
{
    int at = find(name);
    if (at < 0)
        return fail("no such machine");
    return inet_pton(AF_INET, address, &w.machines[at].address) == 1 || fail("no address");
}

static bool link_set(struct link *l, const char *name, double value)
{
    if (strcmp(name, "cut") == 0)
        l->cut = value != 0;
    else if (strcmp(name, "loss") == 0)
        l->loss = value;
    else if (strcmp(name, "duplicate") == 0)
        l->duplicate = value;
    else if (strcmp(name, "reorder") == 0)
        l->reorder = value;
    else if (strcmp(name, "corrupt") == 0)
        l->corrupt = value;
    else if (strcmp(name, "delay_ms") == 0)
        l->delay_us = (uint64_t)(value * 1000);
    else if (strcmp(name, "jitter_ms") == 0)
        l->jitter_us = (uint64_t)(value * 1000);
    else if (strcmp(name, "rate_kbit") == 0)
        l->rate_kbit = (uint64_t)value;
    else if (strcmp(name, "mtu") == 0)
        l->mtu = (uint64_t)value;
    else
        return fail("no such setting");
    return true;
}

static bool link_command(const char *from_name, const char *to_name, char *rest)
{
    int from = find(from_name), to = find(to_name);
    if (from < 0 || to < 0)
        return fail("no such machine");
    struct link *old = &w.links[from][to];
    struct link l = {.plain = true, .random = old->random};
    for (char *at = NULL, *word = strtok_r(rest, " ", &at); word != NULL;
         word = strtok_r(NULL, " ", &at)) {
        char *value = strchr(word, '=');
        if (value == NULL)
            return fail("a setting is NAME=NUMBER");
        *value++ = '\0';
        if (!link_set(&l, word, strtod(value, NULL)))
            return false;
        l.plain = false;
    }
    l.last_us = old->last_us; /* so that no later packet overtakes those still on the way */
    if (l.plain && l.last_us > now_us())
        l.plain = false; /* not plain: later packets wait until those on the way have arrived */
    *old = l;
    return true;
}

static bool capture_command(const char *path, const char *what, const char *zero)
{
    const struct {
        uint32_t magic;
        uint16_t major, minor;
        uint32_t zone, precision, longest, kind;
    } head = {0xa1b2c3d4, 2, 4, 0, 0, PACKET_MAX, PCAP_RAW_IP};
    if (w.capture != NULL)
        (void)fclose(w.capture);
    w.capture = fopen(path, "wbe");
    if (w.capture == NULL)
        return fail(strerror(errno));
    w.capture_all = strcmp(what, "all") == 0;
    w.capture_zero_us = (uint64_t)(strtod(zero, NULL) * 1e6);
    (void)fwrite(&head, sizeof head, 1, w.capture);
    return true;
}

static bool inject(const char *name, const char *hex)
{
    static unsigned char bytes[LINE_MAX_BYTES];
    size_t len = 0;
    int to = find(name);
    if (to < 0)
        return fail("no such machine");
    if (sodium_hex2bin(bytes, sizeof bytes, hex, strlen(hex), NULL, &len, NULL) != 0 || len < 20)
        return fail("no packet");
    deliver((unsigned)to, bytes, len);
    return true;
}

static bool command(char *line)
{
    char a[256], b[256], c[256];
    int end = 0;
    if (sscanf(line, "machine %255s %255s %255s", a, b, c) == 3)
        return machine(a, b, c);
    if (sscanf(line, "address %255s %255s", a, b) == 2)
        return set_address(a, b);
    if (sscanf(line, "inject %255s %n", a, &end) == 1 && end > 0)
        return inject(a, line + end);
    if (sscanf(line, "link %255s %255s%n", a, b, &end) == 2)
        return link_command(a, b, line + end);
    if (sscanf(line, "capture %255s %255s %255s", a, b, c) == 3)
        return capture_command(a, b, c);
    if (strcmp(line, "flush") == 0)
        return w.capture == NULL || fflush(w.capture) == 0 || fail(strerror(errno));
    return fail("no such command");
}

static void run_line(char *line)
{
    if (strcmp(line, "stats") == 0)
        (void)printf("ok taken=%lu passed=%lu lost=%lu repeated=%lu overtaken=%lu damaged=%lu "
                     "late=%lu unknown=%lu held=%zu\n",
                     w.taken, w.passed, w.lost, w.repeated, w.overtaken, w.damaged, w.late,
                     w.unknown, w.heap_len);
    else if (command(line))
        (void)puts("ok");
    else
        (void)printf("error %s\n", error_text);
    (void)fflush(stdout);
}

/* Returns false at the end of the commands. */
static bool on_commands(void)
{
    static char line[LINE_MAX_BYTES];
    static size_t len;
    ssize_t n = read(STDIN_FILENO, line + len, sizeof line - 1 - len);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    len += (size_t)n;
    for (char *end = memchr(line, '\n', len); end != NULL; end = memchr(line, '\n', len)) {
        *end = '\0';
        run_line(line);
        len -= (size_t)(end + 1 - line);
        memmove(line, end + 1, len);
    }
    CHECK(len < sizeof line - 1);
    return true;
}

/* --- the loop --------------------------------------------------------------------------------- */

static void send_due(void)
{
    uint64_t now = w.heap_len > 0 ? now_us() : 0;
    while (w.heap_len > 0 && w.heap[0].due_us <= now) {
        struct delayed d = heap_pop();
        deliver(d.to, d.bytes, d.len);
        free(d.bytes);
    }
}

static int wait_for_packets(struct epoll_event *events, int max)
{
    uint64_t now = now_us(), left_us = WAKES_US;
    if (w.heap_len > 0 && w.heap[0].due_us < now + left_us)
        left_us = w.heap[0].due_us > now ? w.heap[0].due_us - now : 0;
    struct timespec left = {.tv_nsec = (long)(left_us * 1000)};
    return epoll_pwait2(w.epoll, events, max, &left, NULL);
}

static void look_at_the_clock(void)
{
    uint64_t now = now_us();
    if (w.awake_us != 0 && now - w.awake_us > STALLED_US)
        (void)fprintf(stderr, "stalled %.6f %.6f\n", (double)w.awake_us / 1e6, (double)now / 1e6);
    w.awake_us = now;
}

int main(int argc, char **argv)
{
    struct epoll_event events[MACHINES_MAX + 1];
    struct epoll_event commands = {.events = EPOLLIN, .data.u32 = MACHINES_MAX};
    if (argc != 3 || strcmp(argv[1], "--seed") != 0) {
        (void)fputs("usage: wire --seed N <COMMANDS\n", stderr);
        return 2;
    }
    w.seed = strtoull(argv[2], NULL, 10);
    w.heap = malloc(DELAYED_MAX * sizeof *w.heap);
    w.epoll = epoll_create1(EPOLL_CLOEXEC);
    w.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    CHECK(w.heap != NULL && w.epoll >= 0 && w.home >= 0);
    CHECK(epoll_ctl(w.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &commands) == 0);
    for (bool more = true; more;) {
        int n = wait_for_packets(events, MACHINES_MAX + 1);
        look_at_the_clock();
        send_due();
        for (int i = 0; i < n && more; i++) {
            if (events[i].data.u32 == MACHINES_MAX)
                more = on_commands();
            else
                on_packets(events[i].data.u32);
        }
    }
    if (w.capture != NULL)
        (void)fclose(w.capture);
    return 0;
}
