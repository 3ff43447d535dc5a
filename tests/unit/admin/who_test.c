/* Permissions of the admin port, and the port's log. POST /explain revealed to anybody with access
 * to the port whether a text had been served: compare the cached tokens of the text with those of a
 * different text. The log named neither the caller nor the token of a drain, but had a line for
 * each refused call. */
#include <stdio.h>

#include "base/check.h"
#include "node/admin/admin_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

#define OUTSIDE "192.0.2.9"

static struct proxy_world world;
static char lines[64][512];
static unsigned line_count;

static void keep_line(void *context, struct slice line)
{
    (void)context;
    if (line_count < ARRAY_LEN(lines))
        (void)snprintf(lines[line_count], sizeof lines[0], "%.*s", SLICE_ARG(line));
    line_count++;
}

static void open_world(bool joins)
{
    proxy_world_open(&world, &(struct proxy_world_config){
                                 .replicas = 2, .quiet = true, .joins = joins, .seed = 1});
    world.log.write = keep_line;
    line_count = 0;
}

static struct slice change_token(void *context)
{
    (void)context;
    return SLICE("change");
}

static struct slice read_token(void *context)
{
    (void)context;
    return SLICE("read");
}

static void set_tokens(bool change, bool read)
{
    world.node->admin->config.token = change ? change_token : NULL;
    world.node->admin->config.read_token = read ? read_token : NULL;
}

/* Returns the status; `answer` becomes the whole answer. `token` may be NULL. */
static int call(const char *from, const char *method, const char *target, const char *token,
                char answer[2048])
{
    static const char body[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                               "\"content\":\"some words\"}]}";
    char request[512];
    bool explains = strstr(target, "/explain") != NULL;
    int len =
        snprintf(request, sizeof request,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", method,
                 target, token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "",
                 token != NULL ? "\r\n" : "", explains ? sizeof body - 1 : 0, explains ? body : "");
    (void)snprintf(world.peer, sizeof world.peer, "%s", from);
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    assert_non_null(w);
    proxy_world_send(&world, w, slice_of(request, (size_t)len));
    proxy_world_wait(&world, 10);
    (void)snprintf(answer, 2048, "%.*s", (int)w->out.len, w->out.at);
    int status = 0;
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
    proxy_world_end(&world, w, false);
    return status;
}

static void explain_needs_loopback_or_a_token(void **state)
{
    (void)state;
    static const char *const local[] = {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {OUTSIDE, "10.0.0.1", "fe80::1", "::ffff:" OUTSIDE};
    static const char *const calls[] = {"/explain", "/explain?all=1"};
    char answer[2048];
    open_world(true);
    for (unsigned tokens = 0; tokens < 4; tokens++) {
        bool change = (tokens & 1) != 0, read = (tokens & 2) != 0;
        set_tokens(change, read);
        for (size_t i = 0; i < ARRAY_LEN(local); i++)
            assert_int_equal(call(local[i], "POST", "/explain", read ? "read" : NULL, answer), 200);
        for (size_t i = 0; i < ARRAY_LEN(others) * ARRAY_LEN(calls); i++) {
            const char *from = others[i / 2], *target = calls[i % 2];
            int refused = tokens == 0 ? 403 : 401;
            assert_int_equal(call(from, "POST", target, NULL, answer), refused);
            assert_non_null(strstr(answer, "--token-file FILE"));
            assert_int_equal(call(from, "POST", target, "wrong", answer), refused);
            assert_int_equal(call(from, "POST", target, "read", answer), read ? 200 : refused);
            assert_int_equal(call(from, "POST", target, "change", answer), change ? 200 : refused);
        }
    }
    set_tokens(false, false);
    assert_int_equal(call("::ffff:" OUTSIDE, "POST", "/explain", NULL, answer), 403);
    assert_non_null(strstr(answer, "comes from " OUTSIDE "."));
    assert_non_null(strstr(answer, "admin-read-token-file"));
    assert_int_equal(call(OUTSIDE, "GET", "/replicas", NULL, answer), 200);
    proxy_world_close(&world);
}

/* Another site's page may link to ours, but a form there must not change anything. Browsers send a
 * form with the same fetch metadata as a link, and some send no Origin. */
static void form_posts_from_browsers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *method, *target;
        int status;
    } rows[] = {{"GET", "/replicas", 200},
                {"HEAD", "/replicas", 200},
                {"POST", "/log-level?level=warn", 403},
                {"DELETE", "/replicas?replica=r1", 403}};
    char answer[2048], head[256];
    open_world(true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)snprintf(head, sizeof head,
                       "%s HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
                       "Sec-Fetch-Dest: document\r\nX-Rest:",
                       rows[i].target);
        assert_int_equal(call("127.0.0.1", rows[i].method, head, NULL, answer), rows[i].status);
        assert_int_equal(rows[i].status == 403,
                         strstr(answer, "refuses calls from web pages") != NULL);
    }
    proxy_world_close(&world);
}

/* A request from loopback with any header of a proxy does not count as local. */
static void proxied_requests_do_not_count_as_local(void **state)
{
    (void)state;
    static const char *const names[] = {"Via",
                                        "Forwarded",
                                        "X-Forwarded-For",
                                        "X-Real-IP",
                                        "X_Forwarded_For",
                                        "X-Forwarded-Proto",
                                        "X-Client-IP",
                                        "True-Client-IP",
                                        "X-Forwarded-Host",
                                        "X-Forwarded-Server"};
    char answer[2048], head[256];
    open_world(true);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(head, sizeof head,
                       "/log-level?level=warn HTTP/1.1\r\n%s: 1.1 x\r\nX-Rest:", names[i]);
        assert_int_equal(call("127.0.0.1", "POST", head, NULL, answer), 403);
    }
    assert_int_equal(call("127.0.0.1", "POST", "/log-level?level=warn", NULL, answer), 200);
    proxy_world_close(&world);
}

static void changes_are_logged_with_caller_and_token(void **state)
{
    (void)state;
    static const struct {
        const char *method, *target, *token, *line;
    } rows[] = {
        {"POST", "/drain?replica=10.0.0.1:8000", "change",
         "replica_drain replica=10.0.0.1:8000 wish=drained from=" OUTSIDE " token=admin"},
        {"POST", "/undrain?replica=10.0.0.1:8000", "change",
         "replica_drain replica=10.0.0.1:8000 wish=undrained from=" OUTSIDE " token=admin"},
        {"DELETE", "/replicas?replica=10.0.0.2:8000", "change",
         "replica_wish replica=10.0.0.2:8000 wish=removed from=" OUTSIDE " token=admin"},
        {"POST", "/log-level?level=warn", "change",
         "log_level now=warn from=" OUTSIDE " token=admin"},
    };
    char answer[2048];
    open_world(false);
    set_tokens(true, true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        line_count = 0;
        assert_int_equal(call(OUTSIDE, rows[i].method, rows[i].target, rows[i].token, answer), 200);
        bool found = false;
        for (unsigned l = 0; l < line_count; l++) {
            found = found || strstr(lines[l], rows[i].line) != NULL;
            assert_null(strstr(lines[l], "change"));
        }
        if (!found)
            fail_msg("%s is not in the log: %s", rows[i].line, lines[0]);
    }
    set_tokens(false, true);
    line_count = 0;
    world.log.level = LOG_INFO;
    assert_int_equal(call("::1", "POST", "/drain?replica=10.0.0.1:8000", "read", answer), 200);
    assert_non_null(strstr(lines[0], "from=::1 token=read"));
    proxy_world_close(&world);
}

static unsigned refused_lines(void)
{
    unsigned n = 0;
    for (unsigned l = 0; l < line_count; l++)
        n += strstr(lines[l], "admin_refused") != NULL;
    return n;
}

static void repeated_refusals_do_not_fill_the_log(void **state)
{
    (void)state;
    char answer[2048], from[32];
    open_world(false);
    set_tokens(true, false);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(call(OUTSIDE, "POST", "/drain", i > 0 ? "guess" : NULL, answer), 401);
    assert_int_equal(refused_lines(), 1);
    assert_non_null(strstr(lines[0], "from=" OUTSIDE " path=/drain token=none count=1"));
    assert_int_equal(call(OUTSIDE, "POST", "/explain", "guess", answer), 401);
    assert_int_equal(refused_lines(), 2); /* another call */
    line_count = 0;
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(from, sizeof from, "10.1.0.%u", i);
        assert_int_equal(call(from, "POST", "/drain", NULL, answer), 401);
    }
    assert_int_equal(refused_lines(), ADMIN_REFUSALS_MAX - 2);
    line_count = 0;
    proxy_world_wait(&world, ADMIN_REFUSALS_MS);
    assert_int_equal(call(OUTSIDE, "POST", "/drain", "guess", answer), 401);
    assert_int_equal(refused_lines(), 1);
    assert_non_null(strstr(lines[0], "token=wrong count=40 of_others=26"));
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_needs_loopback_or_a_token),
        cmocka_unit_test(form_posts_from_browsers_are_refused),
        cmocka_unit_test(proxied_requests_do_not_count_as_local),
        cmocka_unit_test(changes_are_logged_with_caller_and_token),
        cmocka_unit_test(repeated_refusals_do_not_fill_the_log),
    };
    return cmocka_run_group_tests_name("who", tests, NULL, NULL);
}
