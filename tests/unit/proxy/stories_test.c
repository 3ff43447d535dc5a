/* Stories of requests (tests/unit/proxy/stories/): each a script of events with the proxy's
 * actions, line by line. The trace is the assertion.
 *
 * A line without indentation is an event; the indented lines behind it are its effects.
 *
 *   replicas 2 | probes | set NAME VALUE         before the first event
 *   engines ENGINE | names | key KEY             the replicas' kind; the probes' API key
 *   admin-connections N                          on the admin port and the probe port
 *   client NAME KEY OPTIONS                      another client key (node/access/line.h)
 *   A connects | A connects from ADDRESS | A connects to the admin port | ... the probe port
 *   A posts PATH BODY | A gets PATH | A sends "BYTES" | A ends | A breaks
 *   A takes N | A takes nothing | A takes all    bytes that its kernel takes
 *   1a accepts | 1a refuses | 1a answers STATUS BODY | 1a streams | 1a says "CHUNK" | 1a is done
 *   1a sends "BYTES" | 1a ends | 1a breaks       ("1b" is the second connection to replica 1)
 *   1a is deaf                                   writing to it fails, reading works
 *   the next connect fails | the next connect is refused | ports N (to each replica) | files N
 *   the name of 1 has N addresses                the look-up ends, found 1 to N
 *   the name of 1 has the addresses N M [and more]   the same, N and M; more may follow
 *   replica 1 goes | replica 3 comes             by an operator
 *   wait MS | the process stands still MS | drain | the port closes | the node stops
 *   a round trip takes MS                        as TCP measures it
 *   the key becomes KEY | no retry is left      the budget is empty now
 *   counters                                     those that are not 0
 *   outcomes                                     the same, of the work at each replica
 *   tokens                                       the same, of each client's key
 *   the queue                                    as operators see it
 *
 * "BYTES"*1000 is a thousand times the bytes; a BODY may be written so too.
 *
 * STORIES=update build/tests/unit/proxy/stories_test writes the actions anew; read the difference
 * before you commit it. */
#include "tests/lib/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "http/chunked.h"
#include "node/access/access_internal.h"
#include "node/proxy/proxy_internal.h"
#include "node/route/router_internal.h"
#include "tests/lib/files.h"
#include "tests/lib/proxy_hosts.h"
#include "tests/lib/proxy_trace.h"

enum { SETTINGS_MAX = 16, STORIES_MAX = 512 };
static const char folder[] = "tests/unit/proxy/stories";

struct story {
    struct proxy_world *world;
    bool open;
    struct proxy_world_config config;
    const char *settings[2 * SETTINGS_MAX + 1];
    unsigned setting_count;
    char words[SETTINGS_MAX][2][64];
    char key[64];
    char clients[1024]; /* their keys */
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

static char escaped(struct slice text, size_t *i)
{
    static const char names[] = "nrt", bytes[] = "\n\r\t";
    char c = text.at[++*i];
    const char *known = strchr(names, c);
    if (known != NULL)
        return bytes[known - names];
    if (c != 'x')
        return c;
    char digits[3] = {text.at[*i + 1], text.at[*i + 2]};
    *i += 2;
    return (char)strtol(digits, NULL, 16);
}

/* "text\r\n" as bytes, "text"*3 three times; text without quotes as is. */
static void unescape(struct buf *out, struct slice s)
{
    s = slice_trim(s);
    if (s.len == 0 || s.at[0] != '"') {
        CHECK(buf_append_slice(out, s) == 0);
        return;
    }
    size_t last = s.len;
    while (s.at[--last] != '"')
        continue;
    uint64_t times = last + 1 < s.len ? number(slice_skip(s, last + 2)) : 1;
    struct buf once = {0};
    for (size_t i = 1; i < last; i++)
        CHECK(buf_append_char(&once, s.at[i] == '\\' ? escaped(s, &i) : s.at[i]) == 0);
    while (times-- > 0)
        CHECK(buf_append_slice(out, buf_slice(&once)) == 0);
    buf_free(&once);
}

static void send_text(struct story *s, struct wire *wire, struct buf *text)
{
    proxy_world_send(s->world, wire, buf_slice(text));
    buf_free(text);
}

/* Sends a message with a body; the head has the body's length. */
static void send_message(struct story *s, struct wire *wire, struct buf *head, struct slice body)
{
    struct buf bytes = {0};
    unescape(&bytes, body);
    CHECK(buf_printf(head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                     bytes.len) == 0);
    CHECK(buf_append_slice(head, buf_slice(&bytes)) == 0);
    buf_free(&bytes);
    send_text(s, wire, head);
}

static void post(struct story *s, struct wire *wire, struct slice rest)
{
    struct buf text = {0};
    struct slice path = word(&rest);
    CHECK(buf_printf(&text, "POST %.*s HTTP/1.1\r\nHost: grapevine\r\n", SLICE_ARG(path)) == 0);
    send_message(s, wire, &text, rest);
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
    CHECK(buf_printf(&text, "HTTP/1.1 %.*s X\r\n", SLICE_ARG(status)) == 0);
    send_message(s, wire, &text, rest);
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

static void sends(struct story *s, struct wire *wire, struct slice quoted)
{
    struct buf text = {0};
    unescape(&text, quoted);
    send_text(s, wire, &text);
}

static void streams(struct story *s, struct wire *wire, struct slice rest)
{
    (void)rest;
    raw(s, wire,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
}

static void is(struct story *s, struct wire *wire, struct slice what)
{
    if (slice_equal(what, SLICE("done")))
        raw(s, wire, HTTP_CHUNK_LAST);
    else if (slice_equal(what, SLICE("deaf")))
        proxy_world_deafen(s->world, wire);
    else
        fail_msg("is it done or deaf? %.*s", SLICE_ARG(what));
}

static void ends(struct story *s, struct wire *wire, struct slice rest)
{
    (void)rest;
    proxy_world_end(s->world, wire, false);
}

static void breaks(struct story *s, struct wire *wire, struct slice rest)
{
    (void)rest;
    proxy_world_end(s->world, wire, true);
}

static void accepts(struct story *s, struct wire *wire, struct slice rest)
{
    (void)rest;
    proxy_world_accept(s->world, wire, 0);
}

static void refuses(struct story *s, struct wire *wire, struct slice rest)
{
    (void)rest;
    proxy_world_accept(s->world, wire, ERR_CLOSED);
}

/* A fault of a connection, as the network reports it. */
static void finds(struct story *s, struct wire *wire, struct slice what)
{
    if (!slice_equal(what, SLICE("no port")))
        fail_msg("it finds no port, not %.*s", SLICE_ARG(what));
    proxy_world_accept(s->world, wire, ERR_FULL);
}

static const struct {
    const char *name;
    void (*act)(struct story *s, struct wire *wire, struct slice rest);
} verbs[] = {
    {"posts", post},     {"gets", get},        {"sends", sends},     {"ends", ends},
    {"breaks", breaks},  {"takes", takes},     {"accepts", accepts}, {"refuses", refuses},
    {"answers", answer}, {"streams", streams}, {"says", chunk},      {"is", is},
    {"finds", finds},
};

/* An action of a connection's peer. */
static void act(struct story *s, struct slice name, struct slice verb, struct slice rest)
{
    if (slice_equal(verb, SLICE("connects"))) {
        bool from = slice_starts_with(rest, SLICE("from "));
        enum proxy_port port = slice_equal(rest, SLICE("to the admin port"))   ? PROXY_PORT_ADMIN
                               : slice_equal(rest, SLICE("to the probe port")) ? PROXY_PORT_PROBE
                                                                               : PROXY_PORT_CLIENT;
        struct slice peer = from ? slice_skip(rest, strlen("from ")) : slice_of("", 0);
        assert_true(slice_to_cstr(peer, s->world->peer, sizeof s->world->peer));
        assert_non_null(proxy_world_connect(s->world, port));
        return;
    }
    struct wire *wire = proxy_world_find(s->world, name);
    if (wire == NULL)
        fail_msg("there is no connection %.*s", SLICE_ARG(name));
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (slice_equal(verb, slice_of_cstr(verbs[i].name))) {
            verbs[i].act(s, wire, rest);
            return;
        }
    }
    fail_msg("unknown verb %.*s", SLICE_ARG(verb));
}

/* --- without a connection -------------------------------------------------------------------- */

static void show_outcomes(struct proxy_world *w)
{
    static const char *const names[NODE_OUTCOMES] = {[NODE_OUTCOME_OK] = "ok",
                                                     [NODE_OUTCOME_CLIENT_GONE] = "client gone",
                                                     [NODE_OUTCOME_ENGINE_BUSY] = "busy",
                                                     [NODE_OUTCOME_ENGINE_ERROR] = "error",
                                                     [NODE_OUTCOME_CONNECT_FAILED] =
                                                         "connect failed",
                                                     [NODE_OUTCOME_BROKEN] = "broken",
                                                     [NODE_OUTCOME_IN_DOUBT] = "in doubt",
                                                     [NODE_OUTCOME_SLOW] = "slow",
                                                     [NODE_OUTCOME_NOT_SENT] = "not sent",
                                                     [NODE_OUTCOME_REJECTED] = "rejected",
                                                     [NODE_OUTCOME_STALLED] = "stalled"};
    for (unsigned i = 0; i < node_router_replica_count(w->node->router); i++) {
        const struct node_slot *slot = &w->node->router->slots[i];
        CHECK(buf_printf(&w->trace, "%u:", i + 1) == 0);
        for (unsigned n = 0; n < NODE_OUTCOMES; n++) {
            if (slot->outcomes[n] > 0)
                CHECK(buf_printf(&w->trace, " %s %llu", names[n],
                                 (unsigned long long)slot->outcomes[n]) == 0);
        }
        CHECK(buf_append_char(&w->trace, '\n') == 0);
    }
}

static void show_tokens(struct proxy_world *w)
{
    const struct access_table *t = w->access->table;
    for (unsigned i = 0; i < t->keys_count; i++) {
        const struct access_use *u = t->keys[i]->use;
        CHECK(buf_printf(&w->trace, "%s: prompt %llu, completion %llu\n", u->name,
                         (unsigned long long)u->prompt_tokens,
                         (unsigned long long)u->completion_tokens) == 0);
    }
}

static void show_queue(struct proxy_world *w)
{
    struct buf json = {0};
    struct json_writer writer = json_writer_of(&json);
    proxy_queue_write(w->proxy, &writer);
    CHECK(json_writer_finish(&writer) == 0);
    CHECK(buf_printf(&w->trace, "%.*s\n", SLICE_ARG(buf_slice(&json))) == 0);
    buf_free(&json);
}

/* "has 2 addresses" (1 and 2), or "has the addresses 2 3", with "and more" if the look-up goes
 * on. */
static void find_addresses(struct story *s, unsigned replica, struct slice rest)
{
    unsigned at[NET_ADDRESSES_MAX], count = 0;
    struct slice first = word(&rest);
    bool listed = slice_equal(first, SLICE("the")), more = slice_ends_with(rest, SLICE("and more"));
    if (listed)
        (void)word(&rest);
    while (listed ? rest.len > 0 && rest.at[0] != 'a' : count < number(first)) {
        assert_true(count < NET_ADDRESSES_MAX);
        at[count] = listed ? (unsigned)number(word(&rest)) : count + 1;
        count++;
    }
    proxy_hosts_resolved(s->world, replica, at, count, more);
}

/* "goes", "comes"; or the addresses of a name. False: neither. */
static bool replica_event(struct story *s, struct slice line)
{
    struct slice rest = line, first = word(&rest);
    bool name = slice_starts_with(line, SLICE("the name of "));
    if (name)
        rest = slice_skip(line, strlen("the name of "));
    else if (!slice_equal(first, SLICE("replica")))
        return false;
    unsigned replica = (unsigned)number(word(&rest)) - 1;
    struct slice verb = word(&rest);
    if (name)
        find_addresses(s, replica, rest);
    else
        proxy_world_wish(s->world, replica, slice_equal(verb, SLICE("comes")));
    return true;
}

static bool after(struct slice line, const char *text, struct slice *rest)
{
    *rest = slice_skip(line, strlen(text));
    return slice_starts_with(line, slice_of_cstr(text));
}

/* The replica's events are live, with blocks of four tokens. */
static void events_live(struct proxy_world *w, unsigned replica)
{
    w->node->router->replicas[replica].scrape.block_tokens = 4;
    node_router_events_live(w->node->router, replica, true);
}

/* False: the line is about a connection. */
static bool world_event(struct story *s, struct slice line)
{
    struct proxy_world *w = s->world;
    struct slice rest;
    if (slice_equal(line, SLICE("start")))
        return true; /* an event without a cause: the probes' first actions */
    if (slice_equal(line, SLICE("drain")))
        proxy_world_drain(w, false);
    else if (slice_equal(line, SLICE("the port closes")))
        proxy_world_drain(w, true);
    else if (slice_equal(line, SLICE("the node stops")))
        proxy_world_stop(w);
    else if (slice_equal(line, SLICE("counters")))
        proxy_trace_counters(&w->trace, proxy_stats(w->proxy));
    else if (slice_equal(line, SLICE("outcomes")))
        show_outcomes(w);
    else if (slice_equal(line, SLICE("tokens")))
        show_tokens(w);
    else if (slice_equal(line, SLICE("the queue")))
        show_queue(w);
    else if (slice_equal(line, SLICE("no retry is left")))
        w->proxy->admission.budget.level = 0;
    else if (slice_equal(line, SLICE("the next connect fails")))
        w->connect_error = ERR_UNREACHABLE;
    else if (slice_equal(line, SLICE("the next connect is refused")))
        w->connect_error = ERR_CLOSED;
    else if (after(line, "the events are live of replica ", &rest))
        events_live(w, (unsigned)number(rest) - 1);
    else if (slice_equal(line, SLICE("tokens may be asked for")))
        w->proxy->exchanges.ids_budget.bytes = KV_BUDGET_BYTES;
    else if (after(line, "ports ", &rest))
        w->ports = (unsigned)number(rest) + 1;
    else if (after(line, "files ", &rest))
        w->files = (unsigned)number(rest) + 1;
    else if (after(line, "wait ", &rest))
        proxy_world_wait(w, number(rest));
    else if (after(line, "a round trip takes ", &rest))
        w->round_trip_us = number(rest) * 1000;
    else if (after(line, "the process stands still ", &rest))
        proxy_world_stand_still(w, number(rest));
    else if (after(line, "the key becomes ", &rest))
        proxy_world_key(w, rest);
    else
        return replica_event(s, line);
    return true;
}

static enum node_engine engine_of(struct slice name)
{
    return slice_equal(name, SLICE("sglang")) ? NODE_ENGINE_SGLANG
           : slice_equal(name, SLICE("vllm")) ? NODE_ENGINE_VLLM
                                              : NODE_ENGINE_AUTO;
}

static void add_client(struct story *s, struct slice rest)
{
    struct access_line line = {.name = word(&rest)};
    line.digest = access_digest_of(word(&rest));
    struct buf text = {0};
    assert_int_equal(access_line_write(&text, &line), 0);
    text.len--;
    assert_int_equal(buf_printf(&text, " %.*s\n", SLICE_ARG(rest)), 0);
    size_t len = strlen(s->clients);
    assert_true(len + text.len < sizeof s->clients);
    memcpy(s->clients + len, text.at, text.len);
    buf_free(&text);
    s->config.client_keys = s->clients;
}

static void set_up(struct story *s, struct slice line)
{
    struct slice rest = line, first = word(&rest);
    if (slice_equal(first, SLICE("replicas"))) {
        s->config.replicas = (unsigned)number(rest);
    } else if (slice_equal(first, SLICE("probes"))) {
        s->config.probes = true;
    } else if (slice_equal(first, SLICE("names"))) {
        s->config.names = true;
    } else if (slice_equal(first, SLICE("engines"))) {
        s->config.engine = engine_of(rest);
    } else if (slice_equal(first, SLICE("key"))) {
        assert_true(slice_to_cstr(rest, s->key, sizeof s->key));
        s->config.key = s->key;
    } else if (slice_equal(first, SLICE("admin-connections"))) {
        s->config.admin_connections = (unsigned)number(rest);
    } else if (slice_equal(first, SLICE("client"))) {
        add_client(s, rest);
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
    static const char *const words[] = {"replicas", "probes", "set",    "names",
                                        "engines",  "key",    "client", "admin-connections"};
    struct slice first = slice_cut(&line, ' ');
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (slice_equal(first, slice_of_cstr(words[i])))
            return true;
    }
    return false;
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
    if (!world_event(s, line))
        act(s, first, word(&rest), rest);
}

/* The story with the actual actions. */
static void tell(struct slice text, struct buf *out)
{
    static struct proxy_world world;
    struct story s = {.world = &world, .config.engine = NODE_ENGINE_VLLM};
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
    assert_int_equal(file_read(path, &wanted), 0);
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
