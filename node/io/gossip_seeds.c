#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/gossip_internal.h"

static bool same(const struct gossip_address *a, const struct gossip_address *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->ip, b->ip, 16) == 0;
}

/* Passes all addresses of all names, without duplicates, to the replication. */
static void tell(struct io_gossip *g)
{
    struct gossip_address all[GOSSIP_SEEDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < g->seed_count; i++) {
        const struct io_seed *s = &g->seeds[i];
        for (unsigned j = 0; j < s->count && count < GOSSIP_SEEDS_MAX; j++) {
            bool known = false;
            for (unsigned k = 0; k < count && !known; k++)
                known = same(&all[k], &s->at[j]);
            if (!known)
                all[count++] = s->at[j];
        }
    }
    gossip_seeds(node_replication_gossip(g->replication), all, count, io_now_us());
}

static void complain(struct io_seed *s, const char *error)
{
    uint64_t now = shell_now_ms(s->gossip->shell);
    if (s->complained_ms != 0 && now - s->complained_ms < IO_SEEDS_COMPLAIN_MS)
        return;
    s->complained_ms = now;
    log_event(s->gossip->log, LOG_WARN, "join_unresolved", LOG_CSTR("host", s->name.host),
              LOG_CSTR("error", error), LOG_CSTR("effect", "this router keeps looking it up"));
}

static void on_found(struct lookup *l, const char *error, bool more)
{
    struct io_seed *s = CONTAINER_OF(l, struct io_seed, lookup);
    struct io_gossip *g = s->gossip;
    const union lookup_address *a;
    if (error != NULL) {
        complain(s, error);
        return;
    }
    s->count = 0;
    for (unsigned i = 0; (a = lookup_at(l, i)) != NULL && s->count < IO_SEED_ADDRESSES_MAX; i++) {
        struct sockaddr_storage scratch;
        struct gossip_address *to = &s->at[s->count];
        if (io_address_from(to, &a->any) && io_address_to(&scratch, to, g->ipv6))
            s->count++;
    }
    if (s->count > 0)
        s->complained_ms = 0;
    else if (!more)
        complain(s, "no address of the kind that gossip-listen has (IPv4 or IPv6)");
    tell(g);
}

static void resolve(struct io_seed *s, uint64_t now_ms)
{
    s->asked = true;
    s->asked_ms = now_ms;
    if (!lookup_begin(&s->lookup, s->gossip->shell->dns, s->name.host))
        complain(s, err_text(ERR_NOMEM));
}

/* Returns true if no other router is reachable, so that look-ups are needed often. */
static bool is_alone(struct io_gossip *g)
{
    return gossip_peer_random(node_replication_gossip(g->replication), 0) == 0;
}

/* Logs a possible split of the cluster: no router to join has answered, and no other was met. */
static void miss_answers(struct io_gossip *g, uint64_t now_ms)
{
    if (g->seed_count == 0 || now_ms < g->unanswered_ms)
        return;
    struct gossip_stats s;
    gossip_stats(node_replication_gossip(g->replication), &s);
    if (s.seeds_unknown == 0 || s.seeds_answered > 0 || !is_alone(g))
        return;
    g->unanswered_ms = now_ms + IO_SEEDS_COMPLAIN_MS;
    char names[LOG_VALUE_BYTES_MAX] = "";
    for (unsigned i = 0; i < g->seed_count; i++) {
        const struct node_address *name = &g->seeds[i].name;
        size_t len = strlen(names);
        (void)snprintf(names + len, sizeof names - len,
                       strchr(name->host, ':') != NULL ? "%s[%s]:%u" : "%s%s:%u",
                       len > 0 ? " " : "", name->host, name->port);
    }
    log_event(g->log, LOG_WARN, "join_unanswered", LOG_CSTR("seeds", names),
              LOG_CSTR("check", "another router must run there, with this gossip port open for UDP "
                                "and TCP, and with the same key file and cluster-name"),
              LOG_CSTR("effect", "this router runs alone and keeps trying"));
}

void io_seeds_tick(struct io_gossip *g, uint64_t now_ms)
{
    miss_answers(g, now_ms);
    for (unsigned i = 0; i < g->seed_count; i++) {
        struct io_seed *s = &g->seeds[i];
        uint64_t age = now_ms - s->asked_ms;
        if (s->literal || (s->asked && age < IO_SEEDS_ALONE_MS))
            continue;
        if (!s->asked || age >= IO_SEEDS_JOINED_MS || is_alone(g))
            resolve(s, now_ms);
    }
}

int io_seeds_start(struct io_gossip *g)
{
    const struct node_strings *join = &g->options->join;
    if (join->count == 0)
        return 0;
    g->seeds = calloc(join->count, sizeof g->seeds[0]);
    if (g->seeds == NULL)
        return ERR_NOMEM;
    uint16_t port = g->bound.port;
    for (unsigned i = 0; i < join->count; i++) {
        struct io_seed *s = &g->seeds[g->seed_count++];
        s->gossip = g;
        CHECK(node_address_parse_default(slice_of_cstr(join->at[i]), port, &s->name) == 0);
        lookup_init(&s->lookup, s->name.port, on_found);
        struct sockaddr_storage at;
        bool v4 = uv_ip4_addr(s->name.host, s->name.port, (struct sockaddr_in *)&at) == 0;
        s->literal = v4 || uv_ip6_addr(s->name.host, s->name.port, (struct sockaddr_in6 *)&at) == 0;
        if (!s->literal)
            continue;
        struct sockaddr_storage scratch;
        if (io_address_from(&s->at[0], (struct sockaddr *)&at) &&
            io_address_to(&scratch, &s->at[0], g->ipv6))
            s->count = 1;
        else
            complain(s, "gossip-listen is IPv4 and this is not: listen to [::]");
    }
    tell(g);
    g->unanswered_ms = shell_now_ms(g->shell) + IO_SEEDS_ANSWER_MS;
    io_seeds_tick(g, shell_now_ms(g->shell));
    return 0;
}

void io_seeds_stop(struct io_gossip *g)
{
    for (unsigned i = 0; i < g->seed_count; i++)
        lookup_end(&g->seeds[i].lookup);
}
