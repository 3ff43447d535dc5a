/* The tokenizer: two splits of the same bytes give the same tokens and text. */
#include "base/check.h"
#include "http/json.h"

struct digest {
    uint64_t sum;
    bool accepted;
};

static void add(struct digest *d, unsigned char c)
{
    d->sum = (d->sum ^ c) * 0x100000001b3u;
}

static struct digest run(const uint8_t *data, size_t size, size_t step, size_t room)
{
    char text[256 + HTTP_JSON_SLACK];
    struct http_json j;
    struct digest d = {.sum = 1};
    http_json_init(&j);
    for (size_t at = 0; at < size; at += step) {
        struct slice in = slice_of((const char *)data + at, size - at < step ? size - at : step);
        for (;;) {
            if (http_json_in_text(&j)) {
                size_t n = http_json_text(&j, &in, text, room);
                CHECK(n <= room);
                for (size_t i = 0; i < n; i++)
                    add(&d, (unsigned char)text[i]);
                if (http_json_in_text(&j) && in.len == 0)
                    break;
                continue;
            }
            enum http_json_token token = http_json_next(&j, &in);
            if (token <= HTTP_JSON_MORE)
                break;
            add(&d, (unsigned char)token);
            if (token == HTTP_JSON_NUMBER)
                for (size_t i = 0; i < http_json_number(&j).len; i++)
                    add(&d, (unsigned char)http_json_number(&j).at[i]);
        }
        CHECK(j.depth <= HTTP_JSON_DEPTH_MAX);
    }
    d.accepted = http_json_finish(&j);
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct digest whole = run(data, size, size + 1, 256);
    static const size_t steps[] = {1, 3, 41};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct digest split = run(data, size, steps[i], steps[i]);
        CHECK(split.accepted == whole.accepted);
        CHECK(!whole.accepted || split.sum == whole.sum);
    }
    return 0;
}
