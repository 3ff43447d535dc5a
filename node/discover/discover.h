/* Which replicas this router names: the lists of all sources, and what follows from them.
 *
 * A source is one --replica-dns, --replica-file or --replica-kubernetes; all --replica together are
 * one too, whose list never changes. Each source hands in its whole present list as often as it
 * likes; the same list again costs a comparison. The room works out the difference and calls its
 * host (the router: node/route/discovered.h):
 *
 *                listed as serving               listed as draining, or by nobody
 *         (new) ---------------------> USED ----------------------------------> DRAINING
 *                 host.use()            ^              host.drain()              |  |
 *                                       '----------------------------------------'  |
 *                                         listed as serving again: host.use()       |
 *                                                                                   |
 *         (gone) <------------------------------------------------------------------'
 *                  by nobody for DISCOVER_KEEP_MS, and not busy: host.forget()
 *
 * Driven by an adapter of node/io for each source:
 *
 *   s = discover_source(d, "dns", "engines.internal:8000", now)       once, at the start
 *   discover_list(d, s, entries, count, now)     the whole list, each time that it was learned
 *   discover_same(d, s, now)                     still the list of before (a watch without news)
 *   discover_failed(d, s, "timeout", now)        it cannot be learned now
 *   discover_tick(d, now)                        the shell, once a second
 *
 * Rules:
 *   1. A name is used while any source lists it as serving and none lists it as draining: a source
 *      that says "draining" (a pod that terminates) knows more than one that does not.
 *   2. Labels are those of the first source that lists the name, in the order of discover_source().
 *   3. A failure changes nothing, for as long as it lasts.
 *   4. An empty list changes nothing for DISCOVER_EMPTY_MS: more often than not it is a mistake or
 *      an outage. A source that had nothing so far may say so at once: that is logged as well. A
 *      failure begins that time anew, with the next list or discover_same().
 *   5. A name that vanished gets no new requests, those under way end. It is kept for
 *      DISCOVER_KEEP_MS, and as long as it is busy: one that comes back within that time is what it
 *      was.
 *
 * Invariants (discover_check): lists are sorted, each name stands once in a list; every listed name
 * has a row, every row is listed or draining.
 *
 * Pure: time comes in. The host is called from discover_list() and discover_tick() only, never out
 * of discover_source(), discover_same() and discover_failed(); it must not call back but for
 * discover_told().
 */
#ifndef NODE_DISCOVER_DISCOVER_H
#define NODE_DISCOVER_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "base/slice.h"
#include "node/replica/labels.h"

enum {
    DISCOVER_SOURCES_MAX = 64,
    DISCOVER_ENTRIES_MAX = 4096, /* names in the list of one source */
    DISCOVER_EMPTY_MS = 30000,   /* until an empty list counts */
    DISCOVER_KEEP_MS = 30000,    /* a name that vanished is kept at least so long */
    DISCOVER_WHY_MAX = 256,      /* bytes of why a source failed */
};

enum discover_state {
    DISCOVER_SERVING,
    DISCOVER_DRAINING, /* there still, and to get no new requests */
};

struct discover_entry {
    struct slice name; /* "host:port" as routers name it, IPv6 in brackets; borrowed for the call,
                          as the labels are */
    enum discover_state state;
    struct node_labels labels;
};

struct discover_host {
    void *context;
    /* To be used from now on, or again, or with other labels. An error (ERR_FULL, ERR_NOMEM,
     * ERR_RANGE) is logged once and it is tried again by each tick, until it is forgotten. */
    int (*use)(void *context, struct slice name, const struct node_labels *labels);
    /* No new requests. */
    void (*drain)(void *context, struct slice name);
    /* This router names it no longer. */
    void (*forget)(void *context, struct slice name);
    /* Whether requests of this router are under way there. */
    bool (*busy)(void *context, struct slice name);
    /* Whether the host still knows of a name that it was to use. If not, for it had no room, the
     * name is as new by the next tick. */
    bool (*has)(void *context, struct slice name);
    unsigned names_max; /* what ERR_FULL of use() stands for: so many names at one time */
};

struct discover;

/* `host` is copied, its context and `log` are borrowed until discover_destroy(). ERR_NOMEM. */
MUST_USE int discover_create(struct discover **out, const struct discover_host *host,
                             struct log *log);
void discover_destroy(struct discover *d);
void discover_check(const struct discover *d);

/* A source, before its first list. `kind` is a literal, `name` is copied; the two name it in logs,
 * metrics and tables. Its number, ERR_EXISTS (another source of this kind has that name), ERR_FULL
 * or ERR_NOMEM. */
MUST_USE int discover_source(struct discover *d, const char *kind, struct slice name);

/* What the setting of the source says of all its replicas: of these labels the model counts, and
 * whether they load adapters on demand. Copied. ERR_NOMEM. */
MUST_USE int discover_source_labels(struct discover *d, unsigned source,
                                    const struct node_labels *labels);

/* The whole list as it is now; a name that stands there twice counts as its first entry. ERR_LIMIT:
 * more than DISCOVER_ENTRIES_MAX; ERR_RANGE: a name that is empty or longer than NODE_NAME_MAX, or
 * a model longer than NODE_MODEL_ID_MAX; ERR_NOMEM. After an error the old list holds, and the
 * source counts as failing: that is logged here, and there is no more to do. */
MUST_USE int discover_list(struct discover *d, unsigned source,
                           const struct discover_entry *entries, unsigned count, uint64_t now_ms);
/* Why the next list is empty, if it is: for logs and tables, cut to DISCOVER_WHY_MAX. It holds
 * until the next one; "": not known. */
void discover_hint(struct discover *d, unsigned source, const char *why);
/* What the next list lacks, though it counts; "": nothing. Logged when it is another text, cut to
 * DISCOVER_WHY_MAX. */
void discover_lacks(struct discover *d, unsigned source, const char *what);
/* The last list still is what there is: the source works. */
void discover_same(struct discover *d, unsigned source, uint64_t now_ms);
/* `why` is for people: cut to DISCOVER_WHY_MAX. Logged when it begins and when it is another one.
 */
void discover_failed(struct discover *d, unsigned source, const char *why, uint64_t now_ms);

/* About once a second: what drains ends, empty lists count at last, refused names are tried. */
void discover_tick(struct discover *d, uint64_t now_ms);

unsigned discover_source_count(const struct discover *d);
/* Whether that source lists the name now. */
bool discover_lists(const struct discover *d, unsigned source, struct slice name);
/* Whether some source has had no list yet: then nobody knows what this router names. */
bool discover_pending(const struct discover *d);
/* Whether any source lists the name now. */
bool discover_listed(const struct discover *d, struct slice name);
/* Whether a label names the model: of a source, whether it lists a replica now or not, or of one
 * that it lists. Of SGLang's "base:adapter" the base is enough. `denied`: a replica said that it
 * does not serve the model, so labels of those that are listed count no more. */
bool discover_names_model(const struct discover *d, struct slice model, bool denied);
/* Whether some source may have replicas of a model that no label names: it has had no list yet and
 * its setting names no model, or what it has loads adapters on demand and it lists nothing now. */
bool discover_may_have(const struct discover *d);
/* What the host was told last of a name that it was to use and is not to forget yet: the labels,
 * borrowed until the next list or tick, and whether it drains. False: nothing. */
MUST_USE bool discover_told(const struct discover *d, struct slice name, struct node_labels *labels,
                            bool *draining);

/* The sources that list the name, as one JSON value: ["settings", "dns engines.internal:8000"].
 * `d` may be NULL: there are none. */
void discover_names_write(const struct discover *d, struct slice name, struct json_writer *w);
/* Whether an operator removed the replica of that name, so that no source brings it. */
typedef bool discover_removed(const void *context, struct slice name);
/* All sources as one JSON value, an array of objects. `removed` is asked of each name; NULL: nobody
 * removed any. */
void discover_sources_write(const struct discover *d, uint64_t now_ms, discover_removed *removed,
                            const void *context, struct json_writer *w);
/* Metrics of the sources. */
void discover_metrics(const struct discover *d, uint64_t now_ms, struct prometheus *p);

#endif
