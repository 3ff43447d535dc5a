/* JSON of the admin port as tables for people. */
#ifndef NODE_GVCTL_SHOW_H
#define NODE_GVCTL_SHOW_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum show_format { SHOW_TABLE, SHOW_JSON, SHOW_YAML, SHOW_NAME };

/* How it is shown. */
struct show {
    enum show_format format;
    bool wide;    /* all columns */
    bool verbose; /* those, all sections, and what they mean */
    bool colour;
};

/* "table", "json", "yaml" or "name". */
const char *show_format_text(enum show_format format);
/* A green or red escape sequence; empty without colour. */
const char *show_colour(const struct show *how, bool is_good);
const char *show_plain(const struct show *how);

/* Each prints a table to stdout. ERR_SYNTAX if the answer is not what it should be. */
MUST_USE int show_replicas(const struct show *how, const json_t *answer);
MUST_USE int show_sources(const struct show *how, const json_t *answer);
MUST_USE int show_queue(const struct show *how, const json_t *answer);
MUST_USE int show_poison(const struct show *how, const json_t *answer);
MUST_USE int show_explain(const struct show *how, const json_t *answer);
MUST_USE int show_explain_all(const struct show *how, const json_t *answer);
MUST_USE int show_members(const struct show *how, const json_t *answer);
/* `members`: so many routers are wanted; 0: any number. */
MUST_USE int show_convergence(const struct show *how, const json_t *answer, unsigned members);
/* The names of the rows of any answer, a line each: of replicas, of routers; hashes. ERR_SYNTAX if
 * it has none. */
MUST_USE int show_names(const json_t *answer);

/* Whether an /explain of one router or of all names a choice, of any. */
bool show_explain_chooses(const json_t *answer);
/* Whether a /convergence says that all routers hold the same, and that they are at least so many.
 */
bool show_convergence_equal(const json_t *answer, unsigned members);
/* The state of a member of /members in a word: "alive", "joining", "unmet", "dead". */
const char *show_member_state(const json_t *member);
/* The health of a replica of /replicas in a word: "up", "avoided", "down". */
const char *show_replica_health(const json_t *replica);
/* The rows of those that are not up, first those that are down; the caller's. An address whose
 * ranks are chosen instead of it is none. */
json_t *show_replicas_not_up(const json_t *replicas);
enum { SHOW_WHY_BYTES = 32 };
/* What keeps it from being chosen, and for how long where that is known, in one word:
 * "errors:4.1s"; "-": nothing. */
const char *show_replica_why(const json_t *replica, char out[SHOW_WHY_BYTES]);
/* The same in a phrase; "": nothing is wrong. */
enum { SHOW_WHY_TEXT_BYTES = 192 };
const char *show_replica_why_text(const json_t *replica, char out[SHOW_WHY_TEXT_BYTES]);
/* "down: its port refuses connections" beside the health "down": "its port refuses connections". */
const char *show_reason(const char *text, const char *health);

#endif
