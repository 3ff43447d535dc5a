/* Any sequence of operations on the prefix index, against a naive model. */
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/index_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct crdt_index_stats stats;
    if (size <= 2048)
        model_run(data, size, 8, &stats);
    return 0;
}
