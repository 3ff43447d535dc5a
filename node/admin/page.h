/* The page for browsers: the files (node/admin/page/), compiled in by embed.py, and their delivery.
 * GET / is the page for clients that accept text/html, and a list of calls for others. The files
 * contain nothing about this router, so they need no token: all content of the page comes from
 * /live, /explain, /decisions and /events.
 *
 * Each file comes with a Content-Security-Policy. The page may load these files and call this
 * router, and nothing else: no inline script or style, no markup made of strings, no frame around
 * the page. */
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

/* Returns the requested file; NULL: none. */
const struct admin_page_file *admin_page_find(const struct http_head *head);
void admin_page_answer(struct exchange *x, const struct admin_page_file *file);

#endif
