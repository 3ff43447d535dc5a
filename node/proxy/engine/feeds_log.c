#include "node/proxy/engine/feeds_log.h"

static struct slice name_of(const struct proxy *p, unsigned slot)
{
    return node_router_replica_name(p->config.router, slot);
}

static void log_disbelieved(const struct proxy *p, unsigned slot, const char *from)
{
    struct kv_reading_row r;
    if (!kv_readers_row(p->config.kv_readers, slot, &r))
        return;
    const struct kv_reader_stats *s = &r.stats;
    uint64_t left_ms = s->believed_ms > p->now_ms ? s->believed_ms - p->now_ms : 0;
    log_event(
        p->config.log, LOG_WARN, "kv_events_disbelieved", LOG_STR("replica", name_of(p, slot)),
        LOG_CSTR("from", from), LOG_UINT("answers", s->told), LOG_UINT("tied", s->tied),
        LOG_UINT("unmatched", s->unmatched), LOG_UINT("agreed", s->agreed),
        LOG_UINT("contradicted", s->contradicted), LOG_UINT("minutes", (left_ms + 59999) / 60000));
}

static void log_unusable(const struct proxy *p, unsigned slot, const char *from)
{
    struct kv_reading_row r;
    if (!kv_readers_row(p->config.kv_readers, slot, &r))
        return;
    log_event(p->config.log, LOG_WARN, "kv_events_unusable", LOG_STR("replica", name_of(p, slot)),
              LOG_CSTR("from", from), LOG_CSTR("state", kv_reading_text(r.reading)),
              LOG_UINT("block_tokens", r.block_tokens));
}

void feeds_log_reading(const struct proxy *p, unsigned slot, enum kv_reading now, const char *from)
{
    if (now == KV_READING_CONTRADICTS)
        log_disbelieved(p, slot, from);
    else if (now == KV_READING_BLOCK_SIZE || now == KV_READING_SILENT_TIER)
        log_unusable(p, slot, from);
    else
        log_event(p->config.log, LOG_INFO,
                  now == KV_READING_LIVE ? "kv_events_live" : "kv_events_lost",
                  LOG_STR("replica", name_of(p, slot)), LOG_CSTR("from", from),
                  LOG_CSTR("state", kv_reading_text(now)));
}

void feeds_log_trouble(const struct proxy *p, unsigned slot, enum feeds_trouble trouble,
                       const char *from, struct slice topic, bool named, uint64_t answers)
{
    if (trouble == FEEDS_TROUBLE_UNREACHABLE)
        log_event(p->config.log, LOG_WARN, "kv_events_unreachable",
                  LOG_STR("replica", name_of(p, slot)), LOG_CSTR("from", from),
                  LOG_CSTR("want", named ? "set the label kv-events to the engine's host and port, "
                                           "and open that port to all routers"
                                         : "open that port of the engine to all routers, or set "
                                           "the label kv-events to an address that they reach"));
    else
        log_event(p->config.log, LOG_WARN, "kv_events_silent", LOG_STR("replica", name_of(p, slot)),
                  LOG_CSTR("from", from), LOG_STR("topic", topic), LOG_UINT("answers", answers),
                  LOG_CSTR("want", named ? "set the label kv-events to this engine's endpoint and "
                                           "topic, and enable events at the engine"
                                         : "enable prefix caching and events at the engine"));
}
