#include "base/log.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "base/utf8.h"

static const char *const level_names[] = {"error", "warn", "info", "debug"};

const char *log_level_name(enum log_level level)
{
    CHECK(level <= LOG_DEBUG);
    return level_names[level];
}

int log_level_parse(struct slice name, enum log_level *out)
{
    for (unsigned i = 0; i < ARRAY_LEN(level_names); i++) {
        if (slice_equal(name, slice_of_cstr(level_names[i]))) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return ERR_NOT_FOUND;
}

void log_init(struct log *log, void (*write)(void *context, struct slice line),
              uint64_t (*clock_ms)(void *context), void *context)
{
    *log = (struct log){
        .level = LOG_INFO,
        .burst = LOG_BURST_DEFAULT,
        .write = write,
        .clock_ms = clock_ms,
        .context = context,
    };
}

/* --- the line --------------------------------------------------------------------------------- */

/* A line being written. `tail` bytes stay free for the end of the line, after the last field. */
struct line {
    char *at;
    size_t len;
    size_t tail;
    bool cut;
};

static bool put(struct line *line, const char *text, size_t len)
{
    if (line->cut || line->len + len + line->tail > LOG_LINE_MAX) {
        line->cut = true;
        return false;
    }
    memcpy(line->at + line->len, text, len);
    line->len += len;
    return true;
}

static void put_text(struct line *line, const char *text)
{
    (void)put(line, text, strlen(text));
}

/* Writes the first character of `s`, escaped as in JSON (RFC 8259, section 7). Invalid UTF-8
 * becomes U+FFFD. U+0080..U+009F, which control terminals, and U+2028/9, which end lines, are
 * escaped too. Returns how many bytes of `s` the character has. */
static size_t put_escaped(struct line *line, struct slice s)
{
    static const char short_names[] = "btn?fr"; /* \b \t \n \v \f \r from 8 on */
    unsigned char c = (unsigned char)s.at[0];
    size_t n = utf8_length(s);
    char text[16];
    if (n == 0) {
        (void)put(line, "\xef\xbf\xbd", 3);
        return 1;
    }
    if (c == '"' || c == '\\') {
        (void)put(line, (char[]){'\\', (char)c}, 2);
    } else if (c >= 8 && c <= 13 && c != 11) {
        (void)put(line, (char[]){'\\', short_names[c - 8]}, 2);
    } else if (c < 0x20 || c == 0x7f) {
        (void)snprintf(text, sizeof text, "\\u%04x", c);
        put_text(line, text);
    } else if (n == 2 && c == 0xc2 && (unsigned char)s.at[1] < 0xa0) {
        (void)snprintf(text, sizeof text, "\\u%04x", (unsigned char)s.at[1]);
        put_text(line, text);
    } else if (n == 3 &&
               (memcmp(s.at, "\xe2\x80\xa8", 3) == 0 || memcmp(s.at, "\xe2\x80\xa9", 3) == 0)) {
        put_text(line, s.at[2] == '\xa8' ? "\\u2028" : "\\u2029");
    } else {
        (void)put(line, s.at, n);
    }
    return n;
}

/* True if a string needs no quotes in a text line, because no reader can mistake it for anything
 * else. */
static bool is_plain(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return s.len > 0;
}

static void put_string(struct line *line, struct slice s, bool json)
{
    bool long_value = s.len > LOG_VALUE_BYTES_MAX;
    if (long_value)
        s.len = LOG_VALUE_BYTES_MAX;
    if (!json && !long_value && is_plain(s)) {
        (void)put(line, s.at, s.len);
        return;
    }
    if (!put(line, "\"", 1))
        return;
    line->tail += 4; /* room for the ellipsis and the quote */
    while (s.len > 0 && !line->cut)
        s = slice_skip(s, put_escaped(line, s));
    line->tail -= 4;
    bool cut = line->cut;
    line->cut = false;
    if (cut || long_value)
        put_text(line, "\xe2\x80\xa6");
    put_text(line, "\"");
    line->cut = cut;
}

static void put_number(struct line *line, const struct log_field *f)
{
    char text[40];
    switch (f->type) {
    case LOG_FIELD_INT:
        (void)snprintf(text, sizeof text, "%lld", (long long)f->value.i);
        break;
    case LOG_FIELD_UINT:
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)f->value.u);
        break;
    case LOG_FIELD_FLOAT: /* JSON knows neither infinity nor NaN */
        if (__builtin_isfinite(f->value.f))
            (void)snprintf(text, sizeof text, "%.6g", f->value.f);
        else
            (void)snprintf(text, sizeof text, "null");
        break;
    case LOG_FIELD_BOOL:
        (void)snprintf(text, sizeof text, "%s", f->value.b ? "true" : "false");
        break;
    case LOG_FIELD_STR:
        CHECK_UNREACHABLE();
    }
    put_text(line, text);
}

static void put_field(struct line *line, const struct log_field *f, bool json)
{
    size_t before = line->len;
    put_text(line, json ? ",\"" : " ");
    put_text(line, f->name);
    put_text(line, json ? "\":" : "=");
    size_t value_at = line->len;
    bool room = !line->cut;
    if (room && f->type == LOG_FIELD_STR)
        put_string(line, f->value.str, json);
    else if (room)
        put_number(line, f);
    if (line->len == value_at)
        line->len = before; /* a name without a value would be useless */
}

/* Writes the time in the form of RFC 3339: UTC, with milliseconds. */
static void put_time(struct line *line, uint64_t now_ms)
{
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    char text[48];
    if (gmtime_r(&seconds, &tm) == NULL)
        return;
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + n, sizeof text - n, ".%03uZ", (unsigned)(now_ms % 1000));
    put_text(line, text);
}

static void put_head(struct line *line, const struct log *log, enum log_level level,
                     const char *event, uint64_t now_ms)
{
    static const char *const colors[] = {"\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m"};
    const char *name = log_level_name(level);
    if (log->json) {
        put_text(line, "{\"time\":\"");
        put_time(line, now_ms);
        put_text(line, "\",\"level\":\"");
        put_text(line, name);
        put_text(line, "\",\"event\":\"");
        put_text(line, event);
        put_text(line, "\"");
        return;
    }
    put_time(line, now_ms);
    put_text(line, " ");
    if (log->color)
        put_text(line, colors[level]);
    put_text(line, name);
    if (log->color)
        put_text(line, "\x1b[0m");
    put_text(line, &"      "[strlen(name)]); /* names have at most five letters */
    put_text(line, event);
}

size_t log_format(const struct log *log, enum log_level level, const char *event,
                  const struct log_field *fields, unsigned count, uint64_t now_ms, char *out)
{
    static const char text_cut[] = " cut=true\n";
    static const char json_cut[] = ",\"cut\":true}\n";
    struct line line = {.tail = sizeof json_cut};
    line.at = out;
    put_head(&line, log, level, event, now_ms);
    for (unsigned i = 0; i < count; i++)
        put_field(&line, &fields[i], log->json);
    line.tail = 0;
    bool cut = line.cut;
    line.cut = false;
    put_text(&line, cut ? (log->json ? json_cut : text_cut) : (log->json ? "}\n" : "\n"));
    return line.len;
}

/* --- the flood gate --------------------------------------------------------------------------- */

/* The row of the event's name. Names that find no free row share the last row. */
static struct log_rate *rate_of(struct log *log, const char *event)
{
    for (unsigned i = 0; i < LOG_EVENTS_MAX - 1; i++) {
        struct log_rate *rate = &log->rates[i];
        if (rate->event == NULL)
            rate->event = event;
        if (rate->event == event || strcmp(rate->event, event) == 0)
            return rate;
    }
    log->rates[LOG_EVENTS_MAX - 1].event = "other_events";
    return &log->rates[LOG_EVENTS_MAX - 1];
}

static void write_line(struct log *log, enum log_level level, const char *event,
                       const struct log_field *fields, unsigned count, uint64_t now_ms,
                       void (*write)(void *context, struct slice line))
{
    char line[LOG_LINE_MAX];
    size_t len = log_format(log, level, event, fields, count, now_ms, line);
    write(log->context, slice_of(line, len));
}

void log_event_write(struct log *log, enum log_level level, const char *event,
                     const struct log_field *fields, unsigned count)
{
    enum { FIELDS_MAX = 32 };
    uint64_t now_ms = log->clock_ms(log->context);
    if (log->tap != NULL && level <= LOG_INFO)
        log->tap(log->tap_context, level, event, fields, count, now_ms);
    if (!log_enabled(log, level))
        return;
    struct log_rate *rate = rate_of(log, event);
    if (rate->second != now_ms / 1000) {
        rate->second = now_ms / 1000;
        rate->count = 0;
    }
    if (log->burst != 0 && rate->count >= log->burst) {
        rate->suppressed++;
        log->suppressed_total++;
        return;
    }
    rate->count++;
    if (rate->suppressed == 0) {
        write_line(log, level, event, fields, count, now_ms, log->write);
        return;
    }
    struct log_field more[FIELDS_MAX];
    if (count > FIELDS_MAX - 1)
        count = FIELDS_MAX - 1;
    more[0] = LOG_UINT("suppressed", rate->suppressed); /* first, so that a cut of the line does not
                                                         * lose it */
    memcpy(more + 1, fields, count * sizeof *fields);
    rate->suppressed = 0;
    write_line(log, level, event, more, count + 1, now_ms, log->write);
}

void log_record_write(struct log *log, enum log_level level, const char *event,
                      const struct log_field *fields, unsigned count)
{
    write_line(log, level, event, fields, count, log->clock_ms(log->context),
               log->record != NULL ? log->record : log->write);
}

void log_flush(struct log *log)
{
    for (unsigned i = 0; i < LOG_EVENTS_MAX; i++) {
        struct log_rate *rate = &log->rates[i];
        if (rate->suppressed == 0)
            continue;
        struct log_field field = LOG_UINT("suppressed", rate->suppressed);
        rate->suppressed = 0;
        write_line(log, LOG_WARN, rate->event, &field, 1, log->clock_ms(log->context), log->write);
    }
}
