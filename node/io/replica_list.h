/* Parses a --replica-file, a list of replicas. Plain text has a replica a line, as in --replica,
 * with YAML's comments (a '#' at the beginning or after white space):
 *
 *   # engines of the first rack
 *   http://10.0.0.1:8000
 *   http://10.0.0.2:8000#weight=2#engine=vllm    # the new one
 *
 * YAML has a sequence of such texts, or of maps, or of both. A text with '-' or '[' as its first
 * character (except comments) is YAML, and JSON is YAML:
 *
 *   - http://10.0.0.1:8000
 *   - url: http://10.0.0.2:8000
 *     engine: vllm
 *     weight: 2
 *
 * Neither blocks nor accesses files (node/io/replica_file.h reads them). */
#ifndef NODE_IO_REPLICA_LIST_H
#define NODE_IO_REPLICA_LIST_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_LIST_BYTES_MAX = 1 << 20,
    REPLICA_LIST_MESSAGE = 320,
};

/* Texts that an entry borrows. */
struct replica_list_text {
    char name[NODE_REPLICA_NAME_BYTES];
    char model[NODE_MODEL_ID_MAX + 1];
    char health[NODE_HEALTH_PATH_MAX + 1];
    char kv_events[KV_NAMED_MAX + 1];
};

struct replica_list {
    struct discover_entry *entries;  /* owned, and valid until replica_list_free(), */
    struct replica_list_text *texts; /* like the borrowed texts */
    unsigned count;
    unsigned room;
};

/* ERR_SYNTAX with a message "LINE: a correct form"; ERR_LIMIT with a message beyond
 * DISCOVER_ENTRIES_MAX; ERR_NOMEM with a message. `out` is empty after errors. */
MUST_USE int replica_list_parse(struct slice text, struct replica_list *out, char *message);
void replica_list_free(struct replica_list *list);

/* Adds a replica, with further labels if `more` is not NULL; for the readers of lines and of YAML
 * (replica_yaml.c). Errors as replica_list_parse(). */
MUST_USE int replica_list_add(struct replica_list *list, struct slice url,
                              const struct node_labels *more, unsigned line, char *message);
/* Writes "LINE: WHAT" and returns ERR_SYNTAX. */
MUST_USE int replica_list_fail(char *message, unsigned line, const char *what);
/* The same, quoting the wrong text: cut, printable, without the part before an @. */
MUST_USE int replica_list_fail_at(char *message, unsigned line, const char *what,
                                  struct slice text);
/* Adds a whole YAML text to `list`. */
MUST_USE int replica_yaml_read(struct slice text, struct replica_list *list, char *message);

#endif
