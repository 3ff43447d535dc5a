/* What the router answers itself: health and models on the client port, everything on the admin
 * port.
 */
#ifndef NODE_IO_LOCAL_H
#define NODE_IO_LOCAL_H

#include "node/io/exchange.h"

/* The request is whole (x->head holds its head as it came): answers it. Ends the exchange. */
void local_handle(struct exchange *x);

/* Value of the form field `model` of a multipart body, near its start or its end (the field may
 * come before or after the file); or empty. Valid until the next call. */
struct slice local_multipart_model(const struct body *body);

/* The admin port (admin.c). `head` is parsed from x->head. */
void admin_handle(struct exchange *x, const struct http_head *head);

/* The exchange ends before the answer that it waits for (x->asking). */
void admin_forget(struct exchange *x);
/* What still waits when the daemon ends. */
void admin_asks_free(struct shell *shell);

/* The same for a replica that is being added (x->adding). */
void admin_add_forget(struct exchange *x);
/* Looks at those that are under way. */
void admin_adds_tick(struct shell *shell);
/* Before the loop ends, and after it. */
void admin_adds_stop(struct shell *shell);
void admin_adds_free(struct shell *shell);

/* Prometheus text of the whole node (metrics.c). */
int metrics_write(const struct shell *shell, struct buf *out);

#endif
