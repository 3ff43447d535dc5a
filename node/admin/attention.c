#include "node/admin/attention.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/admin/fill.h"

/* {a}, {t}, {n} and {m} are replaced by the facts. Text in brackets is left out if a field in it is
 * empty or 0. */
static const struct row {
    const char *name;
    enum admin_attention_severity severity;
    const char *what, *hurts, *command;
} rows[ATTENTION_KINDS] = {
    [ATTENTION_CLIENTS_FAIL] =
        {"clients_fail", ATTENTION_RED,
         "{n} of {m} requests failed in the last minute[ at router {a}]: {t}",
         "clients[ of router {a}]: they get errors or cut answers", "gvctl decisions"},
    [ATTENTION_CLIENTS_REFUSED] =
        {"clients_refused", ATTENTION_RED,
         "overload: {n} of {m} requests were refused in the last minute[ at router {a}], as the "
         "queue was full",
         "clients[ of router {a}]: they are told to try again later", "gvctl queue"},
    [ATTENTION_ALL_FULL] = {"all_full", ATTENTION_RED,
                            "overload: every replica says that it is full",
                            "every client: it waits, or gets 429 or 503", "gvctl queue"},
    [ATTENTION_NO_REPLICA] = {"no_replica", ATTENTION_RED, "no replica can take requests[: {t}]",
                              "every client: it gets 503", "gvctl replicas"},
    [ATTENTION_MODEL_OUT] = {"model_out", ATTENTION_RED, "model {a} has no usable replica[: {t}]",
                             "clients of {a}: they get 503", "gvctl replicas"},
    [ATTENTION_CERTIFICATE_EXPIRED] = {"certificate_expired", ATTENTION_RED,
                                       "the certificate in {a} has expired",
                                       "clients or engines that check it: they refuse connections",
                                       "replace the file; the router reads it again"},
    [ATTENTION_CLIENTS_KEY] =
        {"clients_key", ATTENTION_AMBER,
         "{n} of {m} requests had no key or a wrong one in the last minute[ at router {a}]",
         "those clients[ of router {a}]: they get 401", "gvctl key list"},
    [ATTENTION_CLIENTS_WAIT] = {"clients_wait", ATTENTION_AMBER,
                                "{n} requests wait: no replica has room[ (router {a})]",
                                "those clients[ of router {a}]: their answers begin late",
                                "gvctl queue"},
    [ATTENTION_REPLICA_OUT] = {"replica_out", ATTENTION_AMBER, "replica {a} is {t}",
                               "nobody yet: {n} of {m} replicas take requests", "gvctl replicas"},
    [ATTENTION_REPLICA_LAST] = {"replica_out", ATTENTION_AMBER, "replica {a} is {t}",
                                "clients of models that no other replica can serve",
                                "gvctl replicas"},
    [ATTENTION_REPLICA_AVOIDED] =
        {"replica_avoided", ATTENTION_AMBER, "replica {a} is {t}",
         "nobody yet: it gets the requests that no other replica can take", "gvctl replicas"},
    [ATTENTION_REPLICA_FLAPS] = {"replica_flaps", ATTENTION_AMBER,
                                 "replica {a} flaps: out {n} times in ten minutes[; now {t}]",
                                 "requests that it breaks off are tried again or fail",
                                 "gvctl drain {a}"},
    [ATTENTION_ROUTER_GONE] = {"router_gone", ATTENTION_AMBER,
                               "router {a} is gone and did not leave: it crashed, was killed or "
                               "is cut off",
                               "its clients, until the load balancer sends them elsewhere",
                               "gvctl forget-member {a}, if it will not be back"},
    [ATTENTION_ROUTER_SILENT] = {"router_silent", ATTENTION_AMBER, "router {a} is silent",
                                 "nobody yet; it is marked dead if it stays silent",
                                 "gvctl members"},
    [ATTENTION_ROUTERS_CUT] = {"routers_cut", ATTENTION_AMBER,
                               "routers {a} do not hear each other[, and {n} more pairs]",
                               "nobody yet: other routers relay the messages of both",
                               "open the gossip ports of both: gvctl members"},
    [ATTENTION_ROUTER_DEAF] =
        {"router_deaf", ATTENTION_AMBER,
         "router {a} does not hear {t}, but is heard there[; the same holds for {n} more]",
         "nobody yet: other routers relay the messages of both",
         "open the gossip port of {a}: gvctl members"},
    [ATTENTION_ROUTERS_DIFFER] = {"routers_differ", ATTENTION_AMBER,
                                  "the routers hold different states",
                                  "nobody; requests may go to a replica without their prefix",
                                  "gvctl convergence"},
    [ATTENTION_ROUTERS_INCOMPARABLE] =
        {"routers_incomparable", ATTENTION_AMBER,
         "the routers' states cannot be compared: their clocks or settings differ too much",
         "nobody; requests may go to a replica without their prefix", "gvctl convergence"},
    [ATTENTION_ROUTER_SETTINGS] =
        {"router_settings", ATTENTION_AMBER,
         "router {a} has other values of settings that must be equal at all routers: {t}",
         "nobody; their observations of caches do not count for each other", "gvctl members"},
    [ATTENTION_TCP_FILTERED] = {"tcp_filtered", ATTENTION_AMBER,
                                "TCP to router {a} at {t} is filtered and UDP is not",
                                "nobody; the two routers may not repair lost state",
                                "open the gossip port for TCP and UDP"},
    [ATTENTION_ALONE] = {"alone", ATTENTION_AMBER, "this router is alone: {t}",
                         "nobody; it shares no state", "gvctl members"},
    [ATTENTION_OTHER_CLUSTER] = {"other_cluster", ATTENTION_AMBER,
                                 "a router with another cluster-name asks to join",
                                 "nobody; that router stays outside", "gvctl events --last 20"},
    [ATTENTION_CERTIFICATE_EXPIRES] = {"certificate_expires", ATTENTION_AMBER,
                                       "the certificate in {a} expires in {n} days",
                                       "nobody yet; then clients or engines that check it",
                                       "replace the file; the router reads it again"},
    [ATTENTION_FILES_REFUSED] = {"files_refused", ATTENTION_AMBER,
                                 "the {a} cannot be used, and the old ones stay in force",
                                 "nobody yet; a restart fails", "gvctl events --last 20"},
    [ATTENTION_ROUTER_OLD] = {"router_old", ATTENTION_GREY,
                              "router {a} is gone, and another router has started since", "nobody",
                              "gvctl forget-member {a}"},
};

const char *admin_attention_severity_text(enum admin_attention_severity severity)
{
    static const char *const texts[ATTENTION_SEVERITIES] = {"well", "grey", "amber", "red"};
    CHECK(severity < ATTENTION_SEVERITIES);
    return texts[severity];
}

const char *admin_attention_kind_text(enum admin_attention_kind kind)
{
    CHECK(kind < ATTENTION_KINDS);
    return rows[kind].name;
}

enum admin_attention_severity admin_attention_severity_of(enum admin_attention_kind kind)
{
    CHECK(kind < ATTENTION_KINDS);
    return rows[kind].severity;
}

enum admin_attention_severity admin_attention_worst(const struct admin_attention_list *list)
{
    return list->count > 0 ? admin_attention_severity_of(list->items[0].kind) : ATTENTION_WELL;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Appends the value of {a}, {t}, {n} or {m}. Returns false if the value is empty or 0. */
static bool put_field(void *context, struct slice field, struct admin_fill *to)
{
    const struct admin_attention_facts *f = context;
    char name = field.at[0], number[24];
    uint64_t value = name == 'm' ? f->m : f->n;
    struct slice s = name == 'a'                      ? f->about
                     : name == 't' && f->text != NULL ? slice_of_cstr(f->text)
                                                      : slice_of("", 0);
    if (name == 'n' || name == 'm') {
        (void)snprintf(number, sizeof number, "%" PRIu64, value);
        s = slice_of_cstr(number);
    }
    admin_fill_put(to, s);
    return s.len > 0 && (name == 'a' || name == 't' || value > 0);
}

static void fill_in(char *out, size_t size, const char *words,
                    const struct admin_attention_facts *f)
{
    struct admin_fill t = admin_fill_begin(out, size);
    struct admin_attention_facts facts = *f;
    admin_fill_pattern(&t, words, put_field, &facts);
}

/* --- the list --------------------------------------------------------------------------------- */

void admin_attention_add(struct admin_attention_list *list, enum admin_attention_kind kind,
                         const struct admin_attention_facts *facts)
{
    CHECK(kind < ATTENTION_KINDS);
    unsigned at = list->count;
    while (at > 0 && admin_attention_severity_of(list->items[at - 1].kind) < rows[kind].severity)
        at--;
    if (list->count == ATTENTION_ITEMS_MAX) {
        list->more++;
        if (at == ATTENTION_ITEMS_MAX)
            return;
        list->count--;
    }
    struct admin_attention_item *item = &list->items[at];
    memmove(item + 1, item, (list->count - at) * sizeof *item);
    list->count++;
    *item = (struct admin_attention_item){.kind = kind};
    (void)snprintf(item->about, sizeof item->about, "%.*s", SLICE_ARG(facts->about));
    fill_in(item->what, sizeof item->what, rows[kind].what, facts);
    fill_in(item->hurts, sizeof item->hurts, rows[kind].hurts, facts);
    fill_in(item->command, sizeof item->command, rows[kind].command, facts);
}

/* True for at least 1 in 100: a single failure among very many alarms nobody. */
static bool is_much(uint64_t count, uint64_t of)
{
    return count > 0 && count * 100 >= of;
}

/* The alarm needs a missing or wrong key in at least 1 of 10 requests: a single client with a wrong
 * key raises no alarm, a changed key does. */
enum { KEYS_SHARE = 10 };

void admin_attention_clients(struct admin_attention_list *list, struct slice router,
                             const struct admin_attention_minute *minute)
{
    uint64_t failed = minute->status_5xx + minute->cut, all = minute->requests;
    char text[80];
    if (all < failed + minute->queue_full)
        all = failed + minute->queue_full;
    (void)snprintf(text, sizeof text, "%" PRIu64 " with a 5xx, %" PRIu64 " cut", minute->status_5xx,
                   minute->cut);
    if (is_much(failed, all))
        admin_attention_add(
            list, ATTENTION_CLIENTS_FAIL,
            &(struct admin_attention_facts){.about = router, .text = text, .n = failed, .m = all});
    if (minute->unauthorized * KEYS_SHARE >= all && minute->unauthorized > 0)
        admin_attention_add(
            list, ATTENTION_CLIENTS_KEY,
            &(struct admin_attention_facts){.about = router, .n = minute->unauthorized, .m = all});
    if (is_much(minute->queue_full, all))
        admin_attention_add(
            list, ATTENTION_CLIENTS_REFUSED,
            &(struct admin_attention_facts){.about = router, .n = minute->queue_full, .m = all});
}

void admin_attention_since(struct admin_attention_list *list,
                           const struct admin_attention_list *before, uint64_t unix_ms)
{
    for (unsigned i = 0; i < list->count; i++) {
        struct admin_attention_item *item = &list->items[i];
        item->since_ms = unix_ms;
        for (unsigned k = 0; k < before->count; k++) {
            const struct admin_attention_item *old = &before->items[k];
            if (strcmp(rows[old->kind].name, rows[item->kind].name) == 0 &&
                strcmp(old->about, item->about) == 0)
                item->since_ms = old->since_ms;
        }
    }
}

void admin_attention_write(const struct admin_attention_list *list, struct json_writer *w)
{
    json_put_cstr(w, "worst", admin_attention_severity_text(admin_attention_worst(list)));
    json_put_u64(w, "more", list->more);
    json_put_array(w, "items");
    for (unsigned i = 0; i < list->count; i++) {
        const struct admin_attention_item *item = &list->items[i];
        json_object_begin(w);
        json_put_cstr(w, "severity",
                      admin_attention_severity_text(admin_attention_severity_of(item->kind)));
        json_put_cstr(w, "kind", admin_attention_kind_text(item->kind));
        json_put_cstr(w, "about", item->about);
        json_put_cstr(w, "what", item->what);
        json_put_u64(w, "since_ms", item->since_ms);
        json_put_cstr(w, "hurts", item->hurts);
        json_put_cstr(w, "command", item->command);
        json_object_end(w);
    }
    json_array_end(w);
}
