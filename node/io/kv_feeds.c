#include "node/io/kv_feeds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/kv_feed.h"

enum { SPARE_FILES = 16 };

struct feed {
    struct kv_feeds *all;
    struct io_kv_feed *open; /* NULL: the feed is closed, or has no sockets */
};

struct kv_feeds {
    struct shell *shell;
    struct kv_readers_shell actions;
    struct io_kv_feed_user users[KV_READERS_MAX];
    struct feed feeds[KV_READERS_MAX];
    void *zmq; /* libzmq's context; NULL: no feed was opened yet */
};

/* --- callbacks -------------------------------------------------------------------------------- */

static struct kv_readers *readers(const struct feed *f)
{
    return f->all->shell->node->kv_readers;
}

static unsigned number(const struct feed *f)
{
    return (unsigned)(f - f->all->feeds);
}

static uint64_t now_ms(const struct feed *f)
{
    return shell_now_ms(f->all->shell);
}

static void on_connected(void *context)
{
    struct feed *f = context;
    kv_readers_connected(readers(f), number(f), now_ms(f));
}

static void on_lost(void *context)
{
    struct feed *f = context;
    kv_readers_lost(readers(f), number(f), now_ms(f));
}

static void on_live(void *context, uint64_t sequence, struct slice payload)
{
    struct feed *f = context;
    kv_readers_live(readers(f), number(f), sequence, payload, now_ms(f));
}

static void on_replayed(void *context, uint64_t sequence, struct slice payload)
{
    struct feed *f = context;
    kv_readers_replayed(readers(f), number(f), sequence, payload, now_ms(f));
}

static void on_replay_ended(void *context)
{
    struct feed *f = context;
    kv_readers_replay_ended(readers(f), number(f), now_ms(f));
}

/* --- actions --------------------------------------------------------------------------------- */

/* Returns true if SPARE_FILES more files can be opened, which is enough for a feed. Without files,
 * libzmq may abort the process. */
static bool files_left(void)
{
    int spare[SPARE_FILES], count = 0;
    while (count < SPARE_FILES && (spare[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    for (int i = 0; i < count; i++)
        (void)close(spare[i]);
    return count == SPARE_FILES;
}

static int feed_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                     struct slice topic)
{
    struct kv_feeds *fs = context;
    struct feed *f = &fs->feeds[feed];
    CHECK(f->open == NULL);
    if (endpoint.len == 0 && replay.len == 0)
        return ERR_OK; /* the engine connects, and answers no replays */
    if (!files_left())
        return ERR_LIMIT;
    int err = fs->zmq == NULL ? io_kv_open(&fs->zmq) : ERR_OK;
    if (err != ERR_OK)
        return err;
    f->all = fs;
    fs->users[feed] = (struct io_kv_feed_user){.connected = on_connected,
                                               .lost = on_lost,
                                               .live = on_live,
                                               .replayed = on_replayed,
                                               .replay_ended = on_replay_ended,
                                               .context = f};
    return io_kv_feed_open(&f->open, fs->shell->loop, fs->zmq, endpoint, replay, topic,
                           &fs->users[feed]);
}

static void feed_close(void *context, unsigned feed)
{
    struct kv_feeds *fs = context;
    if (fs->feeds[feed].open != NULL)
        io_kv_feed_close(fs->feeds[feed].open);
    fs->feeds[feed].open = NULL;
}

static int feed_replay(void *context, unsigned feed, uint64_t from)
{
    struct kv_feeds *fs = context;
    return io_kv_feed_replay(fs->feeds[feed].open, from);
}

static uint64_t feed_malformed(void *context, unsigned feed)
{
    struct kv_feeds *fs = context;
    const struct io_kv_feed *open = fs->feeds[feed].open;
    return open != NULL ? io_kv_feed_stats(open).malformed : 0;
}

/* --- life ------------------------------------------------------------------------------------ */

const struct kv_readers_shell *io_kv_feeds_shell(struct shell *shell)
{
    static struct kv_feeds all; /* static: lives as long as the process, like the shell */
    shell->kv_feeds = &all;
    all.shell = shell;
    all.actions = (struct kv_readers_shell){.open = feed_open,
                                            .close = feed_close,
                                            .replay = feed_replay,
                                            .malformed = feed_malformed,
                                            .context = &all};
    return &all.actions;
}

void io_kv_feeds_stop(struct shell *shell)
{
    if (shell->node != NULL && shell->node->kv_readers != NULL)
        kv_readers_close(shell->node->kv_readers);
}

void io_kv_feeds_free(struct shell *shell)
{
    if (shell->kv_feeds != NULL && shell->kv_feeds->zmq != NULL)
        io_kv_close(shell->kv_feeds->zmq);
    shell->kv_feeds = NULL;
}
