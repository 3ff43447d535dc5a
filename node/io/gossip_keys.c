#include <stdio.h>

#include "base/err.h"
#include "node/io/gossip_internal.h"
#include "node/io/secret_file.h"

enum { FILE_BYTES_MAX = 65536 };
_Static_assert((int)IO_KEYS_MESSAGE >= (int)IO_SECRET_MESSAGE, "its messages must fit");

int io_gossip_keys_load(struct gossip_keyring *out, const struct node_options *options,
                        struct log *log, char *message)
{
    message[0] = '\0';
    if (options->insecure_gossip) {
        gossip_keyring_insecure(out);
        return 0;
    }
    struct io_secret file = {
        .setting = "cluster-key-file",
        .path = options->cluster_key_file,
        .bytes_max = FILE_BYTES_MAX,
        .long_advice = "far too long for a key file, make one with gvctl keygen",
    };
    struct buf text;
    buf_init(&text, 0);
    char reason[160] = "out of memory";
    struct gossip_keyring ring;
    bool others_read = false;
    int err = io_secret_read(&file, &text, &others_read, message);
    if (others_read)
        log_event(log, LOG_WARN, "cluster_key_readable", LOG_CSTR("file", file.path),
                  LOG_CSTR("want", "nobody but grapevine to read it: chmod o-rwx"));
    if (err == 0 && gossip_keyring_parse(&ring, buf_slice(&text), reason) != 0)
        err = io_secret_fail(&file, message, reason);
    if (err == 0)
        *out = ring;
    io_secret_free(&text);
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
