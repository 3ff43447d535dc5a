/* Where the events of a stream (text/event-stream) end, for who must pass on whole ones. */
#ifndef HTTP_EVENTS_H
#define HTTP_EVENTS_H

#include "base/slice.h"

/* Length of the event at the front, with the blank line that ends it; 0: it is not whole. */
size_t http_event_length(struct slice stream);
/* Length of all events at the front that are whole. */
size_t http_events_whole(struct slice stream);
/* Length of the whole events before the first one that carries a token or an error. */
size_t http_events_preamble(struct slice stream);
/* The next line of data; empty: there is none. Moves `rest` behind it. */
struct slice http_events_data(struct slice *rest);

#endif
