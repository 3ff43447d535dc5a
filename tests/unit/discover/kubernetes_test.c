/* Stories of a watched service: the API server's actions, line by line, and their effects. Time is
 * virtual. Waits are random, so a story gives the least and the greatest wait. */
#include <stdio.h>

#include "base/err.h"
#include "node/discover/kubernetes.h"
#include "tests/lib/test.h"

static struct discover_kubernetes *k;
static uint64_t now;
static uint64_t until;
static char did[4096];

/* Notes the target without the constant part. */
static void note_target(void)
{
    struct slice t = slice_of_cstr(discover_kubernetes_target(k));
    static const char same[] =
        "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices?labelSelector"
        "=kubernetes.io%2Fservice-name%3Dvllm&";
    assert_true(slice_starts_with(t, slice_of_cstr(same)));
    t = slice_skip(t, strlen(same));
    char query[512];
    const char *timeout = strstr(t.at, "timeoutSeconds=");
    if (timeout != NULL) {
        unsigned seconds = 0;
        assert_int_equal(sscanf(timeout, "timeoutSeconds=%u", &seconds), 1);
        assert_in_range(seconds, DISCOVER_WATCH_S, 2 * DISCOVER_WATCH_S);
        assert_true(slice_starts_with(t, SLICE("watch=true&allowWatchBookmarks=true&")));
        (void)snprintf(query, sizeof query, "watch %s", strchr(timeout, '&') + 1);
    } else {
        (void)slice_to_cstr(t, query, sizeof query);
    }
    strcat(strcat(did, "ask "), query);
}

static void note_list(void)
{
    unsigned count;
    const struct discover_entry *e = discover_kubernetes_entries(k, &count);
    strcat(did, "listed");
    for (unsigned i = 0; i < count; i++) {
        size_t len = strlen(did);
        (void)snprintf(did + len, sizeof did - len, " %.*s%s", SLICE_ARG(e[i].name),
                       e[i].state == DISCOVER_DRAINING ? "-" : "");
    }
}

/* Takes the client's actions until it waits. */
static void act(void)
{
    enum discover_kubernetes_action action;
    while ((action = discover_kubernetes_next(k, now, &until)) != DISCOVER_KUBERNETES_WAIT) {
        discover_kubernetes_check(k);
        if (did[0] != '\0')
            strcat(did, ", ");
        if (action == DISCOVER_KUBERNETES_ASK)
            note_target();
        else if (action == DISCOVER_KUBERNETES_LISTED)
            note_list();
        else if (action == DISCOVER_KUBERNETES_FAILED)
            strcat(strcat(did, "failed: "), discover_kubernetes_why(k));
        else
            strcat(did, action == DISCOVER_KUBERNETES_SAME ? "same" : "cancel");
    }
    assert_true(until > now);
}

static void does(const char *want)
{
    act();
    assert_string_equal(did, want);
    did[0] = '\0';
}

static void answered(unsigned status)
{
    discover_kubernetes_answered(k, status, 0, now);
}

static void received(const char *text)
{
    discover_kubernetes_received(k, slice_of_cstr(text), now);
    discover_kubernetes_check(k);
}

static void ended(const char *error)
{
    discover_kubernetes_ended(k, error, now);
    discover_kubernetes_check(k);
}

static void answer(unsigned status, const char *body)
{
    answered(status);
    received(body);
    ended(NULL);
}

/* Expects no action until a time between `least_ms` and `most_ms` from now. */
static void waits(uint64_t least_ms, uint64_t most_ms)
{
    does("");
    assert_in_range(until - now, least_ms, most_ms);
    now = until - 1;
    does("");
    now++;
}

#define SLICE_JSON(name, version, ips)                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version                          \
    "\"},\"addressType\":\"IPv4\",\"ports\":[{\"port\":8000}],\"endpoints\":[" ips "]}"
#define IP(ip) "{\"addresses\":[\"" ip "\"]}"
#define ENDS(ip)                                                                                   \
    "{\"addresses\":[\"" ip "\"],\"conditions\":{\"ready\":false,\"terminating\":true}}"
#define LIST(version, next, items)                                                                 \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next                      \
    "\"},\"items\":[" items "]}"
#define EVENT(type, slice) "{\"type\":\"" type "\",\"object\":" slice "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define GONE                                                                                       \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}}\n"

static const char first_ask[] = "ask limit=100";

static int setup(void **state)
{
    (void)state;
    struct discover_service service;
    now = 1000000;
    did[0] = '\0';
    assert_null(discover_service_parse(SLICE("ns/vllm:8000#engine=vllm"), &service));
    return discover_kubernetes_create(&k, &service, 7, now);
}

static int teardown(void **state)
{
    (void)state;
    discover_kubernetes_destroy(k);
    return 0;
}

/* The service is listed at version 5, and a watch has proved good. */
static void watches(void)
{
    does(first_ask);
    answer(200, LIST("5", "", SLICE_JSON("a", "4", IP("10.0.0.1"))));
    does("listed 10.0.0.1:8000, ask watch resourceVersion=5");
    answered(200);
    waits(DISCOVER_SETTLED_MS, DISCOVER_SETTLED_MS);
    does("same");
}

static void a_list_is_read_in_pages_then_watched(void **state)
{
    (void)state;
    does(first_ask);
    answer(200, LIST("5", "c+/=1", SLICE_JSON("a", "4", IP("10.0.0.1"))));
    does("ask limit=100&continue=c%2B%2F%3D1");
    answered(200);
    received("{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
    received(SLICE_JSON("b", "3", IP("10.0.0.2")));
    does(""); /* not before the last page is whole */
    received("]}");
    ended(NULL);
    does("listed 10.0.0.1:8000 10.0.0.2:8000, ask watch resourceVersion=5");
    unsigned count;
    assert_int_equal(discover_kubernetes_entries(k, &count)->labels.engine, NODE_ENGINE_VLLM);
    answered(200);
    received(EVENT("ADDED", SLICE_JSON("c", "6", IP("10.0.0.3"))));
    does("listed 10.0.0.1:8000 10.0.0.2:8000 10.0.0.3:8000");
    received(EVENT("MODIFIED", SLICE_JSON("a", "7", ENDS("10.0.0.1"))));
    does("listed 10.0.0.1:8000- 10.0.0.2:8000 10.0.0.3:8000");
    received(EVENT("MODIFIED", SLICE_JSON("a", "8", ""))
                 EVENT("DELETED", SLICE_JSON("b", "9", "")));
    does("listed 10.0.0.3:8000");
    received(BOOKMARK("90"));
    does("same");
    ended(NULL);
    does("ask watch resourceVersion=90");
}

static void a_broken_watch_is_resumed_at_its_last_version(void **state)
{
    (void)state;
    watches();
    received(EVENT("MODIFIED", SLICE_JSON("a", "6", IP("10.0.0.2"))));
    received("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"");
    does("listed 10.0.0.2:8000");
    ended("connection reset"); /* in the middle of an event, which does not count */
    waits(DISCOVER_BACKOFF_MS / 2, DISCOVER_BACKOFF_MS);
    does("ask watch resourceVersion=6");
    answered(200);
    received(EVENT("MODIFIED", SLICE_JSON("a", "7", IP("10.0.0.3"))));
    does("listed 10.0.0.3:8000");
}

static void a_silent_watch_is_cancelled(void **state)
{
    (void)state;
    watches();
    uint64_t heard = now;
    now += 60000;
    received(BOOKMARK("8"));
    does("same");
    waits(DISCOVER_SILENCE_MS, DISCOVER_SILENCE_MS);
    assert_true(now > heard + DISCOVER_SILENCE_MS);
    does("cancel, ask watch resourceVersion=8");
    waits(DISCOVER_ANSWER_MS, DISCOVER_ANSWER_MS); /* the next request gets no answer either */
    does("cancel, failed: the API server does not answer");
}

static void an_expired_version_causes_a_new_list(void **state)
{
    (void)state;
    watches();
    received(GONE);
    does("cancel, ask limit=100");
    answer(200, LIST("50", "", SLICE_JSON("z", "40", IP("10.0.0.9"))));
    does("listed 10.0.0.9:8000, ask watch resourceVersion=50");
    answered(200);
    received(BOOKMARK("51"));
    does("same");
    ended(NULL);
    does("ask watch resourceVersion=51");
    answer(410, "{\"kind\":\"Status\",\"code\":410}");
    does(first_ask);
    answer(200, LIST("60", "next", SLICE_JSON("z", "40", IP("10.0.0.9"))));
    does("ask limit=100&continue=next");
    answer(410, "{\"kind\":\"Status\",\"code\":410}"); /* too old, and no watch was good since */
    does("failed: the API server answers 410 again and again");
    waits(DISCOVER_BACKOFF_MS / 2, DISCOVER_BACKOFF_MS);
    does(first_ask); /* from the first page */
}

/* The old list stays valid during any outage, and the API server is not flooded. */
static void the_old_list_survives_an_api_server_outage(void **state)
{
    (void)state;
    watches();
    ended("connection reset");
    waits(DISCOVER_BACKOFF_MS / 2, DISCOVER_BACKOFF_MS);
    uint64_t most = DISCOVER_BACKOFF_MS;
    for (unsigned i = 0; i < 20; i++) {
        does(i < DISCOVER_RELIST_FAILURES ? "ask watch resourceVersion=5" : first_ask);
        ended("connection refused");
        does("failed: connection refused");
        waits(most / 2, most);
        most = most * 2 < DISCOVER_BACKOFF_MAX_MS ? most * 2 : DISCOVER_BACKOFF_MAX_MS;
    }
    does(first_ask);
    answer(200, LIST("5", "", SLICE_JSON("a", "4", IP("10.0.0.1"))));
    does("listed 10.0.0.1:8000, ask watch resourceVersion=5");
    answered(200);
    waits(DISCOVER_SETTLED_MS, DISCOVER_SETTLED_MS);
    does("same");
    ended(NULL);
    does("ask watch resourceVersion=5");
    ended("connection refused"); /* starts with short waits again */
    does("failed: connection refused");
    waits(DISCOVER_BACKOFF_MS / 2, DISCOVER_BACKOFF_MS);
}

static void refusals_by_the_api_server_are_reported(void **state)
{
    (void)state;
    does(first_ask);
    answer(401, "Unauthorized");
    does("failed: 401: the API server does not accept the token of the service account");
    waits(1, DISCOVER_BACKOFF_MS);
    does(first_ask);
    answer(403, "{\"kind\":\"Status\",\"message\":\"User \\\"x\\\" cannot list\",\"code\":403}");
    does("failed: 403: a Role with list and watch of endpointslices is missing "
         "(deploy/kubernetes/rbac.yaml): User \"x\" cannot list");
    waits(1, 2 * DISCOVER_BACKOFF_MS);
    does(first_ask);
    discover_kubernetes_answered(k, 429, 20, now);
    ended(NULL);
    does("failed: the API server answers 429");
    waits(20000, 20000);
    does(first_ask);
    discover_kubernetes_answered(k, 503, UINT64_MAX, now);
    ended("cut");
    does("failed: the API server answers 503");
    waits(DISCOVER_RETRY_AFTER_MAX_MS, DISCOVER_RETRY_AFTER_MAX_MS);
}

static void answers_of_no_api_server_are_failures(void **state)
{
    (void)state;
    does(first_ask);
    answer(200, "<html>");
    does("cancel, failed: it is no JSON");
    waits(1, DISCOVER_BACKOFF_MS);
    does(first_ask);
    answer(200, LIST("", "", ""));
    does("failed: the list has no resource version");
    waits(1, 2 * DISCOVER_BACKOFF_MS);
    does(first_ask);
    answered(200);
    received("{\"items\":[");
    ended("connection reset");
    does("failed: connection reset");
    waits(1, 4 * DISCOVER_BACKOFF_MS);
    does(first_ask);
    answered(200);
    received("{\"items\":[");
    ended(NULL);
    does("failed: the list was cut");
    waits(1, 8 * DISCOVER_BACKOFF_MS);
    does(first_ask);
    answered(200);
    waits(DISCOVER_ANSWER_MS, DISCOVER_ANSWER_MS);
    does("cancel, failed: the answer stalled");
    waits(1, 16 * DISCOVER_BACKOFF_MS);
    does(first_ask);
    answered(500);
    static char junk[70000];
    memset(junk, ' ', sizeof junk - 1);
    received(junk); /* too long to be read as an error */
    does("cancel, failed: the API server answers 500");
}

/* An API server, or a proxy in front of it, accepts watches and drops them. */
static void watches_ended_at_once_are_failures(void **state)
{
    (void)state;
    does(first_ask);
    answer(200, LIST("5", "", SLICE_JSON("a", "4", IP("10.0.0.1"))));
    does("listed 10.0.0.1:8000, ask watch resourceVersion=5");
    answer(200, "");
    does("failed: each watch ends at once");
    waits(1, DISCOVER_BACKOFF_MS);
    does("ask watch resourceVersion=5");
    answer(200, "");
    does("failed: each watch ends at once");
    waits(1, 2 * DISCOVER_BACKOFF_MS);
    does("ask watch resourceVersion=5");
    answer(500, "");
    does("failed: the API server answers 500");
    waits(1, 4 * DISCOVER_BACKOFF_MS);
    does(first_ask); /* the API server may be gone, and the version with it */
}

static void a_malformed_event_causes_a_new_list(void **state)
{
    (void)state;
    watches();
    received("{\"type\":\"MODIFIED\",\"object\":[}");
    does("cancel, failed: it is no JSON");
    waits(1, DISCOVER_BACKOFF_MS);
    does(first_ask);
    answer(200, LIST("9", "", SLICE_JSON("a", "8", IP("10.0.0.2"))));
    does("listed 10.0.0.2:8000, ask watch resourceVersion=9");
    answered(200);
    received("{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd is away\"}}\n");
    does("cancel, failed: etcd is away");
}

/* The setting does not fit the service: the earlier list stays valid, and bookmarks do not hide the
 * misfit. */
static void an_ambiguous_port_keeps_the_earlier_list(void **state)
{
    (void)state;
    discover_kubernetes_destroy(k);
    struct discover_service service;
    assert_null(discover_service_parse(SLICE("ns/vllm:http"), &service));
    assert_int_equal(discover_kubernetes_create(&k, &service, 7, now), 0);
    does(first_ask);
    answer(200, LIST("5", "", SLICE_JSON("a", "4", IP("10.0.0.1"))));
    does("failed: the service has no TCP port http: its TCP ports are 8000, "
         "ask watch resourceVersion=5");
    answered(200);
    received(BOOKMARK("6"));
    does("");
    received(EVENT("MODIFIED", "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},"
                               "\"addressType\":\"IPv4\",\"ports\":[{\"name\":\"http\",\"port\":"
                               "8000}],\"endpoints\":[" IP("10.0.0.1") "]}"));
    does("listed 10.0.0.1:8000");
    received(BOOKMARK("8"));
    does("same");
}

/* The host has no memory, or too many entries come: no bookmark hides the old list. */
static void a_list_refused_by_the_host_is_requested_again(void **state)
{
    (void)state;
    watches();
    received(EVENT("MODIFIED", SLICE_JSON("a", "6", IP("10.0.0.2"))));
    does("listed 10.0.0.2:8000");
    discover_kubernetes_refused(k, now);
    does("cancel");
    waits(DISCOVER_BACKOFF_MS / 2, DISCOVER_BACKOFF_MS);
    does(first_ask);
    answer(200, LIST("6", "", SLICE_JSON("a", "6", IP("10.0.0.2"))));
    does("listed 10.0.0.2:8000, ask watch resourceVersion=6");
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORY(a_list_is_read_in_pages_then_watched),
        STORY(a_broken_watch_is_resumed_at_its_last_version),
        STORY(a_silent_watch_is_cancelled),
        STORY(an_expired_version_causes_a_new_list),
        STORY(the_old_list_survives_an_api_server_outage),
        STORY(refusals_by_the_api_server_are_reported),
        STORY(answers_of_no_api_server_are_failures),
        STORY(watches_ended_at_once_are_failures),
        STORY(a_malformed_event_causes_a_new_list),
        STORY(an_ambiguous_port_keeps_the_earlier_list),
        STORY(a_list_refused_by_the_host_is_requested_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
