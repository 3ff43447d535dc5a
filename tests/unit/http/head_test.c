#include "http/head.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

/* The bytes to parse are in a heap block of exactly `len` bytes, so that ASan sees a read beyond
 * the end. */
static int parse(struct http_head *h, bool request, const char *text, size_t len)
{
    static char *block;
    free(block);
    block = malloc(len + (len == 0));
    assert_non_null(block);
    memcpy(block, text, len);
    return request ? http_request_parse(h, block, len, &http_limits_default)
                   : http_response_parse(h, block, len, false, &http_limits_default);
}

static struct http_head head;

/* --- accepted ------------------------------------------------------------------------------- */

struct accepted {
    const char *name, *text;
    enum http_framing framing;
    uint64_t length;
    bool keep_alive;
};

#define H "Host: a\r\n"
#define E "\r\n"

static struct accepted accepted_requests[] = {
    {"plain GET", "GET / HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"one empty line in front", "\r\nGET / HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"two empty lines in front", "\r\n\r\nGET / HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", HTTP_BODY_NONE, 0, false},
    {"HTTP/1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", HTTP_BODY_NONE, 0,
     true},
    {"close", "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", HTTP_BODY_NONE, 0, false},
    {"close wins", "GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: x, CLOSE\r\n\r\n",
     HTTP_BODY_NONE, 0, false},
    {"empty list elements", "GET / HTTP/1.1\r\n" H "Connection: ,, keep-alive ,\r\n\r\n",
     HTTP_BODY_NONE, 0, true},
    {"length", "POST / HTTP/1.1\r\n" H "Content-Length: 42\r\n\r\n", HTTP_BODY_LENGTH, 42, true},
    {"length zero", "POST / HTTP/1.1\r\n" H "content-length:0\r\n\r\n", HTTP_BODY_LENGTH, 0, true},
    {"largest length", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551615\r\n\r\n",
     HTTP_BODY_LENGTH, UINT64_MAX, true},
    {"chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", HTTP_BODY_CHUNKED, 0,
     true},
    {"white space around a value", "POST / HTTP/1.1\r\n" H "Content-Length: \t 7 \t\r\n\r\n",
     HTTP_BODY_LENGTH, 7, true},
    {"empty value", "GET / HTTP/1.1\r\n" H "Accept:\r\nX: \r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"HTAB in a value", "GET / HTTP/1.1\r\n" H "X: a\tb\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"obs-text in a value", "GET / HTTP/1.1\r\n" H "X: \x80\xff\xc3\xa4\r\n\r\n", HTTP_BODY_NONE, 0,
     true},
    {"Host with port", "GET / HTTP/1.1\r\nHost: a.b-c.example:8080\r\n\r\n", HTTP_BODY_NONE, 0,
     true},
    {"Host with empty port", "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"Host IPv4", "GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"Host IPv6", "GET / HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"absolute target", "GET http://a/x HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"absolute target, other case", "GET HTTP://A/x HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"absolute target, https", "GET https://a/x HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"absolute target, empty Host", "GET http://a/x HTTP/1.1\r\nHost:\r\n\r\n", HTTP_BODY_NONE, 0,
     true},
    {"absolute target, HTTP/1.0", "GET http://a/x HTTP/1.0\r\n\r\n", HTTP_BODY_NONE, 0, false},
    {"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" H E, HTTP_BODY_NONE, 0, true},
    {"all token bytes in a name", "GET / HTTP/1.1\r\n" H "!#$%&'*+-.^_`|~09azAZ: x\r\n\r\n",
     HTTP_BODY_NONE, 0, true},
    {"unknown Upgrade is ignored",
     "GET / HTTP/1.1\r\n" H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
     "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
     HTTP_BODY_NONE, 0, true},
    {"GET with a body", "GET / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n", HTTP_BODY_LENGTH, 3,
     true},
};

static struct accepted accepted_responses[] = {
    {"plain", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH, 2, true},
    {"empty reason", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH, 2, true},
    {"no reason, no space", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH, 2, true},
    {"reason in UTF-8", "HTTP/1.1 200 \xc3\xa4 \t b\r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH,
     2, true},
    {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_BODY_CHUNKED, 0,
     true},
    {"until close", "HTTP/1.1 200 OK\r\n\r\n", HTTP_BODY_UNTIL_CLOSE, 0, false},
    {"until close in spite of keep-alive", "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n",
     HTTP_BODY_UNTIL_CLOSE, 0, false},
    {"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH, 2, false},
    {"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n", HTTP_BODY_LENGTH,
     2, false},
    {"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"304 has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", HTTP_BODY_NONE, 9,
     true},
    {"100 has no body", "HTTP/1.1 100 Continue\r\n\r\n", HTTP_BODY_NONE, 0, true},
    {"599", "HTTP/1.1 599 ?\r\nContent-Length: 0\r\n\r\n", HTTP_BODY_LENGTH, 0, true},
};

static void check_accepted(const struct accepted *a, bool request)
{
    size_t len = strlen(a->text);
    for (size_t n = 0; n < len; n++)
        assert_int_equal(parse(&head, request, a->text, n), ERR_AGAIN);
    char more[512];
    assert_true((size_t)snprintf(more, sizeof more, "%s\n more", a->text) < sizeof more);
    for (int behind = 0; behind < 2; behind++) {
        assert_int_equal(parse(&head, request, more, behind ? strlen(more) : len), 0);
        assert_int_equal(head.bytes, len);
        assert_int_equal(head.framing, a->framing);
        assert_int_equal(head.content_length, a->length);
        assert_int_equal(head.keep_alive, a->keep_alive);
    }
}

static void accepted_request(void **state)
{
    check_accepted(*state, true);
}

static void accepted_response(void **state)
{
    check_accepted(*state, false);
}

/* --- refused -------------------------------------------------------------------------------- */

struct refused {
    const char *name;
    struct slice text;
    unsigned status;
};

#define S(text)                                                                                    \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
#define F(fields)  S("POST / HTTP/1.1\r\n" H fields "\r\n\r\n")
#define G(target)  S("GET " target " HTTP/1.1\r\n" H E)
#define HOST(host) S("GET / HTTP/1.1\r\nHost:" host "\r\n\r\n")

static struct refused refused_requests[] = {
    /* framing */
    {"two lengths that differ", F("Content-Length: 5\r\nContent-Length: 6"), 400},
    {"two lengths that agree", F("Content-Length: 5\r\nContent-Length: 5"), 400},
    {"list of lengths", F("Content-Length: 5, 5"), 400},
    {"empty length", F("Content-Length:"), 400},
    {"negative length", F("Content-Length: -1"), 400},
    {"signed length", F("Content-Length: +1"), 400},
    {"hex length", F("Content-Length: 0x10"), 400},
    {"length with spaces inside", F("Content-Length: 1 0"), 400},
    {"length with underscore", F("Content-Length: 1_0"), 400},
    {"length with fraction", F("Content-Length: 1.0"), 400},
    {"length overflow", F("Content-Length: 18446744073709551616"), 400},
    {"length and chunked", F("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400},
    {"chunked and length", F("Transfer-Encoding: chunked\r\nContent-Length: 5"), 400},
    {"length disguised", F("Content_Length: 5"), 400},
    {"coding disguised", F("TRANSFER_ENCODING: chunked"), 400},
    {"two codings fields", F("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
    {"chunked twice", F("Transfer-Encoding: chunked, chunked"), 400},
    {"chunked not last", F("Transfer-Encoding: chunked, gzip"), 400},
    {"empty coding", F("Transfer-Encoding:"), 400},
    {"empty coding in the list", F("Transfer-Encoding: , chunked"), 400},
    {"empty coding at the end", F("Transfer-Encoding: chunked,"), 400},
    {"coding with parameter", F("Transfer-Encoding: chunked;q=1"), 400},
    {"coding quoted", F("Transfer-Encoding: \"chunked\""), 400},
    {"coding with space inside", F("Transfer-Encoding: x chunked"), 400},
    {"coding with vertical tab",
     F("Transfer-Encoding:\x0b"
       "chunked"),
     400},
    {"coding unknown", F("Transfer-Encoding: xchunked"), 501},
    {"coding identity", F("Transfer-Encoding: identity"), 501},
    {"gzip before chunked", F("Transfer-Encoding: gzip, chunked"), 501},
    {"chunked in HTTP/1.0", S("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
    /* lines */
    {"bare LF behind the request line", S("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400},
    {"bare LF behind a field", S("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400},
    {"bare LF as blank line", S("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400},
    {"bare LF in front", S("\nGET / HTTP/1.1\r\n" H E), 400},
    {"bare CR in a value", F("X: a\rb"), 400},
    {"bare CR as blank line", S("GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n"), 400},
    {"two CRs at a line end", S("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), 400},
    {"bare CR in the request line", S("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400},
    {"three empty lines in front", S("\r\n\r\n\r\nGET / HTTP/1.1\r\n" H E), 400},
    {"space in front of the request line", S(" GET / HTTP/1.1\r\n" H E), 400},
    {"folded line", F("X: a\r\n b"), 400},
    {"folded line with HTAB", F("X: a\r\n\tb"), 400},
    {"space before the first field", S("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400},
    {"line of white space", F(" "), 400},
    /* names and values */
    {"space before the colon", F("X : a"), 400},
    {"HTAB before the colon", F("X\t: a"), 400},
    {"empty name", F(": a"), 400},
    {"no colon", F("X"), 400},
    {"space inside a name", F("X Y: a"), 400},
    {"slash in a name", F("X/Y: a"), 400},
    {"parenthesis in a name", F("X(: a"), 400},
    {"NUL in a name", F("X\0: a"), 400},
    {"obs-text in a name", F("X\xe4: a"), 400},
    {"NUL in a value", F("X: a\0b"), 400},
    {"BEL in a value",
     F("X: a\x07"
       "b"),
     400},
    {"ESC in a long value",
     F("X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x1b"
       "aaaaaaaaaaaaaaaaaa"),
     400},
    {"DEL in a value", F("X: a\x7f"), 400},
    {"DEL behind HTABs in a long value",
     F("X: aaaaaaa\taaaaaaa\t\taaaaa\x7f"
       "aaaaaaa"),
     400},
    {"Connection that is no list", F("Connection: a b"), 400},
    {"expectation", F("Expect: 200-ok"), 417},
    {"empty expectation", F("Expect:"), 417},
    {"second expectation", F("Expect: 100-continue\r\nExpect: x"), 417},
    /* Host */
    {"no Host", S("GET / HTTP/1.1\r\n\r\n"), 400},
    {"two Hosts", F("Host: a"), 400},
    {"two Hosts that differ", F("Host: b"), 400},
    {"empty Host", HOST(""), 400},
    {"Host of white space", HOST(" \t "), 400},
    {"Host with path", HOST("a/b"), 400},
    {"Host with user info", HOST("u@a"), 400},
    {"Host list", HOST("a, b"), 400},
    {"Host list without space", HOST("a,b"), 400},
    {"Host with space", HOST("a b"), 400},
    {"Host with URL", HOST("http://a"), 400},
    {"Host with bad port", HOST("a:b"), 400},
    {"Host with large port", HOST("a:65536"), 400},
    {"Host with two ports", HOST("a:1:2"), 400},
    {"Host with only a port", HOST(":80"), 400},
    {"Host with obs-text", HOST("\xe4"), 400},
    {"Host IPv6 without brackets", HOST("::1"), 400},
    {"Host IPv6 not closed", HOST("[::1"), 400},
    {"Host IPv6 with rest", HOST("[::1]x"), 400},
    {"Host IPv6 empty", HOST("[]"), 400},
    {"Host IPv6 with zone", HOST("[fe80::1%25eth0]"), 400},
    {"Host with bad percent", HOST("a%zz"), 400},
    {"Host malformed in HTTP/1.0", S("GET / HTTP/1.0\r\nHost: a/b\r\n\r\n"), 400},
    /* request line */
    {"no version", S("GET /\r\n" H E), 400},
    {"only a method", S("GET\r\n" H E), 400},
    {"two spaces before the target", S("GET  / HTTP/1.1\r\n" H E), 400},
    {"two spaces before the version", S("GET /  HTTP/1.1\r\n" H E), 400},
    {"space behind the version", S("GET / HTTP/1.1 \r\n" H E), 400},
    {"HTAB instead of a space", S("GET\t/ HTTP/1.1\r\n" H E), 400},
    {"HTAB before the version", S("GET /\tHTTP/1.1\r\n" H E), 400},
    {"method that is no token", S("G@T / HTTP/1.1\r\n" H E), 400},
    {"NUL in the method", S("G\0T / HTTP/1.1\r\n" H E), 400},
    {"TLS instead of HTTP", S("\x16\x03\x01\x02"), 400},
    {"method in lower case", S("get / HTTP/1.1\r\n" H E), 501},
    {"unknown method", S("BREW / HTTP/1.1\r\n" H E), 501},
    {"long method", S("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), 501},
    {"CONNECT", S("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), 501},
    {"TRACE", S("TRACE / HTTP/1.1\r\n" H E), 501},
    {"HTTP/2 preface", S("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505},
    {"HTTP/1.2", S("GET / HTTP/1.2\r\n" H E), 505},
    {"HTTP/3.0", S("GET / HTTP/3.0\r\n" H E), 505},
    {"HTTP/0.9", S("GET / HTTP/0.9\r\n" H E), 505},
    {"HTTP/1.10", S("GET / HTTP/1.10\r\n" H E), 400},
    {"HTTP/01.1", S("GET / HTTP/01.1\r\n" H E), 400},
    {"HTTP/1", S("GET / HTTP/1\r\n" H E), 400},
    {"HTTP/1,1", S("GET / HTTP/1,1\r\n" H E), 400},
    {"http/1.1", S("GET / http/1.1\r\n" H E), 400},
    {"ICE/1.0", S("GET / ICE/1.0\r\n" H E), 400},
    {"target with control byte", G("/a\x01"), 400},
    {"target with NUL", G("/a\0"), 400},
    {"target with DEL", G("/a\x7f"), 400},
    {"target with obs-text", G("/\xc3\xa4"), 400},
    {"target with fragment", G("/a#b"), 400},
    {"target with quote", G("/a\"b"), 400},
    {"target with angle", G("/a<b"), 400},
    {"target with backslash", G("/a\\b"), 400},
    {"target with caret", G("/a^b"), 400},
    {"target with backtick", G("/a`b"), 400},
    {"target with brace", G("/a{b"), 400},
    {"target with pipe", G("/a|b"), 400},
    {"target with bad percent", G("/%zz"), 400},
    {"target with half percent", G("/%2"), 400},
    {"target without slash", G("a"), 400},
    {"target with authority", G("a:80"), 400},
    {"target * for GET", G("*"), 400},
    {"target ** for OPTIONS", S("OPTIONS ** HTTP/1.1\r\n" H E), 400},
    {"target with ftp", G("ftp://a/"), 400},
    {"target with user info", G("http://u@a/"), 400},
    {"target without authority", G("http:///x"), 400},
    {"target with a malformed Host beside it", S("GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n"),
     400},
    {"target with two Hosts beside it", S("GET http://a/ HTTP/1.1\r\nHost:\r\nHost: a\r\n\r\n"),
     400},
    {"target with no Host beside it", S("GET http://a/ HTTP/1.1\r\n\r\n"), 400},
};

#define R(fields) S("HTTP/1.1 200 OK\r\n" fields "\r\n\r\n")

static struct refused refused_responses[] = {
    {"two lengths", R("Content-Length: 5\r\nContent-Length: 5"), 502},
    {"list of lengths", R("Content-Length: 5, 5"), 502},
    {"bad length", R("Content-Length: x"), 502},
    {"length and chunked", R("Content-Length: 5\r\nTransfer-Encoding: chunked"), 502},
    {"unknown coding", R("Transfer-Encoding: gzip"), 502},
    {"chunked not last", R("Transfer-Encoding: chunked, gzip"), 502},
    {"chunked in HTTP/1.0", S("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 502},
    {"bare LF", S("HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n"), 502},
    {"bare CR", S("HTTP/1.1 200 OK\rContent-Length: 5\r\n\r\n"), 502},
    {"NUL in the reason", S("HTTP/1.1 200 O\0K\r\n\r\n"), 502},
    {"folded line", R("X: a\r\n b"), 502},
    {"space before the colon", R("Content-Length : 5"), 502},
    {"empty line in front", S("\r\nHTTP/1.1 200 OK\r\n\r\n"), 502},
    {"two status digits", S("HTTP/1.1 20 OK\r\n\r\n"), 502},
    {"four status digits", S("HTTP/1.1 2000 OK\r\n\r\n"), 502},
    {"status 099", S("HTTP/1.1 099 OK\r\n\r\n"), 502},
    {"status 600", S("HTTP/1.1 600 OK\r\n\r\n"), 502},
    {"status with letter", S("HTTP/1.1 2O0 OK\r\n\r\n"), 502},
    {"two spaces before the status", S("HTTP/1.1  200 OK\r\n\r\n"), 502},
    {"HTTP/2.0", S("HTTP/2.0 200 OK\r\n\r\n"), 502},
    {"HTTP/1.2", S("HTTP/1.2 200 OK\r\n\r\n"), 502},
    {"ICY", S("ICY 200 OK\r\n\r\n"), 502},
    {"101", S("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), 502},
};

/* No prefix of the head is ever accepted, and every refusal has the same status. */
static void check_refused(const struct refused *r, bool request)
{
    for (size_t n = 0; n < r->text.len; n++) {
        int err = parse(&head, request, r->text.at, n);
        assert_int_not_equal(err, 0);
        if (err != ERR_AGAIN)
            assert_int_equal(head.refusal, r->status);
    }
    int err = parse(&head, request, r->text.at, r->text.len);
    if (err == 0 || err == ERR_AGAIN)
        fail_msg("%s: not refused", r->name);
    if (head.refusal != r->status)
        fail_msg("%s: %u (%s) instead of %u", r->name, head.refusal, head.refusal_text, r->status);
    assert_non_null(head.refusal_text);
}

static void refused_request(void **state)
{
    check_refused(*state, true);
}

static void refused_response(void **state)
{
    check_refused(*state, false);
}

/* --- the parts of a head -------------------------------------------------------------------- */

static int request(const char *text)
{
    return parse(&head, true, text, strlen(text));
}

static void parts_of_a_request(void **state)
{
    (void)state;
    assert_int_equal(request("POST /v1/x?a=b&c HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\n"
                             "X-Thing: one\r\naccept: text/html\r\nCONTENT-LENGTH: 3\r\n"
                             "Expect: 100-Continue\r\n\r\n"),
                     0);
    assert_int_equal(head.method, HTTP_METHOD_POST);
    assert_slice_equal(head.method_text, "POST");
    assert_slice_equal(head.target, "/v1/x?a=b&c");
    assert_slice_equal(head.path, "/v1/x");
    assert_slice_equal(head.query, "a=b&c");
    assert_slice_equal(head.host, "h:1");
    assert_int_equal(head.minor, 1);
    assert_int_equal(head.field_count, 6);
    assert_slice_equal(http_head_get(&head, HTTP_ACCEPT), "*/*");
    assert_slice_equal(http_head_find(&head, SLICE("x-thing")), "one");
    assert_null(http_head_find(&head, SLICE("x-thin")).at);
    assert_false(http_head_has(&head, HTTP_COOKIE));
    assert_int_equal(http_head_get(&head, HTTP_COOKIE).len, 0);
    assert_true(head.expect_continue);
    assert_false(head.connection_names);
}

static void target_forms(void **state)
{
    (void)state;
    assert_int_equal(request("GET http://a?q HTTP/1.1\r\n" H E), 0);
    assert_slice_equal(head.path, "/");
    assert_slice_equal(head.query, "q");
    assert_int_equal(request("GET http://a/x/y?q=http://b/ HTTP/1.1\r\n" H E), 0);
    assert_slice_equal(head.path, "/x/y");
    assert_slice_equal(head.query, "q=http://b/");
    assert_slice_equal(head.host, "a");
    /* Host does not count in this case (RFC 9112, section 3.2.2). */
    assert_int_equal(request("GET http://b:81/x HTTP/1.1\r\n" H E), 0);
    assert_slice_equal(head.host, "b:81");
    assert_int_equal(request("OPTIONS http://a HTTP/1.1\r\n" H E), 0);
    assert_slice_equal(head.path, "*");
    assert_int_equal(request("GET /? HTTP/1.1\r\n" H E), 0);
    assert_true(head.has_query);
    assert_int_equal(head.query.len, 0);
    assert_int_equal(request("GET http://[::1]:8000/ HTTP/1.0\r\n\r\n"), 0);
    assert_slice_equal(head.host, "[::1]:8000");
}

static void expect_without_need(void **state)
{
    (void)state;
    assert_int_equal(
        request("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"), 0);
    assert_false(head.expect_continue);
    assert_int_equal(request("GET / HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n"), 0);
    assert_false(head.expect_continue);
}

static void every_known_name_is_found(void **state)
{
    (void)state;
    for (unsigned id = 1; id < HTTP_FIELD_IDS; id++) {
        struct slice name = http_field_name((enum http_field_id)id);
        if (name.len == 0) /* a family of names is tested elsewhere */
            continue;
        assert_int_equal(http_field_lookup(name), id);
        char other[64];
        assert_true(slice_to_cstr(name, other, sizeof other));
        for (size_t i = 0; i < name.len; i += 2)
            other[i] = (char)(other[i] >= 'a' && other[i] <= 'z' ? other[i] - 32 : other[i]);
        assert_int_equal(http_field_lookup(slice_of(other, name.len)), id);
        for (size_t i = 0; i < name.len; i++) {
            char kept = other[i];
            other[i] = '_';
            unsigned found = http_field_lookup(slice_of(other, name.len));
            assert_true(found == HTTP_FIELD_OTHER || found != id);
            other[i] = kept;
        }
    }
    assert_int_equal(http_field_lookup(SLICE("Endpoint-Load-Metrics-JSON")),
                     HTTP_ENDPOINT_LOAD_METRICS);
}

static void ipv6_addresses(void **state)
{
    (void)state;
    static const char *const good[] = {"[::]",
                                       "[::1]",
                                       "[1::]",
                                       "[1:2:3:4:5:6:7:8]",
                                       "[1:2:3:4:5:6:7::]",
                                       "[::2:3:4:5:6:7:8]",
                                       "[::ffff:1.2.3.4]",
                                       "[1:2:3:4:5:6:1.2.3.4]",
                                       "[FE80::a]"};
    static const char *const wrong[] = {"[:]",
                                        "[:::]",
                                        "[1:2]",
                                        "[1:2:3:4:5:6:7:8:9]",
                                        "[1::2::3]",
                                        "[12345::]",
                                        "[1:2:3:4:5:6:7:8::]",
                                        "[::1.2.3]",
                                        "[::1.2.3.256]",
                                        "[1:]",
                                        "[:1]",
                                        "[g::]",
                                        "[1.2.3.4]",
                                        "[::1.2.3.4:1]",
                                        "[v1.x]"};
    char text[128];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]);
        assert_int_equal(request(text), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", wrong[i]);
        if (request(text) != ERR_SYNTAX)
            fail_msg("%s was accepted", wrong[i]);
    }
}

static void head_response_keeps_its_length(void **state)
{
    (void)state;
    struct slice text = SLICE("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    assert_int_equal(http_response_parse(&head, text.at, text.len, true, &http_limits_default), 0);
    assert_int_equal(head.framing, HTTP_BODY_NONE);
    assert_true(head.length_given && head.keep_alive);
    assert_int_equal(head.content_length, 9);
    assert_slice_equal(head.reason, "OK");
    assert_int_equal(head.status, 200);
}

/* Every byte in every place of a value, because the scan takes eight bytes at a time. */
static void every_byte_in_a_value(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX: aaaaaaaaaaaaaaaaaaaaa\r\n\r\n";
            memset(text + 28, at % 2 ? 'a' : '\xff', 20);
            text[28 + at] = (char)byte;
            bool fine = byte == '\t' || (byte >= ' ' && byte != 0x7f);
            assert_int_equal(parse(&head, true, text, sizeof text - 1), fine ? 0 : ERR_SYNTAX);
        }
    }
}

/* --- run ------------------------------------------------------------------------------------ */

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(parts_of_a_request),    cmocka_unit_test(target_forms),
        cmocka_unit_test(expect_without_need),   cmocka_unit_test(every_known_name_is_found),
        cmocka_unit_test(ipv6_addresses),        cmocka_unit_test(head_response_keeps_its_length),
        cmocka_unit_test(every_byte_in_a_value),
    };
    static struct CMUnitTest tests[512];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        tests[n++] = single[i];
#define ADD(table, function)                                                                       \
    for (size_t i = 0; i < ARRAY_LEN(table); i++)                                                  \
    tests[n++] = (struct CMUnitTest){                                                              \
        .name = (table)[i].name, .test_func = (function), .initial_state = &(table)[i]}
    ADD(accepted_requests, accepted_request);
    ADD(accepted_responses, accepted_response);
    ADD(refused_requests, refused_request);
    ADD(refused_responses, refused_response);
    return _cmocka_run_group_tests("http/head", tests, n, NULL, NULL);
}
