/* The keys of a file, built from the file's text: finds a key's name in constant time.
 *
 * A *key* here is a name in the file, with options and use. A key may have several secrets: while a
 * client changes the secret, the file has a line for each, with the same name.
 *
 * A look-up hashes the client's secret and finds the digest in a table by the first bytes. The time
 * depends on the digest, and digests of guesses tell nothing about digests in the file. The
 * comparison of whole digests has no branch on their bytes.
 *
 * Any thread may build a table, which then belongs to one thread. Keys count their holders, so that
 * a request may outlive the table.
 */
#ifndef NODE_ACCESS_TABLE_H
#define NODE_ACCESS_TABLE_H

#include "base/err.h"
#include "node/access/line.h"
#include "node/access/use.h"

enum { ACCESS_MESSAGE_BYTES = 384 };

struct access_key {
    unsigned holders;
    struct access_use *use; /* the key is one of its holders */
    struct access_limits limits;
    bool control;         /* the key may use engines' control paths */
    struct slice *models; /* owned; NULL: all */
    unsigned model_count;
    char *models_text;
};

struct access_table {
    unsigned count; /* number of secrets */
    unsigned keys_count;
    struct access_key **keys; /* one per name, in the order of the file; the table is a holder */
    struct access_digest *digests;
    uint32_t *owners;              /* per secret: the key's index */
    uint32_t *by_digest, *by_name; /* hash tables with open addressing: index + 1; 0: free */
    uint32_t mask;
};

/* Makes a table of the file's text. ERR_SYNTAX, ERR_LIMIT or ERR_NOMEM with `message`
 * (ACCESS_MESSAGE_BYTES), which names the line without quoting it. A file without a key is an error
 * too. */
MUST_USE int access_table_create(struct access_table **out, struct slice text, char *message);
/* NULL is fine. */
void access_table_destroy(struct access_table *t);
/* Returns the key with this secret, borrowed from the table; NULL: unknown. */
struct access_key *access_table_find(const struct access_table *t, struct slice secret);
/* Returns the key with this name; NULL: none. */
struct access_key *access_table_named(const struct access_table *t, struct slice name);
/* Returns the key with this use->id, by which other routers name a key; NULL: none. */
struct access_key *access_table_of_id(const struct access_table *t, uint64_t id);

void access_key_hold(struct access_key *k);
void access_key_drop(struct access_key *k);
bool access_key_allows(const struct access_key *k, struct slice model);

#endif
