#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"

void sim_put(struct buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CHECK(buf_reserve(out, 256) == 0);
    int n = vsnprintf(out->at + out->len, out->cap - out->len, format, args);
    va_end(args);
    CHECK(n >= 0);
    if ((size_t)n >= out->cap - out->len) {
        CHECK(buf_reserve(out, (size_t)n + 1) == 0);
        va_start(args, format);
        (void)vsnprintf(out->at + out->len, out->cap - out->len, format, args);
        va_end(args);
    }
    out->len += (size_t)n;
}

void sim_put_json_inside(struct buf *out, struct slice text)
{
    CHECK(buf_reserve(out, text.len * 6 + 1) == 0);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '"' || c == '\\')
            out->at[out->len++] = '\\';
        if ((unsigned char)c >= 0x20)
            out->at[out->len++] = c;
        else if (c == '\n')
            out->len += (size_t)sprintf(out->at + out->len, "\\n");
        else
            out->len += (size_t)sprintf(out->at + out->len, "\\u%04x", (unsigned char)c);
    }
}

void sim_put_json(struct buf *out, struct slice text)
{
    if (text.at == NULL) {
        sim_put(out, "null");
        return;
    }
    sim_put(out, "\"");
    sim_put_json_inside(out, text);
    sim_put(out, "\"");
}
