/* A node of Maelstrom (https://github.com/jepsen-io/maelstrom): a JSON message a line on standard
 * input and output. docs/simulation.md says how to run it.
 *
 *   maelstrom broadcast | g-set | pn-counter | g-counter
 *
 * Messages between nodes carry datagrams of gossip/ as base64. Maelstrom's nemeses lose, delay and
 * cut them off, and never look inside. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "tests/maelstrom/node.h"

enum {
    NODES_MAX = 256,
    NAME_MAX_BYTES = 64,
    LINE_MAX_BYTES = 1 << 24,
    READ_BYTES = 65536,
    UNAVAILABLE = 11, /* Maelstrom's error codes */
    NOT_SUPPORTED = 10,
};

struct server {
    const char *workload;
    struct mael_node *node; /* NULL until init */
    unsigned self, count;
    char names[NODES_MAX][NAME_MAX_BYTES];
};

static uint64_t clock_us(clockid_t id)
{
    struct timespec t;
    CHECK(clock_gettime(id, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void write_message(const char *src, const char *dest, json_t *take_body)
{
    json_t *message = json_pack("{s:s, s:s, s:o}", "src", src, "dest", dest, "body", take_body);
    CHECK(message != NULL);
    CHECK(json_dumpf(message, stdout, JSON_COMPACT) == 0);
    (void)putchar('\n');
    (void)fflush(stdout);
    json_decref(message);
}

static void on_send(void *context, unsigned to, const uint8_t *bytes, size_t len)
{
    struct server *s = context;
    char text[sodium_base64_ENCODED_LEN(GOSSIP_DATAGRAM_MAX, sodium_base64_VARIANT_ORIGINAL)];
    CHECK(to < s->count && len <= GOSSIP_DATAGRAM_MAX);
    (void)sodium_bin2base64(text, sizeof text, bytes, len, sodium_base64_VARIANT_ORIGINAL);
    write_message(s->names[s->self], s->names[to],
                  json_pack("{s:s, s:s}", "type", "gossip", "data", text));
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    CHECK(getrandom(out, len, 0) == (ssize_t)len);
}

/* --- requests ------------------------------------------------------------------------------- */

static json_t *error_body(int code, const char *text)
{
    return json_pack("{s:s, s:i, s:s}", "type", "error", "code", code, "text", text);
}

static json_t *handle_init(struct server *s, const json_t *body)
{
    const char *name = json_string_value(json_object_get(body, "node_id"));
    const json_t *ids = json_object_get(body, "node_ids");
    if (s->node || !name || json_array_size(ids) == 0 || json_array_size(ids) > NODES_MAX)
        return error_body(NOT_SUPPORTED, "not this init");
    s->count = (unsigned)json_array_size(ids);
    s->self = s->count;
    for (unsigned i = 0; i < s->count; i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (!id || strlen(id) >= NAME_MAX_BYTES)
            return error_body(NOT_SUPPORTED, "a strange node id");
        (void)strcpy(s->names[i], id);
        if (strcmp(id, name) == 0)
            s->self = i;
    }
    if (s->self == s->count)
        return error_body(NOT_SUPPORTED, "this node is not in node_ids");
    struct mael_io io = {.context = s, .send = on_send, .random = on_random};
    int err = mael_node_create(&s->node, name, s->self, s->count, &io,
                               clock_us(CLOCK_REALTIME) / 1000, clock_us(CLOCK_MONOTONIC));
    if (err != ERR_OK)
        return error_body(UNAVAILABLE, err_text(err));
    return json_pack("{s:s}", "type", "init_ok");
}

static json_t *handle_add(struct server *s, const char *type, const json_t *body)
{
    const json_t *element = json_object_get(body, "message"); /* broadcast */
    if (!element)
        element = json_object_get(body, "element"); /* g-set */
    const json_t *delta = json_object_get(body, "delta");
    uint64_t now = clock_us(CLOCK_MONOTONIC);
    int err = ERR_SYNTAX;
    if (json_is_integer(element)) {
        err = mael_node_element_add(s->node, json_integer_value(element), now);
    } else if (json_is_integer(delta)) {
        mael_node_counter_add(s->node, json_integer_value(delta), now);
        err = ERR_OK;
    }
    if (err != ERR_OK)
        return error_body(err == ERR_SYNTAX ? NOT_SUPPORTED : UNAVAILABLE, err_text(err));
    return json_pack("{s:s+}", "type", type, "_ok");
}

static void collect(void *context, int64_t element)
{
    CHECK(json_array_append_new(context, json_integer(element)) == 0);
}

static json_t *handle_read(struct server *s)
{
    if (strstr(s->workload, "counter"))
        return json_pack("{s:s, s:I}", "type", "read_ok", "value",
                         (json_int_t)mael_node_counter(s->node));
    json_t *elements = json_array();
    CHECK(elements != NULL);
    mael_node_elements(s->node, collect, elements);
    const char *key = strcmp(s->workload, "broadcast") == 0 ? "messages" : "value";
    return json_pack("{s:s, s:o}", "type", "read_ok", key, elements);
}

static void handle_gossip(struct server *s, const char *src, const json_t *body)
{
    const char *data = json_string_value(json_object_get(body, "data"));
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    size_t len;
    if (!data || sodium_base642bin(bytes, sizeof bytes, data, strlen(data), NULL, &len, NULL,
                                   sodium_base64_VARIANT_ORIGINAL) != 0)
        return;
    for (unsigned i = 0; i < s->count; i++) {
        if (strcmp(s->names[i], src) == 0)
            mael_node_datagram(s->node, i, bytes, len, clock_us(CLOCK_MONOTONIC));
    }
}

static json_t *handle_deaths(struct server *s)
{
    struct gossip_stats stats;
    mael_node_stats(s->node, &stats);
    return json_pack("{s:s, s:I}", "type", "deaths_ok", "value", (json_int_t)stats.died);
}

static json_t *handle(struct server *s, const char *type, const json_t *body)
{
    if (strcmp(type, "init") == 0)
        return handle_init(s, body);
    if (!s->node)
        return error_body(UNAVAILABLE, "no init yet");
    mael_node_begin(s->node, clock_us(CLOCK_MONOTONIC)); /* clients come when all nodes are up */
    if (strcmp(type, "topology") == 0)
        return json_pack("{s:s}", "type", "topology_ok"); /* gossip has another topology */
    if (strcmp(type, "broadcast") == 0 || strcmp(type, "add") == 0)
        return handle_add(s, type, body);
    if (strcmp(type, "read") == 0)
        return handle_read(s);
    if (strcmp(type, "deaths") == 0) /* no workload's: members believed dead */
        return handle_deaths(s);
    return error_body(NOT_SUPPORTED, "unknown type");
}

static void handle_line(struct server *s, const char *line, size_t len)
{
    json_t *message = json_loadb(line, len, 0, NULL);
    const json_t *body = json_object_get(message, "body");
    const char *src = json_string_value(json_object_get(message, "src"));
    const char *dest = json_string_value(json_object_get(message, "dest"));
    const char *type = json_string_value(json_object_get(body, "type"));
    if (src && dest && type && strcmp(type, "gossip") == 0) {
        if (s->node)
            handle_gossip(s, src, body);
    } else if (src && dest && type) {
        json_t *reply = handle(s, type, body);
        json_t *id = json_object_get(body, "msg_id");
        CHECK(reply != NULL);
        if (id)
            CHECK(json_object_set(reply, "in_reply_to", id) == 0);
        write_message(dest, src, reply);
    } else {
        (void)fprintf(stderr, "not a message: %.*s\n", (int)(len < 200 ? len : 200), line);
    }
    json_decref(message);
}

/* --- the loop ------------------------------------------------------------------------------- */

static int wait_ms(const struct server *s)
{
    if (!s->node)
        return -1;
    uint64_t now = clock_us(CLOCK_MONOTONIC), due = mael_node_due_us(s->node);
    return due <= now ? 0 : due - now > 1000000 ? 1000 : (int)((due - now + 999) / 1000);
}

/* False at the end of the input. */
static bool take_input(struct server *s, struct buf *in)
{
    CHECK(buf_reserve(in, READ_BYTES) == ERR_OK);
    ssize_t got = read(0, in->at + in->len, READ_BYTES);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    in->len += (size_t)got;
    for (;;) {
        size_t end = slice_find(buf_slice(in), '\n');
        if (end == in->len)
            return true;
        handle_line(s, in->at, end);
        buf_consume(in, end + 1);
    }
}

int main(int argc, char **argv)
{
    static struct server s;
    if (argc != 2 || sodium_init() < 0) {
        (void)fprintf(stderr, "usage: maelstrom broadcast|g-set|pn-counter|g-counter\n");
        return 2;
    }
    s.workload = argv[1];
    struct buf in = {.max = LINE_MAX_BYTES};
    for (bool open = true; open;) {
        struct pollfd p = {.fd = 0, .events = POLLIN};
        int ready = poll(&p, 1, wait_ms(&s));
        if (ready > 0)
            open = take_input(&s, &in);
        if (s.node)
            mael_node_run(s.node, clock_us(CLOCK_MONOTONIC));
    }
    buf_free(&in);
    mael_node_destroy(s.node);
    return 0;
}
