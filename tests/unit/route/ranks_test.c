/* Data-parallel ranks: a single process, with as many caches and queues as ranks. */
#include "node/replica/rank.h"

#include "base/check.h"
#include "node/replica/labels.h"
#include "node/replica/scrape.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"
#include "tests/lib/world/use.h"

enum { RANKS = 4 };

static struct slice at(const struct node_router *r, unsigned replica)
{
    return node_router_replica_name(r, replica);
}

/* An address with the number of ranks in the settings. */
static struct node_router *make_ranks(const struct node_config *config)
{
    struct node_router *r = alone_router(config);
    struct node_labels labels = {.ranks = RANKS};
    assert_int_equal(node_router_name(r, SLICE("e:8000"), NODE_ENGINE_VLLM), 0);
    node_router_labels(r, 0, &labels);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS);
    node_router_tick(r, START_MS);
    return r;
}

static struct node_router *make_default(void)
{
    struct node_config config = config_of("cache_aware");
    return make_ranks(&config);
}

/* Metrics of `ranks` ranks; rank `busy` is the busiest. */
static void read_metrics(struct node_router *r, unsigned ranks, unsigned busy, uint64_t now_ms)
{
    struct node_scrape all = node_scrape_unknown, each[NODE_RANKS_MAX];
    all.running = 100;
    all.ranks = ranks;
    all.series = 4 * ranks;
    all.prompt_tokens = 1000;
    (void)node_router_scraped(r, 0, &all, now_ms);
    for (unsigned i = 0; i < ranks; i++) {
        each[i] = node_scrape_unknown;
        each[i].running = i == busy ? 100 : 0;
        each[i].waiting = i == busy ? 50 : 0;
        each[i].cache_tokens = 20000;
    }
    node_router_ranks_scraped(r, 0, each, ranks, now_ms);
}

static unsigned ranks_of(const struct node_router *r)
{
    unsigned count = 0;
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        count += node_router_rank(r, k) >= 0 && node_router_replica_present(r, k);
    return count;
}

static void names_are_read_and_written(void **state)
{
    (void)state;
    struct node_rank_name name;
    char text[NODE_RANK_NAME_BYTES];
    assert_true(node_rank_name_parse(SLICE("[::1]:8000@63"), &name));
    assert_slice_equal(name.address, "[::1]:8000");
    assert_int_equal(name.rank, 63);
    assert_slice_equal(node_rank_name_write(name.address, name.rank, text), "[::1]:8000@63");
    static const char *const bad[] = {"e:8000",    "e:8000@",   "e:8000@64", "e:8000@-1", "@1",
                                      "e:8000@01", "e:8000@1x", "me@e:8000", "e:8000@999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(node_rank_name_parse(slice_of_cstr(bad[i]), &name));
}

static void each_rank_has_its_own_cache(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    assert_int_equal(ranks_of(r), RANKS);
    unsigned used = 0, first[20];
    for (unsigned s = 0; s < 20; s++) {
        struct node_decision d = choose(r, prompt(s, 4000), START_MS + s);
        assert_true(d.rank >= 0 && d.rank < RANKS);
        assert_int_equal(d.server, 0);
        first[s] = d.replica;
        used |= 1u << d.rank;
        done(r, d, START_MS + s);
    }
    assert_int_equal(used, (1u << RANKS) - 1);
    for (unsigned s = 0; s < 20; s++) {
        struct node_decision d = choose(r, prompt(s, 4000), START_MS + 100 + s);
        assert_int_equal(d.replica, first[s]);
        assert_true(d.cached_tokens > 3500);
        done(r, d, START_MS + 100 + s);
    }
    alone_destroy(r);
}

/* Requests to a rank that is down would be lost at all other ranks of the process too. */
static void all_ranks_of_a_process_go_down_together(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    for (unsigned i = 0; i < 5; i++) {
        struct node_decision d = choose(r, prompt(i, 4000), START_MS);
        node_router_finish(r, d.booking, NODE_OUTCOME_CONNECT_FAILED, NULL, START_MS);
    }
    struct node_request request = request_of(prompt(9, 4000));
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        assert_int_equal(node_router_replica_health(r, k), NODE_HEALTH_DOWN);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS + 5000);
    d = choose(r, prompt(9, 4000), START_MS + 5000);
    done(r, d, START_MS + 5000);
    alone_destroy(r);
}

static void ranks_share_their_processs_request_limit(void **state)
{
    (void)state;
    struct node_config config = config_of("cache_aware");
    config.router.replica_requests_max = 2;
    struct node_router *r = make_ranks(&config);
    struct node_decision d[2];
    d[0] = choose(r, prompt(1, 4000), START_MS);
    d[1] = choose(r, prompt(2, 4000), START_MS);
    assert_int_not_equal(d[0].rank, d[1].rank);
    struct node_request request = request_of(prompt(3, 4000));
    struct node_decision third;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &third), ERR_AGAIN);
    done(r, d[0], START_MS);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &third), ERR_OK);
    done(r, d[1], START_MS);
    done(r, third, START_MS);
    alone_destroy(r);
}

/* Metrics each second: all ranks have work, and rank `still` counts no token. */
static void read_of_ranks(struct node_router *r, int still, uint64_t now_ms)
{
    struct node_scrape each[RANKS];
    for (int i = 0; i < RANKS; i++) {
        each[i] = node_scrape_unknown;
        each[i].vllm = true;
        each[i].running = 1;
        each[i].waiting = 0;
        each[i].generation_tokens = each[i].prompt_tokens =
            (double)(i == still ? START_MS : now_ms);
    }
    node_router_ranks_scraped(r, 0, each, RANKS, now_ms);
}

/* The scheduler of a rank stands still: the other ranks of the process stay in use. */
static void only_the_stalled_rank_is_avoided(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    struct node_decision d[RANKS], next;
    uint64_t at_ms = START_MS;
    for (unsigned i = 0; i < RANKS; i++)
        d[i] = choose(r, prompt(i, 4000), START_MS);
    for (unsigned s = 0; s < 10; s++, at_ms += 1000) {
        read_of_ranks(r, d[0].rank, at_ms);
        for (unsigned i = 0; i < RANKS; i++) {
            struct node_watched w = {.waiting = 3,
                                     .waiting_long = s > 3 ? 3 : 0,
                                     .since_ms = START_MS,
                                     .heard_ms = at_ms};
            node_router_watched(r, d[i].replica, &w, 3000, at_ms);
        }
    }
    assert_true(node_router_rank_stalled(r, d[0].replica));
    assert_int_equal(node_router_replica_stall(r, d[0].server), NODE_STALL_NONE);
    for (unsigned i = 1; i < RANKS; i++)
        assert_int_equal(node_router_replica_stall(r, d[i].replica), NODE_STALL_NONE);
    node_router_finish(r, d[0].booking, NODE_OUTCOME_STALLED, NULL, at_ms);
    for (unsigned i = 0; i < 5; i++) { /* even the prompt cached by this rank */
        next = choose(r, prompt(0, 4000), at_ms);
        assert_int_not_equal(next.rank, d[0].rank);
        done(r, next, at_ms);
    }
    for (unsigned i = 1; i < RANKS; i++)
        done(r, d[i], at_ms);
    alone_destroy(r);
}

/* A request that failed at a rank does not try the next rank of the same process. */
static void an_address_is_excluded_with_its_ranks(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    struct node_replica_set excluded = {{1}};
    struct node_request request = request_of(prompt(1, 4000));
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_UNREACHABLE);
    assert_int_equal(node_router_name(r, SLICE("f:8000"), NODE_ENGINE_VLLM), 5);
    node_router_probed(r, 5, (struct node_check){.ok = true}, START_MS);
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
    assert_int_equal(d.rank, -1);
    assert_slice_equal(at(r, d.replica), "f:8000");
    done(r, d, START_MS);
    alone_destroy(r);
}

static void a_restart_empties_all_ranks(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    for (unsigned s = 0; s < 20; s++)
        done(r, choose(r, prompt(s, 4000), START_MS), START_MS);
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS + 10);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS + 20000);
    for (unsigned s = 0; s < 20; s++) {
        struct node_decision d = choose(r, prompt(s, 4000), START_MS + 20000 + 2000 * s);
        assert_int_equal(d.cached_tokens, 0);
        done(r, d, START_MS + 20000 + 2000 * s);
    }
    alone_destroy(r);
}

/* Requests that cannot be pinned go to the address, and the engine balances them. */
static void unpinnable_requests_go_to_the_address(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    struct node_request request = request_of(prompt(1, 4000));
    request.unpinned = 1u << NODE_ENGINE_VLLM;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    assert_int_equal(d.rank, -1);
    done(r, d, START_MS);
    request.unpinned = 0;
    request.replica_wanted = 0; /* as for the maker of a stored response */
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    done(r, d, START_MS);
    alone_destroy(r);
}

static void metrics_show_the_number_of_ranks(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    assert_int_equal(ranks_of(r), 0);
    read_metrics(r, 3, 1, START_MS + 1000);
    node_router_tick(r, START_MS + 1000);
    assert_int_equal(ranks_of(r), 3);
    for (unsigned i = 0; i < 3; i++)
        read_metrics(r, 3, 1, START_MS + 2000 + 1000 * i);
    json_t *root = replicas_json(r, START_MS + 4000);
    assert_int_equal(json_array_size(root), 4);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 0), "ranks")), 3);
    assert_true(believed(root, 2, "engine_metrics", "running") == 100);
    assert_true(believed(root, 3, "engine_metrics", "running") == 0);
    assert_true(believed(root, 3, "cache", "tokens") == 20000);
    json_decref(root);
    unsigned busy = 0; /* batch jobs keep the rank busy */
    for (unsigned s = 0; s < 12; s++) {
        struct node_decision d = choose(r, prompt(s, 4000), START_MS + 4000);
        busy += d.rank == 1;
        done(r, d, START_MS + 4000);
    }
    assert_true(busy <= 1); /* a first request may go there, because the demand is unknown */
    /* A rank missing from a reading or two is not gone; from the third on it is. */
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ranks_of(r), 3);
        read_metrics(r, 2, 1, START_MS + 5000 + 1000 * i);
        node_router_tick(r, START_MS + 5000 + 1000 * i);
    }
    assert_int_equal(ranks_of(r), 2);
    alone_destroy(r);
}

/* Requests pinned to the ranks are not foreign to the address, though they are load there. */
static void pinned_requests_are_not_foreign_load(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    read_metrics(r, 3, 1, START_MS + 1000);
    node_router_tick(r, START_MS + 1000);
    struct node_decision d[2];
    for (unsigned i = 0; i < 2; i++)
        d[i] = choose(r, prompt(i, 4000), START_MS + 1000);
    for (unsigned i = 0; i < 2; i++)
        read_metrics(r, 3, 1, START_MS + 2000 + 1000 * i);
    json_t *root = replicas_json(r, START_MS + 3000);
    assert_true(believed(root, 0, "learned", "foreign_requests") == 98);
    json_decref(root);
    for (unsigned i = 0; i < 2; i++)
        done(r, d[i], START_MS + 3000);
    alone_destroy(r);
}

static void the_ranks_label_outranks_metrics(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_labels labels = {.ranks = 1};
    node_router_labels(r, 0, &labels);
    read_metrics(r, 3, 0, START_MS + 1000);
    node_router_tick(r, START_MS + 1000);
    assert_int_equal(ranks_of(r), 0);
    labels.ranks = 2;
    node_router_labels(r, 0, &labels);
    node_router_tick(r, START_MS + 2000);
    assert_int_equal(ranks_of(r), 2);
    alone_destroy(r);
}

static void ranks_are_added_and_removed_with_their_address(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    int second = node_router_replica_find(r, SLICE("e:8000@1"));
    assert_true(second >= 0);
    node_router_replica_drain(r, (unsigned)second, true);
    for (unsigned s = 0; s < 10; s++) {
        struct node_decision d = choose(r, prompt(s, 4000), START_MS);
        assert_int_not_equal(d.rank, 1);
        done(r, d, START_MS);
    }
    struct node_decision d = choose(r, prompt(1, 4000), START_MS);
    assert_true(node_replica_own_requests(node_router_replica(r, 0)) > 0);
    assert_true(
        node_router_replica_wish(r, SLICE("e:8000"), NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO) >= 0);
    assert_int_equal(ranks_of(r), 0);
    done(r, d, START_MS);
    assert_true(node_router_replica_wish(r, SLICE("e:8000"), NODE_REPLICA_ADD, NODE_ENGINE_AUTO) >=
                0);
    node_router_tick(r, START_MS + 1000);
    assert_int_equal(ranks_of(r), RANKS);
    node_router_check(r);
    alone_destroy(r);
}

/* A suspect would die with all ranks of the process. */
static void a_suspect_gets_a_whole_idle_process(void **state)
{
    (void)state;
    struct node_router *r = make_default();
    assert_int_equal(node_router_name(r, SLICE("f:8000"), NODE_ENGINE_VLLM), 5);
    node_router_probed(r, 5, (struct node_check){.ok = true}, START_MS);
    struct node_request request = request_of(prompt(1, 4000));
    request.replica_wanted = node_router_replica_find(r, SLICE("e:8000@2"));
    struct node_decision beside, d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &beside), ERR_OK);
    request.replica_wanted = -1;
    request.company = NODE_COMPANY_ALONE;
    request.kept_for_it = -1;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_slice_equal(at(r, d.replica), "f:8000");
    done(r, d, START_MS);
    done(r, beside, START_MS);
    alone_destroy(r);
}

/* Another router's requests at the ranks count at their address, also after the table was counted
 * anew, as happens whenever names change. */
static void other_routers_load_at_ranks_counts_at_the_address(void **state)
{
    (void)state;
    struct world w;
    struct node_labels labels = {.ranks = RANKS};
    struct node_decision d[3];
    world_open(&w, 2, 1);
    world_start(&w, 0);
    world_start(&w, 1);
    world_settle(&w);
    for (unsigned i = 0; i < 2; i++) {
        unsigned slot = world_replica(&w, i, "e:8000");
        assert_int_equal(slot, 0);
        node_router_labels(w.nodes[i].node->router, slot, &labels);
    }
    world_run(&w, 3000000);
    struct node_router *r = w.nodes[1].node->router;
    assert_int_equal(ranks_of(r), RANKS);
    const struct node_replica *k = node_router_process(r, 0);
    assert_int_equal(node_replica_requests(k), node_replica_own_requests(k));
    for (unsigned i = 0; i < ARRAY_LEN(d); i++) {
        d[i] = world_choose(&w, 0, prompt(i, 4000));
        assert_true(d[i].rank >= 0);
    }
    world_run(&w, 3000000);
    node_router_loads_take(r, world_ms(&w));
    node_router_presence_update(r);
    assert_true(node_replica_requests(k) > node_replica_own_requests(k));
    assert_int_equal(node_replica_requests(&r->replicas[0]), ARRAY_LEN(d));
    assert_false(node_replica_own_requests(node_router_replica(r, 0)) > 0); /* none of its own */
    for (unsigned i = 0; i < ARRAY_LEN(d); i++)
        world_finish(&w, 0, d[i], &no_usage);
    world_run(&w, 3000000);
    node_router_loads_take(r, world_ms(&w));
    assert_int_equal(node_replica_requests(&r->replicas[0]), 0);
    node_router_presence_update(r);
    assert_int_equal(node_replica_requests(&r->replicas[0]), 0);
    world_close(&w);
}

/* A router of another machine joins. The address and the ranks get the name of this router, and the
 * earlier names go, though the old name of the address still finds it. */
static void ranks_are_renamed_with_their_address(void **state)
{
    (void)state;
    struct world w;
    struct node_labels labels = {.ranks = RANKS};
    world_open(&w, 2, 1);
    world_start(&w, 0);
    struct node_router *r = w.nodes[0].node->router;
    node_router_labels(r, world_replica(&w, 0, "127.0.0.1:8000"), &labels);
    world_run(&w, 3000000);
    assert_int_equal(ranks_of(r), RANKS);
    assert_true(node_router_replica_find(r, SLICE("127.0.0.1:8000@0")) >= 0);
    r->config.apart = true;
    node_router_apart_follow(r);
    assert_true(r->apart);
    int slot = node_router_replica_find(r, SLICE("127.0.0.1:8000"));
    assert_true(slot >= 0);
    node_router_labels(r, (unsigned)slot, &labels);
    world_run(&w, 3000000);
    assert_int_equal(ranks_of(r), RANKS);
    int old = node_router_replica_find(r, SLICE("127.0.0.1:8000@0"));
    assert_true(old < 0 || !node_router_replica_present(r, (unsigned)old));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(each_rank_has_its_own_cache),
        cmocka_unit_test(all_ranks_of_a_process_go_down_together),
        cmocka_unit_test(ranks_share_their_processs_request_limit),
        cmocka_unit_test(only_the_stalled_rank_is_avoided),
        cmocka_unit_test(an_address_is_excluded_with_its_ranks),
        cmocka_unit_test(a_restart_empties_all_ranks),
        cmocka_unit_test(unpinnable_requests_go_to_the_address),
        cmocka_unit_test(metrics_show_the_number_of_ranks),
        cmocka_unit_test(pinned_requests_are_not_foreign_load),
        cmocka_unit_test(the_ranks_label_outranks_metrics),
        cmocka_unit_test(ranks_are_added_and_removed_with_their_address),
        cmocka_unit_test(a_suspect_gets_a_whole_idle_process),
        cmocka_unit_test(other_routers_load_at_ranks_counts_at_the_address),
        cmocka_unit_test(ranks_are_renamed_with_their_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
