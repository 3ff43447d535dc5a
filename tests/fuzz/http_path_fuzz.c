/* Any bytes as a path. If an engine would decode a path into a control path, the router must see a
 * control path too: decoding once or twice must not turn "not control" into control. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *at = malloc(size + 1);
    char *once = malloc(size + 1);
    char *twice = malloc(size + 1);
    CHECK(at != NULL && once != NULL && twice != NULL);
    if (size > 0)
        memcpy(at, data, size);
    struct slice path = slice_of(at, size);
    struct http_route route = http_path_lookup(path, HTTP_METHOD_POST);
    CHECK(route.kind < HTTP_PATH_KINDS);
    CHECK(route.prefix <= size && (route.behind || route.prefix == 0));
    if (route.id.len > 0)
        CHECK(route.id.at > at && route.id.at + route.id.len <= at + size);
    if (route.kind == HTTP_PATH_OTHER) {
        struct slice decoded;
        if (http_percent_decode(path, once, size, &decoded) == 0) {
            CHECK(http_path_lookup(decoded, HTTP_METHOD_POST).kind != HTTP_PATH_CONTROL);
            if (http_percent_decode(decoded, twice, size, &decoded) == 0)
                CHECK(http_path_lookup(decoded, HTTP_METHOD_POST).kind != HTTP_PATH_CONTROL);
        }
    }
    if (route.kind == HTTP_PATH_CONTROL)
        CHECK(http_path_lookup(path, HTTP_METHOD_GET).kind == HTTP_PATH_CONTROL);
    free(twice);
    free(once);
    free(at);
    return 0;
}
