/* The keys of a file, made of its text at once: who a key belongs to, in constant time.
 *
 * A *key* here is one name of the file, with its options and what it used. It may have several
 * secrets: while clients change theirs, a name stands on a line for each.
 *
 * A look-up hashes what the client sent and finds the digest in a table by its first bytes. How
 * long that takes depends on the digest, and digests of guesses say nothing of those in the file.
 * The whole digest is compared without a branch on its bytes.
 *
 * A table is made by any thread and is then one thread's. Keys count their holders, so that a
 * request outlives the table that it was found in.
 */
#ifndef NODE_ACCESS_TABLE_H
#define NODE_ACCESS_TABLE_H

#include "base/err.h"
#include "node/access/line.h"
#include "node/access/use.h"

enum { ACCESS_MESSAGE_BYTES = 384 };

struct access_key {
    unsigned holders;
    struct access_use *use; /* held */
    struct access_limits limits;
    bool control;         /* it may use engines' control paths */
    struct slice *models; /* its own; NULL: all */
    unsigned model_count;
    char *models_text;
};

struct access_table {
    unsigned count; /* secrets */
    unsigned keys_count;
    struct access_key **keys; /* by name, in the order of the file; held */
    struct access_digest *digests;
    uint32_t *owners;              /* of each secret: index of its key */
    uint32_t *by_digest, *by_name; /* open addressing: index + 1 */
    uint32_t mask;
};

/* ERR_SYNTAX, ERR_LIMIT or ERR_NOMEM with `message` (ACCESS_MESSAGE_BYTES), which names the line
 * and has nothing of its text. A file without a key is an error too. */
MUST_USE int access_table_create(struct access_table **out, struct slice text, char *message);
/* NULL is fine. */
void access_table_destroy(struct access_table *t);
/* NULL: nobody's. Borrowed from the table. */
struct access_key *access_table_find(const struct access_table *t, struct slice secret);
/* By name. */
struct access_key *access_table_named(const struct access_table *t, struct slice name);
/* By use->id: a name as other routers call it. */
struct access_key *access_table_of_id(const struct access_table *t, uint64_t id);

void access_key_hold(struct access_key *k);
void access_key_drop(struct access_key *k);
bool access_key_allows(const struct access_key *k, struct slice model);

#endif
