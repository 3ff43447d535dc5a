/* Prometheus text (exposition format 0.0.4) written into a struct buf: families, and under each its
 * series.
 *
 *     struct prometheus p = prometheus_of(&out, "grapevine_");
 *     prometheus_family(&p, "replica_up", "1 if the replica gets new requests.");
 *     prometheus_label(&p, "replica", SLICE("10.0.0.1:8000"));
 *     prometheus_value(&p, 1);
 *     prometheus_figures(&p, rows, ARRAY_LEN(rows));
 *     err = prometheus_finish(&p);
 *
 * All series of a family must follow its head, and a family is begun once: HELP and TYPE stand once
 * in the text. Errors (ERR_NOMEM, ERR_LIMIT) stick: later calls do nothing, finish returns the
 * first one and cuts `out` back to where it was. A label without a value is our own bug and aborts.
 */
#ifndef BASE_PROMETHEUS_H
#define BASE_PROMETHEUS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/histogram.h"

/* A family of one series without labels. */
struct prometheus_figure {
    const char *name;
    const char *help; /* one line; no backslash */
    double value;
};

struct prometheus {
    struct buf *out;
    const char *prefix; /* of all names */
    const char *family; /* the present one, without prefix; NULL before the first */
    const char *suffix; /* of the series' name behind that; NULL: none */
    size_t start;       /* out->len at the beginning */
    int err;
    unsigned labels; /* of the series that is being written */
};

/* `prefix` and the names are borrowed: literals. */
struct prometheus prometheus_of(struct buf *out, const char *prefix);
/* 0 or the first error. */
MUST_USE int prometheus_finish(struct prometheus *p);

/* Begins a family of counters if its name ends in _total, else of gauges. */
void prometheus_family(struct prometheus *p, const char *name, const char *help);
/* Begins a family of histograms; its name ends in _seconds: prometheus_histogram(). */
void prometheus_histograms(struct prometheus *p, const char *name, const char *help);
/* Labels of the next series, in this order. `value` may be any bytes: it is escaped. */
void prometheus_label(struct prometheus *p, const char *label, struct slice value);
/* Ends the series. Integers up to 2^53 are written in full, others with 15 digits. */
void prometheus_value(struct prometheus *p, double value);

/* One of a family of histograms: its buckets, sum and count. `label` (NULL: none) and `value` tell
 * it from the others of the family. */
void prometheus_histogram(struct prometheus *p, const char *label, struct slice value,
                          const struct histogram *h);

void prometheus_figures(struct prometheus *p, const struct prometheus_figure *rows, size_t count);

#endif
