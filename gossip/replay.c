#include "gossip/replay.h"

static unsigned word_of(uint64_t counter)
{
    return (unsigned)(counter / 64 % GOSSIP_REPLAY_WORDS);
}

static uint64_t bit_of(uint64_t counter)
{
    return (uint64_t)1 << (counter % 64);
}

bool gossip_replay_fresh(const struct gossip_replay *r, uint64_t counter)
{
    if (counter >= r->next)
        return true;
    if (r->next - 1 - counter >= GOSSIP_REPLAY_WINDOW)
        return false;
    return (r->seen[word_of(counter)] & bit_of(counter)) == 0;
}

void gossip_replay_mark(struct gossip_replay *r, uint64_t counter)
{
    if (counter >= r->next) {
        /* Clears the words that the window slides into: they still have bits from a ring length
         * before. */
        uint64_t first = r->next == 0 ? 0 : (r->next - 1) / 64 + 1;
        uint64_t last = counter / 64;
        if (last >= GOSSIP_REPLAY_WORDS && first < last - (GOSSIP_REPLAY_WORDS - 1))
            first = last - (GOSSIP_REPLAY_WORDS - 1);
        for (uint64_t word = first; word <= last; word++)
            r->seen[word % GOSSIP_REPLAY_WORDS] = 0;
        r->next = counter + 1;
    }
    r->seen[word_of(counter)] |= bit_of(counter);
}
