/* Parses a --replica-file, a list of replicas. Plain text has a replica per line, written as in
 * --replica. Comments are YAML's: a '#' at the beginning of a line or after white space.
 *
 *   # engines of the first rack
 *   http://10.0.0.1:8000
 *   http://10.0.0.2:8000#weight=2#engine=vllm    # the new one
 *
 * A YAML file has a sequence of such texts, of maps, or of both. A file counts as YAML if the first
 * character outside comments is '-' or '['. JSON is YAML too.
 *
 *   - http://10.0.0.1:8000
 *   - url: http://10.0.0.2:8000
 *     engine: vllm
 *     weight: 2
 *
 * These functions do not read the file (node/io/replica_file.h does), and never block. */
#ifndef NODE_IO_REPLICA_LIST_H
#define NODE_IO_REPLICA_LIST_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_LIST_BYTES_MAX = 1 << 20,
    REPLICA_LIST_MESSAGE = 320,
};

/* Texts borrowed by an entry. */
struct replica_list_text {
    char name[NODE_REPLICA_NAME_BYTES];
    char model[NODE_MODEL_ID_MAX + 1];
    char health[NODE_HEALTH_PATH_MAX + 1];
    char kv_events[KV_NAMED_MAX + 1];
};

struct replica_list {
    struct discover_entry *entries;  /* owned, until replica_list_free() */
    struct replica_list_text *texts; /* owned: the texts borrowed by the entries */
    unsigned count;
    unsigned room; /* entries for which there is memory */
};

/* Parses a list. ERR_SYNTAX: the message is "LINE: a correct form". ERR_LIMIT: there are more than
 * DISCOVER_ENTRIES_MAX replicas. ERR_NOMEM. Each error has a message, and leaves `out` empty. */
MUST_USE int replica_list_parse(struct slice text, struct replica_list *out, char *message);
void replica_list_free(struct replica_list *list);

/* Adds a replica, with further labels if `more` is not NULL. Called by the parsers of lines and of
 * YAML (replica_yaml.c). Errors as replica_list_parse(). */
MUST_USE int replica_list_add(struct replica_list *list, struct slice url,
                              const struct node_labels *more, unsigned line, char *message);
/* Writes "LINE: WHAT" and returns ERR_SYNTAX. */
MUST_USE int replica_list_fail(char *message, unsigned line, const char *what);
/* Like replica_list_fail(), and quotes the wrong text: shortened, made printable, and without any
 * part before an @. */
MUST_USE int replica_list_fail_at(char *message, unsigned line, const char *what,
                                  struct slice text);
/* Adds the replicas of a YAML text to `list`. */
MUST_USE int replica_yaml_read(struct slice text, struct replica_list *list, char *message);

#endif
