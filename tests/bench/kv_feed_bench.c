/* The cost of reading the KV events of an engine that stores 50,000 blocks of 16 tokens a second
 * and removes as many: by part, then all together over real sockets, by thread.
 *
 *   kv_feed_bench [SECONDS [LAPS]]
 *
 * The publisher runs for SECONDS (5). A part is timed by LAPS of 200 messages (20); the fastest
 * counts.
 *
 * A message has a single prompt, which shares nothing. Each block is removed by a separate event
 * once the cache is full. The reader sees answers too, so that checkpoints get their places. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "node/io/kv_feed.h"
#include "node/kv/batch.h"
#include "node/kv/reader.h"
#include "tests/engine-sim/kv_events.h"

enum {
    BLOCK = 16,
    MESSAGE_BLOCKS = 500, /* on average; a message is a prompt */
    VARIED = 200,         /* most blocks more or fewer */
    PER_S = 100,          /* messages */
    SETS = 400,           /* sets of messages, used again and again */
    HELD = 200,           /* sets that the engine keeps */
    LAP = 200,            /* messages; the fastest of some laps counts */
    POINTS = 32,          /* checkpoints of a prompt */
    PROMPT_BYTES = POINTS * CHECKPOINT_BLOCK_BYTES,
};

static const struct hash_secret secret = {.bytes = {1, 2, 3}};
static struct sim_chain chains[SETS];
static struct buf payloads[SETS];       /* once the cache is full */
static struct buf first_payloads[HELD]; /* nothing is removed yet */
static struct kv_paths *paths;
static struct kv_reader *reader;
static uint64_t heard;
static unsigned laps = 20;

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- published events ------------------------------------------------------------------------ */

static void chain_make(struct sim_chain *c, unsigned set)
{
    /* Pairs of sets make the mean exact. */
    uint64_t drawn = hash_mix(set / 2) % VARIED;
    unsigned blocks = MESSAGE_BLOCKS + (unsigned)(set % 2 == 0 ? drawn : -drawn);
    sim_chain_init(c, BLOCK, 0);
    c->keeps_ids = true;
    for (unsigned i = 0; i < blocks * BLOCK; i++)
        sim_chain_add(c, (uint32_t)hash_mix(set * 100003ull + i) % 150000);
}

static void payload_make(struct sim_kv_events *events, unsigned set, int removed, struct buf *out)
{
    const struct sim_model_watch *w = sim_kv_events_watch(events);
    for (size_t i = removed >= 0 ? chains[removed].block_count : 0; i-- > 0;)
        w->removed(w->context, chains[removed].blocks[i]);
    w->stored(w->context, &chains[set], 0, chains[set].block_count);
    CHECK(sim_kv_events_take(events, 1, out));
}

static void engine_make(void)
{
    struct sim_kv_events *events = sim_kv_events_create("vllm-0.24", 0, false);
    for (unsigned s = 0; s < SETS; s++)
        chain_make(&chains[s], s);
    for (unsigned s = 0; s < SETS; s++)
        payload_make(events, s, (int)((s + SETS - HELD) % SETS), &payloads[s]);
    for (unsigned s = 0; s < HELD; s++)
        payload_make(events, s, -1, &first_payloads[s]);
    sim_kv_events_destroy(events);
}

static struct slice payload_of(uint64_t number)
{
    return buf_slice(number < HELD ? &first_payloads[number] : &payloads[number % SETS]);
}

/* --- the reader ------------------------------------------------------------------------------ */

static void on_replay(void *context, uint64_t from)
{
    (void)context, (void)from;
}

static bool on_gone(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
    return true;
}

static void on_present(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
}

static void on_cleared(void *context)
{
    (void)context;
}

static struct kv_paths *on_paths(void *context, uint32_t block_tokens, uint64_t now_ms)
{
    (void)context, (void)block_tokens, (void)now_ms;
    return paths;
}

static const struct kv_reader_user user = {on_paths,   on_replay,  on_gone, on_present,
                                           on_cleared, on_cleared, NULL};

static void reader_open(void)
{
    CHECK(kv_paths_create(&paths, 1 << 19) == 0);
    CHECK(kv_reader_create(&reader, &user, &secret, 2 * HELD * MESSAGE_BLOCKS, false) == 0);
    kv_reader_speaks(reader, true);
}

static void reader_close(void)
{
    kv_reader_destroy(reader);
    kv_paths_destroy(paths);
}

/* Reports the answer to the prompt of a message. */
static void tell(uint64_t number, uint64_t now_ms)
{
    uint64_t ids[POINTS], text = number % SETS;
    uint8_t codes[POINTS];
    for (unsigned i = 0; i < POINTS; i++) {
        ids[i] = (hash_mix(text * POINTS + i) & 0xffffffffffff) | 1;
        codes[i] = checkpoint_code(i);
    }
    (void)kv_paths_join(paths, 0, ids, codes, POINTS);
    struct kv_told told = {.end = ids[POINTS - 1],
                           .sent_ms = now_ms,
                           .ended_ms = now_ms,
                           .prompt_tokens = (uint32_t)chains[text].tokens - 1,
                           .output_tokens = 2,
                           .well = true};
    kv_reader_told(reader, &told, now_ms);
}

/* --- by part --------------------------------------------------------------------------------- */

static void on_nothing(void *context, const struct kv_event *event)
{
    (void)context, (void)event;
}

static void on_event(void *context, const struct kv_event *event)
{
    kv_tree_apply(context, event);
}

/* The fastest of some runs, because the machine may be busy. */
struct watch {
    uint64_t began, least;
};

static void watch_message(struct watch *w, uint64_t n)
{
    if (n < SETS || (n - SETS) % LAP != 0)
        return;
    uint64_t now = cpu_ns();
    if (w->began > 0 && (w->least == 0 || now - w->began < w->least))
        w->least = now - w->began;
    w->began = now;
}

/* Nanoseconds per block, once the cache is full. */
static double decoded_ns(void (*each)(void *, const struct kv_event *), struct kv_tree *tree)
{
    struct kv_decoder *decoder;
    struct kv_batch batch;
    struct watch watch = {0, 0};
    CHECK(kv_decoder_create(&decoder, &secret) == 0);
    for (uint64_t n = 0; n <= SETS + (uint64_t)laps * LAP; n++) {
        watch_message(&watch, n);
        CHECK(kv_batch_decode(decoder, payload_of(n), each, tree, &batch) == 0);
    }
    kv_decoder_destroy(decoder);
    return (double)watch.least / LAP / MESSAGE_BLOCKS;
}

static double read_ns(bool tells)
{
    struct watch watch = {0, 0};
    reader_open();
    kv_reader_connected(reader, 0);
    for (uint64_t n = 0; n <= SETS + (uint64_t)laps * LAP; n++) {
        watch_message(&watch, n);
        kv_reader_live(reader, n, payload_of(n), n * 1000 / PER_S);
        if (tells)
            tell(n, n * 1000 / PER_S);
        kv_reader_tick(reader, n * 1000 / PER_S);
    }
    struct kv_reader_stats s = kv_reader_stats(reader);
    if (tells)
        printf(
            "  of %llu answers %llu were tied; %llu checkpoints gone, %u blocks held, shed %llu\n",
            (unsigned long long)s.told, (unsigned long long)s.tied, (unsigned long long)s.gone,
            s.tree.held, (unsigned long long)s.shed);
    CHECK(s.shed == 0 && s.feed.missed == 0);
    reader_close();
    return (double)watch.least / LAP / MESSAGE_BLOCKS;
}

static void line(const char *what, double ns)
{
    printf("%-54s %6.0f ns a block  %5.2f %% of a core\n", what, ns,
           ns * PER_S * MESSAGE_BLOCKS / 1e9 * 100);
    fflush(stdout);
}

static void parts_measure(void)
{
    struct kv_tree *tree;
    double bytes = 0;
    for (unsigned s = 0; s < SETS; s++)
        bytes += (double)payloads[s].len;
    printf("%d blocks of %d tokens stored a second and as many removed, %d messages, %.0f bytes a "
           "block; %d blocks held\n",
           PER_S * MESSAGE_BLOCKS, BLOCK, PER_S, bytes / SETS / MESSAGE_BLOCKS,
           HELD * MESSAGE_BLOCKS);
    line("read as MessagePack, tokens hashed", decoded_ns(on_nothing, NULL));
    CHECK(kv_tree_create(&tree, NULL, &secret, 2 * HELD * MESSAGE_BLOCKS) == 0);
    kv_tree_clear(tree);
    line("and kept as a tree", decoded_ns(on_event, tree));
    kv_tree_destroy(tree);
    line("and looked at for answers (the reader without any)", read_ns(false));
    line("and with 100 answers a second and their checkpoints", read_ns(true));
}

/* --- over sockets ---------------------------------------------------------------------------- */

static void publish(const char *endpoint, unsigned seconds)
{
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUB);
    int hwm = 100000;
    CHECK(socket != NULL && zmq_setsockopt(socket, ZMQ_SNDHWM, &hwm, sizeof hwm) == 0);
    CHECK(zmq_bind(socket, endpoint) == 0);
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec++; /* until the reader has subscribed */
    for (uint64_t n = 0; n < (uint64_t)seconds * PER_S; n++) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        at.tv_nsec += 1000000000 / PER_S;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        unsigned char number[8];
        for (unsigned i = 0; i < sizeof number; i++)
            number[i] = (unsigned char)(n >> (56 - 8 * i));
        struct slice payload = payload_of(n);
        CHECK(zmq_send(socket, "", 0, ZMQ_SNDMORE) >= 0 &&
              zmq_send(socket, number, sizeof number, ZMQ_SNDMORE) >= 0 &&
              zmq_send(socket, payload.at, payload.len, 0) >= 0);
    }
    (void)zmq_close(socket);
    (void)zmq_ctx_term(context); /* reads all sent messages first */
    _exit(0);
}

static uint64_t thread_ns(const char *tid)
{
    char path[320];
    unsigned long long ns = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", tid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%llu", &ns) != 1)
        ns = 0;
    (void)fclose(f);
    return ns;
}

/* CPU time of this thread, and of all others, which are libzmq's. */
static void threads_ns(uint64_t *own, uint64_t *others)
{
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir != NULL);
    *own = *others = 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        bool is_own = strtol(d->d_name, NULL, 10) == (long)getpid();
        *(is_own ? own : others) += thread_ns(d->d_name);
    }
    (void)closedir(dir);
}

static void on_connected(void *context)
{
    (void)context;
    kv_reader_connected(reader, 0);
}

static void on_lost(void *context)
{
    (void)context;
}

static void on_live(void *context, uint64_t number, struct slice payload)
{
    uv_loop_t *loop = context;
    heard++;
    kv_reader_live(reader, number, payload, uv_now(loop));
    tell(number, uv_now(loop));
    kv_reader_tick(reader, uv_now(loop));
}

static void on_replayed(void *context, uint64_t number, struct slice payload)
{
    (void)context, (void)number, (void)payload;
}

static void on_wake(uv_timer_t *timer)
{
    (void)timer;
}

static void sockets_measure(unsigned seconds)
{
    char endpoint[64];
    uv_loop_t loop;
    uv_timer_t wake;
    void *zmq;
    struct io_kv_feed *feed;
    const struct io_kv_feed_user sockets = {on_connected, on_lost,      on_live,
                                            on_replayed,  on_connected, &loop};
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", 20000 + getpid() % 10000);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        publish(endpoint, seconds);
    reader_open();
    CHECK(uv_loop_init(&loop) == 0 && io_kv_open(&zmq) == ERR_OK);
    CHECK(uv_timer_init(&loop, &wake) == 0 && uv_timer_start(&wake, on_wake, 50, 50) == 0);
    CHECK(io_kv_feed_open(&feed, &loop, zmq, slice_of_cstr(endpoint), SLICE(""), SLICE(""),
                          &sockets) == ERR_OK);
    uint64_t own[2] = {0}, others[2] = {0}, from = 0;
    while (heard < (uint64_t)seconds * PER_S && waitpid(child, NULL, WNOHANG) == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        if (from == 0 && heard >= HELD) { /* the engine's cache is full */
            from = heard;
            threads_ns(&own[0], &others[0]);
        }
    }
    threads_ns(&own[1], &others[1]);
    CHECK(from > 0 && heard > from);
    CHECK(kv_reader_stats(reader).shed == 0);
    double blocks = (double)(heard - from) * MESSAGE_BLOCKS;
    struct kv_reader_stats s = kv_reader_stats(reader);
    printf("over sockets: %llu of %u messages, %llu missed\n", (unsigned long long)heard,
           seconds * PER_S, (unsigned long long)s.feed.missed);
    line("this thread: all of the above, and libzmq's calls", (double)(own[1] - own[0]) / blocks);
    line("libzmq's threads", (double)(others[1] - others[0]) / blocks);
    line("both", (double)(own[1] - own[0] + others[1] - others[0]) / blocks);
    io_kv_feed_close(feed);
    uv_close((uv_handle_t *)&wake, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    io_kv_close(zmq);
    CHECK(uv_loop_close(&loop) == 0);
    reader_close();
    (void)waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    laps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : laps;
    engine_make();
    parts_measure();
    if (seconds > HELD / PER_S)
        sockets_measure(seconds);
    for (unsigned s = 0; s < SETS; s++) {
        buf_free(&payloads[s]);
        sim_chain_free(&chains[s]);
    }
    for (unsigned s = 0; s < HELD; s++)
        buf_free(&first_payloads[s]);
    return 0;
}
