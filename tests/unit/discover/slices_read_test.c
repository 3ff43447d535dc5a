#include <stdio.h>
#include <stdlib.h>

#include "node/discover/slices_read.h"
#include "tests/lib/test.h"

static struct discover_reader reader;

static void show(char *out, size_t size, enum discover_read_what what)
{
    const struct discover_reader *r = &reader;
    const struct discover_slice *s = &r->slice;
    size_t len = strlen(out);
    static const char *const names[] = {"error", "more", "slice", "page", "event", "done"};
    len += (size_t)snprintf(out + len, size - len, "%s ", names[what]);
    if (what == DISCOVER_READ_ERROR)
        len += (size_t)snprintf(out + len, size - len, "%s", r->error);
    if (what == DISCOVER_READ_PAGE)
        len +=
            (size_t)snprintf(out + len, size - len, "version=%s next=%s", r->list_version, r->next);
    if (what == DISCOVER_READ_DONE)
        len += (size_t)snprintf(out + len, size - len, "%u %s", r->code, r->message);
    if (what == DISCOVER_READ_EVENT)
        len += (size_t)snprintf(out + len, size - len, "%s version=%s code=%u ", r->type,
                                r->version, r->code);
    if (what == DISCOVER_READ_EVENT || what == DISCOVER_READ_SLICE) {
        len += (size_t)snprintf(out + len, size - len, "%s family=%d", s->name, (int)s->family);
        for (unsigned i = 0; i < s->port_count; i++)
            len += (size_t)snprintf(out + len, size - len, " %s=%u", s->ports[i].name,
                                    s->ports[i].number);
        for (unsigned i = 0; i < s->endpoint_count; i++)
            len += (size_t)snprintf(out + len, size - len, " %s%s%s", s->endpoints[i].ip,
                                    s->endpoints[i].unready ? "?" : "",
                                    s->endpoints[i].terminating ? "-" : "");
    }
    (void)snprintf(out + len, size - len, "\n");
}

/* Reads `text` in pieces of `piece` bytes; returns the reports, a line each. */
static void read_in(char *out, size_t size, enum discover_read_kind kind, struct slice text,
                    size_t piece)
{
    out[0] = '\0';
    discover_read_begin(&reader, kind);
    enum discover_read_what what = DISCOVER_READ_MORE;
    for (size_t at = 0; at < text.len && what != DISCOVER_READ_ERROR; at += piece) {
        struct slice in = slice_of(text.at + at, text.len - at < piece ? text.len - at : piece);
        /* A copy, so that ASan sees a read beyond the end. */
        char *copy = malloc(in.len);
        memcpy(copy, in.at, in.len);
        in.at = copy;
        while ((what = discover_read_next(&reader, &in)) != DISCOVER_READ_MORE) {
            show(out, size, what);
            if (what == DISCOVER_READ_ERROR)
                break;
        }
        free(copy);
    }
}

static void reads(enum discover_read_kind kind, const char *text, const char *want)
{
    static char out[8192];
    size_t len = strlen(text);
    for (size_t piece = 1; piece <= len; piece += piece < 16 ? 1 : 37) {
        read_in(out, sizeof out, kind, slice_of_cstr(text), piece);
        assert_string_equal(out, want);
    }
    read_in(out, sizeof out, kind, slice_of_cstr(text), len);
    assert_string_equal(out, want);
}

/* As sent by kube-apiserver 1.34. */
static const char vllm[] =
    "{\"metadata\":{\"name\":\"vllm-x7k2p\",\"generateName\":\"vllm-\",\"namespace\":\"inference\","
    "\"uid\":\"0c1a\",\"resourceVersion\":\"812\",\"generation\":3,\"creationTimestamp\":"
    "\"2026-01-01T00:00:00Z\",\"labels\":{\"name\":\"not this\",\"kubernetes.io/service-name\":"
    "\"vllm\"},\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"name\":\"vllm\"}]"
    ","
    "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"fieldsV1\":{\"f:endpoints\":{},"
    "\"f:ports\":{}}}]},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"10.0.0.1\","
    "\"10.0.0.9\"],\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":false},"
    "\"targetRef\":{\"kind\":\"Pod\",\"name\":\"vllm-0\"},\"nodeName\":\"n1\",\"zone\":\"a\"},"
    "{\"addresses\":[\"10.0.0.2\"],\"conditions\":{\"ready\":false,\"serving\":true,"
    "\"terminating\":"
    "true}},{\"addresses\":[\"10.0.0.3\"],\"conditions\":{}},{\"addresses\":[\"10.0.0.4\"],"
    "\"conditions\":{\"ready\":false,\"serving\":null}}],\"ports\":[{\"name\":\"http\","
    "\"protocol\":"
    "\"TCP\",\"port\":8000},{\"name\":\"dns\",\"protocol\":\"UDP\",\"port\":53},{\"port\":9000,"
    "\"ofLaterVersions\":7}]}";
#define VLLM_READ "vllm-x7k2p family=1 http=8000 =9000 10.0.0.1 10.0.0.2?- 10.0.0.3 10.0.0.4?\n"

static void a_page_of_a_list_is_read(void **state)
{
    (void)state;
    char text[8192];
    (void)snprintf(text, sizeof text,
                   "{\"kind\":\"EndpointSliceList\",\"apiVersion\":\"discovery.k8s.io/v1\","
                   "\"metadata\":{\"resourceVersion\":\"900\",\"continue\":\"eyJ2\","
                   "\"remainingItemCount\":3},\"items\":[%s,{\"metadata\":{\"name\":\"b\"},"
                   "\"addressType\":\"IPv6\",\"endpoints\":null,\"ports\":null}]}\n",
                   vllm);
    reads(DISCOVER_READ_LIST, text,
          "slice " VLLM_READ "slice b family=2\npage version=900 next=eyJ2\n");
    reads(DISCOVER_READ_LIST,
          "{\"items\":[{\"metadata\":{\"name\":\"b\"},\"endpoints\":[{\"addresses\":[]},"
          "{\"addresses\":[\"fd00::1\"]}],\"addressType\":\"FQDN\"}],"
          "\"metadata\":{\"resourceVersion\":\"9\"}}",
          "slice b family=0 fd00::1\npage version=9 next=\n");
    reads(DISCOVER_READ_LIST, "{\"items\":null,\"metadata\":{\"resourceVersion\":\"9\"}}",
          "page version=9 next=\n");
}

static void events_of_a_watch_are_read_in_sequence(void **state)
{
    (void)state;
    char text[8192];
    (void)snprintf(text, sizeof text,
                   "{\"type\":\"MODIFIED\",\"object\":%s}\n"
                   "{\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"813\"}},"
                   "\"type\":\"DELETED\"}\n"
                   "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"EndpointSlice\",\"metadata\":"
                   "{\"resourceVersion\":\"900\",\"creationTimestamp\":null},\"endpoints\":null}}\n"
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"metadata\":{},\"status\":"
                   "\"Failure\",\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}}\n",
                   vllm);
    reads(DISCOVER_READ_WATCH, text,
          "event MODIFIED version=812 code=0 " VLLM_READ
          "event DELETED version=813 code=0 b family=0\n"
          "event BOOKMARK version=900 code=0  family=0\n"
          "event ERROR version= code=410  family=0\n");
    assert_string_equal(reader.message, "too old");
}

static void the_message_of_an_error_is_read(void **state)
{
    (void)state;
    reads(DISCOVER_READ_STATUS,
          "{\"kind\":\"Status\",\"message\":\"endpointslices is forbidden\",\"code\":403}\n",
          "done 403 endpointslices is forbidden\n");
}

/* Invalid addresses, and unknown members with known names deeper down. */
static void unknown_members_are_skipped(void **state)
{
    (void)state;
    reads(DISCOVER_READ_WATCH,
          "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"x\":{\"name\":\"no\"}},"
          "\"endpoints\":[{\"addresses\":[\"10.0.0.1/8\"]},{\"addresses\":[\"evil host\"]},"
          "{\"addresses\":[{\"addresses\":[\"10.0.0.5\"]},7,\"10.0.0.2\"]},7,[{}],"
          "{\"deep\":{\"addresses\":[\"10.0.0.3\"]}}],\"ports\":[{\"port\":70000},{\"port\":1.5},"
          "{\"port\":\"8000\"}],\"a key that is longer than any key that is read\":\"x\"}}",
          "event ADDED version= code=0 a family=0 =0 =0 =0 10.0.0.2\n");
}

static void malformed_answers_are_errors(void **state)
{
    (void)state;
    reads(DISCOVER_READ_LIST, "<html>", "error it is no JSON\n");
    reads(DISCOVER_READ_LIST, "[]", "error it is no JSON object\n");
    reads(DISCOVER_READ_LIST, "\"x\"", "error it is no JSON object\n");
    reads(DISCOVER_READ_LIST, "{\"items\":[{}]}", "error a slice has no name\n");
    reads(DISCOVER_READ_WATCH, "{\"object\":{}}", "error an event has no type\n");
    reads(DISCOVER_READ_WATCH, "{\"type\":\"ADDED\"} x",
          "event ADDED version= code=0  family=0\nerror it is no JSON\n");
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"%0300d\"}}}", 1);
    reads(DISCOVER_READ_WATCH, text, "error a name in it is too long\n");
}

static void entries_beyond_the_limits_are_an_error(void **state)
{
    (void)state;
    static char text[DISCOVER_OBJECT_BYTES_MAX + 1000], out[1024];
    static const char head[] = "{\"type\":\"ADDED\",\"object\":{\"endpoints\":[";
    static const char one[] = "{\"addresses\":[\"10.0.0.1\"]},";
    size_t len = (size_t)snprintf(text, sizeof text, "%s", head);
    for (unsigned i = 0; i <= DISCOVER_SLICE_ENDPOINTS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", one);
    read_in(out, sizeof out, DISCOVER_READ_WATCH, slice_of(text, len), 4096);
    assert_string_equal(out, "error a slice has too many endpoints\n");
    len = (size_t)snprintf(text, sizeof text, "{\"type\":\"ADDED\",\"object\":{\"ports\":[");
    for (unsigned i = 0; i <= DISCOVER_SLICE_PORTS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "{},");
    read_in(out, sizeof out, DISCOVER_READ_WATCH, slice_of(text, len), 4096);
    assert_string_equal(out, "error a slice has too many ports\n");
    len = (size_t)snprintf(text, sizeof text, "{\"type\":\"ADDED\",\"junk\":\"");
    memset(text + len, 'x', sizeof text - len);
    read_in(out, sizeof out, DISCOVER_READ_WATCH, slice_of(text, sizeof text), 4096);
    assert_string_equal(out, "error a slice or an event is too long\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_a_list_is_read),
        cmocka_unit_test(events_of_a_watch_are_read_in_sequence),
        cmocka_unit_test(the_message_of_an_error_is_read),
        cmocka_unit_test(unknown_members_are_skipped),
        cmocka_unit_test(malformed_answers_are_errors),
        cmocka_unit_test(entries_beyond_the_limits_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
