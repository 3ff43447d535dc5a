/* Metrics of keys. The first ACCESS_SHOWN_MAX names with a request are labels. All others share a
 * label that is always there, and that no key can have as a name. */
#include "node/access/access_internal.h"

static const struct slice others = SLICE("(others)");

struct shares {
    uint64_t requests, in_flight;
    uint64_t refused[ACCESS_VERDICTS];
    uint64_t tokens[3];
};

static struct shares shares_of(const struct access_use *u)
{
    struct shares s = {.requests = u->requests,
                       .in_flight = u->in_flight,
                       .tokens = {u->prompt_tokens, u->cached_tokens, u->completion_tokens}};
    memcpy(s.refused, u->refused, sizeof s.refused);
    return s;
}

static void add(struct shares *to, const struct shares *what)
{
    to->requests += what->requests;
    to->in_flight += what->in_flight;
    for (unsigned i = 0; i < ACCESS_VERDICTS; i++)
        to->refused[i] += what->refused[i];
    for (unsigned i = 0; i < 3; i++)
        to->tokens[i] += what->tokens[i];
}

typedef void write_shares(struct prometheus *p, struct slice name, const struct shares *s);

static void write_requests(struct prometheus *p, struct slice name, const struct shares *s)
{
    prometheus_label(p, "key", name);
    prometheus_value(p, (double)s->requests);
}

static void write_in_flight(struct prometheus *p, struct slice name, const struct shares *s)
{
    prometheus_label(p, "key", name);
    prometheus_value(p, (double)s->in_flight);
}

static void write_refused(struct prometheus *p, struct slice name, const struct shares *s)
{
    for (unsigned v = ACCESS_GOOD + 1; v < ACCESS_VERDICTS; v++) {
        if (s->refused[v] == 0 && !slice_equal(name, others))
            continue;
        prometheus_label(p, "key", name);
        prometheus_label(p, "limit", slice_of_cstr(access_verdict_name((enum access_verdict)v)));
        prometheus_value(p, (double)s->refused[v]);
    }
}

static void write_tokens(struct prometheus *p, struct slice name, const struct shares *s)
{
    static const char *const kinds[] = {"prompt", "cached", "completion"};
    for (unsigned i = 0; i < 3; i++) {
        prometheus_label(p, "key", name);
        prometheus_label(p, "kind", slice_of_cstr(kinds[i]));
        prometheus_value(p, (double)s->tokens[i]);
    }
}

void access_metrics(const struct access *given, struct prometheus *p)
{
    static const struct access none;
    const struct access *a = given != NULL ? given : &none;
    const struct prometheus_figure figures[] = {
        {"client_keys", "Client keys in force (client-keys-file).",
         a->table != NULL ? a->table->count : 0},
        {"client_keys_file_refused", "1 if client-keys-file is invalid.", a->refused},
    };
    static const struct {
        const char *name, *help;
        write_shares *write;
    } families[] = {
        {"key_requests_total", "Requests per client key.", write_requests},
        {"key_in_flight", "Requests in progress per client key.", write_in_flight},
        {"key_refused_total",
         "Requests refused per client key, by limit; also for models that the key may not use "
         "(models) and others' stored responses (responses).",
         write_refused},
        {"key_tokens_total", "Tokens per client key: prompt, of them cached, and completion.",
         write_tokens},
    };
    prometheus_figures(p, figures, sizeof figures / sizeof figures[0]);
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        struct shares rest = {0};
        prometheus_family(p, families[f].name, families[f].help);
        for (unsigned i = 0; a->table != NULL && i < a->table->keys_count; i++) {
            const struct access_use *u = a->table->keys[i]->use;
            struct shares s = shares_of(u);
            if (u->shown)
                families[f].write(p, slice_of_cstr(u->name), &s);
            else
                add(&rest, &s);
        }
        families[f].write(p, others, &rest);
    }
}
