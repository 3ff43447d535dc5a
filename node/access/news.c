/* The messages between routers about keys with limits. A message is a series of rows:
 *
 *   length of the rest of the row (a byte), id of the key (8 bytes),
 *   minute of cluster time (varint), requests and tokens of the minute (varints),
 *   requests and tokens of the minute before, requests in flight (varints)
 *
 * A later version adds fields at the end of a row. */
#include "node/access/access_internal.h"

#include "base/wire.h"

enum {
    ROW_BYTES_MAX = 1 + 8 + 6 * 10,
    AGAIN_MS = 2000, /* between two publications of an active key */
};

_Static_assert(2 * AGAIN_MS < ACCESS_SILENT_MS, "one message may be lost");

void access_clock(struct access *a, int64_t ahead_ms)
{
    a->ahead_ms = ahead_ms;
}

/* Every AGAIN_MS: active keys with limits are published again, and other routers' rows that are too
 * old to count are dropped. */
static void refresh(struct access *a, uint64_t now_ms)
{
    if (a->table == NULL || now_ms < a->again_ms)
        return;
    a->again_ms = now_ms + AGAIN_MS;
    uint64_t cluster_ms = access_cluster_ms(a, now_ms);
    for (unsigned i = 0; i < a->table->keys_count; i++) {
        struct access_use *u = a->table->keys[i]->use;
        access_use_forget(u, cluster_ms, &a->rows);
        if (u->limited && access_use_is_active(u, cluster_ms))
            u->news = a->news = true;
    }
}

static void write_count(struct wire_writer *w, uint64_t count)
{
    wire_write_varint(w, count < UINT32_MAX ? count : UINT32_MAX);
}

static int write_row(const struct access_use *u, struct buf *out)
{
    uint8_t bytes[ROW_BYTES_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u8(&w, 0);
    wire_write_u64(&w, u->id);
    wire_write_varint(&w, u->window.minute);
    write_count(&w, u->window.now.requests);
    write_count(&w, u->window.now.tokens);
    write_count(&w, u->window.before.requests);
    write_count(&w, u->window.before.tokens);
    write_count(&w, u->in_flight);
    size_t len = wire_written(&w);
    bytes[0] = (uint8_t)(len - 1);
    return buf_append(out, bytes, len);
}

int access_news_write(struct access *a, uint64_t now_ms, struct buf *out)
{
    refresh(a, now_ms);
    if (!a->news)
        return 0;
    size_t start = out->len;
    unsigned keys = a->table != NULL ? a->table->keys_count : 0, seen = 0;
    for (; seen < keys && out->len - start + ROW_BYTES_MAX <= ACCESS_NEWS_BYTES; seen++) {
        if (a->cursor >= keys)
            a->cursor = 0;
        struct access_use *u = a->table->keys[a->cursor++]->use;
        if (!u->news)
            continue;
        access_window_roll(&u->window, access_cluster_ms(a, now_ms));
        int err = write_row(u, out);
        if (err != 0)
            return err;
        u->news = false;
    }
    a->news = seen < keys;
    return 0;
}

int access_news_read(struct access *a, uint64_t router, struct slice news, uint64_t now_ms)
{
    struct wire_reader in = wire_reader_of(news.at, news.len);
    uint64_t cluster_ms = access_cluster_ms(a, now_ms);
    while (wire_left(&in) > 0) {
        struct slice bytes = wire_read_bytes(&in, wire_read_u8(&in));
        struct wire_reader row = wire_reader_of(bytes.at, bytes.len);
        struct access_window w;
        uint64_t id = wire_read_u64(&row);
        w.minute = wire_read_varint(&row);
        w.now.requests = wire_read_varint_max(&row, UINT32_MAX);
        w.now.tokens = wire_read_varint_max(&row, UINT32_MAX);
        w.before.requests = wire_read_varint_max(&row, UINT32_MAX);
        w.before.tokens = wire_read_varint_max(&row, UINT32_MAX);
        uint64_t in_flight = wire_read_varint_max(&row, UINT32_MAX);
        if (in.bad || row.bad)
            return ERR_SYNTAX;
        const struct access_key *k = a->table != NULL ? access_table_of_id(a->table, id) : NULL;
        /* A row more than a minute ahead is skipped: it would shut out all rows of earlier
         * minutes. */
        if (k == NULL || !k->use->limited || w.minute > cluster_ms / ACCESS_MINUTE_MS + 1)
            continue;
        /* If there is no memory for the row, the limit is less strict. */
        DISCARD(access_use_hear(k->use, router, &w, in_flight, cluster_ms, &a->rows));
    }
    return 0;
}
