#include "tests/lib/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static void path_of(char out[256], unsigned version, const char *name)
{
    (void)snprintf(out, 256, "tests/unit/cluster/recorded/%u/%s.hex", version, name);
}

static unsigned digit(int c)
{
    CHECK((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

void recorded_load(struct recorded *r, unsigned version, const char *name)
{
    char path[256];
    path_of(path, version, name);
    *r = (struct recorded){0};
    FILE *f = fopen(path, "r");
    CHECK(f != NULL); /* run from the top of the tree */
    bool open = false;
    for (int c = fgetc(f); c != EOF; c = fgetc(f)) {
        if (c == '\n') {
            r->count += open;
            open = false;
            continue;
        }
        CHECK(r->count < RECORDED_MAX);
        char byte = (char)(digit(c) << 4);
        byte = (char)(byte | (char)digit(fgetc(f)));
        CHECK(buf_append_char(&r->item[r->count], byte) == 0);
        open = true;
    }
    CHECK(fclose(f) == 0);
}

void recorded_add(struct recorded *r, struct slice bytes)
{
    CHECK(r->count < RECORDED_MAX && bytes.len > 0);
    CHECK(buf_append_slice(&r->item[r->count++], bytes) == 0);
}

void recorded_free(struct recorded *r)
{
    for (unsigned i = 0; i < r->count; i++)
        buf_free(&r->item[i]);
    *r = (struct recorded){0};
}

void recorded_update(const struct recorded *r, unsigned version, const char *name)
{
    const char *wanted = getenv("RECORDED");
    if (wanted == NULL || strcmp(wanted, "update") != 0)
        return;
    char path[256];
    path_of(path, version, name);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    for (unsigned i = 0; i < r->count; i++) {
        for (size_t k = 0; k < r->item[i].len; k++)
            CHECK(fprintf(f, "%02x", (unsigned char)r->item[i].at[k]) == 2);
        CHECK(fputc('\n', f) == '\n');
    }
    CHECK(fclose(f) == 0);
}

struct slice recorded_item(const struct recorded *r, unsigned index)
{
    CHECK(index < r->count);
    return buf_slice(&r->item[index]);
}
