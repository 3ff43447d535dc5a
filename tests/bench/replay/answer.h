/* Facts about an answer for the driver, scanned from the bytes without building anything.
 *
 * Feed the payload (after chunked decoding) as it arrives, in pieces of any size. Streams are read
 * line by line: the first event with non-empty content, an error event, usage, [DONE]. Plain
 * answers are read for their usage. Both spellings of JSON, with and without spaces, are
 * understood. */
#ifndef TESTS_BENCH_REPLAY_ANSWER_H
#define TESTS_BENCH_REPLAY_ANSWER_H

#include <stdbool.h>

#include "base/buf.h"

struct answer {
    bool stream;
    bool content; /* a non-empty piece of text was seen */
    bool usage;
    bool error; /* an error event inside a stream */
    bool done;  /* data: [DONE] */
    uint64_t prompt_tokens, completion_tokens, cached_tokens;
    struct buf rest; /* an unfinished line, or the end of a plain answer */
};

void answer_start(struct answer *a, bool stream);
void answer_feed(struct answer *a, struct slice payload);
void answer_end(struct answer *a);
void answer_free(struct answer *a);

#endif
