#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/discover/slices.h"
#include "tests/lib/test.h"

static struct discover_slices slices;
static struct discover_endpoint_list list;
static char why[DISCOVER_SLICES_WHY_MAX];

static int teardown(void **state)
{
    (void)state;
    discover_slices_clear(&slices);
    discover_endpoint_list_free(&list);
    return 0;
}

/* "http=8000 9000 | 10.0.0.1 10.0.0.2? 10.0.0.3-": ports, then endpoints; ? is not ready, -
 * terminates */
static void put(const char *name, enum discover_family family, const char *text)
{
    struct discover_port ports[8] = {0};
    struct discover_endpoint endpoints[8] = {0};
    struct discover_slice s = {.family = family, .ports = ports, .endpoints = endpoints};
    assert_true(slice_to_cstr(slice_of_cstr(name), s.name, sizeof s.name));
    struct slice right = slice_of_cstr(text);
    struct slice left = slice_trim(slice_cut(&right, '|'));
    right = slice_trim(right);
    while (left.len > 0) {
        struct slice number = slice_cut(&left, ' ');
        struct slice port = slice_cut(&number, '=');
        if (number.len > 0)
            assert_true(slice_to_cstr(port, ports[s.port_count].name, sizeof ports[0].name));
        uint64_t n = 0;
        assert_int_equal(slice_to_u64(number.len > 0 ? number : port, &n), 0);
        ports[s.port_count++].number = (uint16_t)n;
    }
    while (right.len > 0) {
        struct slice ip = slice_cut(&right, ' ');
        struct discover_endpoint *e = &endpoints[s.endpoint_count++];
        for (char last; (last = ip.at[ip.len - 1]) == '?' || last == '-'; ip.len--) {
            e->unready = e->unready || last == '?';
            e->terminating = e->terminating || last == '-';
        }
        assert_true(slice_to_cstr(ip, e->ip, sizeof e->ip));
    }
    assert_int_equal(discover_slices_put(&slices, &s), 0);
    discover_slices_check(&slices);
}

static void lists(const char *port, const char *want)
{
    char text[1024] = "";
    assert_int_equal(discover_slices_list(&slices, slice_of_cstr(port), &list, why), 0);
    for (unsigned i = 0; i < list.count; i++) {
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s%s%s", i > 0 ? " " : "", list.at[i].name,
                       list.at[i].draining ? "-" : "");
    }
    assert_string_equal(text, want);
}

static void refuses(const char *port, const char *want)
{
    assert_int_equal(discover_slices_list(&slices, slice_of_cstr(port), &list, why), ERR_NOT_FOUND);
    assert_string_equal(why, want);
}

static void all_slices_of_a_service_make_one_list(void **state)
{
    (void)state;
    put("vllm-a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.2 10.0.0.1");
    put("vllm-b", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.3");
    lists("", "10.0.0.1:8000 10.0.0.2:8000 10.0.0.3:8000");
    put("vllm-a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1");
    lists("", "10.0.0.1:8000 10.0.0.3:8000");
    discover_slices_remove(&slices, SLICE("vllm-b"));
    discover_slices_remove(&slices, SLICE("never there"));
    discover_slices_check(&slices);
    lists("", "10.0.0.1:8000");
    discover_slices_remove(&slices, SLICE("vllm-a"));
    lists("", "");
}

static void tls_replicas_have_https_names(void **state)
{
    (void)state;
    slices.tls = true;
    put("a", DISCOVER_FAMILY_IPV6, "8443 | fd00::1 fd00::2");
    lists("", "https://[fd00::1]:8443 https://[fd00::2]:8443");
    put("b", DISCOVER_FAMILY_IPV4, "8443 | 10.0.0.1");
    lists("", "https://10.0.0.1:8443");
    slices.tls = false;
}

/* The life of a pod: it starts, is ready, fails a check by the kubelet, is deleted. */
static void a_pod_is_listed_from_ready_until_deletion(void **state)
{
    (void)state;
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1?");
    lists("", "");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1");
    lists("", "10.0.0.1:8000");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1?");
    lists("", "10.0.0.1:8000");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1-");
    lists("", "10.0.0.1:8000-");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1?-");
    lists("", "10.0.0.1:8000-");
    put("a", DISCOVER_FAMILY_IPV4, "8000 |");
    lists("", "");
}

static void a_terminating_pod_is_not_listed_first(void **state)
{
    (void)state;
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1- 10.0.0.2");
    lists("", "10.0.0.2:8000");
    /* A new pod gets the address of a draining pod. Once the new pod is ready, it counts. */
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.2-");
    lists("", "10.0.0.2:8000-");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.2?");
    lists("", "");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.2");
    lists("", "10.0.0.2:8000");
}

static void an_endpoint_in_two_slices_is_listed_once(void **state)
{
    (void)state;
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1 10.0.0.2");
    put("b", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.2");
    lists("", "10.0.0.1:8000 10.0.0.2:8000");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1 10.0.0.2-");
    lists("", "10.0.0.1:8000 10.0.0.2:8000");
    put("a", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1");
    lists("", "10.0.0.1:8000 10.0.0.2:8000");
}

static void a_dual_stack_pod_is_listed_by_ipv4(void **state)
{
    (void)state;
    put("six", DISCOVER_FAMILY_IPV6, "8000 | fd00::1 fd00::2");
    put("names", DISCOVER_FAMILY_OTHER, "8000 | 1.2.3.4");
    lists("", "[fd00::1]:8000 [fd00::2]:8000");
    put("four", DISCOVER_FAMILY_IPV4, "8000 |"); /* a slice without endpoints so far */
    lists("", "[fd00::1]:8000 [fd00::2]:8000");
    put("four", DISCOVER_FAMILY_IPV4, "8000 | 10.0.0.1 10.0.0.2");
    lists("", "10.0.0.1:8000 10.0.0.2:8000");
}

static void ports_are_selected_by_number_or_name(void **state)
{
    (void)state;
    put("a", DISCOVER_FAMILY_IPV4, "http=8000 metrics=9000 | 10.0.0.1");
    put("b", DISCOVER_FAMILY_IPV4, "http=8001 metrics=9000 | 10.0.0.2");
    put("empty", DISCOVER_FAMILY_IPV4, "|"); /* a slice without endpoints is not checked */
    lists("http", "10.0.0.1:8000 10.0.0.2:8001");
    lists("30000", "10.0.0.1:30000 10.0.0.2:30000");
    refuses("", "want the number or the name of a port behind the service: its TCP ports are "
                "http=8001, metrics=9000");
    refuses("grpc", "the service has no TCP port grpc: its TCP ports are http=8001, metrics=9000");
    lists("30000", "10.0.0.1:30000 10.0.0.2:30000"); /* the old list stayed valid */
    /* During the renaming, slice b already has the new name. */
    put("b", DISCOVER_FAMILY_IPV4, "grpc=8001 | 10.0.0.2");
    lists("grpc", "10.0.0.2:8001");
}

static void ports_without_a_number_are_ignored(void **state)
{
    (void)state;
    put("a", DISCOVER_FAMILY_IPV4, "0 | 10.0.0.1");
    refuses("", "want the number or the name of a port behind the service: its TCP ports are 0");
    put("a", DISCOVER_FAMILY_IPV4, "| 10.0.0.1"); /* a headless service without ports */
    refuses("", "want the number or the name of a port behind the service: its TCP ports are none");
    lists("8000", "10.0.0.1:8000");
}

static void slices_beyond_the_limits_are_refused(void **state)
{
    (void)state;
    static struct discover_endpoint endpoints[DISCOVER_SLICE_ENDPOINTS_MAX];
    struct discover_slice s = {.family = DISCOVER_FAMILY_IPV4, .endpoints = endpoints};
    for (unsigned i = 0; i < DISCOVER_SLICES_MAX; i++) {
        (void)snprintf(s.name, sizeof s.name, "s%u", i);
        assert_int_equal(discover_slices_put(&slices, &s), 0);
    }
    (void)snprintf(s.name, sizeof s.name, "one more");
    assert_int_equal(discover_slices_put(&slices, &s), ERR_LIMIT);
    s.endpoint_count = DISCOVER_SLICE_ENDPOINTS_MAX;
    unsigned whole = DISCOVER_ENDPOINTS_MAX / DISCOVER_SLICE_ENDPOINTS_MAX;
    for (unsigned i = 0; i <= whole; i++) {
        (void)snprintf(s.name, sizeof s.name, "s%u", i);
        assert_int_equal(discover_slices_put(&slices, &s), i < whole ? 0 : ERR_LIMIT);
    }
    (void)snprintf(s.name, sizeof s.name, "s0"); /* a known slice still has room */
    assert_int_equal(discover_slices_put(&slices, &s), 0);
    discover_slices_check(&slices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_slices_of_a_service_make_one_list, teardown),
        cmocka_unit_test_teardown(tls_replicas_have_https_names, teardown),
        cmocka_unit_test_teardown(a_pod_is_listed_from_ready_until_deletion, teardown),
        cmocka_unit_test_teardown(a_terminating_pod_is_not_listed_first, teardown),
        cmocka_unit_test_teardown(an_endpoint_in_two_slices_is_listed_once, teardown),
        cmocka_unit_test_teardown(a_dual_stack_pod_is_listed_by_ipv4, teardown),
        cmocka_unit_test_teardown(ports_are_selected_by_number_or_name, teardown),
        cmocka_unit_test_teardown(ports_without_a_number_are_ignored, teardown),
        cmocka_unit_test_teardown(slices_beyond_the_limits_are_refused, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
