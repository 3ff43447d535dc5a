#include "tests/bench/quality/record.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static FILE *to;

void record_open(const char *path)
{
    if (!path)
        return;
    to = fopen(path, "w");
    if (!to) {
        perror(path);
        exit(2);
    }
}

void record_close(void)
{
    if (to)
        (void)fclose(to);
    to = NULL;
}

static void line_put(json_t *line)
{
    CHECK(line != NULL);
    (void)json_dumpf(line, to, JSON_COMPACT | JSON_REAL_PRECISION(6));
    (void)fputc('\n', to);
    (void)fflush(to);
    json_decref(line);
}

void record_row(const struct quality_case *c, const char *says, const struct chooser *chooser,
                const struct figures *f)
{
    if (!to)
        return;
    line_put(json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "kind",
                       "row", "case", c->name, "says", says, "policy", chooser->name, "bound",
                       (int)chooser->is_bound, "routers", (int)c->routers, "speed", c->speed,
                       "cached", f->cached, "ttft_s", f->ttft_s, "p50_s", f->p50_s, "p99_s",
                       f->p99_s, "end_s", f->end_s, "deviation", f->deviation));
}

bool record_promise(bool kept, const char *format, ...)
{
    char says[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(says, sizeof says, format, args);
    va_end(args);
    printf("%s %s\n", kept ? "kept  " : "BROKEN", says);
    (void)fflush(stdout);
    size_t name = strcspn(says, ":");
    if (to && says[name] == ':')
        line_put(json_pack("{s:s, s:s%, s:b, s:s}", "kind", "promise", "name", says, name, "kept",
                           (int)kept, "says", says + name + 2));
    return kept;
}
