#include "node/proxy/limit/peers.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/ip.h"

int peers_init(struct peers *peers, uint64_t most, const struct hash_secret *secret)
{
    size_t buckets = 64;
    while (buckets < most)
        buckets *= 2;
    *peers = (struct peers){.mask = buckets - 1, .secret = *secret};
    peers->buckets = calloc(buckets, sizeof peers->buckets[0]);
    return peers->buckets != NULL ? 0 : ERR_NOMEM;
}

void peers_free(struct peers *peers)
{
    CHECK(peers->count == 0);
    free(peers->buckets);
    peers->buckets = NULL;
}

static struct peers_bucket *bucket_of(const struct peers *peers, const uint64_t address[2])
{
    return &peers->buckets[hash64(&peers->secret, address, 16) & peers->mask];
}

struct peers_client *peers_enter(struct peers *peers, const char *address)
{
    uint8_t ip[IP_BYTES];
    uint64_t key[2];
    if (peers->buckets == NULL || !ip_parse(address, ip))
        return NULL;
    if (!ip_is_v4(ip))
        memset(ip + 8, 0, 8);
    memcpy(key, ip, sizeof key);
    struct peers_bucket *bucket = bucket_of(peers, key);
    struct peers_client *at = bucket->first;
    while (at != NULL && memcmp(at->address, key, sizeof key) != 0)
        at = at->next;
    if (at == NULL) {
        at = malloc(sizeof *at);
        if (at == NULL)
            return NULL;
        *at = (struct peers_client){.next = bucket->first, .address = {key[0], key[1]}};
        bucket->first = at;
        peers->count++;
    }
    at->open++;
    return at;
}

void peers_leave(struct peers *peers, struct peers_client *peer)
{
    CHECK(peer->open > 0);
    if (--peer->open > 0)
        return;
    struct peers_client **link = &bucket_of(peers, peer->address)->first;
    while (*link != peer)
        link = &(*link)->next;
    *link = peer->next;
    peers->count--;
    free(peer);
}
