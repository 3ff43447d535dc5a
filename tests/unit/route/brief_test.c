/* Replicas in a few words, for readers of all frames: each frame has some rows, and a reader that
 * joins them holds all replicas. */
#include "node/route/brief.h"

#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { REPLICAS = 10, MOST = 4 };

static struct node_router *r;
static struct node_brief_reader reader;

static json_t *frame_of(unsigned most)
{
    struct buf text = {0};
    struct json_writer w = json_writer_of(&text);
    json_object_begin(&w);
    node_router_brief_next_write(r, &reader, most, START_MS, &w);
    json_object_end(&w);
    assert_int_equal(json_writer_finish(&w), 0);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_non_null(root);
    buf_free(&text);
    return root;
}

static unsigned number(const json_t *frame, const char *key, size_t index)
{
    return (unsigned)json_integer_value(json_array_get(json_object_get(frame, key), index));
}

static bool has_row(const json_t *frame, unsigned slot)
{
    size_t i;
    const json_t *row;
    bool found = false;
    json_array_foreach(json_object_get(frame, "replicas"), i, row)
    {
        found = found || json_integer_value(json_object_get(row, "slot")) == slot;
    }
    return found;
}

/* Reads frames until a turn is over. */
static void one_turn(void)
{
    for (unsigned i = 0; i < REPLICAS / MOST + 1; i++)
        json_decref(frame_of(MOST));
}

static void begin(unsigned replicas)
{
    r = make("cache_aware", replicas);
    reader = (struct node_brief_reader){0};
}

static void a_few_replicas_are_sent_in_each_frame(void **state)
{
    (void)state;
    begin(3);
    for (unsigned i = 0; i < 3; i++) {
        json_t *frame = frame_of(MOST);
        assert_int_equal(json_array_size(json_object_get(frame, "replicas")), 3);
        assert_int_equal(number(frame, "replicas_span", 0), 0);
        assert_int_equal(number(frame, "replicas_span", 1), 3);
        json_decref(frame);
    }
    node_router_destroy(r);
}

static void many_replicas_are_sent_in_turns(void **state)
{
    (void)state;
    begin(REPLICAS);
    one_turn();
    unsigned seen = 0, from = 0;
    bool known[REPLICAS] = {0};
    reader.next = 0;
    for (unsigned i = 0; i < 3; i++) {
        json_t *frame = frame_of(MOST);
        assert_true(json_array_size(json_object_get(frame, "replicas")) <= MOST);
        assert_int_equal(number(frame, "replicas_span", 0), from);
        from = number(frame, "replicas_span", 1);
        for (unsigned k = 0; k < REPLICAS; k++) {
            seen += !known[k] && has_row(frame, k);
            known[k] = known[k] || has_row(frame, k);
        }
        json_decref(frame);
    }
    assert_int_equal(seen, REPLICAS);
    assert_int_equal(from, REPLICAS);
    node_router_destroy(r);
}

static void a_change_is_sent_with_the_next_frame(void **state)
{
    (void)state;
    begin(REPLICAS);
    one_turn();
    reader.next = 0;
    node_router_probed(r, 9, (struct node_check){.refused = true}, START_MS);
    json_t *frame = frame_of(MOST);
    assert_true(has_row(frame, 9));
    assert_true(has_row(frame, 0)); /* and the turn goes on */
    assert_int_equal(json_integer_value(json_object_get(frame, "replica_count")), REPLICAS);
    assert_int_equal(json_integer_value(json_object_get(frame, "replicas_well")), REPLICAS - 1);
    json_decref(frame);
    frame = frame_of(MOST);
    assert_false(has_row(frame, 9)); /* once */
    json_decref(frame);
    node_router_destroy(r);
}

static void a_removed_replica_is_named_once(void **state)
{
    (void)state;
    begin(REPLICAS);
    one_turn();
    r->replicas[7].absent = true;
    json_t *frame = frame_of(MOST);
    assert_int_equal(json_array_size(json_object_get(frame, "replicas_gone")), 1);
    assert_int_equal(number(frame, "replicas_gone", 0), 7);
    json_decref(frame);
    frame = frame_of(MOST);
    assert_int_equal(json_array_size(json_object_get(frame, "replicas_gone")), 0);
    json_decref(frame);
    node_router_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_replicas_are_sent_in_each_frame),
        cmocka_unit_test(many_replicas_are_sent_in_turns),
        cmocka_unit_test(a_change_is_sent_with_the_next_frame),
        cmocka_unit_test(a_removed_replica_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
