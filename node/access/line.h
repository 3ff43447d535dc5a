/* A line of the file of client keys:
 *
 *   NAME  blake2b:HASH  [models=A,B] [requests-per-minute=N] [tokens-per-minute=N] [in-flight=N]
 *                       [control]
 *
 * NAME has letters, digits and ".-_@/+", at most ACCESS_NAME_MAX. HASH is the BLAKE2b hash of the
 * key, 64 hex digits. A model with `*` at the end matches all names with that prefix. `control`:
 * the key may use engines' control paths, if engine-control-paths sends those to all replicas. A
 * `#` at the beginning of a line or after a space starts a comment.
 */
#ifndef NODE_ACCESS_LINE_H
#define NODE_ACCESS_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "node/access/digest.h"
#include "node/access/limits.h"

struct access_limits {
    uint64_t requests; /* per minute; 0 in any of the three: no limit */
    uint64_t tokens;   /* per minute */
    uint64_t in_flight;
};

struct access_line {
    struct slice name;
    struct access_digest digest;
    struct slice models; /* "a,b*", as written; empty: all */
    struct access_limits limits;
    bool control;
};

/* Parses a line. Returns 1 for a line with a key, 0 for a line without. ERR_SYNTAX with `*wrong`:
 * the mistake and the remedy. `*wrong` never quotes the line, which may hold a key. `out` borrows
 * from `text`. */
MUST_USE int access_line_parse(struct slice text, struct access_line *out, const char **wrong);
/* Return NULL, or the mistake: in a key's name, and in a key's models. */
const char *access_name_wrong(struct slice name);
const char *access_models_wrong(struct slice models);
/* Appends the line and a newline. */
MUST_USE int access_line_write(struct buf *out, const struct access_line *line);

#endif
