/* Finds routers that do not hear each other, from the answers of all routers. */
#include "node/admin/hearing.h"

#include <stdio.h>

#include "tests/lib/test.h"

/* Rows: a's, b's and c's answers, as milliseconds since each last heard a, b and c. -1: never; -2:
 * no value in the answer; a row of -3: no answer. */
static const int well[3][3] = {{0, 50, 60}, {70, 0, 80}, {90, 40, 0}};

static struct admin_hearing_view view;
static struct admin_hearing found;

static void put_row(struct buf *out, const int row[3], unsigned self)
{
    int err = buf_printf(out, "%s\"%c\":{", self > 0 ? "," : "", 'a' + (int)self);
    if (row[0] == -3)
        err |= buf_printf(out, "\"error\":\"timeout\"}");
    else
        err |= buf_printf(out, "\"ready\":true,\"index\":[{\"generation\":1}],\"hears\":{");
    bool first = true;
    for (unsigned k = 0; k < 3 && row[0] != -3; k++) {
        if (k == self || row[k] == -2)
            continue;
        err |= buf_printf(out, "%s\"%c\":", first ? "" : ",", 'a' + (int)k);
        err |= row[k] < 0 ? buf_printf(out, "null") : buf_printf(out, "%d", row[k]);
        first = false;
    }
    if (row[0] != -3)
        err |= buf_printf(out, "}}");
    assert_int_equal(err, 0);
}

static void look(const int rows[3][3])
{
    struct buf text = {0};
    assert_int_equal(buf_printf(&text, "{"), 0);
    for (unsigned i = 0; i < 3; i++)
        put_row(&text, rows[i], i);
    assert_int_equal(buf_printf(&text, "}"), 0);
    node_digests_hears(buf_slice(&text), &view.hears);
    buf_free(&text);
    assert_int_equal(view.hears.count, 3);
    for (unsigned i = 0; i < 3; i++)
        view.judged[i] = true;
    view.heard_ms = 1050;
    admin_hearing_find(&found, &view);
}

static void set(int rows[3][3], unsigned a, unsigned b, int ms)
{
    rows[a][b] = ms;
}

static void assert_line(unsigned i, enum admin_attention_kind kind, const char *what)
{
    struct admin_attention_list list = {0};
    assert_true(i < found.count);
    assert_int_equal(found.lines[i].kind, kind);
    admin_hearing_add(&found, found.taken_ms, &list);
    assert_string_equal(list.items[i].what, what);
}

static void a_healthy_cluster_has_no_problems(void **state)
{
    (void)state;
    look(well);
    assert_int_equal(found.count, 0);
}

static void a_cut_between_two_routers_is_found(void **state)
{
    (void)state;
    int rows[3][3];
    for (unsigned late = 0; late < 2; late++) {
        memcpy(rows, well, sizeof rows);
        set(rows, 1, 2, late ? 5000 : -1);
        set(rows, 2, 1, late ? 4000 : -1);
        look(rows);
        assert_int_equal(found.count, 1);
        assert_line(0, ATTENTION_ROUTERS_CUT, "routers b and c do not hear each other");
    }
}

static void one_way_loss_is_found(void **state)
{
    (void)state;
    int rows[3][3];
    memcpy(rows, well, sizeof rows);
    set(rows, 2, 1, 60000);
    look(rows);
    assert_int_equal(found.count, 1);
    assert_line(0, ATTENTION_ROUTER_DEAF, "router c does not hear b, but is heard there");
    set(rows, 2, 0, 60000);
    look(rows);
    assert_int_equal(found.count, 1);
    assert_line(0, ATTENTION_ROUTER_DEAF, "router c does not hear a, b, but is heard there");
}

static void a_killed_router_is_not_cut_off(void **state)
{
    (void)state;
    int rows[3][3] = {{0, 50, 1100}, {70, 0, 900}, {-3, -3, -3}};
    look(rows);
    assert_int_equal(found.count, 0);
    set(rows, 1, 2, 1100);
    look(rows);
    assert_int_equal(found.count, 0);
    /* A router that another router hears is alive. */
    set(rows, 1, 2, 60);
    set(rows, 0, 2, 2200);
    look(rows);
    assert_int_equal(found.count, 1);
    assert_line(0, ATTENTION_ROUTERS_CUT, "routers a and c do not hear each other");
}

/* A router that starts, drains or leaves; and an answer without the list of heard routers. */
static void routers_without_data_are_not_judged(void **state)
{
    (void)state;
    int rows[3][3];
    memcpy(rows, well, sizeof rows);
    set(rows, 1, 2, -1);
    set(rows, 2, 1, -1);
    look(rows);
    assert_int_equal(found.count, 1);
    view.judged[2] = false;
    admin_hearing_find(&found, &view);
    assert_int_equal(found.count, 0);
    set(rows, 2, 1, -2);
    look(rows);
    assert_int_equal(found.count, 0);
    node_digests_hears(SLICE("[1, {\"a\": {}}]"), &view.hears);
    assert_int_equal(view.hears.count, 0);
    node_digests_hears(SLICE("{\"a\":{\"hears\":7},\"b\":3"), &view.hears);
    admin_hearing_find(&found, &view);
    assert_int_equal(found.count, 0);
}

static void the_list_of_cut_pairs_is_limited(void **state)
{
    (void)state;
    struct buf text = {0};
    int err = buf_printf(&text, "{");
    for (unsigned a = 0; a < 10; a++) {
        err |= buf_printf(&text, "%s\"r%u\":{\"hears\":{", a > 0 ? "," : "", a);
        for (unsigned b = 0; b < 10; b++)
            err |= buf_printf(&text, "%s\"r%u\":%s", b > 0 ? "," : "", b,
                              (a < 2) == (b < 2) ? "10" : "null");
        err |= buf_printf(&text, "}}");
    }
    assert_int_equal(err | buf_printf(&text, "}"), 0);
    node_digests_hears(buf_slice(&text), &view.hears);
    buf_free(&text);
    memset(view.judged, true, sizeof view.judged);
    admin_hearing_find(&found, &view);
    assert_int_equal(found.count, HEARING_NAMED_MAX);
    assert_line(2, ATTENTION_ROUTERS_CUT,
                "routers r0 and r4 do not hear each other, and 13 more pairs");
}

static void an_old_answer_is_ignored(void **state)
{
    (void)state;
    int rows[3][3];
    memcpy(rows, well, sizeof rows);
    set(rows, 1, 0, -1);
    look(rows);
    found.taken_ms = 5000;
    struct admin_attention_list list = {0};
    admin_hearing_add(&found, 5000 + HEARING_KNOWN_MS, &list);
    assert_int_equal(list.count, 0);
    admin_hearing_add(&found, 5000 + HEARING_KNOWN_MS - 1, &list);
    assert_int_equal(list.count, 1);
}

/* A rolling restart is no problem. */
static void starting_or_leaving_routers_are_not_judged(void **state)
{
    (void)state;
    struct node_member_look m = {.state = GOSSIP_ALIVE, .up_ms = HEARING_YOUNG_MS};
    assert_true(admin_hearing_is_judged(&m));
    m.up_ms = HEARING_YOUNG_MS - 1;
    assert_false(admin_hearing_is_judged(&m));
    m.up_ms = HEARING_YOUNG_MS;
    m.draining = true;
    assert_false(admin_hearing_is_judged(&m));
    m.draining = false;
    m.state = GOSSIP_DEAD;
    assert_false(admin_hearing_is_judged(&m));
    m.state = GOSSIP_LEFT;
    assert_false(admin_hearing_is_judged(&m));
    m.self = true;
    assert_true(admin_hearing_is_judged(&m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_cluster_has_no_problems),
        cmocka_unit_test(a_cut_between_two_routers_is_found),
        cmocka_unit_test(one_way_loss_is_found),
        cmocka_unit_test(a_killed_router_is_not_cut_off),
        cmocka_unit_test(routers_without_data_are_not_judged),
        cmocka_unit_test(the_list_of_cut_pairs_is_limited),
        cmocka_unit_test(an_old_answer_is_ignored),
        cmocka_unit_test(starting_or_leaving_routers_are_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
