/* The contents of a text, counted with this machine's vectors and with every machine's vectors: the
 * results are equal. */
#include "tests/lib/test.h"

/* The same code again, as on a machine without wide vectors. */
#define WIDE_NONE
#define http_content_count narrow_content_count
#include "http/content.c" // NOLINT(bugprone-suspicious-include)
#undef http_content_count

void http_content_count(struct chain_content *content, const char *at, size_t len);

/* Counts byte by byte, as an independent check. */
static struct chain_content counted(const char *at, size_t len)
{
    struct chain_content n = {0};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        n.letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        n.digits += c >= '0' && c <= '9';
        n.spaces += c == ' ';
        n.wide += c >= 0x80;
        n.leads += c >= 0xe0;
    }
    n.marks = (uint32_t)len - n.letters - n.digits - n.spaces - n.wide;
    return n;
}

static void check(const char *at, size_t len)
{
    struct chain_content want = counted(at, len), wide = {0}, narrow = {0};
    http_content_count(&wide, at, len);
    narrow_content_count(&narrow, at, len);
    assert_memory_equal(&wide, &want, sizeof want);
    assert_memory_equal(&narrow, &want, sizeof want);
}

static uint64_t state = 88172645463325252u;

static uint64_t random_next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void the_lengths_around_a_vector_and_a_round(void **unused)
{
    (void)unused;
    static char text[3 * VECTORS_MAX * 32];
    static const unsigned char fills[] = {'a', 'Z', ' ', '0', '{', 0, 0x7f, 0x80, 0xdf, 0xe0, 0xff};
    for (size_t f = 0; f < sizeof fills; f++) {
        memset(text, fills[f], sizeof text);
        for (size_t len = 0; len < 100; len++)
            check(text + len % 7, len);
        for (size_t rounds = 1; rounds <= 2; rounds++)
            for (size_t by = 0; by < 80; by++)
                check(text, rounds * (VECTORS_MAX - 1) * 32 - 40 + by);
    }
}

static void each_byte_alone(void **unused)
{
    (void)unused;
    for (unsigned c = 0; c < 256; c++) {
        char text[64];
        memset(text, 'x', sizeof text);
        text[random_next() % sizeof text] = (char)c;
        check(text, sizeof text);
        check(text, 33);
    }
}

static void random_texts(void **unused)
{
    (void)unused;
    static char text[30000];
    for (unsigned round = 0; round < 300; round++) {
        bool ascii = round % 3 == 0;
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)(random_next() & (ascii ? 0x7f : 0xff));
        size_t at = random_next() % 64;
        check(text + at, random_next() % (round % 2 != 0 ? 200 : sizeof text - 64));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lengths_around_a_vector_and_a_round),
        cmocka_unit_test(each_byte_alone),
        cmocka_unit_test(random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
