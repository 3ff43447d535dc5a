/* This router's list of replicas: merges the lists of all sources into calls to the host.
 *
 * A source is a --replica-dns, --replica-file or --replica-kubernetes. All --replica together are
 * another source, with a fixed list. Each source passes the whole current list, at any time; an
 * unchanged list costs a comparison. This module computes the difference and calls the host (the
 * router: node/route/discovered.h):
 *
 *                listed as serving               listed as draining, or by none
 *         (new) ---------------------> USED ----------------------------------> DRAINING
 *                 host.use()            ^              host.drain()              |  |
 *                                       '----------------------------------------'  |
 *                                         listed as serving again: host.use()       |
 *                                                                                   |
 *         (gone) <------------------------------------------------------------------'
 *                  by none for DISCOVER_KEEP_MS, and not busy: host.forget()
 *
 * An adapter of node/io drives each source:
 *
 *   s = discover_source(d, "dns", "engines.internal:8000")            once, at the start
 *   discover_list(d, s, entries, count, now)     the whole list, each time it is read
 *   discover_same(d, s, now)                     the list is unchanged (a watch without news)
 *   discover_failed(d, s, "timeout", now)        the list cannot be read now
 *   discover_tick(d, now)                        the shell, once a second
 *
 * Rules:
 *   1. A name is used while any source lists it as serving and none as draining. The reason: a
 *      source with "draining" (a terminating pod) knows more than a source without.
 *   2. Labels are those of the first source that lists the name, in the order of discover_source().
 *   3. A failure changes nothing, however long it lasts.
 *   4. An empty list changes nothing for DISCOVER_EMPTY_MS, because it is usually a mistake or an
 *      outage. If the first list of a source is empty, it counts at once and is logged. After a
 *      failure, the time begins again with the next list or discover_same().
 *   5. A vanished name gets no new requests; those in flight end. The router keeps the name and the
 *      state for DISCOVER_KEEP_MS, and as long as the replica is busy. A name listed again by then
 *      has its former state.
 *
 * Invariants (discover_check): lists are sorted, each name is in a list once; every listed name has
 * a row, every row is listed or draining.
 *
 * Pure: the caller passes the time. The host is called from discover_list() and discover_tick()
 * only, never from discover_source(), discover_same() or discover_failed(). The host must not call
 * back, except for discover_told().
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
    DISCOVER_ENTRIES_MAX = 4096, /* names in a source's list */
    DISCOVER_EMPTY_MS = 30000,   /* time before an empty list counts */
    DISCOVER_KEEP_MS = 30000,    /* minimum time that a vanished name is kept */
    DISCOVER_WHY_MAX = 256,      /* bytes of a failure's reason */
};

enum discover_state {
    DISCOVER_SERVING,
    DISCOVER_DRAINING, /* still listed, but gets no new requests */
};

struct discover_entry {
    struct slice name; /* "host:port" as routers name it, IPv6 in brackets; borrowed for the call,
                          like the labels */
    enum discover_state state;
    struct node_labels labels;
};

struct discover_host {
    void *context;
    /* Use this name from now on, or again, or with other labels. An error (ERR_FULL, ERR_NOMEM,
     * ERR_RANGE) is logged once. Each tick then repeats the call, until the name is forgotten. */
    int (*use)(void *context, struct slice name, const struct node_labels *labels);
    /* Send the replica no new requests. */
    void (*drain)(void *context, struct slice name);
    /* Forget the name: this router no longer lists the name. */
    void (*forget)(void *context, struct slice name);
    /* True if this router has requests in flight at the replica. */
    bool (*busy)(void *context, struct slice name);
    /* True if the host still has the name after use(). If the host dropped the name for lack of
     * room, the next tick offers the name as new. */
    bool (*has)(void *context, struct slice name);
    unsigned names_max; /* for the log: the number of names at which use() returns ERR_FULL */
};

struct discover;

/* `host` is copied; the context in it, and `log`, are borrowed until discover_destroy().
 * ERR_NOMEM. */
MUST_USE int discover_create(struct discover **out, const struct discover_host *host,
                             struct log *log);
void discover_destroy(struct discover *d);
void discover_check(const struct discover *d);

/* Adds a source, before discover_list(). `kind` is a literal, `name` is copied; both name the
 * source in logs, metrics and tables. Returns the source's number, ERR_EXISTS (another source of
 * this kind has this name), ERR_FULL or ERR_NOMEM. */
MUST_USE int discover_source(struct discover *d, const char *kind, struct slice name);

/* Sets the labels in the source's setting, which apply to all of the source's replicas. Only the
 * model and whether replicas load adapters on demand are used. `labels` is copied. ERR_NOMEM. */
MUST_USE int discover_source_labels(struct discover *d, unsigned source,
                                    const struct node_labels *labels);

/* Sets the whole current list; of a repeated name the first entry counts. ERR_LIMIT: more than
 * DISCOVER_ENTRIES_MAX; ERR_RANGE: a name empty or longer than NODE_NAME_MAX, or a label's text
 * that is too long (a model: NODE_MODEL_ID_MAX); ERR_NOMEM. After an error the old list stays, and
 * the source counts as failing. This function logs the failure; the caller need do nothing. */
MUST_USE int discover_list(struct discover *d, unsigned source,
                           const struct discover_entry *entries, unsigned count, uint64_t now_ms);
/* Sets the reason to show if the next list is empty, for logs and tables; cut to DISCOVER_WHY_MAX.
 * Valid until the next hint; "": unknown. */
void discover_hint(struct discover *d, unsigned source, const char *why);
/* Sets what is missing in the next list, as text for people; "": nothing. The list counts
 * nevertheless. Logged when the text changes, cut to DISCOVER_WHY_MAX. */
void discover_lacks(struct discover *d, unsigned source, const char *what);
/* The source works, and the last list is still current. */
void discover_same(struct discover *d, unsigned source, uint64_t now_ms);
/* The source's list cannot be read now: the source counts as failing, and the last list stays.
 * `why` is for people, cut to DISCOVER_WHY_MAX. Logged when a failure begins and when `why`
 * changes. */
void discover_failed(struct discover *d, unsigned source, const char *why, uint64_t now_ms);

/* Call about once a second: forgets drained names, applies empty lists after their delay, and
 * offers refused names again. */
void discover_tick(struct discover *d, uint64_t now_ms);

unsigned discover_source_count(const struct discover *d);
/* True if this source lists the name now. */
bool discover_lists(const struct discover *d, unsigned source, struct slice name);
/* True if some source has not had a list yet, so this router's list of names is not complete. */
bool discover_pending(const struct discover *d);
/* True if any source lists the name now. */
bool discover_listed(const struct discover *d, struct slice name);
/* True if a label names the model: a source's label, even if the source lists no replica now, or a
 * listed replica's. For SGLang's "base:adapter" the base suffices. `denied`: a replica says it does
 * not serve the model, so the labels of listed replicas no longer count. */
bool discover_names_model(const struct discover *d, struct slice model, bool denied);
/* True if a source may have replicas of a model that no label names. Either the source has had no
 * list yet and the setting names no model, or the replicas load adapters on demand and none is
 * listed now. */
bool discover_may_have(const struct discover *d);
/* Sets `labels` and `draining` to what the host was last told about the name. The labels are
 * borrowed until the next list or tick. Returns false if the host does not use the name. */
MUST_USE bool discover_told(const struct discover *d, struct slice name, struct node_labels *labels,
                            bool *draining);

/* Writes the sources of the name as a JSON value: ["settings", "dns engines.internal:8000"]. `d`
 * may be NULL: no sources. */
void discover_names_write(const struct discover *d, struct slice name, struct json_writer *w);
/* True if an operator removed this replica, so that no source can add it. */
typedef bool discover_removed(const void *context, struct slice name);
/* Writes all sources as a JSON array of objects. `removed` is called for each name; NULL: none was
 * removed. */
void discover_sources_write(const struct discover *d, uint64_t now_ms, discover_removed *removed,
                            const void *context, struct json_writer *w);
/* Writes the metrics of the sources. */
void discover_metrics(const struct discover *d, uint64_t now_ms, struct prometheus *p);

#endif
