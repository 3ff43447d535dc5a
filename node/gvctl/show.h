/* JSON of the admin port as tables for people. */
#ifndef NODE_GVCTL_SHOW_H
#define NODE_GVCTL_SHOW_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

enum show_format { SHOW_TABLE, SHOW_JSON, SHOW_YAML, SHOW_NAME };

/* Options of the output. */
struct show {
    enum show_format format;
    bool wide;    /* all columns */
    bool verbose; /* all columns and sections, with a legend */
    bool colour;
};

/* Returns "table", "json", "yaml" or "name". */
const char *show_format_text(enum show_format format);
/* Returns a green or red escape sequence; empty without colour. */
const char *show_colour(const struct show *how, bool is_good);
const char *show_plain(const struct show *how);
/* Returns an elapsed time in words: "41 s", "12 min", "7 h", "3 days". */
enum { SHOW_TIME_BYTES = 32 };
const char *show_how_long(double s, char out[SHOW_TIME_BYTES]);
/* Returns a number in few characters: 1234 -> "1234", 12345 -> "12.3k". */
enum { SHOW_NUMBER_BYTES = 16 };
const char *show_short_number(double n, char out[SHOW_NUMBER_BYTES]);

/* Each prints a table to stdout. ERR_SYNTAX if the answer has an unexpected form. */
MUST_USE int show_replicas(const struct show *how, const json_t *answer);
MUST_USE int show_sources(const struct show *how, const json_t *answer);
MUST_USE int show_queue(const struct show *how, const json_t *answer);
MUST_USE int show_poison(const struct show *how, const json_t *answer);
MUST_USE int show_shadow(const struct show *how, const json_t *answer);
MUST_USE int show_explain(const struct show *how, const json_t *answer);
MUST_USE int show_explain_all(const struct show *how, const json_t *answer);
MUST_USE int show_members(const struct show *how, const json_t *answer);
/* `members`: the expected number of routers; 0: any number. */
MUST_USE int show_convergence(const struct show *how, const json_t *answer, unsigned members);
/* Prints the names in the rows of any answer, a line each: replicas, routers or hashes. ERR_SYNTAX
 * if there are none. */
MUST_USE int show_names(const json_t *answer);

/* True if a router chooses a replica in this answer to /explain, of one router or of all. */
bool show_explain_chooses(const json_t *answer);
/* True if all routers in this answer to /convergence, at least `members`, have equal states. */
bool show_convergence_equal(const json_t *answer, unsigned members);
/* Returns a member's state in a word: "alive", "joining", "unmet", "dead". */
const char *show_member_state(const json_t *member);
/* Returns a replica's health in a word: "up", "avoided", "down". */
const char *show_replica_health(const json_t *replica);
/* Returns the rows of replicas that are not up, down replicas first; owned by the caller. Addresses
 * with ranks are left out: the ranks are the replicas. */
json_t *show_replicas_not_up(const json_t *replicas);
enum { SHOW_WHY_BYTES = 32 };
/* Returns why the replica cannot be chosen, in a word, with the remaining time if known:
 * "errors:4.1s"; "-": none. */
const char *show_replica_why(const json_t *replica, char out[SHOW_WHY_BYTES]);
/* Returns why the replica cannot be chosen, as a phrase; "": no reason. */
enum { SHOW_WHY_TEXT_BYTES = 192 };
const char *show_replica_why_text(const json_t *replica, char out[SHOW_WHY_TEXT_BYTES]);
/* Returns the text without the health in front: "its port refuses connections" for the text "down:
 * its port refuses connections" and the health "down". */
const char *show_reason(const char *text, const char *health);

#endif
