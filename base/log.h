/* Logs: a line per event, with a name and typed fields, as text or as JSON.
 *
 *   log_event(log, LOG_INFO, "replica_up", LOG_STR("replica", name), LOG_INT("after_ms", 12));
 *
 *   2026-01-31T12:00:00.123Z info  replica_up replica=10.0.0.1:8000 after_ms=12
 *   {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"replica_up","replica":...}
 *
 * An event of level `info` or more severe also goes to `tap`, if there is one, at any log level and
 * any rate. This feeds the ring of recent events (node/admin/events.h).
 *
 * Pure: the log formats a bounded line, passes the line to `write`, and reads the time from
 * `clock_ms`. The shell provides both (node/io/log_sink.h). An event without a reader costs two
 * comparisons, and the arguments are not evaluated.
 *
 * Invariants:
 *   1. `write` gets exactly one line: the newline at the end is the only control character,
 *      whatever the field values are.
 *   2. A line is at most LOG_LINE_MAX bytes. In a longer line the ends of values are cut off, and
 *      the field cut=true is added.
 *   3. No event name is written more than `burst` times a second. The event's first line in a later
 *      second, or log_flush(), gives the number of suppressed lines (suppressed=123). An access
 *      log, which must not lose lines, uses log_record_write().
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum {
    LOG_LINE_MAX = 4096,
    LOG_EVENTS_MAX = 64,       /* event names with a rate limit each; further names share the limit
                                * of the last */
    LOG_BURST_DEFAULT = 50,    /* lines a second per event name */
    LOG_VALUE_BYTES_MAX = 512, /* bytes of a field's value, before escaping */
};

enum log_field_type {
    LOG_FIELD_STR,
    LOG_FIELD_INT,
    LOG_FIELD_UINT,
    LOG_FIELD_FLOAT,
    LOG_FIELD_BOOL
};

struct log_field {
    const char *name; /* a plain literal: lower case and underscores */
    enum log_field_type type;
    union {
        struct slice str;
        int64_t i;
        uint64_t u;
        double f;
        bool b;
    } value;
};

#define LOG_STR(field, slice_value)                                                                \
    ((struct log_field){.name = (field), .type = LOG_FIELD_STR, .value.str = (slice_value)})
#define LOG_CSTR(field, text) LOG_STR(field, slice_of_cstr(text))
#define LOG_INT(field, number)                                                                     \
    ((struct log_field){.name = (field), .type = LOG_FIELD_INT, .value.i = (int64_t)(number)})
#define LOG_UINT(field, number)                                                                    \
    ((struct log_field){.name = (field), .type = LOG_FIELD_UINT, .value.u = (uint64_t)(number)})
#define LOG_FLOAT(field, number)                                                                   \
    ((struct log_field){.name = (field), .type = LOG_FIELD_FLOAT, .value.f = (double)(number)})
#define LOG_BOOL(field, truth)                                                                     \
    ((struct log_field){.name = (field), .type = LOG_FIELD_BOOL, .value.b = (truth)})

struct log_rate {
    const char *event; /* NULL: the row is free */
    uint64_t second;   /* `count` is the number of lines in this second */
    uint32_t count;
    uint32_t suppressed;
};

/* Filled by log_init() and the shell. A process has a single log, not shared between threads. */
struct log {
    enum log_level level; /* may be changed at any time */
    bool json;
    bool color;     /* text only */
    uint32_t burst; /* lines a second per event name; 0 = no limit */
    void (*write)(void *context, struct slice line);
    void (*record)(void *context, struct slice line); /* used by log_record_write(); NULL: `write`
                                                       * is used */
    uint64_t (*clock_ms)(void *context);              /* Unix time */
    void *context;
    void (*tap)(void *context, enum log_level level, const char *event,
                const struct log_field *fields, unsigned count, uint64_t now_ms);
    void *tap_context;
    uint64_t suppressed_total;
    struct log_rate rates[LOG_EVENTS_MAX];
};

/* Sets level info, text, no colour, LOG_BURST_DEFAULT. `write` and `clock_ms` must not be NULL. */
void log_init(struct log *log, void (*write)(void *context, struct slice line),
              uint64_t (*clock_ms)(void *context), void *context);

static inline bool log_enabled(const struct log *log, enum log_level level)
{
    return level <= log->level;
}

/* True if the log or the tap takes the event. */
static inline bool log_heard(const struct log *log, enum log_level level)
{
    return level <= log->level || (log->tap != NULL && level <= LOG_INFO);
}

/* `event` must be a literal, because the log keeps the address. At least one field is needed. */
#define log_event(to, level, event, ...)                                                           \
    do {                                                                                           \
        struct log *log_event_to = (to);                                                           \
        if (__builtin_expect(log_heard(log_event_to, (level)), 0)) {                               \
            const struct log_field log_event_fields[] = {__VA_ARGS__};                             \
            log_event_write(log_event_to, (level), (event), log_event_fields,                      \
                            sizeof log_event_fields / sizeof log_event_fields[0]);                 \
        }                                                                                          \
    } while (0)

/* The function behind log_event(); formats and writes the event, or counts it as suppressed, and
 * calls the tap.
 */
void log_event_write(struct log *log, enum log_level level, const char *event,
                     const struct log_field *fields, unsigned count);

/* Formats and writes an event at any level, without the rate limit. */
void log_record_write(struct log *log, enum log_level level, const char *event,
                      const struct log_field *fields, unsigned count);

/* Writes the numbers of suppressed lines not yet reported, a line per event name. Call it before
 * the process ends, and about once a minute. */
void log_flush(struct log *log);

const char *log_level_name(enum log_level level);

/* ERR_NOT_FOUND if there is no such level. */
MUST_USE int log_level_parse(struct slice name, enum log_level *out);

/* Formats a line according to invariants 1 and 2, at most LOG_LINE_MAX bytes, to `out`. Returns the
 * length. Used by log_event_write(), tests and fuzzers. */
size_t log_format(const struct log *log, enum log_level level, const char *event,
                  const struct log_field *fields, unsigned count, uint64_t now_ms, char *out);

#endif
