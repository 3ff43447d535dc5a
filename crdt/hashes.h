/* Which rows of the registry and the reports differ between two routers. One sends the hashes of
 * all its rows. The other answers with the rows that the first lacks and, if it lacks
 * some itself, with its own hashes, marked as the last. These classes are small, so no sketch is
 * needed.
 *
 *   REPLICAS   flags 1, each 1, floor 4, { key 6, hash 6 }              for each replica
 *   REPORTS    flags 1, each 1, { router 8, epoch 8, loads 8, others 8 }  for each router
 *   POISON     flags 1, each 1, { hash 8, until 4, level 1, last 6, before 6 }    for each request
 *
 * Rows of poison are as small as their hashes would be, so the vector has them whole: its receiver
 * joins them, and answers with its own if they are not the same then.
 *
 * `each` is the size of a row: what follows the fields that are known is skipped. `floor`: the
 * sender refuses rows that were named before. Flag 1 marks the last hashes of a round. Flag 2,
 * among the hashes of reports: loads count. They change all the time, so they are compared only
 * where nothing is on its way.
 */
#ifndef CRDT_HASHES_H
#define CRDT_HASHES_H

#include "crdt/section.h"
#include "crdt/state.h"

void crdt_hashes_replicas(const struct crdt_state *s, bool last, struct crdt_section_writer *out);
void crdt_hashes_reports(const struct crdt_state *s, bool last, bool loads,
                         struct crdt_section_writer *out);

void crdt_hashes_poison(const struct crdt_state *s, bool last, struct crdt_section_writer *out);

/* Whether a section is well-formed. */
bool crdt_hashes_valid(const struct crdt_section *part);
/* Appends the rows that the sender lacks, and our own hashes if we lack some. */
void crdt_hashes_answer(struct crdt_state *s, const struct crdt_section *part,
                        struct crdt_section_writer *out);

#endif
