/* Deterministic prompt text: the same seed and length give the same words, on every machine.
 *
 * A word is a space and a short English or code word, or a punctuation mark: 1.01 tokens of the
 * engine simulator and 4.2 bytes on average. The text is already escaped and fits between the
 * quotes of a JSON string. */
#ifndef TESTS_BENCH_REPLAY_TEXT_H
#define TESTS_BENCH_REPLAY_TEXT_H

#include "base/buf.h"

/* Appends `words` words that follow from `seed`. */
void text_append(struct buf *out, uint64_t seed, size_t words);

/* Appends any text as the inside of a JSON string. */
void text_escape(struct buf *out, struct slice raw);

#endif
