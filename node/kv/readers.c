#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/kv/readers_internal.h"

static struct kv_readers_feed *feed_of(struct kv_readers *rs, unsigned slot)
{
    CHECK(slot < rs->slots);
    return rs->places[slot].feed > 0 ? &rs->feeds[rs->places[slot].feed - 1] : NULL;
}

static unsigned number_of(const struct kv_readers_feed *f)
{
    return (unsigned)(f - f->all->feeds);
}

/* --- a reader's reports ---------------------------------------------------------------------- */

static void on_replay(void *context, uint64_t from)
{
    struct kv_readers_feed *f = context;
    const struct kv_readers_shell *shell = f->all->shell;
    /* If there is no memory for the request, no replay comes, and the messages are missed. */
    DISCARD(shell->replay(shell->context, number_of(f), from));
}

static struct kv_paths *on_paths(void *context, uint32_t block_tokens, uint64_t now_ms)
{
    struct kv_readers_feed *f = context;
    return kv_sizes_find(&f->all->sizes, block_tokens, now_ms);
}

static bool on_gone(void *context, uint64_t id, uint8_t code)
{
    struct kv_readers_feed *f = context;
    return f->all->user->gone(f->all->user->context, f->slot, id, code);
}

static void on_present(void *context, uint64_t id, uint8_t code)
{
    struct kv_readers_feed *f = context;
    f->all->user->present(f->all->user->context, f->slot, id, code);
}

static void on_cleared(void *context)
{
    struct kv_readers_feed *f = context;
    if (!f->news)
        return;
    f->began_ms = f->now_ms; /* the next rkey belongs to this restart */
    f->all->user->cleared(f->all->user->context, f->slot);
}

/* Reports a restart. The next rkey results from this report. A second new rkey, caused by /metrics
 * or a probe, belongs to the same restart (began_ms). */
static void on_began(void *context)
{
    struct kv_readers_feed *f = context;
    f->told_began = true;
    f->all->user->began(f->all->user->context, f->slot, f->rkey);
}

static bool unheard_gone(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    (void)context, (void)slot, (void)id, (void)code;
    return true;
}

static void unheard(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    (void)context, (void)slot, (void)id, (void)code;
}

static void unheard_clear(void *context, unsigned slot)
{
    (void)context, (void)slot;
}

static void unheard_begin(void *context, unsigned slot, uint32_t rkey)
{
    (void)context, (void)slot, (void)rkey;
}

/* --- opening and closing --------------------------------------------------------------------- */

static uint64_t address_of(const struct kv_readers *rs, const struct kv_wanted *want)
{
    uint64_t address = hash64(rs->secret, want->endpoint.at, want->endpoint.len);
    address = hash_mix(address ^ hash64(rs->secret, want->replay.at, want->replay.len));
    return hash_mix(address ^ hash64(rs->secret, want->topic.at, want->topic.len));
}

/* Returns the blocks for a tree: twice the cache's size, because removed blocks stay while others
 * are after them. */
static uint32_t blocks_wanted(const struct kv_wanted *want)
{
    if (!(want->blocks > 0))
        return KV_BLOCKS_UNKNOWN;
    double blocks = 2 * want->blocks;
    return blocks < KV_BLOCKS_MIN   ? KV_BLOCKS_MIN
           : blocks > KV_BLOCKS_MAX ? KV_BLOCKS_MAX
                                    : (uint32_t)blocks;
}

/* Returns the blocks left for a tree by the other trees, at most `wanted`; 0: too few are left. */
static uint32_t blocks_left(const struct kv_readers *rs, uint32_t wanted)
{
    uint32_t left = KV_BLOCKS_ALL_MAX - rs->stats.blocks;
    left = left < wanted ? left : wanted;
    return left >= KV_BLOCKS_MIN ? left : 0;
}

static void feed_close(struct kv_readers_feed *f)
{
    struct kv_readers *rs = f->all;
    rs->shell->close(rs->shell->context, number_of(f));
    rs->places[f->slot].trust = *kv_reader_trust(f->reader);
    kv_reader_destroy(f->reader);
    f->reader = NULL;
    rs->places[f->slot].feed = 0;
    rs->stats.feeds--;
    rs->stats.blocks -= f->blocks;
}

static int feed_begin(struct kv_readers *rs, struct kv_readers_feed *f,
                      const struct kv_wanted *want, uint32_t blocks)
{
    struct kv_reader_user user = {.paths = on_paths,
                                  .replay = on_replay,
                                  .gone = on_gone,
                                  .present = on_present,
                                  .cleared = on_cleared,
                                  .began = on_began,
                                  .context = f};
    unsigned slot = f->slot;
    *f = (struct kv_readers_feed){.all = rs,
                                  .slot = slot,
                                  .user = user,
                                  .address = address_of(rs, want),
                                  .blocks = blocks,
                                  .rkey = want->rkey};
    (void)slice_to_cstr(want->endpoint, f->from, sizeof f->from);
    int err = kv_sizes_open(&rs->sizes, KV_POINTS_MAX);
    if (err == ERR_OK)
        err = kv_reader_create(&f->reader, &f->user, rs->secret, blocks, want->replay.len > 0);
    if (err != ERR_OK)
        return err;
    struct slice endpoint = want->connects ? SLICE("") : want->endpoint;
    err = rs->shell->open(rs->shell->context, number_of(f), endpoint, want->replay, want->topic);
    if (err != ERR_OK) {
        kv_reader_destroy(f->reader);
        f->reader = NULL;
    }
    return err;
}

static struct kv_readers_feed *feed_open(struct kv_readers *rs, unsigned slot,
                                         const struct kv_wanted *want, uint64_t now_ms)
{
    struct kv_readers_place *place = &rs->places[slot];
    if (now_ms < place->again_ms)
        return NULL;
    unsigned i = 0;
    while (i < KV_READERS_MAX && rs->feeds[i].reader != NULL)
        i++;
    uint32_t wanted = blocks_wanted(want);
    struct kv_kept_feed *kept = kv_kept_find(&rs->kept, want->rkey, address_of(rs, want));
    if (kept != NULL && kept->blocks > wanted)
        wanted = kept->blocks;
    uint32_t blocks = blocks_left(rs, wanted);
    int err = ERR_FULL;
    if (i < KV_READERS_MAX && blocks > 0) {
        rs->feeds[i].slot = slot;
        err = feed_begin(rs, &rs->feeds[i], want, blocks);
    }
    if (err != ERR_OK) {
        rs->stats.refused++;
        place->again_ms = now_ms + KV_OPEN_AGAIN_MS;
        return NULL;
    }
    if (kept != NULL) {
        (void)kv_reader_resume(rs->feeds[i].reader, buf_slice(&kept->reader), now_ms);
        buf_free(&kept->reader);
    }
    kv_reader_trusts(rs->feeds[i].reader, &place->trust);
    rs->feeds[i].lost_ms = now_ms;
    place->feed = (uint16_t)(i + 1);
    rs->stats.feeds++;
    rs->stats.blocks += blocks;
    return &rs->feeds[i];
}

/* --- the user's wishes ----------------------------------------------------------------------- */

static bool lately(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms > 0 && now_ms < at_ms + KV_RESTART_MS;
}

static void follow_restart(struct kv_readers_feed *f, uint32_t rkey, uint64_t now_ms)
{
    if (rkey == f->rkey)
        return;
    f->rkey = rkey;
    if (!lately(f->began_ms, now_ms)) /* otherwise the feed has restarted already */
        kv_reader_restarted(f->reader, now_ms);
    if (!f->told_began)
        kv_reader_restart_is_seen(f->reader);
    if (!f->told_began)
        f->began_ms = 0;
    f->told_began = false;
}

void kv_readers_trust_anew(struct kv_readers *rs, unsigned slot)
{
    CHECK(slot < rs->slots);
    rs->places[slot].trust = (struct kv_trust){0};
}

static void follow_address(struct kv_readers *rs, unsigned slot, const struct kv_wanted *want)
{
    struct kv_readers_place *place = &rs->places[slot];
    uint64_t address = address_of(rs, want);
    if (address != place->address && (want->named || place->named))
        kv_readers_trust_anew(rs, slot);
    place->address = address;
    place->named = want->named;
}

static bool stands(const struct kv_readers_feed *f, uint64_t now_ms)
{
    return f->connected || now_ms < f->lost_ms + KV_LOST_MS;
}

static void speak(struct kv_readers_feed *f, uint64_t now_ms)
{
    bool speaks = f->role == KV_ROLE_SPEAKS && stands(f, now_ms);
    if (speaks != f->speaks)
        kv_reader_speaks(f->reader, speaks);
    f->speaks = speaks;
}

void kv_readers_want(struct kv_readers *rs, unsigned slot, const struct kv_wanted *want,
                     uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_of(rs, slot);
    bool other = f != NULL && f->address != address_of(rs, want);
    /* A tree is too small if the cache's size was unknown at first, or is much larger now. */
    uint32_t blocks = blocks_wanted(want);
    bool small = f != NULL && want->blocks > 0 && blocks / 2 >= f->blocks &&
                 blocks_left(rs, blocks) == blocks;
    if (f != NULL && (want->role == KV_ROLE_NONE || other || small)) {
        feed_close(f);
        f = NULL;
    }
    if (want->role == KV_ROLE_NONE)
        return;
    follow_address(rs, slot, want);
    if (f == NULL)
        f = feed_open(rs, slot, want, now_ms);
    if (f == NULL)
        return;
    f->role = want->role;
    kv_reader_has_tier(f->reader, want->has_tier);
    follow_restart(f, want->rkey, now_ms);
    speak(f, now_ms);
}

void kv_readers_tick(struct kv_readers *rs, uint64_t now_ms)
{
    kv_kept_tick(&rs->kept, now_ms);
    for (unsigned i = 0; i < KV_READERS_MAX && rs->stats.feeds > 0; i++) {
        struct kv_readers_feed *f = &rs->feeds[i];
        if (f->reader == NULL)
            continue;
        speak(f, now_ms);
        if (now_ms >= kv_reader_due_ms(f->reader))
            kv_reader_tick(f->reader, now_ms);
    }
}

void kv_readers_path(struct kv_readers *rs, const struct kv_path *path)
{
    /* No effect if this router does not know the parent. */
    kv_sizes_join(&rs->sizes, path->parent, path->ids, path->codes, path->count);
}

void kv_readers_told(struct kv_readers *rs, const struct kv_told *told, uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_of(rs, told->slot);
    if (f == NULL)
        return;
    kv_reader_told(f->reader, told, now_ms);
    rs->stats.odd += kv_reader_is_odd(f->reader);
}

enum kv_want kv_readers_want_asked(const struct kv_readers *rs, const uint64_t *ids, unsigned count)
{
    return kv_sizes_want(&rs->sizes, ids, count);
}

/* --- messages -------------------------------------------------------------------------------- */

int kv_readers_feed(const struct kv_readers *rs, unsigned slot)
{
    CHECK(slot < rs->slots);
    return rs->places[slot].feed - 1;
}

static struct kv_readers_feed *feed_at(struct kv_readers *rs, unsigned number)
{
    CHECK(number < KV_READERS_MAX && rs->feeds[number].reader != NULL);
    return &rs->feeds[number];
}

static void note_number(struct kv_readers_feed *f, uint64_t number, uint64_t now_ms)
{
    f->now_ms = now_ms > 0 ? now_ms : 1;
    if (number == 0)
        f->began_ms = f->now_ms;
}

void kv_readers_connected(struct kv_readers *rs, unsigned feed, uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_at(rs, feed);
    f->connected = true;
    f->connects++;
    kv_reader_connected(f->reader, now_ms);
    speak(f, now_ms);
}

void kv_readers_lost(struct kv_readers *rs, unsigned feed, uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_at(rs, feed);
    if (f->connected)
        f->lost_ms = now_ms;
    f->connected = false;
}

void kv_readers_live(struct kv_readers *rs, unsigned feed, uint64_t number, struct slice payload,
                     uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_at(rs, feed);
    note_number(f, number, now_ms);
    f->news = number > 0;
    kv_reader_live(f->reader, number, payload, now_ms);
    f->news = false;
}

void kv_readers_replayed(struct kv_readers *rs, unsigned feed, uint64_t number,
                         struct slice payload, uint64_t now_ms)
{
    struct kv_readers_feed *f = feed_at(rs, feed);
    note_number(f, number, now_ms);
    kv_reader_replayed(f->reader, number, payload, now_ms);
}

void kv_readers_replay_ended(struct kv_readers *rs, unsigned feed, uint64_t now_ms)
{
    kv_reader_replay_ended(feed_at(rs, feed)->reader, now_ms);
}

/* --- for operators --------------------------------------------------------------------------- */

static const struct {
    const char *text, *phrase;
} readings[] = {
    [KV_READING_NOT] = {"off", "are not read, because the label kv-events is off"},
    [KV_READING_AWAY] = {"away", "are unreachable"},
    [KV_READING_BEGINS] = {"begins", "are awaited"},
    [KV_READING_LIVE] = {"live", "are read"},
    [KV_READING_DOUBTS] = {"doubts", "lack messages"},
    [KV_READING_CONTRADICTS] = {"contradicts", "are ignored, because answers contradict them"},
    [KV_READING_BLOCK_SIZE] = {"block_size", "are unusable, because other engines' blocks have "
                                             "four other sizes"},
    [KV_READING_SILENT_TIER] = {"silent_tier", "are unusable, because they leave out a cache tier "
                                               "or a shared pool"},
};

const char *kv_reading_text(enum kv_reading reading)
{
    return readings[reading].text;
}

const char *kv_reading_phrase(enum kv_reading reading)
{
    return readings[reading].phrase;
}

/* Returns the state of a feed with messages in order: live, or the reason why it reports
 * nothing. */
static enum kv_reading use_of(const struct kv_readers_feed *f)
{
    if (kv_reader_is_odd(f->reader))
        return KV_READING_BLOCK_SIZE;
    return kv_reader_is_silent(f->reader) ? KV_READING_SILENT_TIER : KV_READING_LIVE;
}

enum kv_reading kv_readers_reading(const struct kv_readers *rs, unsigned slot)
{
    CHECK(slot < rs->slots);
    if (rs->places[slot].feed == 0)
        return KV_READING_NOT;
    const struct kv_readers_feed *f = &rs->feeds[rs->places[slot].feed - 1];
    if (!f->connected)
        return KV_READING_AWAY;
    switch (kv_reader_state(f->reader)) {
    case KV_READER_LIVE:
        return use_of(f);
    case KV_READER_DOUBTS:
        return KV_READING_DOUBTS;
    case KV_READER_CONTRADICTS:
        return KV_READING_CONTRADICTS;
    default:
        return KV_READING_BEGINS;
    }
}

bool kv_readers_speak(const struct kv_readers *rs, unsigned slot)
{
    return kv_readers_reading(rs, slot) == KV_READING_LIVE &&
           rs->feeds[rs->places[slot].feed - 1].speaks;
}

bool kv_readers_cover(const struct kv_readers *rs, unsigned slot, uint64_t now_ms)
{
    int feed = kv_readers_feed(rs, slot);
    return feed >= 0 && stands(&rs->feeds[feed], now_ms) &&
           kv_reader_covers(rs->feeds[feed].reader);
}

bool kv_readers_row(const struct kv_readers *rs, unsigned slot, struct kv_reading_row *out)
{
    enum kv_reading reading = kv_readers_reading(rs, slot);
    if (reading == KV_READING_NOT)
        return false;
    const struct kv_readers_feed *f = &rs->feeds[rs->places[slot].feed - 1];
    *out = (struct kv_reading_row){
        .from = f->from,
        .reading = reading,
        .role = f->role,
        .may_speak = f->speaks,
        .speaks = f->speaks && reading == KV_READING_LIVE,
        .connects = f->connects,
        .malformed = rs->shell->malformed(rs->shell->context, number_of(f)),
        .blocks_max = f->blocks,
        .block_tokens = kv_reader_block_tokens(f->reader),
        .stats = kv_reader_stats(f->reader),
    };
    return true;
}

struct kv_readers_stats kv_readers_stats(const struct kv_readers *rs)
{
    struct kv_readers_stats stats = rs->stats;
    stats.paths = kv_sizes_stats(&rs->sizes);
    return stats;
}

/* --- life ------------------------------------------------------------------------------------ */

int kv_readers_create(struct kv_readers **out, unsigned slots, const struct hash_secret *secret,
                      const struct kv_readers_shell *shell, const struct kv_readers_user *user)
{
    static const struct kv_readers_user nobody = {
        .gone = unheard_gone, .present = unheard, .cleared = unheard_clear, .began = unheard_begin};
    struct kv_readers *rs = calloc(1, sizeof *rs);
    if (rs == NULL || (rs->places = calloc(slots, sizeof *rs->places)) == NULL) {
        free(rs);
        return ERR_NOMEM;
    }
    rs->secret = secret;
    rs->shell = shell;
    rs->user = user != NULL ? user : &nobody;
    rs->slots = slots;
    *out = rs;
    return ERR_OK;
}

void kv_readers_close(struct kv_readers *rs)
{
    for (unsigned i = 0; i < KV_READERS_MAX; i++) {
        if (rs->feeds[i].reader != NULL)
            feed_close(&rs->feeds[i]);
    }
}

void kv_readers_destroy(struct kv_readers *rs)
{
    if (rs == NULL)
        return;
    kv_readers_close(rs);
    kv_kept_forget(&rs->kept);
    kv_sizes_close(&rs->sizes);
    free(rs->places);
    free(rs);
}

void kv_readers_check(const struct kv_readers *rs)
{
    unsigned feeds = 0;
    uint32_t blocks = 0;
    for (unsigned i = 0; i < KV_READERS_MAX; i++) {
        const struct kv_readers_feed *f = &rs->feeds[i];
        if (f->reader == NULL)
            continue;
        feeds++;
        blocks += f->blocks;
        CHECK(rs->places[f->slot].feed == i + 1 && f->role != KV_ROLE_NONE);
        CHECK(!f->speaks || f->role == KV_ROLE_SPEAKS);
        kv_reader_check(f->reader);
    }
    CHECK(feeds == rs->stats.feeds && blocks == rs->stats.blocks && blocks <= KV_BLOCKS_ALL_MAX);
}
