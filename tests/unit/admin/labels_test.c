/* A replica added at run time is written as in the settings, with labels. The documents said that
 * gvctl add takes #engine=, but the answer was "want a port from 1 to 65535". */
#include <stdio.h>

#include "base/check.h"
#include "node/admin/admin_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

/* Returns the status of the change of `replica`; `answer` becomes the whole answer. */
static int ask(const char *method, const char *path, const char *replica, char answer[2048])
{
    char request[1024], query[512];
    size_t n = 0;
    for (const char *c = replica; *c != '\0'; c++)
        n += (size_t)snprintf(query + n, sizeof query - n, *c == '#' ? "%%23" : "%c", *c);
    int len = snprintf(request, sizeof request,
                       "%s %s?replica=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path, query);
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    assert_non_null(w);
    proxy_world_send(&world, w, slice_of(request, (size_t)len));
    proxy_world_wait(&world, ADMIN_ADD_PROBE_MS + 100);
    (void)snprintf(answer, 2048, "%.*s", (int)w->out.len, w->out.at);
    int status = 0;
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
    return status;
}

static enum node_engine engine_of(const char *name)
{
    int at = node_router_replica_find(world.node->router, slice_of_cstr(name));
    assert_true(at >= 0);
    return node_router_replica_engine(world.node->router, (unsigned)at);
}

static void an_added_replica_may_have_an_engine_label(void **state)
{
    (void)state;
    static const struct {
        const char *given, *name;
        enum node_engine engine;
    } rows[] = {
        {"10.0.1.1:8000#engine=vllm", "10.0.1.1:8000", NODE_ENGINE_VLLM},
        {"http://10.0.1.2:8000/#engine=sglang", "10.0.1.2:8000", NODE_ENGINE_SGLANG},
        {"https://10.0.1.3:8000#engine=other", "https://10.0.1.3:8000", NODE_ENGINE_OTHER},
        {"10.0.1.4:8000#engine=vllm&engine=vllm", "10.0.1.4:8000", NODE_ENGINE_VLLM},
        {"10.0.1.5:8000&engine=sglang", "10.0.1.5:8000", NODE_ENGINE_SGLANG},
    };
    char answer[2048];
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(ask("POST", "/replicas", rows[i].given, answer), 200);
        assert_non_null(strstr(answer, rows[i].name));
        assert_int_equal(engine_of(rows[i].name), rows[i].engine);
    }
    /* Other calls also accept the text from the settings as the replica's name. */
    assert_int_equal(ask("POST", "/drain", rows[0].given, answer), 200);
    assert_int_equal(ask("DELETE", "/replicas", rows[0].given, answer), 200);
    proxy_world_close(&world);
}

static void other_labels_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *given, *words;
    } rows[] = {
        {"10.0.1.1:8000#weight=2", "put other labels into the settings"},
        {"10.0.1.1:8000#engine=vllm#model=m", "put other labels into the settings"},
        {"10.0.1.1:8000#health=/h", "put other labels into the settings"},
        {"10.0.1.1:8000#ranks=2", "put other labels into the settings"},
        {"10.0.1.1:8000#cache-tokens=1000", "put other labels into the settings"},
        {"10.0.1.1:8000#adapters=on-demand", "put other labels into the settings"},
        {"10.0.1.1:8000#engine=tgi", "want engine=vllm, engine=sglang or engine=other"},
        {"10.0.1.1:8000#", "after # want a label"},
        {"10.0.1.1:8000#engine=vllm&engine=sglang", "want one engine"},
        {"10.0.1.1#engine=vllm", "the port is missing"},
        {"10.0.1.1:80000#engine=vllm", "want a port from 1 to 65535"},
    };
    char answer[2048];
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(ask("POST", "/replicas", rows[i].given, answer), 400);
        if (strstr(answer, rows[i].words) == NULL)
            fail_msg("%s: %s", rows[i].given, answer);
    }
    proxy_world_close(&world);
}

static void finished_calls_do_not_count_towards_the_limit(void **state)
{
    (void)state;
    char answer[2048];
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    for (unsigned i = 0; i <= ADMIN_ADDS_MAX; i++)
        assert_int_equal(ask("POST", "/replicas", "10.0.1.2:8000", answer), 200);
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_added_replica_may_have_an_engine_label),
        cmocka_unit_test(other_labels_are_refused_with_a_reason),
        cmocka_unit_test(finished_calls_do_not_count_towards_the_limit),
    };
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
