#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "node/io/gossip_internal.h"

enum { FILE_BYTES_MAX = 65536 };

static struct io_file file_of(const struct node_options *options)
{
    return (struct io_file){
        .setting = "cluster-key-file",
        .path = options->cluster_key_file,
        .bytes_max = FILE_BYTES_MAX,
        .long_advice = "is too long for a key file: make one with gvctl keygen",
        .secret = true,
    };
}

static int parse(struct gossip_keyring *out, const struct node_options *options,
                 const struct io_file *file, struct slice text, char *message)
{
    char reason[160] = "out of memory";
    struct gossip_keyring ring;
    if (gossip_keyring_parse(&ring, text, reason) != 0)
        return io_file_fail(file, message, reason);
    gossip_keyring_cluster(&ring, slice_of_cstr(options->cluster_name));
    *out = ring;
    explicit_bzero(&ring, sizeof ring);
    return 0;
}

enum { IDS_BYTES = GOSSIP_KEYS_MAX * 10 };

/* Writes the ids of all keys, for comparison by people. */
static void ids_text(const struct gossip_keyring *ring, char out[IDS_BYTES])
{
    out[0] = '\0';
    for (unsigned i = 0; i < ring->count; i++) {
        const uint8_t *id = ring->keys[i].shown;
        size_t len = strlen(out);
        (void)snprintf(out + len, IDS_BYTES - len, "%s%02x%02x%02x%02x", i > 0 ? "," : "", id[0],
                       id[1], id[2], id[3]);
    }
}

int io_gossip_keys_load(struct gossip_keyring *out, const struct node_options *options,
                        struct log *log, char *message)
{
    message[0] = '\0';
    if (options->insecure_gossip) {
        gossip_keyring_insecure(out);
        gossip_keyring_cluster(out, slice_of_cstr(options->cluster_name));
        return 0;
    }
    struct io_file file = file_of(options);
    file.pipes = true;
    struct buf text;
    buf_init(&text, 0);
    bool others_read = false;
    int err = io_file_read(&file, &text, &others_read, message);
    if (others_read)
        log_event(log, LOG_WARN, "cluster_key_readable", LOG_CSTR("file", file.path),
                  LOG_CSTR("want", "let only grapevine read it: chmod o-rwx"));
    if (err == 0)
        err = parse(out, options, &file, buf_slice(&text), message);
    buf_free_wiped(&text);
    if (err == 0) {
        char ids[IDS_BYTES];
        ids_text(out, ids);
        log_event(log, LOG_INFO, "cluster_key_held", LOG_UINT("keys", out->count),
                  LOG_CSTR("ids", ids));
    }
    return err;
}

static bool same_keys(const struct gossip_keyring *a, const struct gossip_keyring *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++)
        same = memcmp(a->keys[i].psk, b->keys[i].psk, sizeof a->keys[i].psk) == 0;
    return same;
}

/* --- watching the file ------------------------------------------------------------------------ */

static int make(void *context)
{
    struct io_gossip *g = context;
    struct io_watch *w = &g->key_watch;
    struct gossip_keyring *ring = &g->fresh_keys;
    int err = parse(ring, g->options, &w->files[0], buf_slice(&w->texts[0]), w->message);
    if (err == 0 && memcmp(ring->hash, g->keyring->hash, sizeof ring->hash) != 0)
        err = io_file_fail(
            &w->files[0], w->message,
            "the line `hash` has changed: it must stay the same for the life of a cluster");
    return err;
}

static void take(void *context)
{
    struct io_gossip *g = context;
    const struct io_watch *w = &g->key_watch;
    bool changed = w->made && !same_keys(&g->fresh_keys, g->keyring);
    if (w->made)
        *g->keyring = g->fresh_keys;
    explicit_bzero(&g->fresh_keys, sizeof g->fresh_keys);
    if (changed || w->mended || (w->made && w->answers)) {
        char ids[IDS_BYTES];
        ids_text(g->keyring, ids);
        log_event(g->log, LOG_INFO, "cluster_key_read", LOG_UINT("keys", g->keyring->count),
                  LOG_CSTR("ids", ids), LOG_BOOL("changed", changed));
    }
}

void io_keys_start(struct io_gossip *g)
{
    struct io_watch *w = &g->key_watch;
    struct stat status;
    *w = (struct io_watch){
        .all = &g->shell->watches,
        .readable = "cluster_key_readable",
        .refused = "cluster_key_refused",
        .files[0] = file_of(g->options),
        .count = 1,
        .make = make,
        .taken = take,
        .context = g,
    };
    /* Watches only a regular file: a pipe can be read only once. */
    const char *path = w->files[0].path;
    if (!g->options->insecure_gossip && path != NULL && stat(path, &status) == 0 &&
        S_ISREG(status.st_mode))
        io_watch_start(w);
}

bool io_gossip_ask(struct shell *shell)
{
    return shell->gossip != NULL && io_watch_ask(&shell->gossip->key_watch);
}

bool io_gossip_is_asked(const struct shell *shell)
{
    return shell->gossip != NULL && io_watch_is_asked(&shell->gossip->key_watch);
}
