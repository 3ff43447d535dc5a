/* A request for several answers (`n`): the usage is their sum, so the sum ties no answer. */
#include <stdio.h>

#include "base/check.h"
#include "node/proxy/proxy_internal.h"
#include "node/route/router_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;
static struct kv_told told;
static unsigned tellings;

static void on_path(void *context, const struct kv_path *path)
{
    (void)context, (void)path;
}

static void on_told(void *context, const struct kv_told *one)
{
    (void)context;
    told = *one;
    tellings++;
}

static void ask(struct wire *client, unsigned number, const char *more)
{
    static const char answer[] = "{\"choices\":[{\"message\":{\"content\":\"hi\"}}],\"usage\":"
                                 "{\"prompt_tokens\":300,\"completion_tokens\":7}}";
    char body[1024], text[2048];
    int len = snprintf(body, sizeof body,
                       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
                       "\"%u%0500u\"}]%s}",
                       number, 0, more);
    int all = snprintf(text, sizeof text,
                       "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: "
                       "application/json\r\nContent-Length: %d\r\n\r\n%s",
                       len, body);
    proxy_world_send(&world, client, slice_of(text, (size_t)all));
    struct wire *engine = proxy_world_find(&world, SLICE("1a"));
    assert_non_null(engine);
    if (number == 0)
        proxy_world_accept(&world, engine, 0);
    len = snprintf(text, sizeof text,
                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                   "%zu\r\n\r\n%s",
                   sizeof answer - 1, answer);
    proxy_world_send(&world, engine, slice_of(text, (size_t)len));
    proxy_world_settle(&world);
}

static void usage_of_several_answers_is_marked(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        bool several;
    } cases[] = {{"", false},
                 {",\"n\":1", false},
                 {",\"n\":2", true},
                 {",\"n\":17", true},
                 {",\"n\":null", false}};
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true});
    struct node_router *router = world.node->router;
    node_router_events_watch(router, &(struct node_events_user){.path = on_path, .told = on_told});
    node_router_events_live(router, 0, true);
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        tellings = 0;
        ask(client, i, cases[i].more);
        assert_int_equal(tellings, 1);
        assert_int_equal(told.prompt_tokens, 300);
        assert_int_equal(told.output_tokens, cases[i].several ? KV_UNTOLD : 7);
    }
    node_router_events_watch(router, NULL);
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_of_several_answers_is_marked),
    };
    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}
