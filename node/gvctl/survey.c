#include "node/gvctl/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/call.h"
#include "node/gvctl/fields.h"

#define SURVEY_READY   "/readyz?format=json"
#define SURVEY_FIGURES "/figures?n=60" /* seconds */

/* --- routers --------------------------------------------------------------------------------- */

/* Makes a call without a token. Returns the JSON of the answer, whatever the status; NULL: no
 * JSON. */
static json_t *told_openly(const struct given *g, const char *admin, const char *target,
                           double timeout_s, int *status)
{
    struct call call = ask_call(g, target);
    struct buf out = {0};
    call.token = NULL;
    call.timeout_s = timeout_s;
    call.quiet = true;
    *status = call_admin(admin, &call, &out);
    json_t *answer = *status > 0 ? ask_parse(g, buf_slice(&out)) : NULL;
    buf_free(&out);
    return answer;
}

static void take_member(struct survey *s, const struct given *g, const json_t *m, unsigned *asked)
{
    struct survey_router *r = &s->routers[s->router_count++];
    *r = (struct survey_router){.member = m,
                                .name = fields_text(m, "name"),
                                .state = show_member_state(m),
                                .self = fields_is(m, "self")};
    const char *admin = fields_text(m, "admin");
    bool lives = fields_equal(m, "state", "alive") && strchr(admin, ':') != NULL;
    int status;
    if (!r->self && (!lives || ++*asked > SURVEY_ROUTERS_MAX))
        return;
    /* The list of members does not say if an admin port uses TLS: assume TLS if the asked router
     * uses it. */
    bool tls = strncmp(g->admin, "https://", strlen("https://")) == 0;
    (void)snprintf(r->admin, sizeof r->admin, "%s%s",
                   r->self ? ""
                   : tls   ? "https://"
                           : "http://",
                   r->self ? g->admin : admin);
    r->told = told_openly(g, r->admin, SURVEY_FIGURES, r->self ? ASK_TIMEOUT_S : 1, &status);
    if (r->self)
        s->unix_ms = fields_number(r->told, "now_ms");
    /* The answer may come from the wrong router: another machine's loopback address leads to this
     * machine. Another router reported the address, so no token is sent there. */
    if (!r->self && !fields_equal(r->told, "router", r->name)) {
        json_decref(r->told);
        r->told = NULL;
    }
    json_t *total = json_object_get(r->told, "total");
    r->total = json_is_object(total) ? total : NULL;
}

static bool take_routers(struct survey *s, const struct given *g)
{
    unsigned asked = 0;
    size_t i;
    const json_t *m;
    s->members = ask_json(g, ADMIN_CALL_MEMBERS, true);
    s->alone = !json_is_array(json_object_get(s->members, "members"));
    if (json_array_size(json_object_get(s->members, "members")) == 0) {
        json_decref(s->members);
        s->members = json_pack("{s:[{s:s,s:s,s:s,s:s,s:b}]}", "members", "name", "-", "version",
                               "-", "policy", "", "state", "alone", "self", 1);
    }
    const json_t *members = json_object_get(s->members, "members");
    s->routers = calloc(json_array_size(members) + 1, sizeof *s->routers);
    if (members == NULL || s->routers == NULL)
        return false;
    for (int self = 1; self >= 0; self--) {
        json_array_foreach(members, i, m)
        {
            if (fields_is(m, "self") == (self == 1))
                take_member(s, g, m, &asked);
        }
    }
    return true;
}

bool survey_take(struct survey *s, const struct given *g, bool quiet)
{
    int status;
    *s = (struct survey){.at_s = call_seconds()};
    s->replicas = ask_json(g, ADMIN_CALL_REPLICAS, quiet);
    bool good = json_is_array(s->replicas);
    if (s->replicas != NULL && !good && !quiet)
        ask_other(g);
    if (good) { /* answers 503 if not ready, with the reason in the body */
        s->readiness = told_openly(g, g->admin, SURVEY_READY, ASK_TIMEOUT_S, &status);
        s->ready = status == 200;
    }
    if (good && take_routers(s, g))
        return true;
    survey_free(s);
    return false;
}

void survey_free(struct survey *s)
{
    for (unsigned i = 0; i < s->router_count; i++)
        json_decref(s->routers[i].told);
    json_decref(s->readiness);
    json_decref(s->members);
    json_decref(s->replicas);
    free(s->routers);
    *s = (struct survey){0};
}

/* --- figures --------------------------------------------------------------------------------- */

static json_t *added(const json_t *sum, json_t *more, double times)
{
    json_t *out, *value;
    const char *key;
    size_t i;
    if (json_is_number(more))
        return json_real(json_number_value(sum) + times * json_number_value(more));
    out = json_is_array(more) ? json_array() : json_object();
    json_array_foreach(more, i, value)
    {
        (void)json_array_append_new(out, added(json_array_get(sum, i), value, times));
    }
    (void)json_object_update(out, (json_t *)sum);
    json_object_foreach(more, key, value)
    {
        (void)json_object_set_new(out, key, added(json_object_get(sum, key), value, times));
    }
    return out;
}

json_t *survey_add(json_t *sum, json_t *more, double times)
{
    json_t *out = added(sum, more, times);
    json_decref(sum);
    return out;
}

unsigned survey_counted(const struct survey *s)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->router_count; i++)
        count += s->routers[i].total != NULL ? 1 : 0;
    return count;
}

json_t *survey_sum(const struct survey *s)
{
    json_t *sum = json_object();
    for (unsigned i = 0; i < s->router_count; i++)
        sum = survey_add(sum, s->routers[i].total, 1);
    return sum;
}

json_t *survey_minute(const struct survey *s, unsigned *told)
{
    json_t *second, *sum = json_object();
    size_t i;
    *told = 0;
    for (unsigned k = 0; k < s->router_count; k++) {
        json_t *seconds = json_object_get(s->routers[k].told, "figures");
        *told += json_is_array(seconds) ? 1 : 0;
        json_array_foreach(seconds, i, second)
        {
            sum = survey_add(sum, second, 1);
        }
    }
    return sum;
}

json_t *survey_since(json_t *now, json_t *before)
{
    bool goes_on = before != NULL &&
                   fields_number(now, "requests") >= fields_number(before, "requests") &&
                   fields_number(now, "first_tokens") >= fields_number(before, "first_tokens");
    return goes_on ? added(now, before, -1) : json_incref(now);
}

double survey_failed(const json_t *counts)
{
    double sum = 0;
    const char *reason;
    json_t *count;
    json_object_foreach(json_object_get(counts, "failed"), reason, count)
    {
        sum += json_number_value(count);
    }
    return sum;
}

double survey_share(const json_t *counts)
{
    double prompt = fields_number(counts, "prompt_tokens");
    return prompt > 0 ? fields_number(counts, "cached_tokens") / prompt : -1;
}

double survey_quantile(const json_t *counts, double share)
{
    uint64_t streams[HISTOGRAM_BOUNDS + 1] = {0};
    const json_t *told = json_object_get(counts, "ttft_counts");
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        double count = json_number_value(json_array_get(told, i));
        streams[i] = count > 0 ? (uint64_t)count : 0;
    }
    return histogram_quantile(streams, share);
}

double survey_in_flight(const json_t *replica)
{
    const json_t *load = json_object_get(replica, "load");
    return fields_number(load, "requests") + fields_number(load, "requests_of_others");
}
