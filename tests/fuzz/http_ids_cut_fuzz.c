/* The cut of token ids: the output does not depend on the cuts of the answer, and an answer without
 * the names of ids is not changed. The first byte chooses between a stream and a body. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "http/ids_cut.h"

static uint64_t sum;

static void on_id(void *context, uint32_t id)
{
    (void)context;
    sum = sum * 31 + id + 1;
}

static void pass(struct http_ids_cut *c, struct slice in, char *to, size_t *len)
{
    struct slice out;
    while (http_ids_cut_next(c, &in, &out)) {
        memcpy(to + *len, out.at, out.len);
        *len += out.len;
    }
    http_ids_cut_settled(c);
    CHECK(in.len == 0);
}

static size_t run(const uint8_t *data, size_t size, size_t step, char *to)
{
    const struct http_ids_user user = {on_id, NULL};
    struct http_ids_cut c;
    size_t len = 0;
    sum = 0;
    http_ids_cut_init(&c, data[0] % 2 == 0, &user);
    for (size_t at = 1; at < size; at += step)
        pass(&c, slice_of((const char *)data + at, size - at < step ? size - at : step), to, &len);
    http_ids_cut_end(&c);
    pass(&c, slice_of("", 0), to, &len);
    http_ids_cut_free(&c);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *whole = malloc(2 * size), *pieces = malloc(2 * size);
    CHECK(whole != NULL && pieces != NULL);
    size_t len = run(data, size, size, whole);
    uint64_t ids = sum;
    if (memmem(data, size, "token_ids", 9) == NULL)
        CHECK(len == size - 1 && memcmp(whole, data + 1, len) == 0);
    if (memchr(data, '\r', size) == NULL || data[0] % 2 != 0) {
        CHECK(run(data, size, 1, pieces) == len && memcmp(whole, pieces, len) == 0 && sum == ids);
        CHECK(run(data, size, 37, pieces) == len && memcmp(whole, pieces, len) == 0);
    }
    free(whole);
    free(pieces);
    return 0;
}
