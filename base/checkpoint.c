#include "base/checkpoint.h"

#include "base/check.h"

/* Steps are the largest weight not above position / STEP_SHARE. */
enum { STEP_SHARE = 24 };

uint32_t checkpoint_weight(uint8_t code)
{
    if (code == CHECKPOINT_CODE_BINDING)
        return 0;
    CHECK(code <= CHECKPOINT_CODE_MAX);
    if (code < 2)
        return code + 1u; /* 1, 2 */
    uint32_t power = 1u << (code / 2u);
    return code % 2 == 0 ? power + power / 2 : power * 2; /* 3, 4, 6, 8, 12, 16, ... */
}

static struct {
    uint32_t blocks;
    uint8_t code;
} table[CHECKPOINT_MAX];

/* Filled before main(): it is a constant, derived from STEP_SHARE rather than printed here. */
__attribute__((constructor)) static void fill_table(void)
{
    uint32_t at = 0;
    uint8_t code = 0;
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        while (code < CHECKPOINT_CODE_MAX &&
               checkpoint_weight((uint8_t)(code + 1)) <= at / STEP_SHARE)
            code++;
        at += checkpoint_weight(code);
        table[i].blocks = at;
        table[i].code = code;
    }
}

uint32_t checkpoint_blocks(unsigned ordinal)
{
    CHECK(ordinal < CHECKPOINT_MAX);
    return table[ordinal].blocks;
}

uint8_t checkpoint_code(unsigned ordinal)
{
    CHECK(ordinal < CHECKPOINT_MAX);
    return table[ordinal].code;
}
