/* The classes of the state with lists of rows: the registry, poison and the reports. A table says
 * how each class joins, and what it writes into a delta, a snapshot and a comparison. All four go
 * through the table from top to bottom. (The index is too large for a list of hashes.) A new class
 * needs a row of the table, kinds of records (record.h) and a kind of section (section.h). It also
 * needs a digest in the summary (reconcile.c) and a term in crdt_state_has_news().
 *
 * In a comparison, router A sends the hashes of all rows that A has. Router B answers with the rows
 * that A lacks. If B lacks rows too, B also sends hashes, marked LAST.
 *
 *   REPLICAS   flags 1, each 1, floor 4, { key 6, hash 6 }              for each replica
 *   REPORTS    flags 1, each 1, { router 8, epoch 8, loads 8, others 8 }  for each router
 *   POISON     flags 1, each 1, { hash 8, until 4, level 1, last 6, before 6 }    for each request
 *
 * Poison rows are as small as hashes of them would be, so the section has whole rows. The receiver
 * joins them. If the receiver's rows then still differ, they are the answer.
 *
 * `each` is the size of a row: bytes after the known fields are skipped. `floor`: the sender
 * refuses rows last named before this second. Flag LAST marks the last hashes of a round. Flag
 * LOADS in a REPORTS section says that loads are compared too. Loads change all the time, so they
 * are compared only while no delta is on the way.
 */
#ifndef CRDT_CLASSES_H
#define CRDT_CLASSES_H

#include "crdt/record.h"
#include "crdt/section.h"
#include "crdt/state.h"

enum { CRDT_CLASSES = 3 };
enum crdt_hashes_flags { CRDT_HASHES_LAST = 1, CRDT_HASHES_LOADS = 2 };

struct crdt_class {
    unsigned records;  /* 1 << kind, for each kind of record in this class */
    unsigned section;  /* kind of the section with the hashes of this class */
    size_t hash_bytes; /* bytes of a row in the section: a hash with the key that belongs to it */
    size_t head_bytes; /* bytes before the first hash in the section */
    /* Joins a record, or counts why it cannot be joined. */
    void (*join)(struct crdt_state *s, const struct crdt_origin *origin,
                 const struct crdt_record *record);
    /* Writes the waiting rows into delta number `seq`. False: some do not fit. */
    bool (*produce)(struct crdt_state *s, uint64_t seq, struct wire_writer *w);
    /* Writes the rows from *position on, and sets *position to the first row not written. False:
     * some do not fit. */
    bool (*dump)(const struct crdt_state *s, uint64_t *position, struct wire_writer *w);
    /* Writes the section's head and hashes. */
    void (*hash)(const struct crdt_state *s, struct wire_writer *w);
    /* Writes the rows missing at the router that sent the hashes `theirs`, as far as they fit.
     * Returns true if that router has rows missing here. For poison: joins the rows `theirs`,
     * writes nothing, and returns true if the rows still differ. */
    bool (*answer)(struct crdt_state *s, struct wire_reader *theirs, size_t each, unsigned flags,
                   struct wire_writer *w);
};
extern const struct crdt_class crdt_classes[CRDT_CLASSES];

/* Writes the section `kind`: `flags`, the size of a row, and the hashes of the kind's class. */
void crdt_hashes_write(const struct crdt_state *s, enum crdt_section_kind kind, unsigned flags,
                       struct crdt_section_writer *out);
/* True if the section belongs to a class and is well-formed. */
bool crdt_hashes_valid(const struct crdt_section *part);
/* Appends the answer of the class to the hashes in `part`: the rows missing at the sender. If
 * answer() returned true and `part` is not marked LAST, also appends this router's hashes, marked
 * LAST. */
void crdt_hashes_answer(struct crdt_state *s, const struct crdt_section *part,
                        struct crdt_section_writer *out);

#endif
