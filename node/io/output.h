/* What goes to the client within one read of an answer, gathered and written with one system call:
 * the head (if it has not gone yet), the pieces of data as one chunk, and the last chunk.
 *
 * The pieces are borrowed: output_flush() must run before the read callback returns. There is one
 * gathering at a time, because a callback belongs to one exchange.
 */
#ifndef NODE_IO_OUTPUT_H
#define NODE_IO_OUTPUT_H

#include "http/forward.h"
#include "node/io/exchange.h"

void output_head(struct exchange *x, const struct http_head *head,
                 const struct http_forward_response *how);
void output_data(struct exchange *x, struct slice bytes);
/* The body is complete: what is gathered goes out, with the last chunk where there are chunks. */
void output_end(struct exchange *x);
void output_flush(struct exchange *x);
/* Nothing of what is gathered goes out. */
void output_discard(struct exchange *x);

#endif
