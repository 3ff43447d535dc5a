#include "gossip/hellos.h"

#include <string.h>

enum { SECOND_US = 1000000, BURST_US = SECOND_US / 2 };

void gossip_hellos_init(struct gossip_hellos *h, uint64_t seed)
{
    memset(h, 0, sizeof *h);
    hash_secret_from_seed(&h->secret, seed);
}

void gossip_hellos_forget(struct gossip_hellos *h)
{
    memset(h->addresses, 0, sizeof h->addresses);
    h->count = 0;
}

static uint64_t hash_of(const struct gossip_hellos *h, const struct gossip_address *at)
{
    uint64_t hash = hash64(&h->secret, at->ip, at->family == 4 ? 4 : 16);
    return hash != 0 ? hash : 1;
}

static unsigned place_of(const struct gossip_hellos *h, uint64_t hash)
{
    unsigned i = (unsigned)hash % GOSSIP_HELLOS_ADDRESSES;
    while (h->addresses[i] != 0 && h->addresses[i] != hash)
        i = (i + 1) % GOSSIP_HELLOS_ADDRESSES;
    return i;
}

void gossip_hellos_know(struct gossip_hellos *h, const struct gossip_address *at)
{
    if (at->port == 0 || h->count >= GOSSIP_HELLOS_ADDRESSES / 2)
        return;
    uint64_t hash = hash_of(h, at);
    unsigned i = place_of(h, hash);
    h->count += h->addresses[i] == 0;
    h->addresses[i] = hash;
}

static bool ready(uint64_t due_us, uint64_t now_us)
{
    return due_us <= now_us + BURST_US;
}

static void count(uint64_t *due_us, uint64_t rate_s, uint64_t now_us)
{
    *due_us = (*due_us > now_us ? *due_us : now_us) + SECOND_US / rate_s;
}

bool gossip_hellos_take(struct gossip_hellos *h, const struct gossip_address *from, uint64_t now_us)
{
    uint64_t hash = hash_of(h, from);
    bool known = h->addresses[place_of(h, hash)] != 0;
    struct gossip_hellos_class *c = known ? &h->known : &h->others;
    uint64_t *source_us = &c->source_us[(hash >> 32) % GOSSIP_HELLOS_SOURCES];
    if (!ready(*source_us, now_us) || !ready(c->all_us, now_us))
        return false;
    count(source_us, GOSSIP_HELLOS_SOURCE_S, now_us);
    count(&c->all_us, known ? GOSSIP_HELLOS_KNOWN_S : GOSSIP_HELLOS_OTHERS_S, now_us);
    return true;
}
