/* The blame for rejections: the rejected requests to try elsewhere, and the findings against a
 * replica. */
#include "node/replica/reject.h"

#include "base/check.h"

#include "tests/lib/test.h"

enum { REPLICAS = 8, CLIENT = 1000, OTHER = 2000 };

static struct node_reject at[REPLICAS];
static struct node_reject_clients clients;
static uint64_t now;
static unsigned tries;

static void start(void)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        node_reject_init(&at[i]);
    clients = (struct node_reject_clients){0};
    now = 100000;
    tries = 0;
}

/* The origin of a client's prompts: `prompt` identifies a repeated prompt; 0: all differ. */
static struct node_reject_from prompt_of(uint64_t id, uint64_t prompt)
{
    return (struct node_reject_from){.client = id, .prompt = prompt};
}

static struct node_reject_from from_of(uint64_t id)
{
    return prompt_of(id, 0);
}

static struct node_rejection rejection(unsigned replica, uint8_t kind, unsigned status, uint64_t id)
{
    return (struct node_rejection){.replica = replica,
                                   .kind = kind,
                                   .status = status,
                                   .from = from_of(id),
                                   .sent_ms = now - 1};
}

static void accepts(unsigned replica, uint8_t kind, uint64_t id)
{
    now += 2;
    node_reject_client_accepted(&clients, from_of(id));
    (void)node_reject_accepted(&at[replica], kind, 0, now - 1);
}

static struct node_reject_prior prior_of(unsigned i, struct node_reject_from from, unsigned status)
{
    struct node_reject_prior out = node_reject_prior_of(&clients, from, status);
    for (unsigned k = 0; k < REPLICAS; k++)
        out.peers |= k != i && node_reject_proven(&at[k], 1);
    return out;
}

/* A rejection passed on: no peer can show if the replica is to blame, or a trial is not worth the
 * cost. Returns the belief about the replica. */
static enum node_reject_guilt passes_of(unsigned i, unsigned status, struct node_reject_from from)
{
    now += 2;
    struct node_rejection x = rejection(i, 1, status, from.client);
    x.from = from;
    struct node_reject_prior prior = prior_of(i, from, status);
    enum node_reject_guilt guilt = node_reject_guilt(&at[i], &x, &prior);
    double own = node_reject_passed(&at[i], &x, &prior);
    node_reject_client_rejected(&clients, from, status, own);
    return guilt;
}

static enum node_reject_guilt passes(unsigned i, unsigned status, uint64_t id)
{
    return passes_of(i, status, from_of(id));
}

/* A request rejected by replica `i`, with the peers' verdict `good`. True if a peer was tried. */
static bool rejects_of(unsigned i, unsigned status, struct node_reject_from from, bool good)
{
    struct node_rejection x = rejection(i, 1, status, from.client);
    struct node_reject_prior prior = prior_of(i, from, status);
    if (node_reject_guilt(&at[i], &x, &prior) < NODE_REJECT_WORTH) {
        (void)passes_of(i, status, from);
        return false;
    }
    now += 2;
    x = rejection(i, 1, status, from.client);
    tries++;
    node_reject_tried(&clients, good);
    if (good) {
        (void)node_reject_contradicted(&at[i], &x, now);
        accepts((i + 1) % REPLICAS, 1, from.client);
    } else {
        node_reject_agreed(&at[i]);
        node_reject_agreed(&at[(i + 1) % REPLICAS]);
        node_reject_client_rejected(&clients, from, status, 0);
    }
    return true;
}

static bool rejects(unsigned i, unsigned status, uint64_t id, bool good)
{
    return rejects_of(i, status, from_of(id), good);
}

static bool avoids(unsigned i, uint8_t kind)
{
    return node_reject_avoids(&at[i], kind, 0, true, now);
}

static void a_single_contradiction_is_enough(void **state)
{
    (void)state;
    static const unsigned statuses[] = {400, 401, 403, 404, 405, 408, 413, 415, 422};
    for (unsigned s = 0; s < ARRAY_LEN(statuses); s++) {
        for (unsigned served = 0; served <= 1000; served += 1000) {
            start();
            for (unsigned n = 0; n < served; n++)
                accepts(n % REPLICAS, 1, CLIENT);
            assert_true(rejects(3, statuses[s], CLIENT, true));
            assert_true(avoids(3, 1));
            assert_false(avoids(4, 1));
        }
    }
}

/* Affinity sends a bad client to a single replica. The others' requests are accepted there. */
static void a_bad_clients_requests_are_rarely_tried_elsewhere(void **state)
{
    (void)state;
    for (unsigned status = 400; status <= 401; status++) {
        start();
        for (unsigned n = 0; n < 1000; n++) {
            (void)rejects(0, status, CLIENT, false);
            accepts(0, 1, OTHER + n % 20);
        }
        assert_in_range(tries, 1, 8);
        start(); /* and no other replica is up */
        for (unsigned n = 0; n < 1000; n++)
            (void)rejects(0, status, CLIENT, false);
        assert_in_range(tries, 1, 30);
    }
}

/* A bad client hides nothing: another client's request, rejected there, is tried at once. */
static void a_bad_client_hides_no_bad_replica(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 1000; n++) {
        (void)rejects(0, 400, CLIENT, false);
        accepts(1, 1, OTHER);
    }
    assert_true(rejects(0, 400, OTHER, true));
}

/* All clients come through the same gateway, with the same key, and a fifth of their requests is
 * bad. */
static void a_mixed_client_is_tried_after_a_few(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 1000; n++) {
        accepts(n % REPLICAS, 1, CLIENT);
        if (n % 5 == 0)
            (void)rejects(n % REPLICAS, 400, CLIENT, false);
    }
    assert_in_range(tries, 1, 40);
    unsigned seen = 0;
    while (!rejects(0, 400, CLIENT, true))
        seen++;
    assert_in_range(seen, 0, 3);
    assert_true(avoids(0, 1));
}

/* Programs at the same address, without keys: a program sends a bad prompt again and again. */
static void a_bad_prompt_does_not_incriminate_other_prompts(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 1000; n++) {
        (void)rejects_of(0, 400, prompt_of(CLIENT, 5), false);
        accepts(n % REPLICAS, 1, CLIENT);
    }
    assert_in_range(tries, 1, 8);
    assert_true(node_reject_prior_of(&clients, prompt_of(CLIENT, 5), 400).bad > 0.9);
    assert_true(node_reject_prior_of(&clients, prompt_of(CLIENT, 6), 400).bad < 0.05);
    assert_true(rejects_of(1, 401, prompt_of(CLIENT, 6), true)); /* tried at once */
    start(); /* and nothing was accepted so far */
    for (unsigned n = 0; n < 12; n++)
        (void)rejects_of(n % REPLICAS, 400, prompt_of(CLIENT, 5), false);
    assert_true(node_reject_prior_of(&clients, prompt_of(CLIENT, 6), 400).bad < 0.1);
    unsigned seen = 0;
    while (!rejects_of(1, 400, prompt_of(CLIENT, 6 + seen), true))
        seen++;
    assert_in_range(seen, 0, 2);
}

/* Nor does a status count for another status, if no two prompts are alike. */
static void a_status_does_not_count_for_other_statuses(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 20; n++)
        (void)rejects_of(n % REPLICAS, 400, prompt_of(CLIENT, 100 + n), false);
    assert_false(rejects_of(1, 400, prompt_of(CLIENT, 7), false));
    assert_true(node_reject_prior_of(&clients, prompt_of(CLIENT, 7), 422).bad < 0.01);
    at[1].own = 0.001;
    for (unsigned n = 0; n < 2; n++) { /* the second is tried at the latest */
        if (rejects_of(1, 422, prompt_of(CLIENT, 8 + n), true))
            break;
    }
    assert_true(avoids(1, 1));
}

/* Broken replicas confirm each other. So they seem to be well, and their client to be bad, until a
 * peer accepts such requests. */
static void a_replica_that_never_accepted_is_suspected(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 12; n++)
        (void)rejects(n % 2 * 4, 400, CLIENT, false);
    assert_false(rejects(0, 400, CLIENT, false));
    accepts(2, 1, CLIENT);
    assert_true(rejects(0, 400, CLIENT, true));
    assert_true(rejects(4, 400, CLIENT, true));

    start(); /* a replica with only bad requests is not tried for ever */
    for (unsigned n = 0; n < 1000; n++) {
        (void)rejects(0, 400, CLIENT, false);
        accepts(1 + n % 7, 1, OTHER);
    }
    assert_in_range(tries, 1, 30);
    for (unsigned n = 0; n < 8; n++) /* nor a replica that accepts, if the peers do as well */
        accepts(n, 1, CLIENT);
    assert_false(rejects(0, 400, CLIENT, false));
}

static void few_requests_are_retried_when_all_replicas_reject(void **state)
{
    (void)state;
    for (unsigned served = 0; served <= 1000; served += 1000) {
        start();
        for (unsigned n = 0; n < served; n++)
            accepts(n % REPLICAS, 1, CLIENT);
        for (unsigned n = 0; n < 1000; n++)
            (void)rejects(n % REPLICAS, 401, CLIENT, false);
        assert_in_range(tries, 1, 30);
        for (unsigned i = 0; i < REPLICAS; i++)
            assert_false(avoids(i, 1));
    }
}

/* While a replica has no peer, rejections prove nothing about the clients: their requests are tried
 * elsewhere once a peer is back. An answer under way in between does not help the replica. */
static void unverified_rejections_blame_no_client(void **state)
{
    (void)state;
    static const unsigned statuses[] = {400, 401};
    for (unsigned s = 0; s < ARRAY_LEN(statuses); s++) {
        start();
        for (unsigned n = 0; n < 100; n++)
            accepts(n % REPLICAS, 1, CLIENT + n % 10);
        double before = node_reject_prior_of(&clients, from_of(CLIENT), statuses[s]).bad;
        for (unsigned n = 0; n < 25; n++)
            assert_true(passes(0, statuses[s], CLIENT + n % 10) >= NODE_REJECT_WORTH);
        assert_true(node_reject_prior_of(&clients, from_of(CLIENT), statuses[s]).bad <= before);
        accepts(0, 1, CLIENT);
        assert_true(rejects(0, statuses[s], CLIENT, true));
        assert_true(avoids(0, 1));
    }
}

/* A wrong key at all replicas, and clients with good requests before. Each client would be worth a
 * try, if trials were not known to fail for all. */
static void fruitless_retries_stop(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 400; n++) {
        accepts(n % REPLICAS, 1, OTHER + n);
        (void)rejects(n % REPLICAS, 401, OTHER + n, false);
    }
    assert_in_range(tries, 1, 20);
}

static void a_back_off_and_its_trials(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    now = at[0].backoff.until_ms - 1;
    assert_true(avoids(0, 1));
    now++;
    assert_false(avoids(0, 1));
    assert_true(
        node_reject_avoids(&at[0], 1, 0, false, now)); /* cannot be sent again, so no trial */
    node_reject_sent(&at[0], 1, 0, now);
    assert_true(avoids(0, 1)); /* a single trial at a time */
    unsigned before = at[0].backoff.level;
    assert_true(rejects(0, 401, CLIENT, true));
    assert_int_equal(at[0].backoff.level, before + 1);
    assert_in_range(at[0].backoff.until_ms - now, 2 * NODE_REJECT_BACKOFF_MS - 2,
                    2 * NODE_REJECT_BACKOFF_MS);
    now = at[0].backoff.until_ms;
    node_reject_sent(&at[0], 1, 0, now);
    accepts(0, 1, CLIENT);
    assert_false(avoids(0, 1));
    assert_false(node_reject_any(&at[0]));
}

/* Requests under way at the finding make no back-off longer, and free nothing. */
static void requests_sent_before_the_finding_are_no_trial(void **state)
{
    (void)state;
    start();
    struct node_rejection early = rejection(0, 1, 401, CLIENT);
    assert_true(rejects(0, 401, CLIENT, true));
    unsigned level = at[0].backoff.level;
    (void)node_reject_contradicted(&at[0], &early, now);
    assert_int_equal(at[0].backoff.level, level);
    assert_false(node_reject_accepted(&at[0], 1, 0, early.sent_ms));
    assert_true(avoids(0, 1));
}

static void rejects_kind(unsigned i, uint8_t kind)
{
    now += 2;
    struct node_rejection x = rejection(i, kind, 400, CLIENT);
    (void)node_reject_contradicted(&at[i], &x, now);
}

enum {
    CHAT = NODE_REJECT_CHAT * NODE_REJECT_API,
    TEXT = NODE_REJECT_COMPLETIONS * NODE_REJECT_API,
    STREAM = NODE_REJECT_STREAM,
    MEDIA = NODE_REJECT_MEDIA,
    TOOLS = NODE_REJECT_TOOLS,
};

/* A replica without a tool parser, or without images, and only such requests. */
static void a_finding_may_concern_a_single_request_kind(void **state)
{
    (void)state;
    start();
    rejects_kind(0, CHAT + TOOLS + STREAM);
    assert_true(avoids(0, CHAT + TOOLS) && avoids(0, CHAT + TOOLS + MEDIA));
    assert_false(avoids(0, CHAT + STREAM) || avoids(0, TEXT + STREAM));
    accepts(0, CHAT, CLIENT);
    assert_true(avoids(0, CHAT + TOOLS)); /* other requests prove nothing about tools */
    rejects_kind(0, CHAT + MEDIA);
    assert_true(avoids(0, CHAT + TOOLS) && avoids(0, CHAT + MEDIA));
    assert_false(avoids(0, CHAT)); /* accepted in between */
    assert_false(avoids(0, TEXT));
}

/* A finding covers the common part of the rejected kinds, up to all kinds, except kinds accepted
 * since. */
static void a_finding_may_widen_to_several_request_kinds(void **state)
{
    (void)state;
    start();
    rejects_kind(0, CHAT + STREAM);
    rejects_kind(0, CHAT + TOOLS); /* implied by the first */
    assert_false(avoids(0, TEXT));
    rejects_kind(0, TEXT);
    assert_true(avoids(0, NODE_REJECT_MESSAGES * NODE_REJECT_API)); /* nothing accepted: all */
    now = at[0].backoff.until_ms;
    node_reject_sent(&at[0], NODE_REJECT_MESSAGES * NODE_REJECT_API, 0, now);
    accepts(0, NODE_REJECT_MESSAGES * NODE_REJECT_API, CLIENT);
    assert_false(avoids(0, NODE_REJECT_MESSAGES * NODE_REJECT_API));
    assert_true(avoids(0, CHAT) && avoids(0, TEXT + STREAM));

    start(); /* no tool parser: with tools, any API */
    rejects_kind(0, CHAT + TOOLS);
    accepts(0, CHAT, CLIENT);
    rejects_kind(0, NODE_REJECT_MESSAGES * NODE_REJECT_API + TOOLS);
    assert_true(avoids(0, NODE_REJECT_RESPONSES * NODE_REJECT_API + TOOLS));
    assert_false(avoids(0, CHAT) || avoids(0, NODE_REJECT_MESSAGES * NODE_REJECT_API));

    start(); /* no chat template */
    rejects_kind(0, CHAT + TOOLS);
    accepts(0, TEXT, CLIENT);
    rejects_kind(0, CHAT);
    assert_true(avoids(0, CHAT + MEDIA) && avoids(0, CHAT + STREAM));
    assert_false(avoids(0, TEXT));
}

/* A rejecting replica answers at once, so it seems to have room for everything. While the blame is
 * open, it gets nothing more. */
static void a_doubtful_replica_is_avoided(void **state)
{
    (void)state;
    start();
    struct node_rejection x = rejection(0, 1, 401, CLIENT);
    node_reject_doubt(&at[0], &x, true);
    node_reject_doubt(&at[0], &x, true);
    assert_true(avoids(0, 1));
    assert_false(avoids(0, CHAT));
    node_reject_doubt(&at[0], &x, false);
    assert_true(avoids(0, 1));
    node_reject_doubt(&at[0], &x, false);
    assert_false(avoids(0, 1));
    node_reject_doubt(&at[0], &x, true);
    accepts(0, 1, CLIENT);
    assert_false(avoids(0, 1));
}

static void hear(unsigned i, unsigned other, bool ahead)
{
    struct node_reject_heard h = {0};
    node_reject_heard_add(&h, node_reject_report(&at[other], now), at[other].status, ahead);
    node_reject_hear(&at[i], &h, now);
}

/* Routers 0 and 1 use the same replica. */
static void another_routers_finding_is_heeded(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    assert_true(avoids(1, 1));
    now = at[0].backoff.until_ms + 1; /* the other router tries the replica */
    assert_false(avoids(0, 1));
    assert_true(avoids(1, 1));
    accepts(0, 1, CLIENT);
    hear(1, 0, true);
    assert_false(avoids(1, 1));
}

/* The first router has a back-off's time for the trial. */
static void other_routers_try_if_the_finder_has_no_request(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    assert_true(node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
    now = at[0].backoff.until_ms + NODE_REJECT_BACKOFF_MS - 1;
    hear(1, 0, true);
    assert_true(!node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
    now++;
    hear(1, 0, true);
    assert_false(node_reject_avoids_any(&at[1], now));
    assert_false(avoids(1, 1));
    assert_true(rejects(1, 401, CLIENT, true)); /* in vain */
    hear(0, 1, false);
    assert_true(node_reject_avoids_any(&at[0], now) && node_reject_avoids_any(&at[1], now));
}

/* Others report failed trials: this router tries too, and the results count. */
static void reported_findings_are_heeded_for_a_minute(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    hear(1, 0, true);
    now += NODE_REJECT_HEED_MS;
    at[0].backoff.until_ms = now;
    assert_false(avoids(1, 1));
    node_reject_sent(&at[1], 1, 0, now);
    assert_true(avoids(1, 1));
    now++;
    (void)node_reject_accepted(&at[1], 1, 0, now);
    hear(1, 0, true);
    assert_false(avoids(1, 1));
}

/* A router learned that the replica rejects chats. An accepted request of another kind proves
 * nothing about chats. */
static void an_accepted_request_clears_only_its_kind(void **state)
{
    (void)state;
    start();
    rejects_kind(0, CHAT);
    hear(1, 0, true);
    accepts(1, TEXT, CLIENT);
    assert_true(avoids(1, CHAT) && node_reject_kinds(&at[1]) != 0);
    assert_int_equal(node_reject_status(&at[1]), 400);
    rejects_kind(1, CHAT); /* no news: another router runs the trial */
    assert_true(at[1].kinds == 0);
    now += NODE_REJECT_HEED_MS;
    node_reject_sent(&at[1], CHAT, 0, now);
    accepts(1, CHAT, CLIENT);
    assert_false(avoids(1, CHAT));
}

/* A replica that still gets a share of requests rejects them all the time: the next back-off is not
 * longer for that. */
static void only_a_failed_trial_lengthens_the_back_off(void **state)
{
    (void)state;
    start();
    for (unsigned n = 0; n < 10; n++) {
        node_reject_sent(&at[0], 1, 0, now);
        rejects_kind(0, 1);
    }
    assert_int_equal(at[0].backoff.level, 1);
}

static void is_text(unsigned status, uint64_t kinds, const char *text)
{
    char room[NODE_REJECT_TEXT_BYTES];
    assert_string_equal(node_reject_text(status, kinds, false, room), text);
}

static void the_text_names_status_and_request_kinds(void **state)
{
    (void)state;
    start();
    rejects_kind(0, CHAT);
    is_text(401, at[0].kinds, "answers 401 to chat requests where its peers accept the key");
    is_text(404, at[0].kinds, "answers 404 to chat requests where its peers have the model");
    rejects_kind(1, CHAT + TOOLS);
    is_text(400, at[1].kinds, "answers 400 to chat requests with tools that its peers accept");
    is_text(403, UINT64_MAX, "answers 403 to all requests where its peers accept the key");
    is_text(0, UINT64_C(1) << (TEXT + STREAM) | UINT64_C(1) << (CHAT + STREAM),
            "answers 4xx to streamed requests that its peers accept");
    is_text(422, UINT64_C(1) << (CHAT + TOOLS + MEDIA),
            "answers 422 to chat requests with tools and media that its peers accept");
}

static void a_single_finder_makes_the_trial(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    assert_true(rejects(1, 401, CLIENT, true));
    hear(0, 1, false);
    hear(1, 0, true);
    assert_true(at[0].kinds != 0 && at[1].kinds == 0);
    hear(0, 1, false);
    now = at[0].backoff.until_ms + 1;
    assert_false(avoids(0, 1));
    assert_true(avoids(1, 1));
}

static void a_restart_clears_the_finding(void **state)
{
    (void)state;
    start();
    assert_true(rejects(0, 401, CLIENT, true));
    struct node_rejection x = rejection(0, 1, 401, CLIENT);
    node_reject_doubt(&at[0], &x, true);
    node_reject_renew(&at[0]);
    assert_int_equal(at[0].kinds, 0);
    assert_int_equal(at[0].doubts, 1); /* the request's end is still to come */
    assert_int_equal(at[0].contradicted, 1);
}

static void clients_are_bounded(void **state)
{
    (void)state;
    start();
    for (uint64_t id = 1; id <= 100000; id++)
        node_reject_client_rejected(&clients, from_of(id * 0x9e3779b97f4a7c15), 400, 0);
    assert_in_range(clients.count, NODE_REJECT_CLIENTS_MAX / 2, NODE_REJECT_CLIENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_contradiction_is_enough),
        cmocka_unit_test(a_bad_clients_requests_are_rarely_tried_elsewhere),
        cmocka_unit_test(a_bad_client_hides_no_bad_replica),
        cmocka_unit_test(a_mixed_client_is_tried_after_a_few),
        cmocka_unit_test(a_bad_prompt_does_not_incriminate_other_prompts),
        cmocka_unit_test(a_status_does_not_count_for_other_statuses),
        cmocka_unit_test(a_replica_that_never_accepted_is_suspected),
        cmocka_unit_test(few_requests_are_retried_when_all_replicas_reject),
        cmocka_unit_test(unverified_rejections_blame_no_client),
        cmocka_unit_test(fruitless_retries_stop),
        cmocka_unit_test(a_back_off_and_its_trials),
        cmocka_unit_test(requests_sent_before_the_finding_are_no_trial),
        cmocka_unit_test(a_finding_may_concern_a_single_request_kind),
        cmocka_unit_test(a_finding_may_widen_to_several_request_kinds),
        cmocka_unit_test(a_doubtful_replica_is_avoided),
        cmocka_unit_test(another_routers_finding_is_heeded),
        cmocka_unit_test(an_accepted_request_clears_only_its_kind),
        cmocka_unit_test(only_a_failed_trial_lengthens_the_back_off),
        cmocka_unit_test(the_text_names_status_and_request_kinds),
        cmocka_unit_test(other_routers_try_if_the_finder_has_no_request),
        cmocka_unit_test(reported_findings_are_heeded_for_a_minute),
        cmocka_unit_test(a_single_finder_makes_the_trial),
        cmocka_unit_test(a_restart_clears_the_finding),
        cmocka_unit_test(clients_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
