/* The page for browsers: its files, which are compiled in (node/admin/page/, by embed.py), and how
 * they are answered. GET / is the page for who accepts text/html, and a list of the calls for all
 * others. The files hold nothing of this router, so they need no token: what the page shows comes
 * from /live, /explain, /decisions and /events.
 *
 * Each file comes with a Content-Security-Policy that lets the page load its own files and call its
 * own router, and nothing else: no inline script or style, no markup made of strings, no frame
 * around it.
 */
#ifndef NODE_ADMIN_PAGE_H
#define NODE_ADMIN_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct exchange;
struct http_head;

struct admin_page_file {
    const char *path, *type;
    const unsigned char *at;
    size_t len;
};
extern const struct admin_page_file admin_page_files[];
extern const unsigned admin_page_files_count;

/* The file that the request asks for; NULL: none. */
const struct admin_page_file *admin_page_find(const struct http_head *head);
void admin_page_answer(struct exchange *x, const struct admin_page_file *file);

#endif
