/* Prometheus text (exposition format 0.0.4) written into a struct buf: each family's head, then the
 * family's series.
 *
 *     struct prometheus p = prometheus_of(&out, "grapevine_");
 *     prometheus_family(&p, "replica_up", "1 if the replica gets new requests.");
 *     prometheus_label(&p, "replica", SLICE("10.0.0.1:8000"));
 *     prometheus_value(&p, 1);
 *     prometheus_figures(&p, rows, ARRAY_LEN(rows));
 *     err = prometheus_finish(&p);
 *
 * All series must follow the head of their family, and each family may be begun only once, because
 * HELP and TYPE may appear only once. Errors (ERR_NOMEM, ERR_LIMIT) stick: later calls do nothing,
 * and prometheus_finish() returns the first error and cuts `out` back to the length at the start. A
 * label without a value is a bug and aborts.
 */
#ifndef BASE_PROMETHEUS_H
#define BASE_PROMETHEUS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/histogram.h"

/* A family with a single series without labels. */
struct prometheus_figure {
    const char *name;
    const char *help; /* a single line; no backslash */
    double value;
};

struct prometheus {
    struct buf *out;
    const char *prefix; /* prefix of all family names */
    const char *family; /* name of the present family, without prefix; NULL before the first */
    const char *suffix; /* suffix of the series' name, such as "_bucket"; NULL: none */
    size_t start;       /* out->len when the writer began */
    int err;
    unsigned labels; /* labels written so far of the current series */
};

/* `prefix` and all names must be literals, because they are borrowed. */
struct prometheus prometheus_of(struct buf *out, const char *prefix);
/* Returns 0 or the first error. */
MUST_USE int prometheus_finish(struct prometheus *p);

/* Begins a family: counters if the name ends in _total, otherwise gauges. */
void prometheus_family(struct prometheus *p, const char *name, const char *help);
/* Begins a family of histograms; the name ends in _seconds. Then call prometheus_histogram() for
 * each. */
void prometheus_histograms(struct prometheus *p, const char *name, const char *help);
/* Adds a label to the next series, in the order of the calls. `value` may be any bytes: it is
 * escaped. */
void prometheus_label(struct prometheus *p, const char *label, struct slice value);
/* Ends a series with a value. Integers up to 2^53 are written in full, others with 15 digits. */
void prometheus_value(struct prometheus *p, double value);

/* Writes a histogram of a family: buckets, sum and count. `label` (NULL: none) and `value`
 * distinguish the histogram from others of the family. */
void prometheus_histogram(struct prometheus *p, const char *label, struct slice value,
                          const struct histogram *h);

void prometheus_figures(struct prometheus *p, const struct prometheus_figure *rows, size_t count);

#endif
