#include "node/gvctl/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/gvctl/ask.h"
#include "node/gvctl/call.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/parse.h"
#include "node/settings/address.h"

#define SURVEY_READY  "/readyz?format=json"
#define SURVEY_MINUTE "/figures?n=60" /* seconds */

/* --- one router ------------------------------------------------------------------------------ */

static void copy(char *out, size_t size, const json_t *object, const char *key)
{
    (void)snprintf(out, size, "%s", fields_text(object, key));
}

static void take_bucket(struct survey_counters *c, const char *end, double value)
{
    if (c->bucket_count >= SURVEY_BUCKETS_MAX || strcmp(end, "+Inf") == 0)
        return;
    c->bucket_ends[c->bucket_count] = strtod(end, NULL);
    c->buckets[c->bucket_count++] = value;
}

/* Adds what a router counted of a replica. */
static void take_answered(json_t *answered, const json_t *labels, enum survey_answered which,
                          double value)
{
    const char *replica = json_string_value(json_object_get(labels, "replica"));
    if (replica == NULL)
        return;
    json_t *pair = json_object_get(answered, replica);
    if (pair == NULL) {
        (void)json_object_set_new(answered, replica, json_pack("[f,f,f,f]", 0.0, 0.0, 0.0, 0.0));
        pair = json_object_get(answered, replica);
    }
    json_t *sum = json_array_get(pair, which);
    (void)json_real_set(sum, json_real_value(sum) + value);
}

/* The result of that name, which the other side counts; NODE_RESULTS: there is none. */
static unsigned result_named(const char *name)
{
    unsigned i = 0;
    while (i < NODE_RESULTS && strcmp(node_result_text((enum node_result)i), name) != 0)
        i++;
    return i;
}

/* How requests ended badly. */
static void take_result(struct survey_router *r, const char *name, const json_t *labels,
                        double value)
{
    double *results = r->counters.results;
    unsigned result = result_named(fields_text(labels, "reason"));
    if (strcmp(name, "grapevine_requests_client_errors_total") == 0)
        results[NODE_RESULT_CLIENT_ERROR] = value;
    if (strcmp(name, "grapevine_requests_failed_total") != 0)
        return;
    r->tells_failed = true;
    if (result < NODE_RESULTS)
        results[result] = value;
}

static void take_shortage(struct survey_router *r, const json_t *labels, double value)
{
    for (unsigned i = 0; i < NET_SHORTAGES; i++) {
        if (fields_equal(labels, "of", net_shortage_name((enum net_shortage)i)))
            r->short_of[i] = value > 0;
    }
}

static void take_sample(struct survey *s, struct survey_router *r, const json_t *sample)
{
    const char *name = fields_text(sample, "name");
    const json_t *labels = json_object_get(sample, "labels");
    double value = fields_number(sample, "value");
    struct survey_counters *c = &r->counters;
    bool prompt = strcmp(name, "grapevine_answered_prompt_tokens_total") == 0;
    bool cached = strcmp(name, "grapevine_answered_cached_tokens_total") == 0;
    bool chosen = strcmp(name, "grapevine_replica_chosen_total") == 0;
    bool errors = strcmp(name, "grapevine_upstream_errors_total") == 0;
    if (prompt || cached || chosen || errors)
        take_answered(s->answered, labels,
                      prompt   ? SURVEY_PROMPT
                      : cached ? SURVEY_CACHED
                      : chosen ? SURVEY_CHOSEN
                               : SURVEY_ERRORS,
                      value);
    take_result(r, name, labels, value);
    if (prompt)
        c->prompt_tokens += value;
    else if (cached)
        c->cached_tokens += value;
    else if (strcmp(name, "grapevine_requests_total") == 0)
        c->requests = value;
    else if (strcmp(name, "grapevine_requests_refused_total") == 0)
        c->refused += value;
    else if (strcmp(name, "grapevine_time_to_first_token_seconds_sum") == 0)
        c->first_seconds = value;
    else if (strcmp(name, "grapevine_time_to_first_token_seconds_count") == 0)
        c->first_tokens = value;
    else if (strcmp(name, "grapevine_time_to_first_token_seconds_bucket") == 0)
        take_bucket(c, fields_text(labels, "le"), value);
    else if (strcmp(name, "grapevine_requests_in_flight") == 0)
        r->in_flight = value;
    else if (strcmp(name, "grapevine_queue_length") == 0)
        r->queue_length = value;
    else if (strcmp(name, "grapevine_local_shortage") == 0)
        take_shortage(r, labels, value);
    else if (strcmp(name, "grapevine_connections_refused_total") == 0)
        r->connections_refused = value;
    else if (strcmp(name, "grapevine_config_refused") == 0)
        r->refused[SURVEY_SETTINGS] = value > 0;
    else if (strcmp(name, "grapevine_config_waits") == 0)
        r->waits = (unsigned)value;
    else if (strcmp(name, "grapevine_cluster_members_tcp_filtered") == 0)
        r->filtered = (unsigned)value;
    else if (strcmp(name, "grapevine_cluster_other_asks") == 0)
        r->other_asks = value > 0;
    else if (strcmp(name, "grapevine_client_keys_file_refused") == 0)
        r->refused[SURVEY_CLIENT_KEYS] = value > 0;
    else if (strcmp(name, "grapevine_tls_files_refused") == 0)
        r->refused[SURVEY_TLS_FILES] = value > 0;
}

/* A call that needs no token, and shows none. The status. */
static int ask_openly(const struct given *g, const char *admin, const char *target,
                      double timeout_s, struct buf *out)
{
    struct call call = {.method = "GET",
                        .target = target,
                        .trust = g->trust,
                        .timeout_s = timeout_s,
                        .quiet = true};
    return call_admin(admin, &call, out);
}

static void take_metrics(struct survey *s, struct survey_router *r, const struct given *g,
                         const char *admin, double timeout_s)
{
    struct buf out;
    buf_init(&out, 0);
    int status = ask_openly(g, admin, admin_call_row(ADMIN_CALL_METRICS)->path, timeout_s, &out);
    json_t *samples = status == 200 ? parse_metrics(buf_slice(&out)) : NULL;
    buf_free(&out);
    size_t i;
    const json_t *sample;
    json_array_foreach(samples, i, sample)
    {
        take_sample(s, r, sample);
    }
    r->reached = samples != NULL;
    json_decref(samples);
}

/* The JSON of a call without a token, whatever its status; NULL: there is none. */
static json_t *told_openly(const struct given *g, const char *admin, const char *target)
{
    struct buf out;
    buf_init(&out, 0);
    int status = ask_openly(g, admin, target, 1, &out);
    json_t *answer = status > 0 ? ask_parse(g, buf_slice(&out)) : NULL;
    buf_free(&out);
    return answer;
}

/* Whether that admin port is the member's: loopback of another machine is ours. Its address is
 * another router's word, so nobody there is shown a token. One that is older says who it is in
 * /members alone, where reading needs none. */
static bool is_that(const struct given *g, const char *admin, const char *name)
{
    json_t *answer = told_openly(g, admin, SURVEY_READY);
    bool same = fields_equal(answer, "router", name);
    bool older = json_is_object(answer) && json_object_get(answer, "router") == NULL;
    json_decref(answer);
    if (!older)
        return same;
    answer = told_openly(g, admin, admin_call_row(ADMIN_CALL_MEMBERS)->path);
    same = fields_equal(answer, "self", name);
    json_decref(answer);
    return same;
}

/* --- all of them ----------------------------------------------------------------------------- */

static void take_member(struct survey *s, const struct given *g, const json_t *m, unsigned *asked)
{
    struct survey_router *r = &s->routers[s->router_count++];
    *r = (struct survey_router){.self = fields_is(m, "self")};
    copy(r->name, sizeof r->name, m, "name");
    copy(r->version, sizeof r->version, m, "version");
    copy(r->policy, sizeof r->policy, m, "policy");
    copy(r->address, sizeof r->address, m, "address");
    (void)snprintf(r->state, sizeof r->state, "%s", show_member_state(m));
    if (json_is_string(json_object_get(m, "tcp_filtered")))
        copy(r->tcp_filtered, sizeof r->tcp_filtered, m, "tcp_filtered");
    r->lag_ms = fields_number(m, "lag_ms");
    const char *admin = fields_text(m, "admin");
    bool lives = fields_equal(m, "state", "alive") && strchr(admin, ':') != NULL;
    if (r->self) {
        (void)snprintf(r->admin, sizeof r->admin, "%s", g->admin);
        take_metrics(s, r, g, g->admin, ASK_TIMEOUT_S);
    } else if (lives && *asked < SURVEY_ROUTERS_MAX) {
        ++*asked;
        /* Members do not say whether theirs speak TLS: as the one that was asked. */
        bool tls = strncmp(g->admin, "https://", strlen("https://")) == 0;
        (void)snprintf(r->admin, sizeof r->admin, "%s%s", tls ? "https://" : "http://", admin);
        if (is_that(g, r->admin, r->name))
            take_metrics(s, r, g, r->admin, 1);
    }
}

static bool take_routers(struct survey *s, const struct given *g)
{
    int status;
    json_t *answer =
        ask_quietly(g, g->admin, admin_call_row(ADMIN_CALL_MEMBERS)->path, ASK_TIMEOUT_S, &status);
    const json_t *members = json_object_get(answer, "members");
    size_t i, n = json_array_size(members);
    const json_t *m;
    s->alone = !json_is_array(members);
    s->routers = calloc(n > 0 ? n : 1, sizeof *s->routers);
    if (s->routers == NULL) {
        json_decref(answer);
        return false;
    }
    unsigned asked = 0;
    for (int self = 1; self >= 0; self--) {
        json_array_foreach(members, i, m)
        {
            if (fields_is(m, "self") == (self == 1))
                take_member(s, g, m, &asked);
        }
    }
    if (s->router_count == 0) {
        s->router_count = 1;
        s->routers[0] = (struct survey_router){.self = true, .name = "-", .version = "-"};
        (void)snprintf(s->routers[0].state, sizeof s->routers[0].state, "alone");
        (void)snprintf(s->routers[0].admin, sizeof s->routers[0].admin, "%s", g->admin);
        take_metrics(s, &s->routers[0], g, g->admin, ASK_TIMEOUT_S);
    }
    json_decref(answer);
    return true;
}

/* /readyz answers 503 where it is not: then its body says why. */
static void take_ready(struct survey *s, const struct given *g)
{
    struct buf out;
    buf_init(&out, 0);
    int status = ask_openly(g, g->admin, SURVEY_READY, ASK_TIMEOUT_S, &out);
    json_t *answer = status > 0 ? ask_parse(g, buf_slice(&out)) : NULL;
    s->ready = status == 200;
    copy(s->why_not, sizeof s->why_not, answer, "why");
    if (fields_has_text(answer, "alone"))
        copy(s->alone_why, sizeof s->alone_why, answer, "alone");
    json_decref(answer);
    buf_free(&out);
}

bool survey_take(struct survey *s, const struct given *g, bool quiet)
{
    int status;
    *s = (struct survey){.at_s = call_seconds()};
    s->replicas = quiet ? ask_quietly(g, g->admin, admin_call_row(ADMIN_CALL_REPLICAS)->path,
                                      ASK_TIMEOUT_S, &status)
                        : ask_json(g, ADMIN_CALL_REPLICAS);
    s->answered = json_object();
    bool good = json_is_array(s->replicas);
    if (s->replicas != NULL && !good && !quiet)
        ask_other(g);
    if (good)
        take_ready(s, g);
    if (good && take_routers(s, g))
        return true;
    survey_free(s);
    return false;
}

/* One second of its figures. */
static void add_second(struct survey_minute *m, const json_t *second)
{
    const json_t *failed = json_object_get(second, "failed");
    m->requests += fields_number(second, "requests");
    m->hidden += fields_number(second, "hidden");
    m->results[NODE_RESULT_CLIENT_ERROR] += fields_number(second, "client_errors");
    m->results[NODE_RESULT_CLIENT_GONE] += fields_number(second, "client_gone");
    for (unsigned i = 0; i < NODE_RESULTS; i++)
        m->results[i] += fields_number(failed, node_result_text((enum node_result)i));
}

void survey_minutes_take(struct survey *s, const struct given *g)
{
    for (unsigned i = 0; i < s->router_count; i++) {
        struct survey_router *r = &s->routers[i];
        if (!r->reached)
            continue;
        json_t *answer = told_openly(g, r->admin, SURVEY_MINUTE);
        const json_t *second, *seconds = json_object_get(answer, "figures");
        size_t k;
        r->minute.known = json_is_array(seconds);
        json_array_foreach(seconds, k, second)
        {
            add_second(&r->minute, second);
        }
        json_decref(answer);
    }
}

void survey_free(struct survey *s)
{
    json_decref(s->replicas);
    json_decref(s->answered);
    free(s->routers);
    *s = (struct survey){0};
}

/* --- figures --------------------------------------------------------------------------------- */

static void add(struct survey_counters *sum, const struct survey_counters *c, double sign)
{
    sum->requests += sign * c->requests;
    sum->refused += sign * c->refused;
    sum->prompt_tokens += sign * c->prompt_tokens;
    sum->cached_tokens += sign * c->cached_tokens;
    sum->first_tokens += sign * c->first_tokens;
    sum->first_seconds += sign * c->first_seconds;
    for (unsigned i = 0; i < NODE_RESULTS; i++)
        sum->results[i] += sign * c->results[i];
    for (unsigned i = 0; i < c->bucket_count; i++) {
        sum->bucket_ends[i] = c->bucket_ends[i];
        sum->buckets[i] += sign * c->buckets[i];
    }
    sum->bucket_count = c->bucket_count > sum->bucket_count ? c->bucket_count : sum->bucket_count;
}

struct survey_counters survey_sum(const struct survey *s)
{
    struct survey_counters sum = {0};
    for (unsigned i = 0; i < s->router_count; i++)
        add(&sum, &s->routers[i].counters, 1);
    return sum;
}

struct survey_counters survey_since(const struct survey_counters *now,
                                    const struct survey_counters *before)
{
    struct survey_counters since = *now;
    if (now->requests >= before->requests && now->first_tokens >= before->first_tokens)
        add(&since, before, -1);
    return since;
}

double survey_failed(const double results[NODE_RESULTS])
{
    double sum = 0;
    for (unsigned i = 0; i < NODE_RESULTS; i++)
        sum += node_result_failed((enum node_result)i) ? results[i] : 0;
    return sum;
}

double survey_share(const struct survey_counters *c)
{
    return c->prompt_tokens > 0 ? c->cached_tokens / c->prompt_tokens : -1;
}

double survey_quantile(const struct survey_counters *c, double share)
{
    double rank = share * c->first_tokens, below = 0, from = 0;
    if (c->first_tokens <= 0)
        return -1;
    for (unsigned i = 0; i < c->bucket_count; i++) {
        if (c->buckets[i] >= rank && c->buckets[i] > below)
            return from + (c->bucket_ends[i] - from) * (rank - below) / (c->buckets[i] - below);
        below = c->buckets[i];
        from = c->bucket_ends[i];
    }
    return from;
}

double survey_in_flight(const json_t *replica)
{
    const json_t *load = json_object_get(replica, "load");
    return fields_number(load, "requests") + fields_number(load, "requests_of_others");
}
