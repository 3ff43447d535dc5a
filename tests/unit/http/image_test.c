/* Sizes of images, from the beginnings of files written by Pillow. */
#include "http/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/lib/test.h"

#define JPEG                                                                                       \
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwg"             \
    "JC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIy"             \
    "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/wAARCAJYAyADASI="

static const struct {
    const char *text;
    uint32_t kilopixels;
} cases[] = {
    {"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJa", 787}, /* 1024 x 768 */
    {"iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAIAAAA12IJa", 787}, /* Anthropic's, without a prefix */
    {"data:image/jpeg;base64," JPEG, 480},
    {"data:image/gif;base64,R0lGODdhgALgAYEAAAoU", 308},
    {"data:image/webp;base64,UklGRtYDAABXRUJQVlA4IMoDAACwbwCdASroA/QBPm02", 500},
    {"data:image/webp;base64,UklGRjoAAABXRUJQVlA4TC0AAAAv58N8AAdQiirUo/8B", 500},
    {"data:image/webp;base64,UklGRgwEAABXRUJQVlA4WAoAAAAQAAAA5wMA8wEAQUxQ", 500},
    {"iVBORw0KGgoAAAANSUhEUv//////////CAIAAAA12IJa", HTTP_IMAGE_KILOPIXELS_MAX},
    {"iVBORw0KGgoAAAANSUhEUgAAAAAAAAMACAIAAAA12IJa", 0}, /* no width */
    {"iVBORw0KGgo", 0},                                  /* cut off */
    {"https://example.com/a,b.png", 0},
    {"data:image/png;base64", 0},
    {"data:,", 0},
    {"", 0},
};

static void sizes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(http_image_kilopixels(slice_of_cstr(cases[i].text)), cases[i].kilopixels);
}

/* Any input: cut anywhere, and with letters changed. */
static void malformed_images_are_harmless(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 1);
    for (unsigned n = 0; n < 20000; n++) {
        const char *text = cases[prng_below(&prng, ARRAY_LEN(cases))].text;
        size_t len = (size_t)prng_below(&prng, strlen(text) + 1);
        char *copy = malloc(len + 1);
        memcpy(copy, text, len);
        for (unsigned i = 0; i < 3 && len > 0; i++)
            copy[prng_below(&prng, len)] = "/+A9z=,\x00"[prng_below(&prng, 8)];
        assert_true(http_image_kilopixels(slice_of(copy, len)) <= HTTP_IMAGE_KILOPIXELS_MAX);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(malformed_images_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
