/* The text of a --replica-file: which replicas it lists. One a line, as --replica writes them, with
 * comments as YAML has them (a '#' at the beginning or behind white space):
 *
 *   # engines of the first rack
 *   http://10.0.0.1:8000
 *   http://10.0.0.2:8000#weight=2#engine=vllm    # the new one
 *
 * or a YAML sequence of such texts, or of maps, or of both. A text whose first character (but for
 * comments) is '-' or '[' is YAML, and JSON is YAML:
 *
 *   - http://10.0.0.1:8000
 *   - url: http://10.0.0.2:8000
 *     engine: vllm
 *     weight: 2
 *
 * Blocks nothing and knows no files (node/io/replica_file.h reads them).
 */
#ifndef NODE_IO_REPLICA_LIST_H
#define NODE_IO_REPLICA_LIST_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_LIST_BYTES_MAX = 1 << 20,
    REPLICA_LIST_MESSAGE = 320,
};

/* What an entry borrows. */
struct replica_list_text {
    char name[NODE_REPLICA_NAME_BYTES];
    char model[NODE_MODEL_ID_MAX + 1];
    char health[NODE_HEALTH_PATH_MAX + 1];
    char kv_events[KV_NAMED_MAX + 1];
};

struct replica_list {
    struct discover_entry *entries;  /* owned, and good until replica_list_free(), */
    struct replica_list_text *texts; /* as what they borrow */
    unsigned count;
    unsigned room;
};

/* ERR_SYNTAX with a message "LINE: what would be right"; ERR_LIMIT with one beyond
 * DISCOVER_ENTRIES_MAX; ERR_NOMEM with one. Then `out` is empty. */
MUST_USE int replica_list_parse(struct slice text, struct replica_list *out, char *message);
void replica_list_free(struct replica_list *list);

/* For the readers of lines and of YAML (replica_yaml.c). Adds a replica, with further labels if
 * `more` is not NULL. Errors as replica_list_parse(). */
MUST_USE int replica_list_add(struct replica_list *list, struct slice url,
                              const struct node_labels *more, unsigned line, char *message);
/* Writes "LINE: WHAT" and returns ERR_SYNTAX. */
MUST_USE int replica_list_fail(char *message, unsigned line, const char *what);
/* The same with the text that is wrong: cut, printable, without what stands before an @. */
MUST_USE int replica_list_fail_at(char *message, unsigned line, const char *what,
                                  struct slice text);
/* A whole YAML text, added to `list`. */
MUST_USE int replica_yaml_read(struct slice text, struct replica_list *list, char *message);

#endif
