#include "node/admin/page.h"

#include "base/check.h"
#include "http/head.h"
#include "node/proxy/exchange/exchange.h"

/* True if the request names text/html, as browsers do; curl and gvctl name no types, or any. */
static bool accepts_html(const struct http_head *head)
{
    struct slice accept = http_head_find(head, SLICE("accept"));
    while (accept.len > 0) {
        struct slice one = slice_cut(&accept, ',');
        while (one.len > 0 && one.at[0] == ' ')
            one = slice_skip(one, 1);
        if (slice_equal_nocase(slice_cut(&one, ';'), SLICE("text/html")))
            return true;
    }
    return false;
}

const struct admin_page_file *admin_page_find(const struct http_head *head)
{
    bool reads = head->method == HTTP_METHOD_GET || head->method == HTTP_METHOD_HEAD;
    for (unsigned i = 0; i < admin_page_files_count && reads; i++) {
        struct slice path = slice_of_cstr(admin_page_files[i].path);
        if (slice_equal(head->path, path) && (path.len > 1 || accepts_html(head)))
            return &admin_page_files[i];
    }
    return NULL;
}

void admin_page_answer(struct exchange *x, const struct admin_page_file *file)
{
    static const struct http_line lines[] = {
        {SLICE("Content-Security-Policy"),
         SLICE("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
               "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
               "require-trusted-types-for 'script'")},
        {SLICE("X-Content-Type-Options"), SLICE("nosniff")},
        {SLICE("Referrer-Policy"), SLICE("no-referrer")},
        {SLICE("Cross-Origin-Resource-Policy"), SLICE("same-origin")},
        {SLICE("Cache-Control"), SLICE("no-cache")},
        {SLICE("Vary"), SLICE("Accept")},
    };
    exchange_answer(x, 200, slice_of_cstr(file->type), slice_of((const char *)file->at, file->len),
                    lines, ARRAY_LEN(lines));
}
