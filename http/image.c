/* PNG: RFC 2083, 4.1.1. JPEG: ITU-T T.81, B.2.2. GIF: GIF89a, 18. WebP: RFC 9649, 2.5 to 2.7. */
#include "http/image.h"

#include <stdbool.h>
#include <string.h>

enum { DECODED_MAX = 720, PREFIX_MAX = 100 };

/* The decoded beginning of a file. Reading beyond the end gives 0. */
struct file {
    unsigned char at[DECODED_MAX + 4];
    uint32_t len;
};

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static void decode(struct slice text, struct file *out)
{
    memset(out, 0, sizeof *out);
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < text.len && out->len < DECODED_MAX; i++) {
        int digit = digit_of(text.at[i]);
        if (digit < 0)
            return;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out->at[out->len++] = (unsigned char)(bits >> count);
        }
    }
}

static uint32_t byte_at(const struct file *f, uint32_t at)
{
    return at < f->len ? f->at[at] : 0;
}

static uint32_t big16(const struct file *f, uint32_t at)
{
    return byte_at(f, at) << 8 | byte_at(f, at + 1);
}

static uint32_t little16(const struct file *f, uint32_t at)
{
    return byte_at(f, at + 1) << 8 | byte_at(f, at);
}

static bool has(const struct file *f, uint32_t at, const char *bytes, uint32_t len)
{
    return at + len <= f->len && memcmp(f->at + at, bytes, len) == 0;
}

struct size {
    uint64_t width, height;
};

static struct size png_size(const struct file *f)
{
    return (struct size){(uint64_t)big16(f, 16) << 16 | big16(f, 18),
                         (uint64_t)big16(f, 20) << 16 | big16(f, 22)};
}

static struct size webp_size(const struct file *f)
{
    enum { SIDE_BITS = 14, SIDE_MASK = (1 << SIDE_BITS) - 1 };
    if (has(f, 12, "VP8X", 4))
        return (struct size){1 + (little16(f, 24) | byte_at(f, 26) << 16),
                             1 + (little16(f, 27) | byte_at(f, 29) << 16)};
    if (has(f, 12, "VP8L", 4)) {
        uint32_t bits = little16(f, 21) | little16(f, 23) << 16;
        return (struct size){1 + (bits & SIDE_MASK), 1 + (bits >> SIDE_BITS & SIDE_MASK)};
    }
    return (struct size){little16(f, 26) & SIDE_MASK, little16(f, 28) & SIDE_MASK};
}

/* A JPEG is a sequence of segments. Returns the size in the segment "frame", or 0 for both
 * sides. */
static struct size jpeg_size(const struct file *f)
{
    for (uint32_t at = 2; at + 9 <= f->len && byte_at(f, at) == 0xff;) {
        uint32_t marker = byte_at(f, at + 1);
        bool begins_frame =
            marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
        if (begins_frame)
            return (struct size){big16(f, at + 7), big16(f, at + 5)};
        at += 2 + big16(f, at + 2);
    }
    return (struct size){0, 0};
}

uint32_t http_image_kilopixels(struct slice text)
{
    if (slice_starts_with(text, SLICE("data:"))) {
        size_t most = text.len < PREFIX_MAX ? text.len : PREFIX_MAX;
        const char *comma = memchr(text.at, ',', most);
        if (comma == NULL)
            return 0;
        text = slice_of(comma + 1, text.len - (size_t)(comma + 1 - text.at));
    }
    /* The first letters of each format in base64: most strings are something else. */
    bool likely =
        text.len > 5 && (memcmp(text.at, "iVBOR", 5) == 0 || memcmp(text.at, "/9j/", 4) == 0 ||
                         memcmp(text.at, "R0lGO", 5) == 0 || memcmp(text.at, "UklGR", 5) == 0);
    if (!likely)
        return 0;
    struct file f;
    decode(text, &f);
    struct size size = {0, 0};
    if (has(&f, 0, "\x89PNG\r\n\x1a\n", 8))
        size = png_size(&f);
    else if (has(&f, 0, "\xff\xd8\xff", 3))
        size = jpeg_size(&f);
    else if (has(&f, 0, "GIF8", 4))
        size = (struct size){little16(&f, 6), little16(&f, 8)};
    else if (has(&f, 0, "RIFF", 4) && has(&f, 8, "WEBPVP8", 7))
        size = webp_size(&f);
    if (size.width == 0 || size.height == 0)
        return 0;
    if (size.width >= (1u << 24) || size.height >= (1u << 24))
        return HTTP_IMAGE_KILOPIXELS_MAX;
    uint64_t kilopixels = (size.width * size.height + 999) / 1000;
    return kilopixels < HTTP_IMAGE_KILOPIXELS_MAX ? (uint32_t)kilopixels
                                                  : (uint32_t)HTTP_IMAGE_KILOPIXELS_MAX;
}
