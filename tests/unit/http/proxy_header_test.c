/* The PROXY protocol, by the specification (HAProxy, doc/proxy-protocol.txt). */
#include "http/proxy_header.h"

#include <string.h>

#include "base/err.h"
#include "http/limits.h"
#include "tests/lib/test.h"

#define V2 "\r\n\r\n\0\r\nQUIT\n"

/* The whole header is read, and no piece before the end. */
static void assert_reads(struct slice header, const char *address, bool local)
{
    char bytes[HTTP_PROXY_HEADER_V2_MAX + 8];
    struct slice request = SLICE("GET / HT");
    struct http_proxy_header out;
    for (size_t n = 0; n < header.len; n++)
        assert_int_equal(http_proxy_header_parse(slice_of(header.at, n), &out), ERR_AGAIN);
    memcpy(bytes, header.at, header.len);
    memcpy(bytes + header.len, request.at, request.len);
    assert_int_equal(http_proxy_header_parse(slice_of(bytes, header.len + request.len), &out), 0);
    assert_int_equal(out.bytes, header.len);
    assert_int_equal(out.local, local);
    assert_int_equal(out.known, address != NULL);
    char text[IP_TEXT_BYTES];
    ip_format(out.ip, text);
    if (address != NULL)
        assert_string_equal(text, address);
}

static void assert_malformed(struct slice bytes)
{
    struct http_proxy_header out;
    assert_int_equal(http_proxy_header_parse(bytes, &out), ERR_SYNTAX);
}

/* Section 2.1, with the examples there: the longest lines of each family. */
static void version_1(void **state)
{
    (void)state;
    assert_reads(SLICE("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"),
                 "255.255.255.255", false);
    assert_reads(SLICE("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                       "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
                 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false);
    assert_reads(SLICE("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"), "192.168.0.1", false);
    assert_reads(SLICE("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), "2001:db8::1", false);
    assert_reads(SLICE("PROXY UNKNOWN\r\n"), NULL, false);
    struct slice longest = SLICE("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                                 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n");
    assert_int_equal(longest.len, HTTP_PROXY_HEADER_V1_MAX);
    assert_reads(longest, NULL, false);
}

static void malformed_version_1(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n",
        "PROXX",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP4 1.2.3.4 evil 1 2\r\n",
        "PROXY TCP4 ::1 ::1 1 2\r\n",
        "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
        "PROXY \r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_malformed(slice_of_cstr(bad[i]));
    struct slice begin = SLICE("PROXY UNKNOWN ");
    char endless[HTTP_PROXY_HEADER_V1_MAX + 1];
    memset(endless, 'x', sizeof endless);
    memcpy(endless, begin.at, begin.len);
    assert_malformed(slice_of(endless, sizeof endless));
}

/* Section 2.2: the signature, version and command, family, length, addresses, TLVs. */
static void version_2(void **state)
{
    (void)state;
    assert_reads(SLICE(V2 "\x21\x11\x00\x0c"
                          "\x0a\x01\x02\x03\x7f\x00\x00\x01\xdc\x04\x01\xbb"),
                 "10.1.2.3", false);
    assert_reads(SLICE(V2 "\x21\x21\x00\x24"
                          "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x05"
                          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
                          "\xdc\x04\x01\xbb"),
                 "2001:db8::5", false);
    /* PP2_TYPE_NOOP behind the addresses */
    assert_reads(SLICE(V2 "\x21\x11\x00\x12"
                          "\x0a\x01\x02\x03\x7f\x00\x00\x01\xdc\x04\x01\xbb"
                          "\x04\x00\x03"
                          "abc"),
                 "10.1.2.3", false);
    assert_reads(SLICE(V2 "\x20\x00\x00\x00"), NULL, true);
    assert_reads(SLICE(V2 "\x20\x11\x00\x03"
                          "abc"),
                 NULL, true);
    assert_reads(SLICE(V2 "\x21\x00\x00\x00"), NULL, false); /* UNSPEC */
    assert_reads(SLICE(V2 "\x21\x31\x00\x02"
                          "ab"),
                 NULL, false); /* a Unix socket */
}

static void malformed_version_2(void **state)
{
    (void)state;
    assert_malformed(SLICE("\r\n\r\n\0\r\nQUIX"));
    assert_malformed(SLICE(V2 "\x11\x11\x00\x0c")); /* version 1 in the form of version 2 */
    assert_malformed(SLICE(V2 "\x22\x11\x00\x0c")); /* an unknown command */
    assert_malformed(SLICE(V2 "\x21\x41\x00\x00")); /* an unknown family */
    assert_malformed(SLICE(V2 "\x21\x13\x00\x00")); /* an unknown protocol */
    assert_malformed(SLICE(V2 "\x21\x11\x00\x02"
                              "ab"));               /* shorter than the addresses */
    assert_malformed(SLICE(V2 "\x21\x11\x0f\xf1")); /* longer than the limit */
    struct http_proxy_header out;
    assert_int_equal(http_proxy_header_parse(SLICE(V2 "\x21\x11\x0f\xf0"), &out), ERR_AGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1),
        cmocka_unit_test(malformed_version_1),
        cmocka_unit_test(version_2),
        cmocka_unit_test(malformed_version_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
