/* Every setting of grapevine, from one table: flags, environment, YAML file, --help,
 * --check-config and docs/options.md all come from its rows (table.c).
 *
 * Driven by the daemon (or in one call by io_config_load() of node/io/config.h):
 *
 *   node_options_init(&o);
 *   node_options_flags(&o, argc, argv, &error)       --name VALUE, --name=VALUE, --no-name
 *   node_options_environment(&o, environ, &error)    GRAPEVINE_NAME
 *   node_options_set(&o, key, value, origin, &error) for each setting of the file
 *   node_options_finish(&o, &error)                  defaults that follow others, contradictions
 *
 * in any order: a setting keeps the value of the strongest source that named it (flag, then
 * environment, then file, then default). Weaker ones are still checked.
 *
 * Errors are ERR_SYNTAX (no such setting, malformed), ERR_RANGE or ERR_NOMEM, and `error` is then
 * one line that names the setting, the value, where it came from and what would be right.
 *
 * Pure: the environment and the arguments come in as arguments; files are read by the shell.
 */
#ifndef NODE_SETTINGS_OPTIONS_H
#define NODE_SETTINGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/slice.h"
#include "node/replica/labels.h"
#include "node/replica/terms.h"
#include "node/settings/address.h"

enum {
    NODE_OPTIONS_MAX = 128,  /* rows of the table */
    NODE_STRINGS_MAX = 1024, /* entries of a list */
    NODE_VALUE_BYTES = 4096, /* of one value */
    NODE_ERROR_BYTES = 512,
    NODE_GOSSIP_PORT = 7490, /* where gossip-listen and join say none */
    NODE_SESSION_HEADERS_MAX = 16,
    NODE_SOURCES_MAX = 16,   /* of one kind, that replicas come from */
    NODE_DNS_PORT = 53,      /* where dns-server says none */
    NODE_TLS_CERTS_MAX = 32, /* certificates to choose from by name */
};

#define NODE_OPTION_AUTO UINT64_MAX /* a time that the router works out */

struct node_strings {
    char **at; /* owned, NUL-terminated */
    unsigned count;
};

enum {
    NODE_REPLICA_NAME_BYTES = NODE_HOST_BYTES + 20
}; /* with https:// and the number of a rank */

/* A replica as --replica writes it: http[s]://HOST:PORT[#LABEL=VALUE...] (node/replica/labels.h) */
struct node_replica_option {
    struct node_address address;
    char name[NODE_REPLICA_NAME_BYTES]; /* node_replica_name_of(): for router, logs, headers */
    struct node_labels labels;          /* borrows from the text */
};

/* A name as --replica-dns writes it: NAME:PORT[#LABEL=VALUE...], or _SERVICE._PROTO.NAME[#...];
 * https:// before it where the replicas speak TLS. */
struct node_dns_option {
    struct node_address address; /* port 0: the SRV records of the name say it */
    struct slice name;         /* as written, without https:// and labels; borrows from the text, */
    struct node_labels labels; /* as these do */
};

enum node_paths { NODE_PATHS_REFUSE, NODE_PATHS_PASS, NODE_PATHS_ALL };
enum node_when_all_down { NODE_ALL_DOWN_TRY, NODE_ALL_DOWN_REFUSE };
enum node_forwarded { NODE_FORWARDED_TRUST, NODE_FORWARDED_REPLACE };
enum node_kv_events { NODE_KV_EVENTS_AUTO, NODE_KV_EVENTS_OFF };
enum node_log_format { NODE_LOG_FORMAT_AUTO, NODE_LOG_FORMAT_TEXT, NODE_LOG_FORMAT_JSON };
enum node_access_log { NODE_ACCESS_LOG_OFF, NODE_ACCESS_LOG_ERRORS, NODE_ACCESS_LOG_ALL };

/* What the command line asks for; all but RUN print to stdout and end. */
enum node_command {
    NODE_COMMAND_RUN,
    NODE_COMMAND_HELP,
    NODE_COMMAND_VERSION,
    NODE_COMMAND_CHECK_CONFIG,
    NODE_COMMAND_PRINT_MARKDOWN,
};

enum node_option_source {
    NODE_SOURCE_DEFAULT,
    NODE_SOURCE_FILE,
    NODE_SOURCE_ENVIRONMENT,
    NODE_SOURCE_FLAG,
};

/* Where a value came from. `line` is 0 but for files. */
struct node_option_origin {
    enum node_option_source source;
    const char *file; /* outlives the options; NULL but for files */
    unsigned line;
};

/* Every mistake, where one after the other is to be reported. Starts with zeroes. */
struct node_options_notes {
    struct buf text; /* a line for each */
    unsigned count;
    int err; /* of the first */
};

struct node_options {
    enum node_command command;
    struct node_options_notes *notes; /* borrowed; NULL: the first mistake ends the reading */

    /* Endpoints */
    struct node_address listen;
    struct node_address admin_listen;
    char *admin_advertise;           /* HOST[:PORT], "" = found out */
    char *admin_token_file;          /* "" = none; strings are owned and never NULL after init */
    char *admin_read_token_file;     /* "" = none */
    char *probe_listen;              /* HOST:PORT, "" = no such port */
    char *client_keys_file;          /* "" = none: everybody may call */
    char *replica_api_key_file;      /* "" = none */
    struct node_strings replica;     /* each is valid for node_replica_parse() */
    struct node_strings replica_dns; /* each is valid for node_dns_parse() */
    uint64_t replica_dns_interval_ms;
    struct node_strings dns_server; /* IP[:PORT] each */
    struct node_strings replica_file;
    struct node_strings replica_kubernetes; /* each is valid for discover_service_parse() */
    char *kubernetes_credentials;           /* folder of the service account */
    uint64_t replicas_max;                  /* names in use at one time */
    char *config;                           /* path of the YAML file, "" = none */

    /* TLS; paths are "" = none */
    struct node_strings tls_cert;
    struct node_strings tls_key; /* as many, or none: they are in the same files */
    char *tls_ticket_key_file;
    uint64_t tls_handshake_timeout_ms;
    char *replica_ca_file;
    char *replica_cert;
    char *replica_key;
    char *replica_tls_name; /* "" = the host of each */
    char *admin_tls_cert;
    char *admin_tls_key;

    /* Cluster */
    char *gossip_listen; /* HOST:PORT, "" = not said; see node_options_gossip() */
    struct node_strings join;
    char *cluster_key_file; /* "" = none */
    char *cluster_name;     /* "" = none; one of the things that keys are made of */
    bool insecure_gossip;
    char *gossip_advertise;    /* HOST:PORT, "" = found out by peers */
    char *node_name;           /* "" = hostname:port */
    uint64_t gossip_bandwidth; /* bytes a second */
    uint64_t gossip_ring_bytes;
    uint64_t gossip_flush_ms;    /* 0: by the size of the cluster */
    uint64_t gossip_relay_above; /* members */

    /* Routing */
    unsigned policy;                 /* index into node_policy_names */
    struct node_strings model_alias; /* node/settings/aliases.h */
    char *session_header;
    uint64_t index_bytes;
    uint64_t generation_ms;
    uint64_t ttl_ms;
    double displaced_weight;
    double decode_weight;
    uint64_t reuse_horizon_ms;
    double near_tie;
    uint64_t cache_tokens;
    double prefill_rate; /* tokens per second */
    uint64_t decode_step_ms;
    double bytes_per_token;
    double load_bound;
    uint64_t seed; /* 0: a random one */

    /* Front door */
    unsigned other_paths;          /* enum node_paths */
    unsigned engine_control_paths; /* enum node_paths; ALL: to all replicas */
    unsigned engine_fields;        /* enum node_paths */
    bool replica_header;
    bool ask_usage;
    uint32_t forwarded_headers; /* enum node_forwarded */
    char *cors_allow_origin;    /* "*", "off" or "" = off, or origins separated by commas */
    uint32_t host_header;       /* 0: of the replica, 1: of the client */
    uint32_t client_half_close; /* 0: such a client is gone, 1: it gets its answer */
    uint64_t head_bytes_max;
    uint64_t headers_max;
    uint64_t body_bytes_max;
    uint64_t buffered_bytes_max;
    uint64_t connections_max;
    uint64_t connections_per_client_max; /* 0: no limit */
    bool proxy_protocol;
    struct node_strings proxy_protocol_from; /* each is valid for ip_net_parse() */
    bool reuse_port;                         /* of the client port */
    uint64_t client_idle_timeout_ms;         /* timeouts: 0 = off */
    uint64_t client_head_timeout_ms;
    uint64_t client_body_timeout_ms;
    uint64_t client_body_total_timeout_ms;
    uint64_t client_body_rate_min; /* bytes a second; 0: off */
    uint64_t client_write_timeout_ms;

    /* Replicas */
    uint64_t upstream_connect_timeout_ms;
    uint64_t upstream_first_token_timeout_ms; /* or NODE_OPTION_AUTO */
    uint64_t upstream_whole_answer_timeout_ms;
    uint64_t upstream_idle_timeout_ms; /* or NODE_OPTION_AUTO */
    uint64_t request_timeout_ms;
    uint64_t upstream_keepalive_ms;
    uint64_t upstream_connections_max; /* per replica */
    uint64_t replica_requests_max;     /* of this router; 0: no limit */
    uint64_t requests_max;
    uint64_t queue_max;
    uint64_t queue_timeout_ms;
    uint64_t retries_max;
    double retry_budget;
    uint64_t stream_hold_ms;
    bool poison_retry;
    uint64_t health_interval_ms;
    uint64_t health_timeout_ms;
    uint64_t health_timeout_sglang_ms;
    uint64_t health_failures;
    char *health_path;
    char *health_statuses;  /* node/settings/statuses.h */
    unsigned when_all_down; /* enum node_when_all_down */
    uint64_t watchdog_ms;   /* 0: off */
    uint64_t stall_cut_ms;  /* 0: never */
    uint64_t scrape_interval_ms;
    unsigned kv_events;     /* enum node_kv_events */
    char *kv_events_listen; /* HOST:PORT, "" = no such port */
    double kv_ask;          /* % of the prompts' bytes whose tokens engines are asked for */

    /* Operation */
    unsigned log_level;  /* enum log_level */
    unsigned log_format; /* enum node_log_format */
    unsigned access_log; /* enum node_access_log */
    uint64_t drain_delay_ms;
    uint64_t drain_timeout_ms;
    char *trace_endpoint; /* URL, "" = no traces */
    double trace_sample;  /* of requests without a traceparent, 0 to 1 */
    char *state_dir;      /* "" = nothing is kept */
    bool core_dumps;

    /* By row of the table; for --check-config and for precedence. */
    struct node_option_origin origins[NODE_OPTIONS_MAX];
};

struct node_options_error {
    char text[NODE_ERROR_BYTES]; /* one line without newline */
};

enum node_option_type {
    NODE_TYPE_ADDRESS, /* struct node_address */
    NODE_TYPE_BOOL,    /* bool */
    NODE_TYPE_INTEGER, /* uint64_t */
    NODE_TYPE_MS,      /* uint64_t; "500ms", "4s", "1.5m", "1h", or a bare 0 */
    NODE_TYPE_BYTES,   /* uint64_t; "64MiB" and "64M" are the same; "64MB" counts in thousands */
    NODE_TYPE_FLOAT,   /* double */
    NODE_TYPE_CHOICE,  /* unsigned: index into choices */
    NODE_TYPE_STRING,  /* char *, owned */
    NODE_TYPE_PATH,    /* char *, owned */
    NODE_TYPE_LIST, /* struct node_strings; repeat the flag, separate by comma or YAML sequence */
};

struct node_option {
    const char
        *name; /* "client-idle-timeout"; GRAPEVINE_CLIENT_IDLE_TIMEOUT; the key in the file */
    enum node_option_type type;
    size_t offset;              /* in struct node_options */
    const char *fallback;       /* the default as text */
    double min;                 /* of numbers; ms and bytes in their base unit */
    double max;                 /* 0: no bound */
    bool automatic;             /* of MS: "auto", which is NODE_OPTION_AUTO */
    bool live;                  /* takes effect while the router runs (node/settings/change.h) */
    const char *const *choices; /* NULL-terminated names; CHOICE only */
    const char *(*wrong)(struct slice value); /* NULL, or says what is wrong (NULL = nothing) */
    const char *unit;  /* what stands for the value in --help: "HOST:PORT", "TIME", ... */
    const char *group; /* that begins with this row; NULL: that of the row before */
    const char *help;  /* one line in --help, lower case, no full stop */
    const char *more;  /* sentences behind it in the table of docs/options.md, or NULL */
    const char *below; /* more sentences, below that table, or NULL */
};

/* The i-th row; NULL: there are no more. */
const struct node_option *node_option_at(unsigned i);

/* Index of the row of that name, or ERR_NOT_FOUND. */
MUST_USE int node_option_find(struct slice name);

/* The mistake `err`, which `error` describes, is noted where o->notes are kept: then 0, and the
 * reading goes on. Else it is returned. */
MUST_USE int node_options_note(const struct node_options *o, const struct node_options_error *error,
                               int err);

/* All defaults. ERR_NOMEM. Free what it owns with node_options_free(), after errors too. */
MUST_USE int node_options_init(struct node_options *o);
void node_options_free(struct node_options *o);

/* One setting by its name. A stronger source replaces a list, the same source adds to it. */
MUST_USE int node_options_set(struct node_options *o, struct slice name, struct slice value,
                              struct node_option_origin origin, struct node_options_error *error);

/* argv[0] is skipped. Also sets o->command. */
MUST_USE int node_options_flags(struct node_options *o, int argc, char *const *argv,
                                struct node_options_error *error);

/* `environment` is NULL-terminated "NAME=value". Only GRAPEVINE_* is looked at, an empty value
 * counts as none, and the variables that Kubernetes makes for a service of the name "grapevine"
 * (GRAPEVINE_PORT, GRAPEVINE_SERVICE_HOST, ...) are not ours. */
MUST_USE int node_options_environment(struct node_options *o, char *const *environment,
                                      struct node_options_error *error);

/* What no single setting shows: contradictions, and no replica at all. Defaults that follow other
 * settings are set here: a generation that was not given grows with the TTL. */
MUST_USE int node_options_finish(struct node_options *o, struct node_options_error *error);

/* Of node_options_finish(): contradictions between settings of TLS (options_tls.c). */
MUST_USE int node_options_tls_check(const struct node_options *o, struct node_options_error *error);
/* Of model-alias: contradictions between its entries, and with replicas (options_aliases.c). */
MUST_USE int node_options_aliases_check(const struct node_options *o,
                                        struct node_options_error *error);
/* Of ports: the settings of two of its own that cannot be opened both (options_ports.c). */
bool node_options_ports_clash(const struct node_options *o, const char **port, const char **other);
/* The setting of that at which a connection to `to` ends; NULL: it goes elsewhere. */
const char *node_options_port_at(const struct node_options *o, const struct node_address *to);

/* ERR_SYNTAX, or the parsed replica. What passed node_options_set() always parses. */
MUST_USE int node_replica_parse(struct slice text, struct node_replica_option *out);
/* The name of a replica at that address: "host:port", IPv6 in brackets, or "https://host:port".
 * `out` has NODE_REPLICA_NAME_BYTES. */
void node_replica_name_of(const struct node_address *address, char *out);
/* NULL, or what is wrong with a replica and would be right. */
const char *node_replica_wrong(struct slice text);
/* Of such a text, for messages: what stands from the last @ on, for a password may stand before it;
 * all of it where there is none. */
struct slice node_replica_shown(struct slice text);
/* Whether a replica may be called so: HOST:PORT or https://HOST:PORT, behind it a router if it is
 * local (node/replica/local.h), and a rank or not (node/replica/rank.h). What a member of the
 * cluster calls otherwise is refused. */
bool node_replica_is_name(struct slice name);
/* Where the replica of that name is. ERR_SYNTAX: it is no name. */
MUST_USE int node_replica_address(struct slice name, struct node_address *out);
/* Whether the settings show that routers are on several machines: the address of a seed, or of
 * this router's gossip, is not on the loopback. Names say nothing. */
bool node_options_apart(const struct node_options *o);
/* NULL, or what is wrong with a name to look up; what passed node_options_set() always parses. */
const char *node_dns_parse(struct slice text, struct node_dns_option *out);

/* Whether this router is one of several (gossip-listen or join was given), and where it listens to
 * the others then. */
bool node_options_gossip(const struct node_options *o, struct node_address *listen);

/* For --help, --check-config and docs/options.md (print.c). ERR_NOMEM. */
MUST_USE int node_options_help(struct buf *out);
MUST_USE int node_options_effective(const struct node_options *o, struct buf *out);
/* The settings of `wanted` that differ and wait for a restart, as comments; nothing where there are
 * none. */
MUST_USE int node_options_waiting(const struct node_options *o, const struct node_options *wanted,
                                  struct buf *out);
MUST_USE int node_options_markdown(struct buf *out);

/* The value of a row as text that would set it again ("4s", "64MiB"). */
MUST_USE int node_option_format(const struct node_options *o, const struct node_option *row,
                                struct buf *out);

#endif
