/* Files of client keys: an accepted file can be written again with the same meaning, a refused file
 * has a line number. Also other routers' news of keys. */
#include "base/check.h"
#include "node/access/access_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each line with a key is written as another line with the same meaning. */
static void lines(struct slice text)
{
    while (text.len > 0) {
        struct access_line line, again;
        const char *wrong;
        struct buf out = {0};
        int err = access_line_parse(slice_cut(&text, '\n'), &line, &wrong);
        CHECK((err < 0) == (wrong != NULL));
        if (err <= 0)
            continue;
        CHECK(access_line_write(&out, &line) == 0);
        CHECK(access_line_parse(slice_of(out.at, out.len - 1), &again, &wrong) == 1);
        CHECK(slice_equal(line.name, again.name) && slice_equal(line.models, again.models));
        CHECK(access_digest_equal(&line.digest, &again.digest));
        CHECK(memcmp(&line.limits, &again.limits, sizeof line.limits) == 0);
        buf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of((const char *)data, size);
    struct access_table *table = NULL;
    char message[ACCESS_MESSAGE_BYTES] = "";
    lines(text);
    int err = access_table_create(&table, text, message);
    CHECK((err == 0) == (table != NULL) && (err == 0) == (message[0] == '\0'));
    struct access *a;
    CHECK(access_create(&a) == 0);
    if (table != NULL)
        access_take(a, table);
    DISCARD(access_news_read(a, 1, text, 1000));
    access_check(a);
    access_destroy(a);
    return 0;
}
