/* Stories of requests (tests/unit/proxy/stories/): each is a script of events with the actions that
 * the proxy takes, line by line. The trace is the assertion.
 *
 * A line without indentation is an event; the indented lines behind it are what it led to.
 *
 *   replicas 2 | probes | set NAME VALUE        before the first event
 *   A connects | A posts PATH BODY | A gets PATH | A sends "BYTES" | A ends | A breaks
 *   A takes N | A takes nothing | A takes all    how much its kernel takes
 *   1a accepts | 1a refuses | 1a answers STATUS BODY | 1a streams | 1a says "CHUNK" | 1a is done
 *   1a sends "BYTES" | 1a ends | 1a breaks       ("1b" is the second connection to replica 1)
 *   the next connect fails | wait MS | drain | the port closes
 *
 * STORIES=update build/tests/unit/proxy/stories_test writes the actions anew; read the difference
 * before you commit it. */
#include "tests/lib/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/chunked.h"
#include "tests/lib/proxy_world.h"

enum { SETTINGS_MAX = 16, STORIES_MAX = 128 };
static const char folder[] = "tests/unit/proxy/stories";

struct story {
    struct proxy_world *world;
    bool open;
    struct proxy_world_config config;
    const char *settings[2 * SETTINGS_MAX + 1];
    unsigned setting_count;
    char words[SETTINGS_MAX][2][64];
};

static struct slice word(struct slice *rest)
{
    struct slice w = slice_cut(rest, ' ');
    *rest = slice_trim(*rest);
    return w;
}

static uint64_t number(struct slice s)
{
    uint64_t value;
    assert_int_equal(slice_to_u64(s, &value), 0);
    return value;
}

/* "text\r\n" as bytes. */
static void unescape(struct buf *out, struct slice s)
{
    s = slice_trim(s);
    assert_true(s.len >= 2 && s.at[0] == '"' && s.at[s.len - 1] == '"');
    for (size_t i = 1; i + 1 < s.len; i++) {
        char c = s.at[i];
        if (c == '\\') {
            c = s.at[++i];
            c = (char)(c == 'n' ? '\n' : c == 'r' ? '\r' : c);
        }
        CHECK(buf_append_char(out, c) == 0);
    }
}

static void send_text(struct story *s, struct wire *wire, struct buf *text)
{
    proxy_world_send(s->world, wire, buf_slice(text));
    buf_free(text);
}

static void post(struct story *s, struct wire *wire, struct slice rest)
{
    struct buf text = {0};
    struct slice path = word(&rest);
    CHECK(buf_printf(&text,
                     "POST %.*s HTTP/1.1\r\nHost: grapevine\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%.*s",
                     SLICE_ARG(path), rest.len, SLICE_ARG(rest)) == 0);
    send_text(s, wire, &text);
}

static void get(struct story *s, struct wire *wire, struct slice path)
{
    struct buf text = {0};
    CHECK(buf_printf(&text, "GET %.*s HTTP/1.1\r\nHost: grapevine\r\n\r\n", SLICE_ARG(path)) == 0);
    send_text(s, wire, &text);
}

static void answer(struct story *s, struct wire *wire, struct slice rest)
{
    struct buf text = {0};
    struct slice status = word(&rest);
    CHECK(buf_printf(&text,
                     "HTTP/1.1 %.*s X\r\nContent-Type: application/json\r\nContent-Length: "
                     "%zu\r\n\r\n%.*s",
                     SLICE_ARG(status), rest.len, SLICE_ARG(rest)) == 0);
    send_text(s, wire, &text);
}

static void chunk(struct story *s, struct wire *wire, struct slice quoted)
{
    struct buf data = {0}, text = {0};
    char size[HTTP_CHUNK_HEAD_MAX];
    unescape(&data, quoted);
    CHECK(buf_append(&text, size, http_chunk_head_write(size, data.len)) == 0);
    CHECK(buf_append_slice(&text, buf_slice(&data)) == 0);
    CHECK(buf_append_cstr(&text, HTTP_CHUNK_END) == 0);
    buf_free(&data);
    send_text(s, wire, &text);
}

static void raw(struct story *s, struct wire *wire, const char *text)
{
    proxy_world_send(s->world, wire, slice_of_cstr(text));
}

static void takes(struct story *s, struct wire *wire, struct slice what)
{
    size_t room = slice_equal(what, SLICE("all"))       ? SIZE_MAX
                  : slice_equal(what, SLICE("nothing")) ? 0
                                                        : number(what);
    proxy_world_room(s->world, wire, room);
}

/* What one connection's peer does. */
static void act(struct story *s, struct slice name, struct slice verb, struct slice rest)
{
    if (slice_equal(verb, SLICE("connects"))) {
        assert_non_null(proxy_world_connect(s->world, PROXY_PORT_CLIENT));
        return;
    }
    struct wire *wire = proxy_world_find(s->world, name);
    if (wire == NULL)
        fail_msg("there is no connection %.*s", SLICE_ARG(name));
    if (slice_equal(verb, SLICE("posts"))) {
        post(s, wire, rest);
    } else if (slice_equal(verb, SLICE("gets"))) {
        get(s, wire, rest);
    } else if (slice_equal(verb, SLICE("sends"))) {
        struct buf text = {0};
        unescape(&text, rest);
        send_text(s, wire, &text);
    } else if (slice_equal(verb, SLICE("ends"))) {
        proxy_world_end(s->world, wire, false);
    } else if (slice_equal(verb, SLICE("breaks"))) {
        proxy_world_end(s->world, wire, true);
    } else if (slice_equal(verb, SLICE("takes"))) {
        takes(s, wire, rest);
    } else if (slice_equal(verb, SLICE("accepts"))) {
        proxy_world_accept(s->world, wire, 0);
    } else if (slice_equal(verb, SLICE("refuses"))) {
        proxy_world_accept(s->world, wire, ERR_CLOSED);
    } else if (slice_equal(verb, SLICE("answers"))) {
        answer(s, wire, rest);
    } else if (slice_equal(verb, SLICE("streams"))) {
        raw(s, wire,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
    } else if (slice_equal(verb, SLICE("says"))) {
        chunk(s, wire, rest);
    } else if (slice_equal(verb, SLICE("is"))) {
        raw(s, wire, HTTP_CHUNK_LAST);
    } else {
        fail_msg("unknown verb %.*s", SLICE_ARG(verb));
    }
}

static void set_up(struct story *s, struct slice line)
{
    struct slice rest = line, first = word(&rest);
    if (slice_equal(first, SLICE("replicas"))) {
        s->config.replicas = (unsigned)number(rest);
    } else if (slice_equal(first, SLICE("probes"))) {
        s->config.probes = true;
    } else {
        assert_true(s->setting_count < SETTINGS_MAX);
        unsigned n = s->setting_count++;
        struct slice name = word(&rest);
        assert_true(slice_to_cstr(name, s->words[n][0], sizeof s->words[n][0]));
        assert_true(slice_to_cstr(rest, s->words[n][1], sizeof s->words[n][1]));
        s->settings[2 * n] = s->words[n][0];
        s->settings[2 * n + 1] = s->words[n][1];
    }
}

static bool is_set_up(struct slice line)
{
    return slice_starts_with(line, SLICE("replicas ")) || slice_equal(line, SLICE("probes")) ||
           slice_starts_with(line, SLICE("set "));
}

static void happen(struct story *s, struct slice line)
{
    if (!s->open) {
        s->config.settings = s->settings;
        s->config.seed = 1;
        proxy_world_open(s->world, &s->config);
        s->open = true;
    }
    struct slice rest = line, first = word(&rest);
    if (slice_equal(line, SLICE("start")))
        return; /* an event with no cause: what the probes do first */
    if (slice_equal(line, SLICE("drain")))
        proxy_world_drain(s->world, false);
    else if (slice_equal(line, SLICE("the port closes")))
        proxy_world_drain(s->world, true);
    else if (slice_equal(line, SLICE("the next connect fails")))
        s->world->connect_fails = true;
    else if (slice_equal(first, SLICE("wait")))
        proxy_world_wait(s->world, number(rest));
    else
        act(s, first, word(&rest), rest);
}

/* The story with the actions that really followed. */
static void tell(struct slice text, struct buf *out)
{
    static struct proxy_world world;
    struct story s = {.world = &world};
    while (text.len > 0) {
        struct slice line = slice_cut(&text, '\n');
        if (slice_starts_with(line, SLICE("    ")))
            continue;
        CHECK(buf_printf(out, "%.*s\n", SLICE_ARG(line)) == 0);
        if (line.len == 0 || line.at[0] == '#')
            continue;
        if (is_set_up(line)) {
            set_up(&s, line);
            continue;
        }
        happen(&s, line);
        struct slice trace = buf_slice(&world.trace);
        while (trace.len > 0) {
            struct slice action = slice_cut(&trace, '\n');
            CHECK(buf_printf(out, "    %.*s\n", SLICE_ARG(action)) == 0);
        }
        buf_clear(&world.trace);
    }
    assert_true(s.open);
    proxy_world_close(&world);
}

static void read_file(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char piece[4096];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        CHECK(buf_append(out, piece, n) == 0);
    (void)fclose(f);
}

static void show_difference(struct slice wanted, struct slice got)
{
    unsigned number = 1;
    while (wanted.len > 0 || got.len > 0) {
        struct slice a = slice_cut(&wanted, '\n'), b = slice_cut(&got, '\n');
        if (!slice_equal(a, b)) {
            print_message("line %u\n  wanted: %.*s\n  got:    %.*s\n", number, SLICE_ARG(a),
                          SLICE_ARG(b));
            return;
        }
        number++;
    }
}

static void run_story(void **state)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, (const char *)*state);
    struct buf wanted = {0}, got = {0};
    read_file(path, &wanted);
    tell(buf_slice(&wanted), &got);
    bool same = slice_equal(buf_slice(&wanted), buf_slice(&got));
    const char *update = getenv("STORIES");
    if (!same && update != NULL && strcmp(update, "update") == 0) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(got.at, 1, got.len, f), got.len);
        assert_int_equal(fclose(f), 0);
        same = true;
    }
    if (!same)
        show_difference(buf_slice(&wanted), buf_slice(&got));
    buf_free(&wanted);
    buf_free(&got);
    assert_true(same);
}

static int is_story(const struct dirent *entry)
{
    return strstr(entry->d_name, ".story") != NULL;
}

int main(void)
{
    static struct CMUnitTest tests[STORIES_MAX];
    struct dirent **names;
    int count = scandir(folder, &names, is_story, alphasort);
    if (count <= 0 || count > STORIES_MAX) {
        (void)fprintf(stderr, "run it from the top of the checkout: no %s\n", folder);
        return 1;
    }
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i]->d_name, .test_func = run_story, .initial_state = names[i]->d_name};
    int failed = _cmocka_run_group_tests("stories", tests, (size_t)count, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return failed;
}
