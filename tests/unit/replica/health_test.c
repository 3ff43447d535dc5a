/* Signs of life: evidence for and against a stall. */
#include "node/replica/standing.h"
#include "tests/lib/test.h"

enum { W = 3000, NOW = 100000 };

/* A vLLM at work: it produced tokens, and the metrics count them. */
static struct node_replica make(enum node_engine engine)
{
    struct node_replica_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    struct node_replica k;
    node_replica_init(&k, SLICE("host:1"), engine, 1, &config);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 1000);
    return k;
}

static void scrape(struct node_replica *k, double tokens, double running, uint64_t now_ms)
{
    struct node_scrape s = node_scrape_unknown;
    s.generation_tokens = s.prompt_tokens = tokens;
    s.running = running;
    s.waiting = 0;
    s.vllm = k->engine == NODE_ENGINE_VLLM;
    s.sglang = !s.vllm;
    (void)node_replica_scraped(k, &s, now_ms);
}

/* Scrapes each second; scrapes up to `moves_ms` show progress. */
static void scrapes(struct node_replica *k, uint64_t from_ms, uint64_t moves_ms, uint64_t to_ms,
                    double running)
{
    for (uint64_t t = from_ms; t <= to_ms; t += 500)
        scrape(k, (double)(t < moves_ms ? t : moves_ms), running, t);
}

static void bytes_or_tokens_rule_out_a_stall(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    struct node_watched w = {.waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW};
    /* No byte came, and a probe got no answer. */
    w.asked_ms = NOW + 1000;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W - 1), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W), NODE_STALL_SILENT);
    assert_int_equal(node_signs_judge(&k, &w, 0, NOW + W), NODE_STALL_NONE); /* off */
    w.heard_ms = NOW + 100;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W), NODE_STALL_NONE);
    w.heard_ms = NOW;
    w.unasked_ms = NOW + 100; /* no probe could be sent before */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W + 99), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W + 100), NODE_STALL_SILENT);
    w.unasked_ms = 0;
    w.asked_ms = 0; /* not probed: perhaps at work on a long answer */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 10 * W), NODE_STALL_NONE);
    w = (struct node_watched){.asked_ms = NOW}; /* no request waits */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + W), NODE_STALL_NONE);
}

static void stalled_counters_show_a_stall(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 4000, 1);
    struct node_watched w = {
        .waiting = 2, .waiting_long = 2, .since_ms = NOW - 5000, .heard_ms = NOW + 4000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_COUNTERS);
    w.token_ms = NOW + 2000; /* a token came here */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_NONE);
    w.token_ms = 0;
    scrape(&k, NOW * 2, 1, NOW + 4000); /* others got some tokens */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_NONE);
}

static void a_long_prompt_explains_a_long_silence(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 60000, 1);
    struct node_watched w = {.waiting = 1,
                             .waiting_long = 1,
                             .since_ms = NOW,
                             .heard_ms = NOW + 60000,
                             .prefill_tokens_max = 100000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 60000), NODE_STALL_NONE);
    w.prefill_tokens_max = 1000;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 60000), NODE_STALL_COUNTERS);
    k.load.remote.prefill_tokens = 100000; /* another router's prompt is ahead */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 60000), NODE_STALL_NONE);
}

/* A grammar is compiled, or pictures are fetched: no counter shows that. */
static void a_single_request_gets_more_time(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 10000, 0);
    struct node_watched w = {
        .waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW + 9000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 8900), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 10000), NODE_STALL_COUNTERS);
    w.waiting = w.waiting_long = 3;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_COUNTERS);
}

/* SGLang counts the tokens of a request at the end: during a single long answer no counter
 * moves. */
static void a_stall_of_sglang_needs_an_unanswered_health_check(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_SGLANG);
    scrapes(&k, NOW - 1000, NOW, NOW + 5000, 1);
    struct node_watched w = {
        .waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW + 5000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 5000), NODE_STALL_NONE);
    w.health_asked_ms = NOW + 1500;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 5000), NODE_STALL_COUNTERS);
    /* The probe is sent after half of the time, and counts after two thirds: before the request
     * would end by itself. */
    scrapes(&k, NOW - 1000, NOW, NOW + 3500, 1);
    w.heard_ms = NOW + 3500;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 3400), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 3600), NODE_STALL_COUNTERS);
}

/* The request may need kernels compiled. */
static void an_engine_without_a_first_token_gets_more_time(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW, 0, NOW + 10000, 1);
    struct node_watched w = {
        .waiting = 3, .waiting_long = 3, .since_ms = NOW, .heard_ms = NOW + 10000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 9000), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 10000), NODE_STALL_COUNTERS);
    /* The same holds for a starved request. */
    w.health_asked_ms = NOW + 1000;
    k.signs.still_ms = 0;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 9000), NODE_STALL_NONE);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 10000), NODE_STALL_STARVED);
}

/* The engine was warmed up, or worked for others, before this router came. */
static void counted_tokens_prove_an_engine_warm(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    for (uint64_t t = NOW; t <= NOW + 4000; t += 500)
        scrape(&k, 2, 0, t);
    assert_true(k.signs.proven);
    struct node_watched w = {
        .waiting = 4, .waiting_long = 4, .since_ms = NOW, .heard_ms = NOW + 4000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_COUNTERS);
    scrape(&k, 0, 0, NOW + 4500); /* restarted: must prove itself again */
    assert_false(k.signs.proven);
    scrape(&k, 2, 0, NOW + 5000);
    assert_true(k.signs.proven);
}

static void a_slow_health_check_alone_proves_nothing(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW + 9000, NOW + 9000, 3);
    struct node_watched w = {.waiting = 2,
                             .waiting_long = 2,
                             .since_ms = NOW,
                             .heard_ms = NOW + 9000,
                             .health_asked_ms = NOW + 1000};
    node_replica_answering(&k, NOW, NOW + 8000); /* first tokens come */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 9000), NODE_STALL_NONE);
    k.signs.first_ms = 0;
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 9000), NODE_STALL_STARVED);
    k.scrape.waiting = 5; /* the queue explains the wait */
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 9000), NODE_STALL_NONE);
}

/* Gauges show the last step: the engine seems to have lost later requests. */
static void a_starving_engine_may_stall_for_all(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW + 1000, NOW + 3500, 1);
    struct node_watched w = {.waiting = 4,
                             .waiting_long = 4,
                             .streaming = 1,
                             .since_ms = NOW,
                             .heard_ms = NOW + 3500,
                             .token_ms = NOW + 1000};
    node_signs_watch(&k, &w, W, NOW + 3500);
    assert_int_equal(k.signs.stall, NODE_STALL_STARVED);
    w.waiting = w.waiting_long = 0; /* they moved */
    scrapes(&k, NOW + 4000, NOW + 1000, NOW + 4500, 1);
    node_signs_watch(&k, &w, W, NOW + 4500);
    assert_int_equal(k.signs.stall, NODE_STALL_COUNTERS);
    assert_int_equal(k.signs.stalls_total, 1);
}

static void progress_ends_a_stall(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 4000, 1);
    struct node_watched w = {
        .waiting = 2, .waiting_long = 2, .since_ms = NOW, .heard_ms = NOW + 4000};
    node_signs_watch(&k, &w, W, NOW + 4000);
    assert_int_equal(k.signs.stall, NODE_STALL_COUNTERS);
    assert_true(node_replica_avoided(&k, NOW + 4000) && node_replica_usable(&k, NODE_HEALTH_UP));
    scrape(&k, NOW * 2, 1, NOW + 5000);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    assert_false(node_replica_avoided(&k, NOW + 5000));
    assert_int_equal(k.signs.stalls_total, 1);
}

/* Every request that could move has moved to another replica: no request is left to show the
 * engine's health. */
static void a_stalled_engine_reporting_idle_gets_a_trial(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 4000, 1);
    struct node_watched w = {
        .waiting = 2, .waiting_long = 2, .since_ms = NOW, .heard_ms = NOW + 4000};
    node_signs_watch(&k, &w, W, NOW + 4000);
    w = (struct node_watched){.heard_ms = NOW + 9500};
    scrapes(&k, NOW + 4500, NOW, NOW + 9500, 1); /* stuck: still counted as running */
    node_signs_watch(&k, &w, W, NOW + 9500);
    assert_int_equal(k.signs.stall, NODE_STALL_COUNTERS);
    scrape(&k, NOW, 0, NOW + 9600);
    node_signs_watch(&k, &w, W, NOW + 9600);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    assert_false(node_replica_avoided(&k, NOW + 9600));
    k.load.requests = 1; /* the trial */
    assert_true(node_replica_avoided(&k, NOW + 9600));
    node_replica_answering(&k, NOW + 9600, NOW + 9700);
    assert_false(node_replica_avoided(&k, NOW + 9700));
}

static void a_stopped_process_is_back_with_its_first_byte(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    struct node_watched w = {
        .waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW, .asked_ms = NOW + 500};
    node_signs_watch(&k, &w, W, NOW + 1200);
    assert_true(k.signs.quiet && node_replica_avoided(&k, NOW + 1200)); /* before it is certain */
    node_signs_watch(&k, &w, W, NOW + W);
    assert_int_equal(k.signs.stall, NODE_STALL_SILENT);
    w = (struct node_watched){.heard_ms = NOW};
    node_signs_watch(&k, &w, W, NOW + 60000);
    assert_int_equal(k.signs.stall, NODE_STALL_SILENT);
    w.heard_ms = NOW + 60100;
    node_signs_watch(&k, &w, W, NOW + 60200);
    assert_false(node_replica_avoided(&k, NOW + 60200));
}

/* --- answers already begun ------------------------------------------------------------------- */

enum { CUT = 60000 };

static bool lost(const struct node_replica *k, uint64_t heard_ms, uint64_t now_ms)
{
    return node_signs_lost(k, NOW, heard_ms, CUT, now_ms);
}

static void an_answer_without_signs_of_work_is_lost(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    struct node_scrape s = node_scrape_unknown;
    s.running = 1;
    for (uint64_t t = NOW; t <= NOW + 2 * CUT; t += 1000) { /* the counters stop 20 s later */
        s.generation_tokens = s.work.value[0] = (double)(t < NOW + 20000 ? t : NOW + 20000);
        (void)node_replica_scraped(&k, &s, t);
        assert_int_equal(lost(&k, t, t), t >= NOW + 20000 + CUT);
        assert_false(node_signs_lost(&k, NOW, t, 0, t)); /* off */
    }
}

/* Metrics are no longer read, and a health check succeeds: nothing is certain. */
static void an_answer_without_evidence_is_not_lost(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    for (uint64_t t = NOW; t < NOW + 10 * CUT; t += 5000)
        assert_false(lost(&k, t, t));
    struct node_scrape s = node_scrape_unknown; /* an SGLang that counts when requests end */
    s.running = 1;
    s.generation_tokens = s.work.value[15] = 100;
    assert_false(node_work_tells_steps(&s.work));
    for (uint64_t t = NOW; t < NOW + 10 * CUT; t += 5000) {
        (void)node_replica_scraped(&k, &s, t);
        assert_false(lost(&k, t, t));
    }
}

static void an_answer_of_a_silent_engine_is_lost(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_OTHER);
    assert_false(lost(&k, NOW, NOW + CUT - 1));
    assert_true(lost(&k, NOW, NOW + CUT));
    assert_false(lost(&k, NOW + 1, NOW + CUT)); /* a probe got a byte */
    k.absent = true;                            /* removed, and no longer probed */
    assert_true(lost(&k, NOW + CUT, NOW + CUT));
}

/* Another router saw a token there. */
static void work_seen_by_other_routers_counts(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_OTHER);
    struct node_others others = {.who = 7, .count = 1, .sums.work = 1};
    node_replica_others(&k, &others, 1, NOW); /* a new sum begins */
    assert_int_equal(k.signs.worked_ms, 0);
    others.sums.work = 2;
    node_replica_others(&k, &others, 1, NOW + 5000);
    assert_int_equal(k.signs.worked_ms, NOW + 5000);
    assert_int_equal(k.signs.moved_ms, 0); /* late by seconds: useless for detecting a stall */
    node_replica_others(&k, &others, 1, NOW + 6000);
    assert_int_equal(k.signs.worked_ms, NOW + 5000);
    assert_false(lost(&k, NOW, NOW + CUT));
}

/* A prompt that takes longer than stall-cut, by the engine's known speed. */
static void a_concurrent_long_prompt_explains_silence(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    struct node_watched w = {
        .waiting = 1, .streaming = 1, .prefill_tokens_max = 100000, .since_ms = NOW};
    node_signs_watch(&k, &w, W, NOW + 1000);
    assert_true(k.signs.explained_ms > CUT);
    assert_false(lost(&k, NOW, NOW + CUT));
    assert_true(lost(&k, NOW, NOW + k.signs.explained_ms));
}

/* --- between routers */

/* Three routers with a request each, and no other evidence: together that is enough. */
static void requests_waiting_at_other_routers_count(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 10000, 0);
    struct node_watched w = {
        .waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW + 10000};
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_NONE);
    node_signs_watch(&k, &w, W, NOW + 3100);
    assert_int_equal(node_signs_report(&k.signs), 1);
    node_signs_hear(&k.signs, 2, false, NOW + 4000);
    assert_int_equal(node_signs_judge(&k, &w, W, NOW + 4000), NODE_STALL_COUNTERS);
}

/* A router found a stall: the others avoid the replica, until they see progress. */
static void a_stall_found_by_another_router_is_heeded(void **state)
{
    (void)state;
    struct node_replica first = make(NODE_ENGINE_VLLM), second = make(NODE_ENGINE_VLLM);
    scrapes(&first, NOW - 1000, NOW, NOW + 4000, 1);
    struct node_watched w = {
        .waiting = 3, .waiting_long = 3, .since_ms = NOW, .heard_ms = NOW + 4000};
    node_signs_watch(&first, &w, W, NOW + 4000);
    assert_int_equal(first.signs.stall, NODE_STALL_COUNTERS);
    assert_int_equal(node_signs_report(&first.signs), 3 | NODE_STILL_FOUND);
    node_signs_hear(&second.signs, 3, true, NOW + 4000);
    assert_true(node_replica_avoided(&second, NOW + 4000));
    node_signs_moved(&second.signs, NOW + 4500); /* own eyes */
    node_signs_hear(&second.signs, 3, true, NOW + 5000);
    assert_false(node_replica_avoided(&second, NOW + 4500));
    node_signs_hear(&second.signs, 0, false, NOW + 5000);
    node_signs_hear(&second.signs, 0, true, NOW + 5000); /* again */
    assert_true(node_replica_avoided(&second, NOW + 5000));
}

/* Without requests no router sees progress. The router with the finding tries the replica in turn;
 * then each other router may, with a single request. */
static void an_untested_finding_ends(void **state)
{
    (void)state;
    struct node_replica first = make(NODE_ENGINE_VLLM), second = make(NODE_ENGINE_VLLM);
    scrapes(&first, NOW - 1000, NOW, NOW + 4000, 1);
    struct node_watched w = {
        .waiting = 3, .waiting_long = 3, .since_ms = NOW, .heard_ms = NOW + 4000};
    node_signs_watch(&first, &w, W, NOW + 4000);
    assert_int_equal(node_signs_report(&first.signs), 3 | NODE_STILL_FOUND);
    node_signs_hear(&second.signs, 3, true, NOW + 4000);
    w = (struct node_watched){.heard_ms = NOW + 10000};
    scrapes(&first, NOW + 4500, NOW, NOW + 10000, 0);
    node_signs_watch(&first, &w, W, NOW + 10000);
    assert_int_equal(first.signs.stall, NODE_STALL_NONE);
    assert_int_not_equal(node_signs_report(&first.signs), 0); /* the turn of `first` */
    node_signs_watch(&first, &w, W, NOW + 10000 + NODE_STALL_BACKOFF_MS);
    assert_int_equal(node_signs_report(&first.signs), 0);
    assert_true(node_replica_avoided(&second, NOW + 15000));
    node_signs_hear(&second.signs, 0, false, NOW + 15000);
    assert_false(node_replica_avoided(&second, NOW + 15000));
    second.load.requests = 1;
    assert_true(node_replica_avoided(&second, NOW + 15000));
    node_signs_answering(&second.signs, NOW + 15100);
    assert_false(node_replica_avoided(&second, NOW + 15100));
}

/* A request, lost by the engine and unable to move, goes on waiting: only the request's router
 * avoids the engine for that. */
static void a_stuck_request_after_a_back_off_is_not_reported(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW, NOW + 30000, 0);
    struct node_watched w = {
        .waiting = 1, .waiting_long = 1, .since_ms = NOW, .heard_ms = NOW + 30000};
    k.signs.tried_ms = NOW;
    node_signs_watch(&k, &w, W, NOW + 10000);
    assert_int_equal(k.signs.stall, NODE_STALL_COUNTERS);
    assert_true((node_signs_report(&k.signs) & NODE_STILL_FOUND) != 0);
    node_signs_watch(&k, &w, W, NOW + 15000);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    node_signs_watch(&k, &w, W, NOW + 15100);
    assert_int_equal(k.signs.stall, NODE_STALL_COUNTERS);
    assert_int_equal(node_signs_report(&k.signs) & NODE_STILL_FOUND, 0);
    assert_true(node_replica_avoided(&k, NOW + 15100));
    /* After a failed trial the finding is news again. */
    node_signs_watch(&k, &w, W, NOW + 25100);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    k.signs.tried_ms = NOW + 25200;
    node_signs_watch(&k, &w, W, NOW + 25300);
    assert_true((node_signs_report(&k.signs) & NODE_STILL_FOUND) != 0);
}

/* After a pause a probe's answer may come before the first token of requests there. */
static void progress_ends_a_trial(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    k.load.requests = 3;
    struct node_watched w = {.streaming = 3,
                             .since_ms = NOW - 9000,
                             .token_ms = NOW,
                             .heard_ms = NOW,
                             .asked_ms = NOW + 500};
    node_signs_watch(&k, &w, W, NOW + W);
    assert_int_equal(k.signs.stall, NODE_STALL_SILENT);
    w.heard_ms = NOW + 5000;
    w.asked_ms = 0;
    node_signs_watch(&k, &w, W, NOW + 5000);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    assert_true(node_replica_avoided(&k, NOW + 5000));
    w.token_ms = NOW + 5100; /* a token of the three requests */
    node_signs_watch(&k, &w, W, NOW + 5100);
    assert_false(node_replica_avoided(&k, NOW + 5100));
}

/* Others' tokens do not prove that this router gets some. */
static void other_requests_progress_ends_no_starvation_trial(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    scrapes(&k, NOW - 1000, NOW + 9000, NOW + 9000, 3);
    struct node_watched w = {.waiting = 2,
                             .waiting_long = 2,
                             .since_ms = NOW,
                             .heard_ms = NOW + 9000,
                             .health_asked_ms = NOW + 1000};
    node_signs_watch(&k, &w, W, NOW + 9000);
    assert_int_equal(k.signs.stall, NODE_STALL_STARVED);
    w = (struct node_watched){.heard_ms = NOW + 15000};
    node_signs_watch(&k, &w, W, NOW + 15000);
    assert_int_equal(k.signs.stall, NODE_STALL_NONE);
    k.load.requests = 1;
    node_signs_moved(&k.signs, NOW + 15100);
    assert_true(node_replica_avoided(&k, NOW + 15100));
    node_signs_answering(&k.signs, NOW + 15200);
    assert_false(node_replica_avoided(&k, NOW + 15200));
}

/* A router without connection to an engine gets no sign of life, and does not report it. */
static void silence_is_not_reported_to_other_routers(void **state)
{
    (void)state;
    struct node_replica k = make(NODE_ENGINE_VLLM);
    struct node_watched w = {.waiting = 1, .since_ms = NOW, .heard_ms = NOW, .asked_ms = NOW + 500};
    node_signs_watch(&k, &w, W, NOW + W);
    assert_int_equal(k.signs.stall, NODE_STALL_SILENT);
    assert_int_equal(node_signs_report(&k.signs), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_or_tokens_rule_out_a_stall),
        cmocka_unit_test(stalled_counters_show_a_stall),
        cmocka_unit_test(a_long_prompt_explains_a_long_silence),
        cmocka_unit_test(a_single_request_gets_more_time),
        cmocka_unit_test(a_stall_of_sglang_needs_an_unanswered_health_check),
        cmocka_unit_test(an_engine_without_a_first_token_gets_more_time),
        cmocka_unit_test(counted_tokens_prove_an_engine_warm),
        cmocka_unit_test(a_slow_health_check_alone_proves_nothing),
        cmocka_unit_test(a_starving_engine_may_stall_for_all),
        cmocka_unit_test(progress_ends_a_stall),
        cmocka_unit_test(a_stalled_engine_reporting_idle_gets_a_trial),
        cmocka_unit_test(a_stopped_process_is_back_with_its_first_byte),
        cmocka_unit_test(an_answer_without_signs_of_work_is_lost),
        cmocka_unit_test(an_answer_without_evidence_is_not_lost),
        cmocka_unit_test(an_answer_of_a_silent_engine_is_lost),
        cmocka_unit_test(work_seen_by_other_routers_counts),
        cmocka_unit_test(a_concurrent_long_prompt_explains_silence),
        cmocka_unit_test(requests_waiting_at_other_routers_count),
        cmocka_unit_test(a_stall_found_by_another_router_is_heeded),
        cmocka_unit_test(an_untested_finding_ends),
        cmocka_unit_test(a_stuck_request_after_a_back_off_is_not_reported),
        cmocka_unit_test(progress_ends_a_trial),
        cmocka_unit_test(other_requests_progress_ends_no_starvation_trial),
        cmocka_unit_test(silence_is_not_reported_to_other_routers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
