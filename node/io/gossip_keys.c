#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "node/io/gossip_parts.h"

enum { FILE_BYTES_MAX = 65536 };

static int fail(char *message, const char *path, const char *what)
{
    (void)snprintf(message, IO_KEYS_MESSAGE, "cluster-key-file \"%.200s\": %s", path, what);
    return ERR_NOT_FOUND;
}

static int read_file(const char *path, struct node_log *log, struct buf *out, char *message)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return fail(message, path, strerror(why));
    }
    if ((status.st_mode & S_IROTH) != 0)
        log_event(log, LOG_WARN, "cluster_key_readable", LOG_CSTR("file", path),
                  LOG_CSTR("want", "nobody but grapevine to read it: chmod o-rwx"));
    int err = buf_reserve(out, FILE_BYTES_MAX);
    while (err == 0) {
        ssize_t n = read(fd, out->at + out->len, FILE_BYTES_MAX - out->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            err = fail(message, path, strerror(errno));
        if (n <= 0)
            break;
        out->len += (size_t)n;
        if (out->len == FILE_BYTES_MAX)
            err = fail(message, path, "far too long for a key file, make one with gvctl keygen");
    }
    (void)close(fd);
    return err;
}

int io_gossip_keys_load(struct gossip_keyring *out, const struct node_options *options,
                        struct node_log *log, char *message)
{
    message[0] = '\0';
    if (options->insecure_gossip) {
        gossip_keyring_insecure(out);
        return 0;
    }
    struct buf text;
    buf_init(&text, 0);
    char reason[160] = "out of memory";
    struct gossip_keyring ring;
    int err = read_file(options->cluster_key_file, log, &text, message);
    if (err == 0) {
        err = gossip_keyring_parse(&ring, buf_slice(&text), reason);
        if (err != 0)
            (void)fail(message, options->cluster_key_file, reason);
    } else if (message[0] == '\0') {
        (void)fail(message, options->cluster_key_file, err_text(err));
    }
    if (err == 0)
        *out = ring;
    if (text.at != NULL)
        explicit_bzero(text.at, text.cap);
    buf_free(&text);
    return err;
}

void io_gossip_reload(struct shell *shell)
{
    struct io_gossip *g = shell->gossip;
    if (g == NULL || shell->options->insecure_gossip) {
        log_event(shell->log, LOG_INFO, "nothing_to_read",
                  LOG_CSTR("why", "SIGHUP reads the cluster key file again, and there is none"));
        return;
    }
    char message[IO_KEYS_MESSAGE];
    struct gossip_keyring ring;
    if (io_gossip_keys_load(&ring, shell->options, shell->log, message) != 0) {
        log_event(shell->log, LOG_ERROR, "cluster_key_refused", LOG_CSTR("error", message),
                  LOG_CSTR("effect", "the keys stay as they were"));
        return;
    }
    if (memcmp(ring.hash, g->keyring->hash, sizeof ring.hash) != 0) {
        log_event(shell->log, LOG_ERROR, "cluster_key_refused",
                  LOG_CSTR("error", "the line `hash` has changed: it is fixed for the life of a "
                                    "cluster"),
                  LOG_CSTR("effect", "the keys stay as they were"));
        return;
    }
    *g->keyring = ring;
    char ids[GOSSIP_KEYS_MAX * 10] = "";
    for (unsigned i = 0; i < ring.count; i++) {
        const uint8_t *id = ring.keys[i].id;
        size_t len = strlen(ids);
        (void)snprintf(ids + len, sizeof ids - len, "%s%02x%02x%02x%02x", i > 0 ? "," : "", id[0],
                       id[1], id[2], id[3]);
    }
    log_event(shell->log, LOG_INFO, "cluster_key_read", LOG_UINT("keys", ring.count),
              LOG_CSTR("ids", ids));
}
