/* The file of client keys: the lines, and the owner of a key. */
#include "node/access/table.h"

#include <stdio.h>

#include "tests/lib/test.h"

static const char alice[] =
    "alice blake2b:e4d2c8a1a1f3a4c1c7a0b0a1e4d2c8a1a1f3a4c1c7a0b0a1e4d2c8a1a1f3a4c1";

/* Adds the line of a key, with options behind the hash. */
static void add(struct buf *text, const char *name, const char *secret, const char *options)
{
    struct access_line line = {.name = slice_of_cstr(name),
                               .digest = access_digest_of(slice_of_cstr(secret))};
    assert_int_equal(access_line_write(text, &line), 0);
    text->len--;
    assert_int_equal(buf_printf(text, "%s\n", options), 0);
}

static struct access_table *table_of(struct slice text)
{
    struct access_table *t = NULL;
    char message[ACCESS_MESSAGE_BYTES] = "";
    int err = access_table_create(&t, text, message);
    if (err != 0)
        print_message("%s\n", message);
    assert_int_equal(err, 0);
    return t;
}

static void check_wrong(const char *text, const char *want)
{
    struct access_table *t = NULL;
    char message[ACCESS_MESSAGE_BYTES] = "";
    assert_true(access_table_create(&t, slice_of_cstr(text), message) < 0);
    assert_null(t);
    if (strstr(message, want) == NULL)
        print_message("%s\n", message);
    assert_non_null(strstr(message, want));
}

/* The output of `printf %s key | b2sum -l 256`. */
static void digests_match_b2sum(void **state)
{
    (void)state;
    struct access_digest d =
        access_digest_of(SLICE("gv-qpzl4fTzc0URlgjveBxH_sQ6Cd8NGtueHDNm7q6RlJU"));
    struct buf text = {0};
    struct access_line line = {.name = SLICE("bob"), .digest = d};
    assert_int_equal(access_line_write(&text, &line), 0);
    assert_slice_equal(buf_slice(&text),
                       "bob blake2b:"
                       "cab67c0457d0bcbfd1a22907f3c12b1663f90dc4d068801a5cc334ca0327779b\n");
    buf_free(&text);
}

static void a_line_survives_parsing_and_writing(void **state)
{
    (void)state;
    struct access_line line, again;
    const char *wrong;
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "\t%s models=m,l-* requests-per-minute=60 control in-flight=4 tokens-per-minute=1000 "
        "# of the web\r",
        alice);
    assert_int_equal(access_line_parse(slice_of_cstr(text), &line, &wrong), 1);
    assert_slice_equal(line.name, "alice");
    assert_slice_equal(line.models, "m,l-*");
    assert_int_equal(line.limits.requests, 60);
    assert_int_equal(line.limits.tokens, 1000);
    assert_int_equal(line.limits.in_flight, 4);
    assert_true(line.control);
    struct buf out = {0};
    assert_int_equal(access_line_write(&out, &line), 0);
    struct slice written = slice_of(out.at, out.len - 1);
    assert_int_equal(access_line_parse(written, &again, &wrong), 1);
    assert_true(access_digest_equal(&line.digest, &again.digest));
    assert_memory_equal(&line.limits, &again.limits, sizeof line.limits);
    assert_true(slice_equal(line.models, again.models) && again.control);
    buf_free(&out);
    static const char *const empty[] = {"", "  ", "\r", "# alice", "\t# x"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        assert_int_equal(access_line_parse(slice_of_cstr(empty[i]), &line, &wrong), 0);
}

static void wrong_lines_are_refused(void **state)
{
    (void)state;
    char text[16384];
    static const struct {
        const char *options, *want;
    } rows[] = {
        {"requests-per-minute=0", "want a number from 1"},
        {"requests-per-minute=-1", "want a number from 1"},
        {"tokens-per-minute=1000000001", "want a number from 1"},
        {"in-flight=", "want a number from 1"},
        {"in-flight=1 in-flight=1", "an option is given twice"},
        {"models=a models=b", "an option is given twice"},
        {"control control", "an option is given twice"},
        {"control=1", "want only models="},
        {"requests=1", "want only models="},
        {"fast", "want only models="},
        {"models=", "want models=A,B"},
        {"models=,a", "want models=A,B"},
        {"models=a,", "want models=A,B"},
        {"models=a,,b", "want models=A,B"},
        {"models=a*b", "want models=A,B"},
        {"models=\xc3\xa4", "want models=A,B"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(text, sizeof text, "# one\n\n%s %s\n", alice, rows[i].options);
        check_wrong(text, rows[i].want);
        check_wrong(text, "line 3: ");
    }
    check_wrong("a b\n", "want a hash after the name");
    check_wrong("a\n", "want a hash after the name");
    check_wrong("a gv-secret\n", "never the key itself");
    check_wrong("a blake2b:00\n", "64 hex digits");
    (void)snprintf(text, sizeof text, "%s0", alice);
    check_wrong(text, "64 hex digits");
    check_wrong("a! x", "want a name");
    (void)snprintf(text, sizeof text, "%.65d x", 0);
    check_wrong(text, "want a name");
    check_wrong("", "has no key in it");
    check_wrong("# nothing\n", "gvctl key new NAME");
    /* 257 models, or 8,193 bytes of model names. */
    size_t n = (size_t)snprintf(text, sizeof text, "%s models=a", alice);
    for (unsigned i = 0; i < ACCESS_MODELS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",a");
    check_wrong(text, "at most 256 names");
    (void)snprintf(text, sizeof text, "%s models=%.*d", alice, ACCESS_MODELS_BYTES + 1, 0);
    check_wrong(text, "8192 bytes");
}

/* An error message never quotes the rejected text, which may be a key. */
static void error_messages_quote_nothing_of_a_line(void **state)
{
    (void)state;
    static const char *const texts[] = {"gv-hidden", "a gv-hidden", "a b gv-hidden",
                                        "gv-hidden! x"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct access_table *t = NULL;
        char message[ACCESS_MESSAGE_BYTES];
        assert_true(access_table_create(&t, slice_of_cstr(texts[i]), message) < 0);
        assert_null(strstr(message, "hidden"));
    }
}

static void keys_find_their_owner(void **state)
{
    (void)state;
    struct buf text = {0};
    add(&text, "alice", "gv-1", " models=m,llama-*");
    add(&text, "bob", "gv-2", "");
    add(&text, "alice", "gv-3", "");
    struct access_table *t = table_of(buf_slice(&text));
    assert_int_equal(t->count, 3);
    assert_int_equal(t->keys_count, 2);
    struct access_key *a = access_table_find(t, SLICE("gv-1"));
    assert_non_null(a);
    assert_string_equal(a->use->name, "alice");
    assert_ptr_equal(access_table_find(t, SLICE("gv-3")), a);
    assert_string_equal(access_table_find(t, SLICE("gv-2"))->use->name, "bob");
    static const char *const others[] = {"", "gv-", "gv-4", "gv-1 ", "GV-1", "alice"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_null(access_table_find(t, slice_of_cstr(others[i])));
    char long_one[ACCESS_KEY_BYTES_MAX + 2];
    memset(long_one, 'x', sizeof long_one);
    assert_null(access_table_find(t, slice_of(long_one, sizeof long_one)));
    assert_true(access_key_allows(a, SLICE("m")));
    assert_true(access_key_allows(a, SLICE("llama-")));
    assert_true(access_key_allows(a, SLICE("llama-7b")));
    assert_false(access_key_allows(a, SLICE("llama")));
    assert_false(access_key_allows(a, SLICE("mm")));
    assert_false(access_key_allows(a, SLICE("")));
    assert_true(access_key_allows(access_table_find(t, SLICE("gv-2")), SLICE("anything")));
    access_table_destroy(t);
    buf_free(&text);
}

static void duplicate_names_and_keys_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    add(&text, "alice", "gv-1", " in-flight=1");
    add(&text, "alice", "gv-2", " in-flight=1");
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    check_wrong(text.at, "line 2: this name is on a line above");
    buf_clear(&text);
    add(&text, "alice", "gv-1", "");
    add(&text, "bob", "gv-1", "");
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    check_wrong(text.at, "line 2: the same hash");
    buf_free(&text);
}

/* All of ten thousand keys are found, and an unknown key is not. */
static void many_keys_are_all_found(void **state)
{
    (void)state;
    enum { MANY = 10000 };
    struct buf text = {0};
    char name[32], secret[32];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        (void)snprintf(secret, sizeof secret, "gv-%u", i);
        add(&text, name, secret, "");
    }
    struct access_table *t = table_of(buf_slice(&text));
    for (unsigned i = 0; i < 2 * MANY; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        (void)snprintf(secret, sizeof secret, "gv-%u", i);
        const struct access_key *k = access_table_find(t, slice_of_cstr(secret));
        assert_true((k != NULL) == (i < MANY));
        assert_ptr_equal(access_table_named(t, slice_of_cstr(name)), k);
        assert_true(k == NULL || strcmp(k->use->name, name) == 0);
    }
    access_table_destroy(t);
    buf_free(&text);
}

static void too_many_keys_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    char name[32];
    for (unsigned i = 0; i <= ACCESS_KEYS_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        add(&text, name, name, "");
    }
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    check_wrong(text.at, "line 65537: there are more than 65536 keys");
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_match_b2sum),
        cmocka_unit_test(a_line_survives_parsing_and_writing),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(error_messages_quote_nothing_of_a_line),
        cmocka_unit_test(keys_find_their_owner),
        cmocka_unit_test(duplicate_names_and_keys_are_refused),
        cmocka_unit_test(many_keys_are_all_found),
        cmocka_unit_test(too_many_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
