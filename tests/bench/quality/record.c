#include "tests/bench/quality/record.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static FILE *to;
static char broken[RECORD_BROKEN_MAX][96];
static unsigned broken_count;

void record_open(const char *path)
{
    broken_count = 0;
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

/* Adds a promise by identity, the text up to the second colon, without the measurement. */
static void broken_add(const char *says, size_t name)
{
    size_t len = says[name] == ':' ? name + 1 + strcspn(says + name + 1, ":") : name;
    if (broken_count < RECORD_BROKEN_MAX)
        (void)snprintf(broken[broken_count], sizeof broken[0], "%.*s", (int)len, says);
    broken_count++;
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
    if (!kept)
        broken_add(says, name);
    if (to && says[name] == ':')
        line_put(json_pack("{s:s, s:s%, s:b, s:s}", "kind", "promise", "name", says, name, "kept",
                           (int)kept, "says", says + name + 2));
    return kept;
}

static bool listed(const char *name, const char *known)
{
    for (const char *at = known; at && *at; at += strspn(at, "; ")) {
        size_t len = strcspn(at, ";");
        if (len == strlen(name) && memcmp(at, name, len) == 0)
            return true;
        at += len;
    }
    return false;
}

enum record_status record_verdict(const char *known)
{
    enum record_status status = broken_count > 0 ? RECORD_KNOWN : RECORD_KEPT;
    printf("\n%u promise%s broken%s", broken_count, broken_count == 1 ? "" : "s",
           broken_count > 0 ? ":" : "");
    for (unsigned i = 0; i < broken_count && i < RECORD_BROKEN_MAX; i++) {
        bool is_known = listed(broken[i], known);
        printf("%s %s%s", i > 0 ? ";" : "", broken[i], is_known ? " (known)" : "");
        status = is_known ? status : RECORD_BROKEN;
    }
    printf("\n");
    return broken_count > RECORD_BROKEN_MAX ? RECORD_BROKEN : status;
}
