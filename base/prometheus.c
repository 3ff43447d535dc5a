#include "base/prometheus.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/utf8.h"

/* Doubles hold every integer up to here. */
static const double integer_max = 9007199254740992;

struct prometheus prometheus_of(struct buf *out, const char *prefix)
{
    return (struct prometheus){.out = out, .prefix = prefix, .start = out->len};
}

int prometheus_finish(struct prometheus *p)
{
    CHECK(p->labels == 0);
    if (p->err != 0)
        p->out->len = p->start;
    return p->err;
}

static void put(struct prometheus *p, const char *text)
{
    if (p->err == 0)
        p->err = buf_append_cstr(p->out, text);
}

static void family(struct prometheus *p, const char *name, const char *type, const char *help)
{
    CHECK(p->labels == 0);
    p->family = name;
    if (p->err == 0)
        p->err = buf_printf(p->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", p->prefix, name, help,
                            p->prefix, name, type);
}

void prometheus_family(struct prometheus *p, const char *name, const char *help)
{
    bool counts = slice_ends_with(slice_of_cstr(name), SLICE("_total"));
    family(p, name, counts ? "counter" : "gauge", help);
}

void prometheus_histograms(struct prometheus *p, const char *name, const char *help)
{
    family(p, name, "histogram", help);
}

/* Writes the first character of `text`, escaped if necessary. Control characters and invalid UTF-8
 * become readable ("\x1b"), because the format has no escapes for them, and a terminal would obey
 * them. Returns how many bytes of `text` the character has. */
static size_t put_escaped_one(struct prometheus *p, struct slice text)
{
    unsigned char c = (unsigned char)text.at[0];
    size_t n = utf8_length(text);
    bool control = (c < 0x20 && c != '\n') || c == 0x7f ||
                   (n == 2 && c == 0xc2 && (unsigned char)text.at[1] < 0xa0); /* C1 controls */
    if (n == 0 || control) {
        n = n == 0 ? 1 : n;
        for (size_t i = 0; i < n && p->err == 0; i++)
            p->err = buf_printf(p->out, "\\\\x%02x", (unsigned)(unsigned char)text.at[i]);
        return n;
    }
    if (c == '"' || c == '\\' || c == '\n')
        put(p, "\\");
    if (p->err == 0)
        p->err = c == '\n' ? buf_append_char(p->out, 'n') : buf_append(p->out, text.at, n);
    return n;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_escaped(struct prometheus *p, struct slice text)
{
    while (text.len > 0 && p->err == 0) {
        size_t plain = 0;
        while (plain < text.len && is_plain(text.at[plain]))
            plain++;
        if (plain > 0)
            p->err = buf_append(p->out, text.at, plain);
        else
            plain = put_escaped_one(p, text);
        text = slice_skip(text, plain);
    }
}

static void put_name(struct prometheus *p)
{
    put(p, p->prefix);
    put(p, p->family);
    if (p->suffix != NULL)
        put(p, p->suffix);
}

void prometheus_label(struct prometheus *p, const char *label, struct slice value)
{
    CHECK(p->family != NULL);
    if (p->labels++ == 0) {
        put_name(p);
        put(p, "{");
    } else {
        put(p, ",");
    }
    put(p, label);
    put(p, "=\"");
    put_escaped(p, value);
    put(p, "\"");
}

void prometheus_value(struct prometheus *p, double value)
{
    CHECK(p->family != NULL);
    if (p->labels == 0)
        put_name(p);
    else
        put(p, "}");
    p->labels = 0;
    if (p->err != 0)
        return;
    if (isnan(value))
        put(p, " NaN\n");
    else if (isinf(value))
        put(p, value > 0 ? " +Inf\n" : " -Inf\n");
    else if (value == trunc(value) && fabs(value) <= integer_max)
        p->err = buf_printf(p->out, " %.0f\n", value);
    else
        p->err = buf_printf(p->out, " %.15g\n", value);
}

static void series(struct prometheus *p, const char *suffix, const char *label, struct slice value)
{
    p->suffix = suffix;
    if (label != NULL)
        prometheus_label(p, label, value);
}

void prometheus_histogram(struct prometheus *p, const char *label, struct slice value,
                          const struct histogram *h)
{
    uint64_t below = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        char bound[32] = "+Inf";
        if (i < HISTOGRAM_BOUNDS)
            (void)snprintf(bound, sizeof bound, "%g", histogram_bounds_s[i]);
        below += h->counts[i];
        series(p, "_bucket", label, value);
        prometheus_label(p, "le", slice_of_cstr(bound));
        prometheus_value(p, (double)below);
    }
    series(p, "_sum", label, value);
    prometheus_value(p, h->sum_s);
    series(p, "_count", label, value);
    prometheus_value(p, (double)h->count);
    p->suffix = NULL;
}

void prometheus_figures(struct prometheus *p, const struct prometheus_figure *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        prometheus_family(p, rows[i].name, rows[i].help);
        prometheus_value(p, rows[i].value);
    }
}
