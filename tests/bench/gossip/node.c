#include "tests/bench/gossip/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/config.h"
#include "node/io/gossip.h"
#include "node/io/log_sink.h"
#include "node/io/random.h"
#include "node/io/tls.h"
#include "node/route/share.h"
#include "tests/bench/gossip/bench.h"

enum { HUGE_PAGE = 2 << 20 };

static _Noreturn void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "gossip-bench: %s: %s\n", what, why);
    exit(1);
}

static void options_of(struct node_options *o, const struct bench_node_setup *setup)
{
    char name[32], listen[32], join[32], told[32], bytes[32];
    (void)snprintf(name, sizeof name, "router-%u", setup->number);
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%u", setup->port);
    (void)snprintf(join, sizeof join, "127.0.0.1:%u", setup->seed);
    (void)snprintf(told, sizeof told, "127.0.0.1:%u", setup->told);
    (void)snprintf(bytes, sizeof bytes, "%" PRIu64, setup->index_bytes);
    const char *argv[32] = {
        "gossip-bench",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--log-level",
        "error",
        "--index-bytes",
        bytes,
        "--node-name",
        name,
        "--gossip-listen",
        listen,
        "--cluster-key-file",
        setup->key_file,
    };
    int argc = 15;
    if (setup->seed != 0) {
        argv[argc++] = "--join";
        argv[argc++] = join;
    }
    if (setup->told != 0) {
        argv[argc++] = "--gossip-advertise";
        argv[argc++] = told;
    }
    char *environment[] = {NULL};
    struct node_options_error error;
    if (io_config_load(o, argc, (char *const *)argv, environment, &error) != 0)
        fail("settings", error.text);
}

/* As in the daemon: touches memory before use. */
static void prepare_memory(const struct node *node)
{
    void *memory;
    uint64_t bytes;
    crdt_index_memory(node_state_index(node->state), &memory, &bytes);
    char *at = memory;
    size_t skip = (size_t)(-(uintptr_t)at & (HUGE_PAGE - 1));
    if (bytes < skip + HUGE_PAGE)
        return;
    size_t len = (size_t)(bytes - skip) / HUGE_PAGE * HUGE_PAGE;
    (void)madvise(at + skip, len, MADV_HUGEPAGE);
    (void)madvise(at + skip, len, MADV_POPULATE_WRITE);
}

void bench_node_start(struct bench_node *n, uv_loop_t *loop, const struct bench_node_setup *setup)
{
    static struct io_log_sink sink; /* a single node per process */
    static struct shell shell;
    static struct node_options options;
    static struct gossip_keyring keyring;
    char message[IO_FILE_MESSAGE];
    options_of(&options, setup);
    io_random_init();
    io_log_sink_init(&sink, (enum log_level)options.log_level,
                     (enum node_log_format)options.log_format);
    if (io_gossip_keys_load(&keyring, &options, &sink.log, message) != 0)
        fail("key", message);
    if (io_gossip_open(&shell.gossip, loop, &options, &keyring, &sink.log) != 0)
        exit(1);
    struct node *node;
    struct node_config config;
    struct node_replication_io io;
    static struct io_files files;
    shell.loop = loop;
    io_files_fit(&options, &files);
    shell.options = &options;
    shell.files = &files;
    shell.log = shell.watches.log = &sink.log;
    node_config_of(&config, &options);
    shell_config(&shell, &config);
    if (tls_open(&shell.tls, &options, &shell.watches, message) != 0)
        fail("tls", message);
    if (io_gossip_config(shell.gossip, &config, &io) != 0)
        exit(1);
    config.state.wall_ms = bench_wall_ms();
    int err = node_create(&node, &config, &io, bench_now_us());
    if (err != 0)
        fail("node", err_text(err));
    prepare_memory(node);
    n->router = node->router;
    n->replication = node->replication;
    err = shell_start(&shell, node);
    if (err != 0)
        fail("shell", err_text(err));
    /* After the start, so that nothing is probed: no engine would answer. */
    for (unsigned r = 0; r < NODE_REPLICAS; r++) {
        char name[32];
        int len = snprintf(name, sizeof name, "replica-%u:8000", r);
        CHECK(node_router_name(n->router, slice_of(name, (size_t)len), NODE_ENGINE_VLLM) == (int)r);
        node_router_probed(n->router, r, (struct node_check){.ok = true}, bench_now_us() / 1000);
    }
    n->state = node_state_crdt(node->state);
}
