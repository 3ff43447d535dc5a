/* Log events with news for viewers of the cluster, and their words. */
#include <stdio.h>

#include "base/check.h"
#include "node/admin/events.h"
#include "node/admin/fill.h"

/* {field} is replaced by the field's value; {field#one|more} by the value, a number, and the word
 * for 1 or for more. Text in brackets is left out if some field there is empty or missing. A row
 * EVENT=VALUE is for events with this value in the field `then`. */
static const struct words {
    const char *event;
    enum admin_event_kind kind;
    const char *text;
} table[] = {
    {"upstream_failed=moved", ADMIN_EVENT_RETRY,
     "Requests failed at replica {replica}[ ({what})] and went to another."},
    {"upstream_failed", ADMIN_EVENT_TROUBLE,
     "Requests failed at replica {replica}[ ({what})], and no other was asked: their clients got "
     "an error, or a cut answer."},
    {"replica_rejects", ADMIN_EVENT_TROUBLE,
     "Replica {replica} rejects requests ({status})[ that replica {accepted_by} accepts][ for the "
     "model {model}, which it lists]: other replicas are preferred."},
    {"replica_accepts", ADMIN_EVENT_REPLICA,
     "Replica {replica} accepts the requests again that it rejected: it is used as before."},
    {"replica_models_unknown", ADMIN_EVENT_TROUBLE,
     "Replica {replica} lists no models (/v1/models answered {status}): it gets requests for any "
     "model."},
    {"engine_control", ADMIN_EVENT_REPLICA,
     "{path} was sent to {replicas#replica|replicas}[, for the key {key}]: {failed} failed; "
     "{caches_reset#cache is|caches are} forgotten."},
    {"start", ADMIN_EVENT_JOIN, "This router started[, version {version}]."},
    {"member_alive", ADMIN_EVENT_JOIN, "Router {member} joined."},
    {"member_dead", ADMIN_EVENT_DEATH,
     "Router {member} was marked dead: nothing was heard of it. Its load no longer counts."},
    {"member_left", ADMIN_EVENT_LEAVE, "Router {member} left."},
    {"member_forgotten", ADMIN_EVENT_LEAVE,
     "Router {member} is no longer shown, by an operator[ from {from}]."},
    {"cluster_ready", ADMIN_EVENT_JOIN,
     "This router is ready[: it copied the state of {from}][ without a state to copy: "
     "{why}]."},
    {"cluster_alone", ADMIN_EVENT_TROUBLE, "This router knows no other router[: {why}]."},
    {"snapshot_failed", ADMIN_EVENT_TROUBLE,
     "The state could not be copied from {member}[: {error}]. Another router is asked."},
    {"gossip_tcp_filtered", ADMIN_EVENT_TROUBLE,
     "TCP to router {member} is filtered[: open its gossip port, {at}, for TCP, too]."},
    {"deltas_lost", ADMIN_EVENT_DIFFERS,
     "Messages of router {member} were lost. Comparing states repairs that."},
    {"cluster_clock_forward", ADMIN_EVENT_CONFIG,
     "This router's clock was {ms} ms behind the cluster's and is set forward."},
    {"cluster_clock_back", ADMIN_EVENT_TROUBLE,
     "This router's clock was {ms} ms ahead of the cluster's. It is set back, and the router joins "
     "again."},
    {"member_mismatch", ADMIN_EVENT_DIFFERS,
     "Router {member} has other values for settings that must be equal at all routers[: "
     "{differs}]."},
    {"member_differs", ADMIN_EVENT_DIFFERS, "Router {member} has other settings[: {differs}]."},
    {"member_not_understood", ADMIN_EVENT_DIFFERS,
     "Router {member} shares no protocol version with this one[: {why}]."},
    {"name_taken", ADMIN_EVENT_TROUBLE, "Two routers have one name: {member}{name}[, at {at}]."},
    {"gossip_refused_key", ADMIN_EVENT_KEY,
     "A router without the cluster's key asks to join[, from {from}]."},
    {"gossip_other_cluster", ADMIN_EVENT_KEY,
     "A router with another cluster-name asks to join[, from {from}]."},
    {"join_unanswered", ADMIN_EVENT_TROUBLE, "No router answers at {seeds} (setting join)."},
    {"join_unresolved", ADMIN_EVENT_TROUBLE,
     "The name {host} (setting join) cannot be used[: {error}]."},
    {"routers_full", ADMIN_EVENT_TROUBLE,
     "{limit#router is|routers are} alive, the limit: no more may join."},
    {"replicas_full", ADMIN_EVENT_TROUBLE,
     "{limit#replica is|replicas are} in use, the limit: no more can be added."},
    {"replica_name_refused", ADMIN_EVENT_TROUBLE,
     "Replica names that are no HOST:PORT are refused[: router {member} sends them]."},
    {"draining", ADMIN_EVENT_DRAIN,
     "This router drains: it takes no new requests, and stops when those in flight have ended."},
    {"client_port_closed", ADMIN_EVENT_DRAIN, "This router closed its port for clients."},
    {"replica_added", ADMIN_EVENT_REPLICA, "Replica {replica} added."},
    {"replica_removed", ADMIN_EVENT_REPLICA, "Replica {replica} removed."},
    {"replica_wish", ADMIN_EVENT_REPLICA,
     "Replica {replica} {wish} by an operator, at this router[, from {from}]."},
    {"replica_drain", ADMIN_EVENT_DRAIN,
     "Replica {replica} {wish} by an operator, at this router[, from {from}]."},
    {"replica_waits", ADMIN_EVENT_REPLICA,
     "Replica {replica} is not used: the limit of replicas is reached (replicas-max)."},
    {"replica_restarted", ADMIN_EVENT_REPLICA,
     "Replica {replica} was restarted: its cache counts as empty."},
    {"kv_events_live", ADMIN_EVENT_REPLICA,
     "This router reads the KV-cache events of replica {replica}[ at {from}]."},
    {"kv_events_lost", ADMIN_EVENT_REPLICA,
     "This router lost the KV-cache events of replica {replica}[ at {from}]: unless another router "
     "reads them, the replica's cache is inferred."},
    {"kv_events_unreachable", ADMIN_EVENT_TROUBLE,
     "This router cannot subscribe to the KV-cache events of replica {replica}[ at {from}]: unless "
     "another router reads them, the replica's cache is inferred.[ To do: {want}.]"},
    {"kv_events_silent", ADMIN_EVENT_TROUBLE,
     "No KV-cache event of replica {replica} came[ from {from}][ with topic {topic}] while "
     "{answers#answer|answers} stored blocks there.[ To do: {want}.]"},
    {"kv_events_disbelieved", ADMIN_EVENT_TROUBLE,
     "Answers of replica {replica} contradict its KV-cache events[ from {from}]: for "
     "{minutes#minute|minutes} the replica's cache is inferred."},
    {"kv_events_unusable", ADMIN_EVENT_TROUBLE,
     "This router cannot use the KV-cache events of replica {replica}[ from {from}] ({state}): the "
     "replica's cache is inferred."},
    {"kv_events_dropped", ADMIN_EVENT_TROUBLE,
     "KV-cache events from {from}[ with topic {topic}] are dropped: {reason}[ "
     "({replica})].[ To do: {want}.]"},
    {"kv_events_full", ADMIN_EVENT_TROUBLE,
     "{limit#connection|connections} to kv-events-listen are open, the limit: {refused#more "
     "was|more were} refused, the last one from {from}.[ To do: {want}.]"},
    {"replica_refused", ADMIN_EVENT_TROUBLE, "Replica {replica} is not used[: {error}]."},
    {"replica_unresolved", ADMIN_EVENT_TROUBLE,
     "The name of replica {replica} cannot be looked up[: {error}]."},
    {"discovered", ADMIN_EVENT_REPLICA,
     "Source {source}: {added#new replica|new replicas}, {gone} gone, {draining} draining."},
    {"discovery_failed", ADMIN_EVENT_TROUBLE, "Source {source} cannot be read[: {error}]."},
    {"discovery_empty", ADMIN_EVENT_TROUBLE, "Source {source} lists no replica[: {why}]."},
    {"discovery_incomplete", ADMIN_EVENT_TROUBLE, "Source {source} is incomplete[: {error}]."},
    {"discovery_works", ADMIN_EVENT_REPLICA, "Source {source} can be read again."},
    {"cluster_key_read", ADMIN_EVENT_KEY, "Loaded the cluster key file: keys {ids}."},
    {"cluster_key_refused", ADMIN_EVENT_KEY, "The cluster's key file is refused[: {error}]."},
    {"replica_key_read", ADMIN_EVENT_KEY, "Reloaded the replicas' API key."},
    {"replica_key_refused", ADMIN_EVENT_KEY,
     "The API key of the replicas cannot be read[: {error}]."},
    {"client_keys_read", ADMIN_EVENT_KEY,
     "Loaded {keys#client key|client keys} for {names#name|names}."},
    {"client_keys_refused", ADMIN_EVENT_KEY, "The file of clients' keys is refused[: {error}]."},
    {"tls_files_read", ADMIN_EVENT_KEY, "Reloaded {setting}."},
    {"tls_files_refused", ADMIN_EVENT_KEY, "TLS files are refused[: {error}]."},
    {"tls_handshake_failed", ADMIN_EVENT_TROUBLE,
     "A TLS handshake[ from {from}] failed at the {port_of} port: {reason}."},
    {"replica_tls_failed", ADMIN_EVENT_TROUBLE,
     "TLS with replica {replica} failed: {reason}[ ({error})].[ To do: {want}.]"},
    {"config_reloaded", ADMIN_EVENT_CONFIG,
     "Reloaded the settings: {changed} changed, {restart_needed#waits|wait} for a restart."},
    {"config_refused", ADMIN_EVENT_CONFIG,
     "The settings are refused, and nothing changed[: {error}]."},
    {"setting_changed", ADMIN_EVENT_CONFIG, "{setting} is now {now}[, before: {before}]."},
    {"setting_waits", ADMIN_EVENT_CONFIG,
     "{setting} stays {in_force} until a restart[; the file says {wanted}]."},
    {"setting_ignored", ADMIN_EVENT_CONFIG, "{setting} has no effect: {why}."},
    {"log_level", ADMIN_EVENT_CONFIG, "The log level is now {now}[, set by {from}]."},
    {"admin_refused", ADMIN_EVENT_TROUBLE, "{from} was refused: it may not call {path}."},
    {"poison", ADMIN_EVENT_TROUBLE,
     "Engines died after a request. It is refused from now on; gvctl poison lists it."},
    {"poison_suspect", ADMIN_EVENT_TROUBLE, "Replica {replica} may have died of a request."},
    {"poison_forgotten", ADMIN_EVENT_TROUBLE,
     "A request that was refused as poison is served again, by an operator[ from {from}]."},
    {"request_loop", ADMIN_EVENT_TROUBLE,
     "Requests loop between routers: one is listed as a replica."},
    {"files_short", ADMIN_EVENT_TROUBLE,
     "connections-max is lowered from {connections_max} to {used}: at most {files_max} "
     "files may be open. To do: {want}."},
    {"local_shortage", ADMIN_EVENT_TROUBLE,
     "This router is short of local {of} for connections to replicas. To do: {want}."},
    {"local_shortage_over", ADMIN_EVENT_TROUBLE,
     "The shortage of local {of} is over. While it lasted, {times#connection|connections} could "
     "not be opened."},
    {"log_stalled", ADMIN_EVENT_TROUBLE,
     "Standard error is blocked: log lines are dropped until it accepts them."},
    {"log_lines_dropped", ADMIN_EVENT_TROUBLE,
     "{lines#log line was|log lines were} dropped: standard error was blocked."},
    {"state_read", ADMIN_EVENT_JOIN,
     "This router started with its state on disk, {age_ms} ms old."},
    {"state_refused", ADMIN_EVENT_TROUBLE,
     "The state on disk is not used: it {why}.[ It was renamed to {aside}.]"},
    {"state_not_written", ADMIN_EVENT_TROUBLE,
     "The state cannot be written to {folder}[: {error}]."},
    {"trace_export_failed", ADMIN_EVENT_TROUBLE,
     "Traces do not reach {endpoint}[: {error}]. Requests are not affected."},
    {"trace_export_works", ADMIN_EVENT_TROUBLE, "Traces reach {endpoint} again."},
    {"state_written", ADMIN_EVENT_TROUBLE, "The state is written to {folder} again."},
    {"accept_paused", ADMIN_EVENT_TROUBLE,
     "This router accepts no connections: it has no open files left."},
};

/* Events without a row in the table, by the beginning of the name: spell() makes the text. */
static const struct {
    const char *begins;
    enum admin_event_kind kind;
} families[] = {
    {"config_", ADMIN_EVENT_CONFIG},
    {"client_key", ADMIN_EVENT_KEY},
    {"admin_token", ADMIN_EVENT_KEY},
    {"tls_", ADMIN_EVENT_KEY},
};

static const struct log_field *field_of(const struct log_field *fields, unsigned count,
                                        struct slice name)
{
    for (unsigned i = 0; i < count; i++) {
        if (slice_equal(name, slice_of_cstr(fields[i].name)))
            return &fields[i];
    }
    return NULL;
}

/* The fields to insert into a pattern. */
struct fields {
    const struct log_field *at;
    unsigned count;
};

/* Appends the field's value. Returns false if the field is missing or empty. */
static bool put_field(struct admin_fill *t, const struct log_field *f)
{
    char number[40];
    if (!f)
        return false;
    switch (f->type) {
    case LOG_FIELD_STR:
        admin_fill_put(t, f->value.str);
        return f->value.str.len > 0;
    case LOG_FIELD_INT:
        (void)snprintf(number, sizeof number, "%lld", (long long)f->value.i);
        break;
    case LOG_FIELD_UINT:
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)f->value.u);
        break;
    case LOG_FIELD_FLOAT:
        (void)snprintf(number, sizeof number, "%.3g", f->value.f);
        break;
    case LOG_FIELD_BOOL:
        (void)snprintf(number, sizeof number, "%s", f->value.b ? "yes" : "no");
        break;
    }
    admin_fill_put(t, slice_of_cstr(number));
    return true;
}

/* Appends the text for {field} or {field#one|more}. Returns false if the field is missing or
 * empty. */
static bool fill_field(void *context, struct slice inside, struct admin_fill *t)
{
    const struct fields *fields = context;
    const struct log_field *f = field_of(fields->at, fields->count, slice_cut(&inside, '#'));
    struct slice one = slice_cut(&inside, '|');
    bool put_it = put_field(t, f);
    if (one.len == 0 || !put_it)
        return put_it;
    bool is_one = (f->type == LOG_FIELD_UINT && f->value.u == 1) ||
                  (f->type == LOG_FIELD_INT && f->value.i == 1);
    admin_fill_put(t, SLICE(" "));
    admin_fill_put(t, is_one ? one : inside);
    return true;
}

/* Appends an event's name and fields, for an event without a row in the table. */
static void spell(struct admin_fill *t, const char *event, const struct log_field *fields,
                  unsigned count)
{
    admin_fill_put(t, slice_of_cstr(event));
    for (size_t i = 0; i < t->len; i++)
        t->at[i] = (char)(t->at[i] == '_' ? ' ' : t->at[i]);
    for (unsigned i = 0; i < count; i++) {
        admin_fill_put(t, i == 0 ? SLICE(": ") : SLICE(", "));
        admin_fill_put(t, slice_of_cstr(fields[i].name));
        admin_fill_put(t, SLICE(" "));
        (void)put_field(t, &fields[i]);
    }
}

/* Returns the replica, router, source or caller that the event is about; empty: none. */
static struct slice about_of(const struct log_field *fields, unsigned count)
{
    static const struct slice names[] = {SLICE("replica"), SLICE("member"), SLICE("source"),
                                         SLICE("from")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct log_field *f = field_of(fields, count, names[i]);
        if (f && f->type == LOG_FIELD_STR)
            return f->value.str;
    }
    return slice_of("", 0);
}

static bool fits(const struct words *row, const char *event, const struct log_field *fields,
                 unsigned count)
{
    struct slice value = slice_of_cstr(row->event), name = slice_cut(&value, '=');
    if (!slice_equal(name, slice_of_cstr(event)))
        return false;
    const struct log_field *then = field_of(fields, count, SLICE("then"));
    return value.len == 0 ||
           (then && then->type == LOG_FIELD_STR && slice_equal(then->value.str, value));
}

void admin_events_tap(void *events, enum log_level level, const char *event,
                      const struct log_field *fields, unsigned count, uint64_t now_ms)
{
    (void)level;
    char text[ADMIN_EVENT_TEXT_BYTES * 2];
    struct admin_fill t = admin_fill_begin(text, sizeof text);
    struct fields all = {fields, count};
    struct slice about = about_of(fields, count);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (fits(&table[i], event, fields, count)) {
            admin_fill_pattern(&t, table[i].text, fill_field, &all);
            (void)admin_events_add(events, table[i].kind, event, about, t.at, now_ms);
            return;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (slice_starts_with(slice_of_cstr(event), slice_of_cstr(families[i].begins))) {
            spell(&t, event, fields, count);
            (void)admin_events_add(events, families[i].kind, event, about, t.at, now_ms);
            return;
        }
    }
}
