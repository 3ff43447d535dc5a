/* The cut of usage. The output does not depend on the cuts of the stream, is a part of the stream
 * in order, and is the whole stream if there is no usage. A fingerprint moves; if the stream has
 * several choices, the cut may remove the fingerprint with the usage, depending on the pieces. */
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
    const struct slice rest[] = {http_usage_cut_finish(&c), http_usage_cut_rest(&c)};
    for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
        if (rest[i].len > 0)
            memcpy(to + len, rest[i].at, rest[i].len);
        len += rest[i].len;
    }
    http_usage_cut_free(&c);
    return len;
}

static unsigned count(const uint8_t *data, size_t size, struct slice what)
{
    unsigned n = 0;
    for (const uint8_t *end = data + size, *at = data;
         (at = memmem(at, (size_t)(end - at), what.at, what.len)) != NULL; at++)
        n++;
    return n;
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
    bool moves = count(data, size, SLICE("\"system_fingerprint\":\"")) > 0;
    bool several = count(data, size, SLICE("\"finish_reason\":\"")) > 1;
    size_t at = 0;
    for (size_t i = 0; i < size && at < len; i++)
        at += (char)data[i] == whole[at];
    CHECK(moves || at == len);
    static const size_t steps[] = {1, 37};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        size_t other = run(data, size, steps[i], pieces);
        CHECK(other <= size);
        CHECK((moves && several) || (other == len && memcmp(whole, pieces, len) == 0));
    }
    free(whole);
    free(pieces);
    return 0;
}
