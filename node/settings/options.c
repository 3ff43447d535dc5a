#include "node/settings/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/limits.h"
#include "node/discover/kubernetes.h"
#include "node/route/policy.h"
#include "node/settings/value.h"

/* --- errors ----------------------------------------------------------------------------------- */

/* Appends `front` and then `value`, in quotes: control and non-ASCII bytes as \xNN, `value` cut
 * after 80 bytes. */
static int append_quoted_behind(struct buf *out, const char *front, struct slice value)
{
    enum { SHOWN = 80 };
    int err = buf_printf(out, "\"%s", front);
    for (size_t i = 0; i < value.len && i < SHOWN && err == 0; i++) {
        unsigned char c = (unsigned char)value.at[i];
        err = c < 0x20 || c > 0x7e ? buf_printf(out, "\\x%02x", c) : buf_append_char(out, (char)c);
    }
    return err == 0 ? buf_append_cstr(out, value.len > SHOWN ? "...\"" : "\"") : err;
}

static int append_quoted(struct buf *out, struct slice value)
{
    return append_quoted_behind(out, "", value);
}

static int fail(struct node_options_error *error, struct buf *line, int err)
{
    (void)slice_to_cstr(buf_slice(line), error->text, sizeof error->text);
    buf_free(line);
    return err;
}

static int fail_text(struct node_options_error *error, const char *text, int err)
{
    (void)snprintf(error->text, sizeof error->text, "%s", text);
    return err;
}

/* Appends the value of a refused setting. A replica's text loses the part before the last @, which
 * may hold a password. */
static void append_value(struct buf *out, const char *setting, struct slice value)
{
    bool url = slice_starts_with(slice_of_cstr(setting), SLICE("replica"));
    struct slice shown = url ? node_replica_shown(value) : value;
    (void)append_quoted_behind(out, shown.len < value.len ? "..." : "", shown);
}

/* Begins an error: "bad setting listen = "8080" (flag --listen): "; the reason follows. */
static struct buf bad_setting(const char *name, struct slice value,
                              struct node_option_origin origin)
{
    struct buf line = {0};
    DISCARD(buf_printf(&line, "bad setting %s = ", name));
    append_value(&line, name, value);
    DISCARD(buf_append_cstr(&line, " ("));
    DISCARD(node_option_origin_append(&line, name, origin));
    DISCARD(buf_append_cstr(&line, "): "));
    return line;
}

static int fail_value(struct node_options_error *error, const struct node_option *row,
                      struct slice value, struct node_option_origin origin, int err)
{
    if (err == ERR_NOMEM)
        return fail_text(error, "out of memory while reading the settings", err);
    struct buf line = bad_setting(row->name, value, origin);
    if (err == ERR_FULL)
        DISCARD(buf_printf(&line, "want at most %d entries", NODE_STRINGS_MAX));
    else
        DISCARD(node_option_value_want(row, value, &line));
    return fail(error, &line, err);
}

static const char *const command_flags[] = {
    [NODE_COMMAND_HELP] = "help",
    [NODE_COMMAND_VERSION] = "version",
    [NODE_COMMAND_CHECK_CONFIG] = "check-config",
    [NODE_COMMAND_PRINT_MARKDOWN] = "print-options-markdown",
};

/* Fails for a setting that does not exist, and suggests the nearest name. `name` is written as in
 * the table: lower case with dashes. */
static int fail_unknown(struct node_options_error *error, struct slice name,
                        struct node_option_origin origin)
{
    struct node_option_nearest nearest = {.name = name};
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++)
        node_option_nearest_offer(&nearest, row->name);
    if (origin.source == NODE_SOURCE_FLAG) {
        for (unsigned i = 1; i < ARRAY_LEN(command_flags); i++)
            node_option_nearest_offer(&nearest, command_flags[i]);
    }
    struct buf line = {0};
    DISCARD(buf_append_cstr(&line, "unknown setting "));
    (void)append_quoted(&line, name);
    if (origin.source == NODE_SOURCE_FILE)
        DISCARD(buf_printf(&line, " (%s:%u)", origin.file, origin.line));
    else if (origin.source == NODE_SOURCE_ENVIRONMENT)
        DISCARD(buf_append_cstr(&line, " (environment)"));
    else
        DISCARD(buf_append_cstr(&line, " (flag)"));
    if (nearest.best != NULL) {
        origin.file = NULL;
        DISCARD(buf_append_cstr(&line, ": did you mean "));
        if (origin.source == NODE_SOURCE_ENVIRONMENT)
            DISCARD(node_option_variable_append(&line, nearest.best));
        else
            DISCARD(buf_printf(&line, "%s%s", origin.source == NODE_SOURCE_FLAG ? "--" : "",
                               nearest.best));
        DISCARD(buf_append_char(&line, '?'));
    } else {
        DISCARD(buf_append_cstr(&line, ": see grapevine --help"));
    }
    return fail(error, &line, ERR_SYNTAX);
}

/* --- a setting -------------------------------------------------------------------------------- */

int node_options_init(struct node_options *o)
{
    *o = (struct node_options){0};
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        CHECK(i < NODE_OPTIONS_MAX);
        if (row->type == NODE_TYPE_LIST)
            continue; /* lists start empty */
        int err = node_option_value_read(o, row, slice_of_cstr(row->fallback));
        if (err == ERR_NOMEM)
            return err;
        CHECK(err == 0); /* the default is valid */
    }
    return 0;
}

void node_options_free(struct node_options *o)
{
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        char *field = (char *)o + row->offset;
        if (row->type == NODE_TYPE_LIST)
            node_option_list_clear((struct node_strings *)(void *)field);
        if (row->type == NODE_TYPE_STRING || row->type == NODE_TYPE_PATH)
            free(*(char **)(void *)field);
    }
    *o = (struct node_options){0};
}

static int set_list(struct node_options *o, const struct node_option *row, bool store, bool replace,
                    struct slice value, struct slice *bad)
{
    struct node_strings *list = (struct node_strings *)(void *)((char *)o + row->offset);
    for (struct slice rest = value; rest.len > 0;) { /* check all before storing any */
        *bad = slice_trim(slice_cut(&rest, ','));
        int err = node_option_value_test(row, *bad);
        if (err != 0)
            return err;
    }
    *bad = value;
    if (value.len == 0)
        return ERR_SYNTAX;
    if (!store)
        return 0;
    if (replace)
        node_option_list_clear(list);
    for (struct slice rest = value; rest.len > 0;) {
        int err = node_option_value_read(o, row, slice_trim(slice_cut(&rest, ',')));
        if (err != 0)
            return err;
    }
    return 0;
}

static int set_row(struct node_options *o, unsigned index, struct slice value,
                   struct node_option_origin origin, struct node_options_error *error)
{
    const struct node_option *row = node_option_at(index);
    struct node_option_origin before = o->origins[index];
    bool store = origin.source >= before.source;
    struct slice bad = value;
    int err;
    if (row->type == NODE_TYPE_LIST)
        err = set_list(o, row, store, origin.source > before.source, value, &bad);
    else
        err = store ? node_option_value_read(o, row, value) : node_option_value_test(row, value);
    if (err != 0)
        return fail_value(error, row, bad, origin, err);
    if (store)
        o->origins[index] = origin;
    return 0;
}

int node_options_set(struct node_options *o, struct slice name, struct slice value,
                     struct node_option_origin origin, struct node_options_error *error)
{
    int index = node_option_find(name);
    if (index < 0)
        return fail_unknown(error, name, origin);
    if (origin.source == NODE_SOURCE_FILE && slice_equal(name, SLICE("config"))) {
        struct buf line = bad_setting("config", value, origin);
        DISCARD(buf_append_cstr(&line, "want it as a flag or as GRAPEVINE_CONFIG only"));
        return fail(error, &line, ERR_SYNTAX);
    }
    return set_row(o, (unsigned)index, value, origin, error);
}

/* --- flags ------------------------------------------------------------------------------------ */

static bool take_command(struct node_options *o, struct slice name)
{
    for (unsigned i = 1; i < ARRAY_LEN(command_flags); i++) {
        if (slice_equal(name, slice_of_cstr(command_flags[i]))) {
            o->command = (enum node_command)i;
            return true;
        }
    }
    return false;
}

static int fail_no_value(struct node_options_error *error, const struct node_option *row)
{
    (void)snprintf(error->text, sizeof error->text,
                   "bad setting %s (flag --%s): a value is missing, want --%s %s", row->name,
                   row->name, row->name, row->unit);
    return ERR_SYNTAX;
}

/* Reads the flag at argv[*at], with the value if separate; moves *at to the last argument used. */
static int take_flag(struct node_options *o, struct slice name, int argc, char *const *argv,
                     int *at, struct node_options_error *error)
{
    static const struct node_option_origin origin = {.source = NODE_SOURCE_FLAG};
    size_t equals = slice_find(name, '=');
    bool has_value = equals < name.len;
    struct slice value = slice_skip(name, equals + 1);
    name.len = equals;

    if (!has_value && take_command(o, name))
        return 0;
    int index = node_option_find(name);
    if (index < 0 && !has_value && slice_starts_with(name, SLICE("no-"))) {
        int positive = node_option_find(slice_skip(name, 3));
        if (positive >= 0 && node_option_at((unsigned)positive)->type == NODE_TYPE_BOOL)
            return set_row(o, (unsigned)positive, SLICE("off"), origin, error);
    }
    if (index < 0)
        return fail_unknown(error, name, origin);
    const struct node_option *row = node_option_at((unsigned)index);
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    bool truth;
    if (has_value) {
        /* `value` is already cut out */
    } else if (row->type == NODE_TYPE_BOOL) {
        bool word = next != NULL && node_option_bool_read(slice_of_cstr(next), &truth);
        value = word ? slice_of_cstr(next) : SLICE("on");
        *at += word;
    } else if (next == NULL || strncmp(next, "--", 2) == 0) {
        return fail_no_value(error, row);
    } else {
        value = slice_of_cstr(next);
        (*at)++;
    }
    return set_row(o, (unsigned)index, value, origin, error);
}

int node_options_flags(struct node_options *o, int argc, char *const *argv,
                       struct node_options_error *error)
{
    for (int i = 1; i < argc; i++) {
        struct slice word = slice_of_cstr(argv[i]);
        if (slice_equal(word, SLICE("-h")))
            word = SLICE("--help");
        else if (slice_equal(word, SLICE("-V")))
            word = SLICE("--version");
        if (!slice_starts_with(word, SLICE("--")) || word.len == 2) {
            struct buf line = {0};
            DISCARD(buf_append_cstr(&line, "unexpected argument "));
            append_value(&line, "replica", word); /* the argument is probably meant as a replica */
            DISCARD(buf_append_cstr(&line, ": want --name VALUE, see grapevine --help"));
            return fail(error, &line, ERR_SYNTAX);
        }
        int err = take_flag(o, slice_skip(word, 2), argc, argv, &i, error);
        if ((err = node_options_note(o, error, err)) != 0)
            return err;
        if (o->command == NODE_COMMAND_HELP || o->command == NODE_COMMAND_VERSION)
            return 0; /* help is useful whatever else is wrong */
    }
    return 0;
}

/* --- contradictions --------------------------------------------------------------------------- */

/* Returns the row's index of a setting that exists. */
static unsigned index_of(const char *name)
{
    int index = node_option_find(slice_of_cstr(name));
    CHECK(index >= 0);
    return (unsigned)index;
}

/* As bad_setting(), with the setting's present value. */
static struct buf bad_now(const struct node_options *o, const char *name)
{
    unsigned index = index_of(name);
    struct buf value = {0};
    DISCARD(node_option_format(o, node_option_at(index), &value));
    struct buf line = bad_setting(name, buf_slice(&value), o->origins[index]);
    buf_free(&value);
    return line;
}

static int fail_setting(const struct node_options *o, struct node_options_error *error,
                        const char *name, const char *reason)
{
    struct buf line = bad_now(o, name);
    DISCARD(buf_append_cstr(&line, reason));
    return fail(error, &line, ERR_RANGE);
}

/* Fails with: bad setting ttl = "10s" (flag --ttl): want at least generation, which is 15s
 * (default) */
static int fail_pair(const struct node_options *o, struct node_options_error *error,
                     const char *name, const char *relation, const char *other)
{
    unsigned index = index_of(other);
    struct buf line = bad_now(o, name);
    DISCARD(buf_printf(&line, "want %s %s, which is ", relation, other));
    DISCARD(node_option_format(o, node_option_at(index), &line));
    DISCARD(buf_append_cstr(&line, " ("));
    DISCARD(node_option_origin_append(&line, other, o->origins[index]));
    DISCARD(buf_append_char(&line, ')'));
    return fail(error, &line, ERR_RANGE);
}

/* Fails for the entry `value` of the list `setting`. */
static int fail_entry(const struct node_options *o, struct node_options_error *error,
                      const char *setting, const char *value, const char *reason, int err)
{
    struct buf line = bad_setting(setting, slice_of_cstr(value), o->origins[index_of(setting)]);
    DISCARD(buf_append_cstr(&line, reason));
    return fail(error, &line, err);
}

/* Refuses this router as a replica: requests would go in a circle. The first probe reveals other
 * names and addresses of this machine. */
static int check_not_self(const struct node_options *o, struct node_options_error *error)
{
    for (unsigned i = 0; i < o->replica.count; i++) {
        struct node_replica_option replica;
        CHECK(node_replica_parse(slice_of_cstr(o->replica.at[i]), &replica) == 0);
        const char *own = node_options_port_at(o, &replica.address);
        if (own == NULL)
            continue;
        char reason[128];
        (void)snprintf(reason, sizeof reason,
                       "this router itself listens there (%s), want the address of an engine", own);
        return fail_entry(o, error, "replica", o->replica.at[i], reason, ERR_RANGE);
    }
    return 0;
}

/* True if replicas come from a source other than `replica`. */
static bool finds(const struct node_options *o)
{
    return o->replica_dns.count > 0 || o->replica_file.count > 0 || o->replica_kubernetes.count > 0;
}

static bool same_replica(const char *a, const char *b)
{
    struct node_replica_option x, y;
    CHECK(node_replica_parse(slice_of_cstr(a), &x) == 0);
    CHECK(node_replica_parse(slice_of_cstr(b), &y) == 0);
    return strcmp(x.name, y.name) == 0;
}

static bool same_dns(const char *a, const char *b)
{
    struct node_dns_option x, y;
    CHECK(node_dns_parse(slice_of_cstr(a), &x) == NULL);
    CHECK(node_dns_parse(slice_of_cstr(b), &y) == NULL);
    return x.address.port == y.address.port &&
           slice_equal_nocase(slice_of_cstr(x.address.host), slice_of_cstr(y.address.host));
}

static bool same_file(const char *a, const char *b)
{
    while (strncmp(a, "./", 2) == 0)
        a += 2;
    while (strncmp(b, "./", 2) == 0)
        b += 2;
    return strcmp(a, b) == 0;
}

/* True if both texts name the same service. Spellings with and without the router's own namespace
 * count as different: the router learns the namespace only at the start
 * (node/io/replica_kubernetes.c). */
static bool same_service(const char *a, const char *b)
{
    struct discover_service x, y;
    CHECK(discover_service_parse(slice_of_cstr(a), &x) == NULL);
    CHECK(discover_service_parse(slice_of_cstr(b), &y) == NULL);
    return strcmp(x.namespace, y.namespace) == 0 && strcmp(x.name, y.name) == 0 &&
           strcmp(x.port, y.port) == 0;
}

/* Refuses entries that are equal except for their labels: in logs and metrics each replica has a
 * unique name, and so has each source of replicas. Also refuses too many sources of a kind. */
static int check_once(const struct node_options *o, struct node_options_error *error)
{
    static const struct {
        const char *setting, *what;
        size_t offset;
        unsigned max;
        bool (*same)(const char *a, const char *b);
    } lists[] = {
        {"replica", "replica", offsetof(struct node_options, replica), NODE_STRINGS_MAX,
         same_replica},
        {"replica-dns", "source", offsetof(struct node_options, replica_dns), NODE_SOURCES_MAX,
         same_dns},
        {"replica-file", "source", offsetof(struct node_options, replica_file), NODE_SOURCES_MAX,
         same_file},
        {"replica-kubernetes", "source", offsetof(struct node_options, replica_kubernetes),
         NODE_SOURCES_MAX, same_service},
    };
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        const struct node_strings *list = (const void *)((const char *)o + lists[k].offset);
        char reason[64];
        (void)snprintf(reason, sizeof reason, "want each %s only once: this one is repeated",
                       lists[k].what);
        for (unsigned i = 1; i < list->count; i++) {
            for (unsigned j = 0; j < i; j++) {
                if (lists[k].same(list->at[i], list->at[j]))
                    return fail_entry(o, error, lists[k].setting, list->at[i], reason, ERR_EXISTS);
            }
        }
        if (list->count > lists[k].max)
            return fail_entry(o, error, lists[k].setting, list->at[lists[k].max],
                              "want at most 16 entries", ERR_LIMIT);
    }
    return 0;
}

static int check_replicas(const struct node_options *o, struct node_options_error *error)
{
    struct node_address listen;
    bool others_may_name = node_options_gossip(o, &listen);
    if (o->replica.count == 0 && !finds(o) && !others_may_name)
        return fail_text(error,
                         "setting replica is missing: want at least one engine, such as "
                         "--replica http://10.0.0.1:8000",
                         ERR_SYNTAX);
    int err = check_once(o, error);
    return err == 0 ? check_not_self(o, error) : err;
}

/* Refuses a cluster's settings (key, address, names) in a router without gossip-listen and join,
 * which runs alone: the part that reaches other routers was forgotten. */
static int check_alone(const struct node_options *o, struct node_options_error *error)
{
    static const char reason[] = "this router runs alone, want gossip-listen or join too";
    if (o->cluster_key_file[0] != '\0')
        return fail_setting(o, error, "cluster-key-file", reason);
    if (o->insecure_gossip)
        return fail_setting(o, error, "insecure-gossip", reason);
    if (o->gossip_advertise[0] != '\0')
        return fail_setting(o, error, "gossip-advertise", reason);
    if (o->node_name[0] != '\0')
        return fail_setting(o, error, "node-name", reason);
    if (o->cluster_name[0] != '\0')
        return fail_setting(o, error, "cluster-name", reason);
    return 0;
}

static int check_cluster(const struct node_options *o, struct node_options_error *error)
{
    struct node_address listen;
    if (!node_options_gossip(o, &listen))
        return check_alone(o, error);
    if (o->insecure_gossip && o->cluster_key_file[0] != '\0')
        return fail_pair(o, error, "insecure-gossip", "it off with", "cluster-key-file");
    if (!o->insecure_gossip && o->cluster_key_file[0] == '\0')
        return fail_text(error,
                         "setting cluster-key-file is missing: routers that talk to each other "
                         "need a key, make one with gvctl keygen --out FILE and give all of them "
                         "--cluster-key-file FILE (or, to try it out, --insecure-gossip)",
                         ERR_SYNTAX);
    return 0;
}

static bool is_default(const struct node_options *o, const char *name)
{
    return o->origins[index_of(name)].source == NODE_SOURCE_DEFAULT;
}

/* Lengthens a generation that is not set, for a long TTL: at most 960 generations per TTL, in steps
 * of 5 s. With the default generation, a long TTL would have more generations than the index has
 * counters. */
static void follow_ttl(struct node_options *o)
{
    enum { SLICES = 960, GRAIN_MS = 5000 };
    uint64_t least_ms = (o->ttl_ms + SLICES - 1) / SLICES;
    if (is_default(o, "generation") && least_ms > o->generation_ms)
        o->generation_ms = (least_ms + GRAIN_MS - 1) / GRAIN_MS * GRAIN_MS;
}

/* Refuses a TTL shorter than a generation, and a TTL of more generations than the index has
 * counters: such an index would forget prompts before their TTL ends. */
static int check_ttl(const struct node_options *o, struct node_options_error *error)
{
    if (o->ttl_ms < o->generation_ms)
        return fail_pair(o, error, "ttl", "at least", "generation");
    uint64_t slices = (o->ttl_ms + o->generation_ms - 1) / o->generation_ms;
    if (slices <= CRDT_TTL_MAX)
        return 0;
    char reason[160];
    uint64_t least_s = (o->ttl_ms + CRDT_TTL_MAX * 1000 - 1) / (CRDT_TTL_MAX * 1000);
    (void)snprintf(reason, sizeof reason,
                   "ttl would be %" PRIu64
                   " generations, and at most %d are possible: want a generation of at least "
                   "%" PRIu64 "s, or a shorter ttl",
                   slices, CRDT_TTL_MAX, least_s);
    return fail_setting(o, error, "generation", reason);
}

static int check_ports(const struct node_options *o, struct node_options_error *error)
{
    const char *port, *other;
    return node_options_ports_clash(o, &port, &other)
               ? fail_pair(o, error, port, "another port than that of", other)
               : 0;
}

static int check_sizes(const struct node_options *o, struct node_options_error *error)
{
    return o->buffered_bytes_max < o->body_bytes_max
               ? fail_pair(o, error, "buffered-bytes-max", "at least", "body-bytes-max")
               : 0;
}

static int check_shadow(const struct node_options *o, struct node_options_error *error)
{
    bool weighs = node_policy_find(node_policy_names[o->policy])->wants_costs;
    return o->shadow && !weighs ? fail_pair(o, error, "shadow", "off with", "policy") : 0;
}

const char *node_option_ignored(const struct node_options *o, const struct node_option *row)
{
    const char *policy = node_policy_names[o->policy];
    if (strcmp(row->name, "control-share") != 0 || !(o->control_share > 0))
        return NULL;
    if (o->shadow)
        return "shadow is on";
    return strcmp(policy, node_policy_plain_names[o->plain_policy]) == 0
               ? "policy and plain-policy are the same"
               : NULL;
}

int node_options_finish(struct node_options *o, struct node_options_error *error)
{
    static int (*const checks[])(const struct node_options *, struct node_options_error *) = {
        check_replicas, check_cluster, node_options_tls_check, node_options_aliases_check,
        check_ports,    check_sizes,   check_shadow,           check_ttl};
    int err = 0;
    follow_ttl(o);
    for (size_t i = 0; i < ARRAY_LEN(checks) && err == 0; i++)
        err = node_options_note(o, error, checks[i](o, error));
    return err;
}
