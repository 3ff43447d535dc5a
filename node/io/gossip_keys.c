#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "node/io/gossip_internal.h"
#include "node/io/secret_file.h"

enum { FILE_BYTES_MAX = 65536 };
_Static_assert((int)IO_KEYS_MESSAGE >= (int)IO_SECRET_MESSAGE, "its messages must fit");

static struct io_secret file_of(const struct node_options *options)
{
    return (struct io_secret){
        .setting = "cluster-key-file",
        .path = options->cluster_key_file,
        .bytes_max = FILE_BYTES_MAX,
        .long_advice = "far too long for a key file, make one with gvctl keygen",
    };
}

static int parse(struct gossip_keyring *out, const struct node_options *options,
                 const struct io_secret *file, struct slice text, char *message)
{
    char reason[160] = "out of memory";
    struct gossip_keyring ring;
    if (gossip_keyring_parse(&ring, text, reason) != 0)
        return io_secret_fail(file, message, reason);
    gossip_keyring_cluster(&ring, slice_of_cstr(options->cluster_name));
    *out = ring;
    explicit_bzero(&ring, sizeof ring);
    return 0;
}

static void warn_readable(struct log *log, const struct io_secret *file)
{
    log_event(log, LOG_WARN, "cluster_key_readable", LOG_CSTR("file", file->path),
              LOG_CSTR("want", "nobody but grapevine to read it: chmod o-rwx"));
}

enum { IDS_BYTES = GOSSIP_KEYS_MAX * 10 };

/* The ids of all keys, to be compared by people. */
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
    struct io_secret file = file_of(options);
    struct buf text;
    buf_init(&text, 0);
    bool others_read = false;
    int err = io_secret_read(&file, &text, &others_read, message);
    if (others_read)
        warn_readable(log, &file);
    if (err == 0)
        err = parse(out, options, &file, buf_slice(&text), message);
    io_secret_free(&text);
    if (err == 0) {
        char ids[IDS_BYTES];
        ids_text(out, ids);
        log_event(log, LOG_INFO, "cluster_key_held", LOG_UINT("keys", out->count),
                  LOG_CSTR("ids", ids));
    }
    return err;
}

static void refuse(struct io_gossip *g, const char *error)
{
    log_event(g->log, LOG_ERROR, "cluster_key_refused", LOG_CSTR("error", error),
              LOG_CSTR("effect", "the keys stay as they were"));
}

static bool same_keys(const struct gossip_keyring *a, const struct gossip_keyring *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++)
        same = memcmp(a->keys[i].psk, b->keys[i].psk, sizeof a->keys[i].psk) == 0;
    return same;
}

/* Takes the keys of the file, or NULL with what is wrong. `asked`: by SIGHUP, so it is answered
 * also where nothing has changed. */
static void take(struct io_gossip *g, const struct gossip_keyring *ring, const char *error,
                 bool asked)
{
    if (ring != NULL && memcmp(ring->hash, g->keyring->hash, sizeof ring->hash) != 0) {
        ring = NULL;
        error = "the line `hash` has changed: it is fixed for the life of a cluster";
    }
    if (ring == NULL) {
        if (asked || !g->keys_refused)
            refuse(g, error);
        g->keys_refused = true;
        return;
    }
    bool changed = !same_keys(ring, g->keyring);
    if (changed || asked || g->keys_refused) {
        char ids[IDS_BYTES];
        ids_text(ring, ids);
        log_event(g->log, LOG_INFO, "cluster_key_read", LOG_UINT("keys", ring->count),
                  LOG_CSTR("ids", ids), LOG_BOOL("changed", changed));
    }
    g->keys_refused = false;
    *g->keyring = *ring;
}

void io_gossip_reload(struct shell *shell, bool more)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL || shell->options->insecure_gossip) {
        if (!more)
            log_event(shell->log, LOG_INFO, "nothing_to_read",
                      LOG_CSTR("why", "SIGHUP reads the file of --config and the cluster key file "
                                      "again, and there is neither"));
        return;
    }
    char message[IO_KEYS_MESSAGE];
    struct gossip_keyring ring;
    int err = io_gossip_keys_load(&ring, shell->options, shell->log, message);
    take(g, err == 0 ? &ring : NULL, message, true);
    explicit_bzero(&ring, sizeof ring);
}

/* --- the file is watched ---------------------------------------------------------------------- */

static void on_taken(void *context)
{
    struct io_gossip *g = context;
    struct io_secret_watch *w = &g->key_watch;
    struct gossip_keyring ring;
    if (w->err == 0)
        w->err = parse(&ring, g->options, &w->file, buf_slice(&w->text), w->message);
    take(g, w->err == 0 ? &ring : NULL, w->message, false);
    explicit_bzero(&ring, sizeof ring);
}

void io_keys_start(struct io_gossip *g)
{
    struct io_secret_watch *w = &g->key_watch;
    struct stat status;
    w->file = file_of(g->options);
    w->file.regular = true;
    w->taken = on_taken;
    w->context = g;
    /* What comes through a pipe can be read once. */
    w->stopped =
        g->options->insecure_gossip || stat(w->file.path, &status) != 0 || !S_ISREG(status.st_mode);
}

void io_keys_tick(struct io_gossip *g, uint64_t now_ms)
{
    io_secret_watch_tick(&g->key_watch, g->loop, now_ms);
}
