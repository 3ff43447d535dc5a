/* Parameters of calls, and helpers for answers. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "http/path.h"
#include "node/admin/admin_internal.h"
#include "node/replica/rank.h"

void admin_answer_buf(struct exchange *x, int err, struct slice type, struct buf *out)
{
    if (err == 0)
        exchange_answer(x, 200, type, buf_slice(out), NULL, 0);
    else
        exchange_answer_error(x, 500, slice_of("", 0), "%s", err_text(err));
    buf_free(out);
}

void admin_answer_json(struct exchange *x, int err, struct buf *out)
{
    admin_answer_buf(x, err, ADMIN_JSON, out);
}

/* --- the query ------------------------------------------------------------------------------ */

/* Returns the value of `name` in a query string; a slice with `at` NULL if absent. */
static struct slice query_value(struct slice query, struct slice name)
{
    while (query.len > 0) {
        struct slice pair = slice_cut(&query, '&');
        struct slice key = slice_cut(&pair, '=');
        if (slice_equal(key, name))
            return pair;
    }
    return slice_of(NULL, 0);
}

bool admin_query(const struct http_head *head, struct slice name, char *out, size_t size)
{
    struct slice decoded;
    out[0] = '\0';
    struct slice value = query_value(head->query, name);
    return http_percent_decode(value, out, size - 1, &decoded) == 0 &&
           slice_to_cstr(decoded, out, size) && strlen(out) == decoded.len;
}

bool admin_query_has(const struct http_head *head, struct slice name)
{
    return query_value(head->query, name).at != NULL;
}

/* Returns the error in a replica's HOST:PORT, or NULL. */
static const char *address_wrong(struct slice given)
{
    struct node_address address;
    if (slice_find(given, '/') < given.len)
        return "want no path: HOST:PORT alone";
    if (node_address_parse(given, &address) == 0)
        return address.port != 0 ? NULL : "want a port from 1 to 65535";
    if (node_address_parse_default(given, 0, &address) == 0)
        return "the port is missing: want HOST:PORT, such as 10.0.0.1:8000";
    size_t colon = given.len;
    while (colon > 0 && given.at[colon - 1] != ':')
        colon--;
    if (colon > 1 && node_address_parse_default(slice_of(given.at, colon - 1), 0, &address) == 0)
        return "want a port from 1 to 65535";
    return "want HOST:PORT, such as 10.0.0.1:8000";
}

/* Cuts the labels off `name` and reads the engine; other labels cannot be given at run time.
 * Returns NULL, or the error. */
static const char *cut_labels(struct slice *name, enum node_engine *engine)
{
    struct node_labels labels = {0};
    struct slice rest = *name;
    struct slice front = slice_cut(&rest, '#');
    bool labelled = front.len < name->len;
    *name = front;
    *engine = NODE_ENGINE_AUTO;
    if (!labelled)
        return NULL;
    const char *wrong = rest.len > 0 ? node_labels_parse(rest, &labels)
                                     : "after # want a label, such as engine=vllm";
    bool more = labels.weight > 0 || labels.model.len > 0 || labels.health.len > 0 ||
                labels.cache_tokens > 0 || labels.context_tokens > 0 || labels.ranks > 0 ||
                labels.adapters_on_demand || labels.kv_events.len > 0 ||
                labels.host_header != NODE_HOST_NOT_SAID;
    if (wrong == NULL && more)
        wrong = "only the label #engine= can be given at run time, because labels are not sent to "
                "other routers: put other labels into the settings";
    *engine = labels.engine;
    return wrong;
}

/* Cuts HOST:PORT[@RANK] to HOST:PORT. Returns the error, or NULL. */
static const char *cut_rank(struct slice *name, bool rank_too, struct node_rank_name *rank,
                            bool *is_rank)
{
    *is_rank = node_rank_name_parse(*name, rank);
    if (*is_rank)
        *name = rank->address;
    if (*is_rank && !rank_too)
        return "want HOST:PORT: ranks are added and removed with their replica (gvctl drain drains "
               "one rank)";
    if (rank_too && !*is_rank && node_rank_name_meant(*name))
        return "want a rank from 0 to 63 behind the @, such as 10.0.0.1:8000@1";
    return address_wrong(*name);
}

/* Answers 400 with the replica as given. The text before an @ is not shown, because it may contain
 * a password, unless a rank follows the @. */
static void answer_wrong(struct exchange *x, struct slice given, const char *wrong)
{
    struct slice shown = node_rank_name_meant(given) ? given : node_replica_shown(given);
    exchange_answer_error(x, 400, SLICE("replica"), "`%s%.*s`: %s",
                          shown.len < given.len ? "..." : "",
                          shown.len > 200 ? 200 : (int)shown.len, shown.at, wrong);
}

bool admin_read_replica(struct admin *a, struct exchange *x, const struct http_head *head,
                        struct node_replica_option *out, bool rank_too)
{
    char given[NODE_HOST_BYTES + 512];
    char engine[16];
    char url[NODE_HOST_BYTES + 128];
    if (!admin_query(head, SLICE("replica"), given, sizeof given))
        (void)snprintf(given, sizeof given, "?");
    if (!admin_query(head, SLICE("engine"), engine, sizeof engine))
        (void)snprintf(engine, sizeof engine, "?");
    struct slice name = slice_of_cstr(given);
    if (name.len == 0) {
        exchange_answer_error(x, 400, SLICE("replica"),
                              "No replica is given: want ?replica=HOST:PORT.");
        return false;
    }
    struct node_rank_name rank = {0};
    bool is_listed = node_router_replica_listed(a->config.router, name) &&
                     name.len < sizeof out->name &&
                     (rank_too || !node_rank_name_parse(name, &rank));
    if (is_listed && engine[0] == '\0') {
        *out = (struct node_replica_option){.address = {.host = "0.0.0.0"}};
        DISCARD(node_address_parse_replica(name, &out->address)); /* the name may be no address */
        (void)slice_to_cstr(name, out->name, sizeof out->name);
        return true;
    }
    bool tls = slice_starts_with(name, SLICE("https://"));
    bool is_url = tls || slice_starts_with(name, SLICE("http://"));
    if (is_url)
        name = slice_skip(name, tls ? strlen("https://") : strlen("http://"));
    enum node_engine labelled;
    bool is_rank = false;
    const char *wrong_label = cut_labels(&name, &labelled);
    if (is_url && slice_ends_with(name, SLICE("/")))
        name.len--;
    const char *wrong = cut_rank(&name, rank_too, &rank, &is_rank);
    if (wrong == NULL)
        wrong = wrong_label;
    (void)snprintf(url, sizeof url, "http%s://%.*s%s%s", tls ? "s" : "", SLICE_ARG(name),
                   engine[0] != '\0' ? "#engine=" : "", engine);
    bool one = strchr(engine, '#') == NULL;
    if (wrong == NULL && (!one || node_replica_parse(slice_of_cstr(url), out) != 0))
        wrong = "want vllm, sglang or other as its engine";
    if (wrong == NULL && labelled != NODE_ENGINE_AUTO && engine[0] != '\0' &&
        out->labels.engine != labelled)
        wrong = "want one engine: the label and ?engine= differ";
    if (wrong == NULL && labelled != NODE_ENGINE_AUTO)
        out->labels.engine = labelled;
    if (wrong == NULL && is_rank)
        (void)snprintf(out->name + strlen(out->name), sizeof out->name - strlen(out->name), "@%u",
                       rank.rank);
    if (wrong != NULL)
        answer_wrong(x, slice_of_cstr(given), wrong);
    return wrong == NULL;
}

void admin_answer_no_replica(struct exchange *x, const char *name)
{
    exchange_answer_error(x, 404, SLICE("replica"),
                          "There is no replica `%s`; gvctl replicas (GET /replicas) lists them.",
                          name);
}

/* --- the body ------------------------------------------------------------------------------- */

bool admin_describe(struct exchange *x, const struct http_head *head, struct node_request *out)
{
    exchange_read_session(x, head);
    struct slice session = http_head_find(head, SLICE("x-grapevine-session"));
    if (session.at != NULL) /* gvctl does not know the header's configured name */
        exchange_session_set(x, session);
    if (!x->skimming) /* there was no body */
        exchange_skim_begin(x);
    http_skim_end(&x->skim);
    exchange_session_from_body(x);
    if (x->skim.understood)
        exchange_alias_look(x);
    exchange_render(x);
    if (!x->skim.understood) {
        exchange_answer_error(x, 400, slice_of("", 0),
                              "The body is not a JSON request; such a request is routed by load.");
        return false;
    }
    exchange_describe(x, out);
    out->again = true; /* no request was made of the body yet */
    out->unpinned = 0; /* as on the chat paths: the path is not known here */
    return true;
}

uint64_t admin_unix_ms(const struct admin *a)
{
    return a->config.log->clock_ms(a->config.log->context);
}
