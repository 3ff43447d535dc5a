/* Settings of the sources of replicas. */
#include "node/settings/options.h"

#include "tests/lib/test.h"

static struct node_options o;
static struct node_options_error error;

static int setup(void **state)
{
    (void)state;
    return node_options_init(&o);
}

static int teardown(void **state)
{
    (void)state;
    node_options_free(&o);
    return 0;
}

/* Sets a single flag, on top of the defaults. */
static int set(const char *name, const char *value)
{
    char words[2][256];
    node_options_free(&o);
    assert_int_equal(node_options_init(&o), 0);
    assert_true(slice_to_cstr(slice_of_cstr(name), words[0], sizeof words[0]));
    assert_true(slice_to_cstr(slice_of_cstr(value), words[1], sizeof words[1]));
    char *argv[] = {words[0], words[0], words[1], NULL};
    return node_options_flags(&o, 3, argv, &error);
}

static void dns_sources_are_parsed(void **state)
{
    (void)state;
    struct node_dns_option d;
    assert_null(node_dns_parse(SLICE("engines.internal:8000"), &d));
    assert_slice_equal(d.name, "engines.internal:8000");
    assert_string_equal(d.address.host, "engines.internal");
    assert_int_equal(d.address.port, 8000);
    assert_null(node_dns_parse(SLICE("engines:8000#weight=2#engine=vllm"), &d));
    assert_slice_equal(d.name, "engines:8000");
    assert_true(d.labels.engine == NODE_ENGINE_VLLM && d.labels.weight == 2);
    assert_null(node_dns_parse(SLICE("_http._tcp.engines.internal#model=m"), &d));
    assert_slice_equal(d.name, "_http._tcp.engines.internal");
    assert_int_equal(d.address.port, 0);
    assert_false(d.address.tls);
    assert_null(node_dns_parse(SLICE("https://engines.internal:8443#weight=2"), &d));
    assert_slice_equal(d.name, "engines.internal:8443");
    assert_true(d.address.tls && d.address.port == 8443 && d.labels.weight == 2);
    assert_null(node_dns_parse(SLICE("https://_http._tcp.engines.internal"), &d));
    assert_slice_equal(d.name, "_http._tcp.engines.internal");
    assert_true(d.address.tls);
    static const struct {
        const char *text, *wrong;
    } bad[] = {
        {"engines", "want NAME:PORT"},
        {"engines:0", "want NAME:PORT"},
        {"http://engines:1", "want NAME:PORT"},
        {"", "want NAME:PORT"},
        {"_http._tcp.engines:80", "want no port"},
        {"10.0.0.1:80", "want a name to look up"},
        {"[::1]:80", "want a name to look up"},
        {"engines:80#", "after # want a label"},
        {"engines:80#weight=0", "after # want weight="},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *wrong = node_dns_parse(slice_of_cstr(bad[i].text), &d);
        assert_non_null(wrong);
        if (strncmp(wrong, bad[i].wrong, strlen(bad[i].wrong)) != 0)
            fail_msg("%s: %s", bad[i].text, wrong);
    }
}

static int finish_with(const char *name, const char *value)
{
    assert_int_equal(set(name, value), 0);
    return node_options_finish(&o, &error);
}

static void sources_of_replicas(void **state)
{
    (void)state;
    assert_true(finish_with("--listen", "127.0.0.1:1") < 0); /* no replica from anywhere */
    assert_int_equal(finish_with("--replica-dns", "engines:80"), 0);
    assert_int_equal(finish_with("--replica-file", "/etc/replicas"), 0);
    assert_true(finish_with("--replica-dns", "a:80,b:80,a:80#weight=2") < 0);
    assert_string_equal(error.text,
                        "bad setting replica-dns = \"a:80#weight=2\" (flag --replica-dns): want "
                        "each source only once: this one is repeated");
    assert_true(finish_with("--replica-dns", "a.b:80,A.B:080") < 0); /* spelled otherwise */
    assert_int_equal(finish_with("--replica-dns", "a:80,a:81,_a._tcp.b"), 0);
    assert_true(finish_with("--replica-kubernetes", "ns/x,ns/x#weight=5") < 0);
    assert_true(finish_with("--replica-kubernetes", "x,/x:8000,x:8000") < 0);
    assert_string_equal(error.text,
                        "bad setting replica-kubernetes = \"x:8000\" (flag --replica-kubernetes): "
                        "want each source only once: this one is repeated");
    assert_int_equal(finish_with("--replica-kubernetes", "ns/x,other/x,ns/x:8000"), 0);
    assert_true(finish_with("--replica-file", "f,f") < 0);
    assert_true(finish_with("--replica-file", "f,./f") < 0);
    assert_int_equal(finish_with("--replica-file", "f#1,f#2"), 0);
    assert_true(finish_with("--replica-file", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q") < 0);
    assert_string_equal(
        error.text,
        "bad setting replica-file = \"q\" (flag --replica-file): want at most 16 entries");
    assert_true(set("--dns-server", "ns.internal") < 0);
    assert_string_equal(error.text,
                        "bad setting dns-server = \"ns.internal\" (flag --dns-server): want the IP "
                        "address of a DNS server, such as 10.0.0.10 or [fd00::10]:53");
    assert_int_equal(set("--dns-server", "10.0.0.10,[fd00::10]:5353"), 0);
    assert_int_equal(o.dns_server.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dns_sources_are_parsed),
        cmocka_unit_test_setup_teardown(sources_of_replicas, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
