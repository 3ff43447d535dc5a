/* The cut of usage: what comes out does not depend on how the stream was cut into pieces, is a part
 * of it in its order, and misses nothing where there is no usage. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "http/usage_cut.h"

static size_t run(const uint8_t *data, size_t size, size_t step, char *to)
{
    struct http_usage_cut c;
    http_usage_cut_init(&c);
    size_t len = 0;
    for (size_t at = 0; at < size; at += step) {
        struct slice in = slice_of((const char *)data + at, size - at < step ? size - at : step),
                     out;
        while (http_usage_cut_next(&c, &in, &out)) {
            memcpy(to + len, out.at, out.len);
            len += out.len;
        }
        http_usage_cut_settled(&c);
        CHECK(in.len == 0);
    }
    struct slice rest = http_usage_cut_rest(&c);
    if (rest.len > 0)
        memcpy(to + len, rest.at, rest.len);
    len += rest.len;
    http_usage_cut_free(&c);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > HTTP_USAGE_CUT_MAX / 2)
        return 0;
    char *whole = malloc(size + 1), *pieces = malloc(size + 1);
    CHECK(whole != NULL && pieces != NULL);
    size_t len = run(data, size, size + 1, whole);
    CHECK(len <= size && (memmem(data, size, "\"usage\"", 7) != NULL || len == size));
    size_t at = 0;
    for (size_t i = 0; i < size && at < len; i++)
        at += (char)data[i] == whole[at];
    CHECK(at == len);
    CHECK(run(data, size, 1, pieces) == len && memcmp(whole, pieces, len) == 0);
    CHECK(run(data, size, 37, pieces) == len && memcmp(whole, pieces, len) == 0);
    free(whole);
    free(pieces);
    return 0;
}
