/* Finds the ends of events in a stream (text/event-stream), so that callers can pass on whole
 * events. */
#ifndef HTTP_EVENTS_H
#define HTTP_EVENTS_H

#include "base/slice.h"

/* Length of the event at the front, including the final blank line; 0: incomplete. */
size_t http_event_length(struct slice stream);
/* Length of all complete events at the front. */
size_t http_events_whole(struct slice stream);
/* Length of the complete events before the first event with a token or an error. */
size_t http_events_preamble(struct slice stream);
/* Returns the text after the next "data:", and moves `rest` behind this line; empty: no such line
 * is left. */
struct slice http_events_data(struct slice *rest);

#endif
