#include "node/discover/kubernetes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/prng.h"
#include "node/discover/slices_read.h"

enum { ERROR_BODY_MAX = 64 << 10, TARGET_MAX = 16 << 10 };

struct discover_kubernetes {
    struct discover_service service;
    struct prng prng;

    /* The next request, or the request in flight. */
    bool watching;   /* a watch from `version`; if false, a page of the list, from `next` on */
    bool asking;     /* the request is in flight */
    uint64_t due_ms; /* when to send the request, if none is in flight */
    char version[DISCOVER_VERSION_MAX + 1];
    char next[DISCOVER_CONTINUE_MAX + 1];
    struct buf target;

    /* The answer to the request in flight. */
    unsigned status; /* 0: none yet */
    uint64_t retry_after_s;
    uint64_t since_ms, heard_ms; /* time of the answer's head, and of the last byte */
    size_t error_bytes;
    bool settled; /* the watch has proved good */
    bool paged;   /* the page is complete */

    unsigned failures; /* failures in a row */
    bool expired;      /* a 410 came, and no good watch since then */
    bool unusable;     /* the slices make no valid list: the previous list stays */

    struct discover_slices slices;
    struct discover_slices fresh; /* slices of an incomplete list */
    struct discover_endpoint_list list;
    struct discover_entry *entries; /* entries made from `list` */
    struct discover_reader reader;
    char hint[DISCOVER_WHY_MAX];

    /* The actions that discover_kubernetes_next() has yet to return. */
    bool cancel, listed, same, failed;
    char why[DISCOVER_WHY_MAX];
};

/* --- life ----------------------------------------------------------------------------------- */

int discover_kubernetes_create(struct discover_kubernetes **out,
                               const struct discover_service *service, uint64_t seed,
                               uint64_t now_ms)
{
    CHECK(service->namespace[0] != '\0');
    struct discover_kubernetes *k = calloc(1, sizeof *k);
    if (k == NULL)
        return ERR_NOMEM;
    k->service = *service;
    prng_seed(&k->prng, seed);
    buf_init(&k->target, TARGET_MAX);
    k->due_ms = now_ms;
    *out = k;
    return 0;
}

void discover_kubernetes_destroy(struct discover_kubernetes *k)
{
    if (k == NULL)
        return;
    discover_slices_clear(&k->slices);
    discover_slices_clear(&k->fresh);
    discover_endpoint_list_free(&k->list);
    free(k->entries);
    buf_free(&k->target);
    free(k);
}

void discover_kubernetes_check(const struct discover_kubernetes *k)
{
    discover_slices_check(&k->slices);
    discover_slices_check(&k->fresh);
    CHECK(!k->watching || k->version[0] != '\0');
    CHECK(!k->watching || k->fresh.count == 0);
    CHECK(k->list.count <= DISCOVER_ENDPOINTS_MAX);
    for (unsigned i = 1; i < k->list.count; i++)
        CHECK(strcmp(k->list.at[i - 1].name, k->list.at[i].name) < 0);
}

/* --- after a request ------------------------------------------------------------------------ */

/* Returns a random time from ms / 2 to `ms`, so that many routers do not ask at the same moment. */
static uint64_t some_of(struct discover_kubernetes *k, uint64_t ms)
{
    return ms - ms / 2 + prng_below(&k->prng, ms / 2 + 1);
}

static void list_anew(struct discover_kubernetes *k)
{
    k->watching = false;
    k->next[0] = '\0';
    discover_slices_clear(&k->fresh);
}

/* Ends the request. Unless `host_knows` of the end, the host must cancel the request. */
static void stop_asking(struct discover_kubernetes *k, bool host_knows)
{
    if (k->asking && !host_knows)
        k->cancel = true;
    k->asking = false;
}

static void ask_in(struct discover_kubernetes *k, uint64_t ms, uint64_t now_ms)
{
    k->due_ms = now_ms + ms;
}

static void back_off(struct discover_kubernetes *k, uint64_t now_ms)
{
    uint64_t most = DISCOVER_BACKOFF_MS;
    for (unsigned i = 0; i < k->failures && most < DISCOVER_BACKOFF_MAX_MS; i++)
        most *= 2;
    if (most > DISCOVER_BACKOFF_MAX_MS)
        most = DISCOVER_BACKOFF_MAX_MS;
    uint64_t wait = some_of(k, most);
    uint64_t told = k->retry_after_s < DISCOVER_RETRY_AFTER_MAX_MS / 1000
                        ? k->retry_after_s * 1000
                        : DISCOVER_RETRY_AFTER_MAX_MS;
    k->failures++;
    ask_in(k, wait > told ? wait : told, now_ms);
}

static void fail(struct discover_kubernetes *k, const char *why, uint64_t now_ms)
{
    (void)slice_to_cstr(slice_of_cstr(why), k->why, sizeof k->why);
    k->failed = true;
    back_off(k, now_ms);
    if (!k->watching || k->failures >= DISCOVER_RELIST_FAILURES)
        list_anew(k);
}

/* Fails because the answer's content is unusable. The watch is not resumed: a new list is
 * requested. */
static void fail_reading(struct discover_kubernetes *k, const char *why, uint64_t now_ms)
{
    stop_asking(k, false);
    list_anew(k);
    fail(k, why, now_ms);
}

/* Handles a 410: the server finds the version too old, so a new list is requested. A single 410 is
 * normal; a second one without a good watch in between is a failure. */
static void expire(struct discover_kubernetes *k, uint64_t now_ms)
{
    bool again = k->expired;
    k->expired = true;
    list_anew(k);
    if (again)
        fail(k, "the API server answers 410 again and again", now_ms);
    else
        ask_in(k, 0, now_ms);
}

static void settle(struct discover_kubernetes *k)
{
    k->settled = true;
    k->same = !k->unusable;
    k->expired = false;
    k->failures = 0;
}

/* --- asking --------------------------------------------------------------------------------- */

static int append_escaped(struct buf *b, const char *text)
{
    int err = 0;
    for (const char *c = text; *c != '\0' && err == 0; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-._~", *c) != NULL;
        err = plain ? buf_append_char(b, *c) : buf_printf(b, "%%%02X", (unsigned)(uint8_t)*c);
    }
    return err;
}

static int write_target(struct discover_kubernetes *k)
{
    buf_clear(&k->target);
    int err = buf_printf(&k->target,
                         "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"
                         "?labelSelector=kubernetes.io%%2Fservice-name%%3D%s",
                         k->service.namespace, k->service.name);
    if (err != 0)
        return err;
    if (k->watching) {
        err = buf_printf(&k->target, "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%u",
                         (unsigned)(DISCOVER_WATCH_S + prng_below(&k->prng, DISCOVER_WATCH_S + 1)));
        if (err == 0)
            err = buf_append_cstr(&k->target, "&resourceVersion=");
        if (err == 0)
            err = append_escaped(&k->target, k->version);
    } else {
        err = buf_printf(&k->target, "&limit=%u", DISCOVER_PAGE_SLICES);
        if (err == 0 && k->next[0] != '\0')
            err = buf_append_cstr(&k->target, "&continue=");
        if (err == 0)
            err = append_escaped(&k->target, k->next);
    }
    return err == 0 ? buf_append_char(&k->target, '\0') : err;
}

static bool ask(struct discover_kubernetes *k, uint64_t now_ms)
{
    if (write_target(k) != 0) {
        fail(k, "out of memory", now_ms);
        return false;
    }
    k->asking = true;
    k->status = 0;
    k->retry_after_s = 0;
    k->since_ms = k->heard_ms = now_ms;
    k->error_bytes = 0;
    k->settled = k->paged = false;
    return true;
}

/* Returns the time of the next action if no event comes before. */
static uint64_t due(const struct discover_kubernetes *k)
{
    if (!k->asking)
        return k->due_ms;
    if (!k->watching || k->status != 200)
        return k->heard_ms + DISCOVER_ANSWER_MS;
    uint64_t silent = k->heard_ms + DISCOVER_SILENCE_MS;
    uint64_t settled = k->since_ms + DISCOVER_SETTLED_MS;
    return !k->settled && settled < silent ? settled : silent;
}

static void time_out(struct discover_kubernetes *k, uint64_t now_ms)
{
    if (k->watching && k->status == 200 && now_ms < k->heard_ms + DISCOVER_SILENCE_MS) {
        settle(k);
        return;
    }
    stop_asking(k, false);
    if (k->watching && k->status == 200) /* the connection may be dead: watch again at once */
        ask_in(k, 0, now_ms);
    else
        fail(k, k->status == 0 ? "the API server does not answer" : "the answer stalled", now_ms);
}

enum discover_kubernetes_action discover_kubernetes_next(struct discover_kubernetes *k,
                                                         uint64_t now_ms, uint64_t *until_ms)
{
    if (k->asking && now_ms >= due(k))
        time_out(k, now_ms);
    if (k->cancel) {
        k->cancel = false;
        return DISCOVER_KUBERNETES_CANCEL;
    }
    if (k->listed) {
        k->listed = k->same = false;
        return DISCOVER_KUBERNETES_LISTED;
    }
    if (k->same) {
        k->same = false;
        return DISCOVER_KUBERNETES_SAME;
    }
    if (!k->failed && !k->asking && now_ms >= k->due_ms && ask(k, now_ms))
        return DISCOVER_KUBERNETES_ASK;
    if (k->failed) {
        k->failed = false;
        return DISCOVER_KUBERNETES_FAILED;
    }
    *until_ms = due(k);
    return DISCOVER_KUBERNETES_WAIT;
}

const char *discover_kubernetes_target(const struct discover_kubernetes *k)
{
    return k->target.at;
}

const struct discover_entry *discover_kubernetes_entries(const struct discover_kubernetes *k,
                                                         unsigned *count)
{
    *count = k->list.count;
    return k->entries;
}

const char *discover_kubernetes_hint(struct discover_kubernetes *k)
{
    const struct discover_service *s = &k->service;
    (void)snprintf(k->hint, sizeof k->hint,
                   k->slices.count == 0
                       ? "no EndpointSlice of service %s in namespace %s: check the name"
                       : "service %s in namespace %s has no endpoints: check its selector",
                   s->name, s->namespace);
    return k->hint;
}

void discover_kubernetes_refused(struct discover_kubernetes *k, uint64_t now_ms)
{
    stop_asking(k, false);
    list_anew(k);
    back_off(k, now_ms);
}

const char *discover_kubernetes_why(const struct discover_kubernetes *k)
{
    return k->why;
}

/* --- the list ------------------------------------------------------------------------------- */

/* Makes the list from the current slices. After an error `why` says the reason, and the old list
 * stays. */
static int make_list(struct discover_kubernetes *k, char *why)
{
    struct discover_entry *entries = malloc((k->slices.endpoint_count + 1) * sizeof *entries);
    if (entries == NULL) {
        (void)slice_to_cstr(slice_of_cstr(err_text(ERR_NOMEM)), why, DISCOVER_SLICES_WHY_MAX);
        return ERR_NOMEM;
    }
    k->slices.tls = k->service.tls;
    int err = discover_slices_list(&k->slices, slice_of_cstr(k->service.port), &k->list, why);
    if (err != 0) {
        free(entries);
        return err;
    }
    for (unsigned i = 0; i < k->list.count; i++)
        entries[i] = (struct discover_entry){.name = slice_of_cstr(k->list.at[i].name),
                                             .state = k->list.at[i].draining ? DISCOVER_DRAINING
                                                                             : DISCOVER_SERVING,
                                             .labels = k->service.labels};
    free(k->entries);
    k->entries = entries;
    return 0;
}

/* Makes the list of replicas from the slices. If the port is missing, the setting is wrong, not the
 * watch: the watch goes on. */
static void take_list(struct discover_kubernetes *k, uint64_t now_ms)
{
    char why[DISCOVER_SLICES_WHY_MAX];
    int err = make_list(k, why);
    k->unusable = err != 0;
    if (err == 0) {
        k->listed = true;
    } else if (err == ERR_NOMEM) {
        fail_reading(k, why, now_ms);
    } else {
        k->same = false;
        k->failed = true;
        (void)slice_to_cstr(slice_of_cstr(why), k->why, sizeof k->why);
    }
}

static void take_page(struct discover_kubernetes *k, uint64_t now_ms)
{
    memcpy(k->next, k->reader.next, sizeof k->next);
    if (k->next[0] != '\0') {
        ask_in(k, 0, now_ms);
        return;
    }
    discover_slices_clear(&k->slices);
    k->slices = k->fresh;
    k->fresh = (struct discover_slices){0};
    k->watching = true;
    ask_in(k, 0, now_ms);
    take_list(k, now_ms);
}

static const char *put_why(int err)
{
    return err == ERR_LIMIT ? "the service has more slices or endpoints than a router takes"
                            : err_text(err);
}

static void take_event(struct discover_kubernetes *k, uint64_t now_ms)
{
    const struct discover_reader *r = &k->reader;
    struct slice type = slice_of_cstr(r->type);
    if (slice_equal(type, SLICE("ERROR"))) {
        if (r->code == 410) {
            stop_asking(k, false);
            expire(k, now_ms);
        } else {
            fail_reading(k, r->message[0] != '\0' ? r->message : "the watch fails", now_ms);
        }
        return;
    }
    settle(k);
    if (r->version[0] != '\0')
        memcpy(k->version, r->version, sizeof k->version);
    struct slice name = slice_of_cstr(r->slice.name);
    if (slice_equal(type, SLICE("DELETED"))) {
        discover_slices_remove(&k->slices, name);
    } else if (slice_equal(type, SLICE("ADDED")) || slice_equal(type, SLICE("MODIFIED"))) {
        int err = name.len > 0 ? discover_slices_put(&k->slices, &r->slice) : ERR_SYNTAX;
        if (err != 0) {
            fail_reading(k, put_why(err), now_ms);
            return;
        }
    } else { /* BOOKMARK, or an unknown type */
        return;
    }
    take_list(k, now_ms);
}

/* --- the answer ----------------------------------------------------------------------------- */

void discover_kubernetes_answered(struct discover_kubernetes *k, unsigned status,
                                  uint64_t retry_after_s, uint64_t now_ms)
{
    if (!k->asking)
        return;
    CHECK(k->status == 0);
    k->status = status;
    k->retry_after_s = retry_after_s;
    k->since_ms = k->heard_ms = now_ms;
    discover_read_begin(&k->reader, status != 200 ? DISCOVER_READ_STATUS
                                    : k->watching ? DISCOVER_READ_WATCH
                                                  : DISCOVER_READ_LIST);
}

/* Handles an answer with an error status. A readable message in the body becomes part of the
 * reason. */
static void refused(struct discover_kubernetes *k, uint64_t now_ms)
{
    const char *told = k->reader.message;
    char why[DISCOVER_WHY_MAX + DISCOVER_MESSAGE_MAX];
    if (k->status == 410) {
        expire(k, now_ms);
        return;
    }
    if (k->status == 401)
        (void)snprintf(why, sizeof why,
                       "401: the API server does not accept the token of the service account%s%s",
                       told[0] != '\0' ? ": " : "", told);
    else if (k->status == 403)
        (void)snprintf(why, sizeof why,
                       "403: a Role with list and watch of endpointslices is missing "
                       "(deploy/kubernetes/rbac.yaml)%s%s",
                       told[0] != '\0' ? ": " : "", told);
    else
        (void)snprintf(why, sizeof why, "the API server answers %u%s%s", k->status,
                       told[0] != '\0' ? ": " : "", told);
    fail(k, why, now_ms);
}

static void read_status(struct discover_kubernetes *k, struct slice bytes, uint64_t now_ms)
{
    k->error_bytes += bytes.len;
    enum discover_read_what what = DISCOVER_READ_MORE;
    while (bytes.len > 0 && what != DISCOVER_READ_ERROR)
        what = discover_read_next(&k->reader, &bytes);
    if (k->error_bytes <= ERROR_BODY_MAX)
        return;
    stop_asking(k, false);
    refused(k, now_ms);
}

void discover_kubernetes_received(struct discover_kubernetes *k, struct slice bytes,
                                  uint64_t now_ms)
{
    if (!k->asking)
        return;
    CHECK(k->status != 0);
    k->heard_ms = now_ms;
    if (k->status != 200) {
        read_status(k, bytes, now_ms);
        return;
    }
    enum discover_read_what what = DISCOVER_READ_MORE;
    while (k->asking && (what = discover_read_next(&k->reader, &bytes)) > DISCOVER_READ_MORE) {
        if (what == DISCOVER_READ_EVENT) {
            take_event(k, now_ms);
        } else if (what == DISCOVER_READ_PAGE) {
            k->paged = true;
        } else {
            int err = discover_slices_put(&k->fresh, &k->reader.slice);
            if (err != 0)
                fail_reading(k, put_why(err), now_ms);
        }
    }
    if (k->asking && what == DISCOVER_READ_ERROR)
        fail_reading(k, k->reader.error, now_ms);
}

static void end_list(struct discover_kubernetes *k, const char *error, uint64_t now_ms)
{
    if (!k->paged)
        fail(k, error != NULL ? error : "the list was cut", now_ms);
    else if (k->reader.list_version[0] == '\0')
        fail(k, "the list has no resource version", now_ms);
    else {
        memcpy(k->version, k->reader.list_version, sizeof k->version);
        take_page(k, now_ms);
    }
}

void discover_kubernetes_ended(struct discover_kubernetes *k, const char *error, uint64_t now_ms)
{
    if (!k->asking)
        return;
    stop_asking(k, true);
    if (k->status == 0)
        fail(k, error != NULL ? error : "the API server gives no answer", now_ms);
    else if (k->status != 200)
        refused(k, now_ms);
    else if (!k->watching)
        end_list(k, error, now_ms);
    else if (k->settled) /* the time is over, or an API server stops: request the next watch */
        ask_in(k, error == NULL ? 0 : some_of(k, DISCOVER_BACKOFF_MS), now_ms);
    else
        fail(k, error != NULL ? error : "each watch ends at once", now_ms);
}
