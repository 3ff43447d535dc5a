/* grapevine: a router node. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/err.h"
#include "base/version.h"
#include "crdt/index.h"
#include "node/io/client_keys.h"
#include "node/io/config.h"
#include "node/io/files.h"
#include "node/io/gossip.h"
#include "node/io/key_file.h"
#include "node/io/log_sink.h"
#include "node/io/random.h"
#include "node/io/reload.h"
#include "node/io/replica_file.h"
#include "node/io/replica_kubernetes.h"
#include "node/io/shell.h"
#include "node/io/standard.h"
#include "node/io/state_dir.h"
#include "node/io/tls.h"

enum { EXIT_CONFIG = 2, POPULATE_BYTES_MAX = 256 << 20 };

/* Asks the kernel for huge pages for the index, and for the memory in advance. The index is read
 * and written at random, so huge pages halve the cost of a look-up. Populating the memory in
 * advance keeps the first requests fast. Both are hints: a kernel without them (populating requires
 * Linux 5.14) only costs speed. An index of over POPULATE_BYTES_MAX is populated as it is used. */
static void prepare_memory(const struct node *node)
{
    enum { HUGE_PAGE = 2 << 20 };
    void *memory;
    uint64_t bytes;
    crdt_index_memory(node_state_index(node->state), &memory, &bytes);
    char *at = memory;
    size_t skip = (size_t)(-(uintptr_t)at & (HUGE_PAGE - 1));
    if (bytes < skip + HUGE_PAGE)
        return;
    size_t len = (size_t)(bytes - skip) / HUGE_PAGE * HUGE_PAGE;
    (void)madvise(at + skip, len, MADV_HUGEPAGE);
    if (len <= POPULATE_BYTES_MAX)
        (void)madvise(at + skip, len, MADV_POPULATE_WRITE);
}

/* Allows or forbids core dumps, and the view of this process's memory from other processes. A core
 * dump would hold prompts and keys. So does the memory shown by a debugger, or /proc, to other
 * processes of the same user. RLIMIT_CORE alone has no effect if cores go to a program
 * (core_pattern). Called before the settings are read, too, because these may hold secrets. */
static void allow_core_dumps(bool allow)
{
    struct rlimit limit;
    (void)prctl(PR_SET_DUMPABLE, allow ? 1L : 0L, 0L, 0L, 0L);
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = allow ? limit.rlim_max : 0;
        (void)setrlimit(RLIMIT_CORE, &limit);
    }
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    io_random_bytes(out, len);
}

/* Creates the node. Returns 0, or the exit status after printing the reason. */
static int create_node(struct shell *shell, struct node **out)
{
    const struct node_options *options = shell->options;
    struct io_gossip *gossip = shell->gossip;
    struct node_config config;
    struct node_replication_io io = {.random = on_random};
    node_config_of(&config, options);
    shell_config(shell, &config);
    config.proxy.admin_connections_max = shell->files->admin_max;
    if (gossip != NULL && io_gossip_config(gossip, &config, &io) != 0)
        return EXIT_FAILURE;
    struct timespec wall;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    config.state.wall_ms = (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / 1000000;
    config.secret = state_dir_secret(shell->state);
    uint64_t now_us = uv_hrtime() / 1000;
    int err = node_create(out, &config, &io, now_us);
    if (err == 0) {
        prepare_memory(*out);
        state_dir_recall(shell->state, *out, now_us / 1000);
        return 0;
    }
    if (err != ERR_LIMIT) {
        (void)fprintf(stderr, "grapevine: cannot start: %s\n", err_text(err));
        return EXIT_FAILURE;
    }
    uint64_t slices = options->ttl_ms / options->generation_ms;
    (void)fprintf(stderr,
                  "grapevine: bad setting index-bytes = \"%" PRIu64
                  "\": too small for ttl / generation = %" PRIu64
                  " time slices, want at least %" PRIu64 "MiB\n",
                  options->index_bytes, slices,
                  crdt_index_bytes_ample(config.state.replicas_max, slices, gossip != NULL) /
                      1048576);
    return EXIT_CONFIG;
}

/* The whole process. Contents of files with secrets are in `shell`. */
struct process {
    struct node_options options;
    struct io_files files;
    struct io_log_sink sink;
    struct gossip_keyring keyring;
    uv_loop_t loop;
    struct shell shell;
};

static void free_secrets(struct shell *s)
{
    key_file_free(s->admin_token);
    key_file_free(s->admin_read_token);
    key_file_free(s->replica_key);
    client_keys_free(s->client_keys);
    tls_free(s->tls);
}

/* Opens the file named by a setting, if the setting names any. Returns false after an error, with
 * the reason in `message`. */
static bool open_key(struct key_file **out, const struct key_file_kind *kind, const char *path,
                     struct io_watches *all, char *message)
{
    return path[0] == '\0' || key_file_open(out, kind, path, all, message) == 0;
}

/* Reads the files with keys, tokens and certificates. Returns 0, or the exit status after printing
 * the reason. */
static int read_secrets(struct process *p)
{
    const struct node_options *o = &p->options;
    struct shell *out = &p->shell;
    struct io_watches *all = &out->watches;
    struct node_address listen;
    char message[IO_FILE_MESSAGE];
    bool good = true;
    if (node_options_gossip(o, &listen))
        good = io_gossip_keys_load(&p->keyring, o, all->log, message) == 0;
    good = good &&
           open_key(&out->replica_key, &key_file_replicas, o->replica_api_key_file, all, message) &&
           open_key(&out->admin_token, &key_file_admin, o->admin_token_file, all, message) &&
           open_key(&out->admin_read_token, &key_file_admin_read, o->admin_read_token_file, all,
                    message);
    if (good && o->client_keys_file[0] != '\0')
        good = client_keys_open(&out->client_keys, o->client_keys_file, all, message) == 0;
    if (good)
        good = tls_open(&out->tls, o, all, message) == 0;
    if (good)
        return 0;
    (void)fprintf(stderr, "grapevine: %s\n", message);
    return EXIT_CONFIG;
}

/* Opens the state-dir, if set. Returns 0, or the exit status after printing the reason. */
static int open_state(struct process *p)
{
    char message[IO_FILE_MESSAGE];
    if (p->options.state_dir[0] == '\0' ||
        state_dir_open(&p->shell.state, p->options.state_dir, &p->sink.log, message) == 0)
        return 0;
    (void)fprintf(stderr, "grapevine: %s\n", message);
    return EXIT_CONFIG;
}

/* Checks the folder of the service account; prints the mistake. The default folder exists only in a
 * pod, and settings may be checked elsewhere. So only a folder set by the operator must exist. */
static bool account_good(const struct node_options *options)
{
    char message[REPLICA_KUBERNETES_MESSAGE];
    int row = node_option_find(SLICE("kubernetes-credentials"));
    bool given = row >= 0 && options->origins[row].source != NODE_SOURCE_DEFAULT;
    if (options->replica_kubernetes.count == 0 || !given ||
        replica_kubernetes_check(options->kubernetes_credentials, message) == 0)
        return true;
    (void)fprintf(stderr, "grapevine: %s\n", message);
    return false;
}

static bool files_good(const struct node_options *options)
{
    char message[IO_FILE_MESSAGE];
    if (options->state_dir[0] != '\0' && state_dir_check(options->state_dir, message) != 0) {
        (void)fprintf(stderr, "grapevine: %s\n", message);
        return false;
    }
    for (unsigned i = 0; i < options->replica_file.count; i++) {
        if (replica_file_check(options->replica_file.at[i], message) != 0) {
            (void)fprintf(stderr, "grapevine: %s\n", message);
            return false;
        }
    }
    return account_good(options);
}

/* Runs --check-config, and returns the exit status. Files named in settings must exist, too. */
static int check_config(struct process *p)
{
    int status = read_secrets(p);
    io_config_warn(&p->options, &p->sink.log);
    log_flush(&p->sink.log);
    io_log_sink_close(&p->sink.log);
    free_secrets(&p->shell);
    if (status == 0 && !files_good(&p->options))
        status = EXIT_CONFIG;
    if (status == 0)
        status = io_config_command(&p->options);
    return status;
}

static int run_shell(struct shell *shell, struct node *node)
{
    int err = shell_start(shell, node);
    if (err == 0)
        (void)uv_run(shell->loop, UV_RUN_DEFAULT);
    shell_close(shell);
    return err;
}

static int run(struct process *p, int argc, char *const *argv)
{
    struct shell *shell = &p->shell;
    struct log *log = &p->sink.log;
    int status = read_secrets(p);
    if (status == 0)
        status = open_state(p);
    if (status != 0) {
        free_secrets(shell);
        return status;
    }
    if (uv_loop_init(&p->loop) != 0) {
        (void)fprintf(stderr, "grapevine: cannot start: no event loop\n");
        return EXIT_FAILURE;
    }
    io_log_sink_start(log);
    shell->loop = &p->loop;
    shell->options = &p->options;
    shell->files = &p->files;
    shell->log = log;
    struct node *node = NULL;
    status = reload_open(shell, &p->options, argc, argv, environ) != 0;
    if (status == 0)
        status = io_gossip_open(&shell->gossip, &p->loop, &p->options, &p->keyring, log) != 0;
    if (status == 0)
        status = create_node(shell, &node);
    if (status != 0) {
        shell_close(shell);
    } else {
        log_event(log, LOG_INFO, "start", LOG_CSTR("version", version_text),
                  LOG_CSTR("policy", node_policy_names[p->options.policy]),
                  LOG_UINT("replicas", p->options.replica.count),
                  LOG_CSTR("cluster", shell->gossip != NULL ? io_gossip_name(shell->gossip) : ""));
        io_config_warn(&p->options, log);
        status = run_shell(shell, node) != 0 ? EXIT_FAILURE : 0;
        if (status == 0)
            log_event(log, LOG_INFO, "exit", LOG_INT("status", shell->exit_code));
        if (status == 0)
            status = shell->exit_code;
    }
    log_flush(log);
    io_log_sink_close(log);
    (void)uv_loop_close(&p->loop);
    node_destroy(node);
    reload_free(shell->reload);
    state_dir_free(shell->state);
    free_secrets(shell);
    return status;
}

/* Prints each mistake on a separate line. */
static void print_mistakes(const struct node_options_notes *notes)
{
    struct slice rest = buf_slice(&notes->text);
    if (notes->count == 0)
        (void)fprintf(stderr, "grapevine: %s\n", err_text(ERR_NOMEM));
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        (void)fprintf(stderr, "grapevine: %.*s\n", SLICE_ARG(line));
    }
}

int main(int argc, char **argv)
{
    standard_open();
    /* If a peer has gone, write() returns an error; the process does not end. */
    (void)signal(SIGPIPE, SIG_IGN);
    allow_core_dumps(false);
    io_random_init();
#ifdef GRAPEVINE_LAB
    future_active = getenv("FUTURE") != NULL;
    if (!bug_choose(getenv("BUG"))) {
        (void)fprintf(stderr, "grapevine: BUG: no such bug\n");
        return EXIT_CONFIG;
    }
#endif
    static struct process p; /* static, because a log thread that hangs in a write uses the sink
                              * until the process ends */
    struct node_options_notes notes = {0};
    int status;
    if (io_config_load_all(&p.options, argc, argv, environ, &notes) != 0) {
        print_mistakes(&notes);
        status = EXIT_CONFIG;
    } else if (p.options.command == NODE_COMMAND_RUN ||
               p.options.command == NODE_COMMAND_CHECK_CONFIG) {
        io_files_fit(&p.options, &p.files);
        io_log_sink_init(&p.sink, (enum log_level)p.options.log_level,
                         (enum node_log_format)p.options.log_format);
        p.shell.watches.log = &p.sink.log;
        bool runs = p.options.command == NODE_COMMAND_RUN;
        if (runs)
            allow_core_dumps(p.options.core_dumps);
        status = runs ? run(&p, argc, argv) : check_config(&p);
    } else {
        status = io_config_command(&p.options);
    }
    node_options_free(&p.options);
    buf_free(&notes.text);
    return status;
}
