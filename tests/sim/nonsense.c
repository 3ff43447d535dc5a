/* A router that holds the key and sends malformed packets, as no honest router does. */
#include "gossip/gossip_internal.h"
#include "tests/sim/sim.h"

enum {
    NONSENSE_FRAMES = 20,
    NONSENSE_US = 90000000, /* longer than a quarantine, which must end before the next nonsense */
};

void sim_nonsense(struct sim_world *w)
{
    struct world_node *n = &w->world.nodes[sim_any_node(w)];
    struct sim_record *record = sim_of(n);
    if (!world_runs(n) || n->leaving ||
        (record->nonsense_us > 0 && w->world.now_us - record->nonsense_us < NONSENSE_US))
        return;
    sim_say(w, "%s speaks nonsense", n->name);
    record->nonsense_us = w->world.now_us;
    w->nonsense = true;
    struct gossip *g = world_gossip(n);
    for (unsigned i = 0; i < g->listed * NONSENSE_FRAMES; i++) {
        struct gossip_peer *to = g->order[i % g->listed];
        if (!gossip_peer_open(to))
            continue;
        struct gossip_packet packet;
        gossip_packet_begin(&packet);
        wire_write_u8(&packet.w, GOSSIP_FRAME_DELTA);
        wire_write_varint(&packet.w, 1);
        wire_write_u8(&packet.w, 0xff); /* a delta has more bytes */
        gossip_link_send(g, to, &packet);
    }
    world_touch(n);
}
