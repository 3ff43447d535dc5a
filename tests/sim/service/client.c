/* Connections that send requests, in every manner, and read the answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/service/service.h"

enum { READ_MAX = 65536, ARRIVE_US = 12000, LOOK_US = 300000, RACE_US = 1000000 };

static const struct http_limits limits = {
    .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 16, .fields_max = HTTP_FIELDS_MAX};

/* --- the end --------------------------------------------------------------------------------- */

static void ask_end(struct service_ask *a, bool whole)
{
    if (a->ended)
        return;
    a->ended = true;
    a->whole = whole;
    a->done_us = a->service->world.now_us;
    service_judge_ask(a);
}

static void ask_left(struct service_ask *a)
{
    if (a->left)
        return;
    a->left = true;
    a->left_us = a->service->world.now_us;
}

/* Ends the connection: no more reads or writes. */
static void over(struct service_client *c)
{
    if (c->over)
        return;
    c->over = true;
    c->over_us = c->service->world.now_us;
    c->service->clients_open--;
    for (unsigned i = 0; i < c->count; i++) {
        if (c->asks[i]->begun_us && !c->asks[i]->ended) {
            ask_left(c->asks[i]);
            ask_end(c->asks[i], false);
        }
    }
}

static void close_end(struct service_client *c, bool reset)
{
    service_end_close(c->end, reset);
    over(c);
}

/* --- sending --------------------------------------------------------------------------------- */

static void go_on(void *context, struct world_event *event);

static void plan(struct service_client *c, uint64_t us)
{
    if (c->planned || c->over)
        return;
    c->planned = true;
    service_later(c->service, us, go_on, 0, 0, c);
}

static size_t sent_before(const struct service_client *c)
{
    size_t n = c->sent;
    for (unsigned i = 0; i < c->sending; i++)
        n += c->asks[i]->bytes.len;
    return n;
}

/* From now on, the client behaves according to `manner`. */
static void trouble(struct service_client *c)
{
    c->troubled = true;
    service_say(c->service, "client %llu %s", (unsigned long long)c->number,
                service_manner_text(c->manner));
    for (unsigned i = 0; i < c->count; i++) {
        if (!c->asks[i]->ended)
            ask_left(c->asks[i]);
    }
    switch (c->manner) {
    case SERVICE_HALF_CLOSES:
        service_end_finish(c->end);
        break;
    case SERVICE_LEAVES:
        close_end(c, c->trouble_resets);
        break;
    case SERVICE_VANISHES:
        c->end->gone = true;
        over(c);
        break;
    case SERVICE_READS_NOT:
        service_end_read(c->end, false);
        plan(c, LOOK_US);
        break;
    default:
        break;
    }
}

static bool may_send(const struct service_client *c)
{
    if (c->over || c->end->connecting || c->sending == c->count ||
        (c->troubled && c->manner != SERVICE_READS_NOT))
        return false;
    if (c->sent > 0 || c->sending == c->answering)
        return true;
    return c->manner == SERVICE_PIPELINES;
}

static void send_some(struct service_client *c)
{
    uint64_t now = c->service->world.now_us;
    while (may_send(c)) {
        struct service_ask *a = c->asks[c->sending];
        struct slice rest = slice_skip(buf_slice(&a->bytes), c->sent);
        size_t before = sent_before(c);
        bool sends_trouble = c->manner >= SERVICE_HALF_CLOSES && !c->trouble_reads;
        if (sends_trouble && c->manner != SERVICE_READS_NOT && before + rest.len >= c->trouble_at)
            rest.len = c->trouble_at > before ? c->trouble_at - before : 0;
        if (c->manner == SERVICE_TRICKLES && rest.len > 60)
            rest.len = 1 + service_below(c->service, 60);
        if (!a->begun_us) {
            a->begun_us = now;
            a->ills = service_ills(c->service);
        }
        size_t n = service_end_write(c->end, rest);
        c->sent += n;
        if (sends_trouble && c->manner != SERVICE_READS_NOT && before + n >= c->trouble_at) {
            trouble(c);
            return;
        }
        if (c->sent < a->bytes.len) {
            if (c->manner == SERVICE_TRICKLES && n == rest.len)
                plan(c, c->pace_us);
            return;
        }
        a->sent_us = now;
        c->sending++;
        c->sent = 0;
    }
}

static void resume_reading(struct service_client *c)
{
    if (!c->over && !c->end->reading && !(c->troubled && c->manner == SERVICE_READS_NOT))
        service_end_read(c->end, true);
}

static void go_on(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_client *c = event->object;
    c->planned = false;
    if (s->world.closing || c->over)
        return;
    if (c->troubled && c->manner == SERVICE_READS_NOT) {
        if (c->end->in_end)
            close_end(c, false);
        else
            plan(c, LOOK_US);
        return;
    }
    resume_reading(c);
    send_some(c);
}

/* --- reading --------------------------------------------------------------------------------- */

static void copy(char *out, size_t size, struct slice text)
{
    (void)slice_to_cstr(text, out, size);
}

/* False: more is needed. */
static bool take_head(struct service_client *c, struct service_ask *a)
{
    static struct http_head head;
    struct service *s = c->service;
    int err = http_response_parse(&head, c->in.at, c->in.len, false, &limits);
    if (err == ERR_AGAIN)
        return false;
    if (err != 0)
        service_broken(s, "malformed", "request %llu: the answer is no HTTP: %.*s",
                       (unsigned long long)a->number, (int)(c->in.len > 60 ? 60 : c->in.len),
                       c->in.at);
    if (head.status < 200 && (head.status != 100 || !a->expects))
        service_broken(s, "one answer", "request %llu: an interim answer %u that is not its own",
                       (unsigned long long)a->number, head.status);
    if (head.status >= 200) {
        a->status = head.status;
        a->head_us = s->world.now_us;
        copy(a->replica, sizeof a->replica, http_head_find(&head, SLICE("x-grapevine-replica")));
        copy(a->reason, sizeof a->reason, http_head_find(&head, SLICE("x-grapevine-reason")));
        copy(a->limit, sizeof a->limit, http_head_find(&head, SLICE("x-grapevine-limit")));
        struct slice id = http_head_find(&head, SLICE("x-request-id"));
        uint64_t number;
        if (slice_starts_with(id, SLICE("svc-")) && slice_to_u64(slice_skip(id, 4), &number) == 0 &&
            number != a->number && !a->crossed)
            service_broken(s, "stale answer", "request %llu got the answer to %llu",
                           (unsigned long long)a->number, (unsigned long long)number);
        a->answer_closes = !head.keep_alive;
        c->in_body = true;
        c->framing = head.framing;
        c->left = head.framing == HTTP_BODY_LENGTH ? head.content_length : 0;
        http_chunked_init(&c->chunks);
    }
    buf_consume(&c->in, head.bytes);
    return true;
}

static void answered(struct service_client *c)
{
    struct service_ask *a = c->asks[c->answering++];
    bool closes = a->answer_closes;
    c->in_body = false;
    bool unsent = a->sent_us == 0;
    ask_end(a, true);
    if (closes || unsent || c->answering == c->count) {
        if (c->answering == c->count && !closes && service_chance(c->service, 0.3))
            return; /* stays, idle */
        close_end(c, false);
        return;
    }
    if (c->sending == c->answering && c->sent == 0)
        plan(c, c->think_us);
}

static bool take_body(struct service_client *c, struct service_ask *a)
{
    struct slice in = buf_slice(&c->in);
    if (c->framing == HTTP_BODY_CHUNKED) {
        while (in.len > 0 && !c->chunks.done) {
            size_t used = 0;
            struct slice data = {0};
            if (http_chunked_next(&c->chunks, in, &used, &data) != 0)
                service_broken(c->service, "malformed", "request %llu: chunks",
                               (unsigned long long)a->number);
            CHECK(buf_append_slice(&a->body, data) == 0);
            in = slice_skip(in, used);
        }
        buf_consume(&c->in, c->in.len - in.len);
        return c->chunks.done;
    }
    size_t n = in.len;
    if (c->framing == HTTP_BODY_LENGTH && n > c->left)
        n = (size_t)c->left;
    if (c->framing == HTTP_BODY_NONE)
        n = 0;
    CHECK(buf_append(&a->body, in.at, n) == 0);
    buf_consume(&c->in, n);
    c->left -= c->framing == HTTP_BODY_LENGTH ? n : 0;
    return c->framing != HTTP_BODY_UNTIL_CLOSE && c->left == 0;
}

static void take_answers(struct service_client *c)
{
    while (!c->over && (c->in.len > 0 || c->in_body)) {
        if (c->answering == c->count)
            service_broken(
                c->service, "one answer", "client %llu: bytes that nobody asked for: %.*s",
                (unsigned long long)c->number, (int)(c->in.len > 80 ? 80 : c->in.len), c->in.at);
        struct service_ask *a = c->asks[c->answering];
        if (!a->begun_us) { /* turned away before any byte was sent */
            a->begun_us = c->service->world.now_us;
            ask_left(a);
        }
        if (!c->in_body && !take_head(c, a))
            return;
        if (!c->in_body)
            continue;
        if (!take_body(c, a))
            return;
        answered(c);
    }
}

static void on_connected(void *owner, int err)
{
    struct service_client *c = owner;
    if (err != 0) { /* no router there: the client tries another router later */
        c->refused = true;
        over(c);
        return;
    }
    service_end_read(c->end, true);
    send_some(c);
}

static void on_readable(void *owner)
{
    static char bytes[READ_MAX];
    struct service_client *c = owner;
    size_t most = sizeof bytes;
    bool slow = c->manner == SERVICE_READS_SLOWLY;
    bool blob = c->answering < c->count && c->asks[c->answering]->kind == SERVICE_BLOB;
    if (slow) /* fast enough to read a blob in half a minute */
        most = 1 + service_below(c->service, blob ? 2000 : 400);
    if (c->trouble_reads && c->took + most > c->trouble_at)
        most = c->trouble_at > c->took ? c->trouble_at - c->took : 0;
    size_t n = service_end_take(c->end, bytes, most);
    c->took += n;
    CHECK(buf_append(&c->in, bytes, n) == 0);
    take_answers(c);
    if (c->over)
        return;
    if (c->trouble_reads && c->took >= c->trouble_at && !c->troubled) {
        trouble(c);
    } else if (slow) {
        service_end_read(c->end, false);
        plan(c, c->pace_us);
    }
}

static void on_ended(void *owner, bool reset)
{
    struct service_client *c = owner;
    struct service *s = c->service;
    struct service_ask *a = c->answering < c->count ? c->asks[c->answering] : NULL;
    if (a && a->begun_us && !a->ended) {
        bool whole = c->in_body && c->framing == HTTP_BODY_UNTIL_CLOSE && !reset;
        bool race = c->answering > 0 && !a->status && s->world.now_us - a->begun_us < RACE_US;
        bool after_last = c->answering > 0 && c->asks[c->answering - 1]->answer_closes;
        /* Bytes behind a request may meet a closed socket if the answer closes. The reset overtakes
         * the end of that answer. */
        bool overtaken = reset && c->in_body && c->framing == HTTP_BODY_UNTIL_CLOSE &&
                         c->answering + 1 < c->count;
        if (race || after_last || overtaken)
            ask_left(a);
        service_say(s, "request %llu: its connection %s", (unsigned long long)a->number,
                    reset ? "is reset" : "ends");
        ask_end(a, whole);
    }
    close_end(c, false);
}

static void on_writable(void *owner)
{
    send_some(owner);
}

static const struct service_owner client_owner = {
    .connected = on_connected, .readable = on_readable, .ended = on_ended, .writable = on_writable};

/* --- coming ---------------------------------------------------------------------------------- */

static enum service_manner draw_manner(struct service *s)
{
    static const unsigned weights[SERVICE_MANNERS] = {
        [SERVICE_PLAIN] = 55,       [SERVICE_PIPELINES] = 8, [SERVICE_TRICKLES] = 6,
        [SERVICE_READS_SLOWLY] = 6, [SERVICE_READS_NOT] = 2, [SERVICE_HALF_CLOSES] = 3,
        [SERVICE_LEAVES] = 14,      [SERVICE_VANISHES] = 3,  [SERVICE_STALLS] = 3,
    };
    uint64_t at = service_below(s, 100);
    for (unsigned i = 0; i < SERVICE_MANNERS; i++) {
        if (at < weights[i])
            return (enum service_manner)i;
        at -= weights[i];
    }
    return SERVICE_PLAIN;
}

/* The client's patience has ended. */
static void impatient(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_client *c = event->object;
    if (!s->world.closing && !c->over && !c->troubled && !c->end->connecting)
        trouble(c);
}

/* Clients that stick to a single router leave the other routers without requests. */
static unsigned draw_router(struct service *s)
{
    if (!s->sticks)
        return (unsigned)service_below(s, s->router_count);
    if (s->world.now_us >= s->moves_us) {
        s->favourite = (unsigned)service_below(s, s->router_count);
        s->moves_us = s->world.now_us + service_between(s, 500, 5000) * SERVICE_MS;
    }
    return s->favourite;
}

static void client_new(struct service *s)
{
    struct service_client *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    *c = (struct service_client){.next = s->clients,
                                 .service = s,
                                 .number = s->client_count++,
                                 .router = draw_router(s),
                                 .manner = draw_manner(s),
                                 .count = 1 + (unsigned)service_below(s, SERVICE_ASKS_MAX),
                                 .think_us = service_below(s, 400 * SERVICE_MS),
                                 .pace_us = service_between(s, 1, 20) * SERVICE_MS};
    s->clients = c;
    s->clients_open++;
    buf_init(&c->in, 0);
    size_t bytes = 0;
    for (unsigned i = 0; i < c->count; i++) {
        c->asks[i] = service_ask_make(s, c);
        bytes += c->asks[i]->bytes.len;
        if (c->asks[i]->kind == SERVICE_MALFORMED || c->asks[i]->kind == SERVICE_TOO_LARGE ||
            c->asks[i]->close)
            c->count = i + 1;
    }
    bool may_read = c->manner == SERVICE_LEAVES || c->manner == SERVICE_VANISHES ||
                    c->manner == SERVICE_READS_NOT;
    c->trouble_reads = may_read && (c->manner == SERVICE_READS_NOT || service_chance(s, 0.6));
    c->trouble_at = c->trouble_reads ? 1 + service_below(s, 6000) : 1 + service_below(s, bytes);
    if (c->manner == SERVICE_HALF_CLOSES)
        c->trouble_at = bytes;
    if (c->manner == SERVICE_HALF_CLOSES)
        c->manner = c->count == 1 ? SERVICE_HALF_CLOSES : SERVICE_PLAIN;
    c->trouble_resets = service_chance(s, 0.5);
    c->end = service_end_pair(s);
    c->end->is = &client_owner;
    c->end->owner = c;
    c->end->peer->router = c->router;
    service_end_connect(c->end);
    bool goes = c->manner == SERVICE_LEAVES || c->manner == SERVICE_VANISHES;
    if (goes && service_chance(s, 0.6))
        service_later(s, service_between(s, 1, 1500) * SERVICE_MS, impatient, 0, 0, c);
}

static void come(void *context, struct world_event *event)
{
    struct service *s = context;
    if (s->world.closing || !s->working)
        return;
    if (s->clients_open < s->clients_max)
        client_new(s);
    world_put(&s->world, 1 + service_below(s, s->arrive_us), event);
}

void service_clients_begin(struct service *s)
{
    s->working = true;
    s->arrive_us = s->day == SERVICE_LONE ? ARRIVE_US : 2 * ARRIVE_US;
    service_later(s, 0, come, 0, 0, NULL);
}

void service_clients_free(struct service *s)
{
    while (s->clients) {
        struct service_client *c = s->clients;
        s->clients = c->next;
        buf_free(&c->in);
        free(c);
    }
}

const char *service_manner_text(enum service_manner m)
{
    static const char *const texts[SERVICE_MANNERS] = {
        [SERVICE_PLAIN] = "is plain",          [SERVICE_PIPELINES] = "pipelines",
        [SERVICE_TRICKLES] = "trickles",       [SERVICE_READS_SLOWLY] = "reads slowly",
        [SERVICE_READS_NOT] = "reads no more", [SERVICE_HALF_CLOSES] = "closes its half",
        [SERVICE_LEAVES] = "leaves",           [SERVICE_VANISHES] = "vanishes",
        [SERVICE_STALLS] = "stalls",
    };
    return texts[m];
}
