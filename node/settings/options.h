/* Every setting of grapevine, from a single table: flags, environment, YAML file, --help,
 * --check-config and docs/options.md all follow from the table's rows (table.c).
 *
 * Driven by the daemon (or in a single call by io_config_load() of node/io/config.h):
 *
 *   node_options_init(&o);
 *   node_options_flags(&o, argc, argv, &error)       --name VALUE, --name=VALUE, --no-name
 *   node_options_environment(&o, environ, &error)    GRAPEVINE_NAME
 *   node_options_set(&o, key, value, origin, &error) for each setting of the file
 *   node_options_finish(&o, &error)                  dependent defaults, contradictions
 *
 * The sources may be read in any order: a setting keeps the value of the strongest source that
 * gives one (flag, then environment, then file, then default). Weaker values are still checked.
 *
 * Errors are ERR_SYNTAX (no such setting, malformed), ERR_RANGE, ERR_EXISTS (an entry twice),
 * ERR_FULL or ERR_LIMIT (too many entries), or ERR_NOMEM. `error` is then a line with the setting,
 * the value, the source and a correct form.
 *
 * Pure: the environment and the arguments are parameters; the shell reads files. */
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
    NODE_VALUE_BYTES = 4096, /* bytes of a value */
    NODE_ERROR_BYTES = 512,
    NODE_GOSSIP_PORT = 7490, /* default of gossip-listen and join */
    NODE_SESSION_HEADERS_MAX = 16,
    NODE_SOURCES_MAX = 16,   /* limit for each: DNS names, files, Kubernetes services */
    NODE_DNS_PORT = 53,      /* default of dns-server */
    NODE_TLS_CERTS_MAX = 32, /* certificates in tls-cert */
};

#define NODE_OPTION_AUTO UINT64_MAX /* a time chosen by the router */

struct node_strings {
    char **at; /* owned, NUL-terminated */
    unsigned count;
};

enum { NODE_REPLICA_NAME_BYTES = NODE_HOST_BYTES + 20 }; /* with https:// and a rank's number */

/* A replica as written in --replica: http[s]://HOST:PORT[#LABEL=VALUE...]
 * (node/replica/labels.h) */
struct node_replica_option {
    struct node_address address;
    char name[NODE_REPLICA_NAME_BYTES]; /* node_replica_name_of(): for router, logs, headers */
    struct node_labels labels;          /* borrows from the text */
};

/* A name as written in --replica-dns: NAME:PORT[#LABEL=VALUE...], or _SERVICE._PROTO.NAME[#...];
 * with https:// in front if the replicas use TLS. */
struct node_dns_option {
    struct node_address address; /* port 0: from the name's SRV records */
    struct slice name;         /* as written, without https:// and labels; borrows from the text */
    struct node_labels labels; /* borrow from the text */
};

enum node_paths { NODE_PATHS_REFUSE, NODE_PATHS_PASS, NODE_PATHS_ALL };
enum node_when_all_down { NODE_ALL_DOWN_TRY, NODE_ALL_DOWN_REFUSE };
enum node_forwarded { NODE_FORWARDED_TRUST, NODE_FORWARDED_REPLACE };
enum node_kv_events { NODE_KV_EVENTS_AUTO, NODE_KV_EVENTS_OFF };
enum node_log_format { NODE_LOG_FORMAT_AUTO, NODE_LOG_FORMAT_TEXT, NODE_LOG_FORMAT_JSON };
enum node_access_log { NODE_ACCESS_LOG_OFF, NODE_ACCESS_LOG_ERRORS, NODE_ACCESS_LOG_ALL };

/* The task given by the flags; all tasks but RUN print to stdout and exit. */
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

/* The source of a value. `line` is 0 unless the source is a file. */
struct node_option_origin {
    enum node_option_source source;
    const char *file; /* outlives the options; NULL unless the source is a file */
    unsigned line;
};

/* Collects all mistakes, for reports of more than the first. Starts zeroed. */
struct node_options_notes {
    struct buf text; /* a line for each mistake */
    unsigned count;
    int err; /* error of the first mistake */
};

/* In --check-config, follows the source of a lowered setting. The configured value, ": " and the
 * reason come next. */
#define NODE_LOWERED_MARK "; lowered from "

/* In --check-config, follows the source of a setting without effect. The reason comes next. */
#define NODE_IGNORED_MARK "; ignored: "

/* A setting whose number was lowered at the start to the machine's limit. */
struct node_option_lowered {
    const char *name; /* name of the setting; NULL: none was lowered */
    uint64_t configured;
    char why[96];
};

struct node_options {
    enum node_command command;
    struct node_options_notes *notes; /* borrowed; NULL: the first mistake ends the reading */

    /* Endpoints */
    struct node_address listen;
    struct node_address admin_listen;
    char *admin_advertise;           /* HOST[:PORT], "" = detected */
    char *admin_token_file;          /* "" = none; strings are owned and never NULL after init */
    char *admin_read_token_file;     /* "" = none */
    char *probe_listen;              /* HOST:PORT, "" = no such port */
    char *client_keys_file;          /* "" = none: no key is required */
    char *replica_api_key_file;      /* "" = none */
    struct node_strings replica;     /* each valid for node_replica_parse() */
    struct node_strings replica_dns; /* each valid for node_dns_parse() */
    uint64_t replica_dns_interval_ms;
    struct node_strings dns_server; /* each IP[:PORT] */
    struct node_strings replica_file;
    struct node_strings replica_kubernetes; /* each valid for discover_service_parse() */
    char *kubernetes_credentials;           /* the service account's folder */
    uint64_t replicas_max;                  /* replica names in use at a time */
    char *config;                           /* path of the YAML file, "" = none */

    /* TLS; paths are "" = none */
    struct node_strings tls_cert;
    struct node_strings tls_key; /* as many as tls_cert; none: the keys are in its files */
    char *tls_ticket_key_file;
    uint64_t tls_handshake_timeout_ms;
    char *replica_ca_file;
    char *replica_cert;
    char *replica_key;
    char *replica_tls_name; /* "" = each replica's host */
    char *admin_tls_cert;
    char *admin_tls_key;

    /* Cluster */
    char *gossip_listen; /* HOST:PORT, "" = not given; see node_options_gossip() */
    struct node_strings join;
    char *cluster_key_file; /* "" = none */
    char *cluster_name;     /* "" = none; part of the key derivation */
    bool insecure_gossip;
    char *gossip_advertise;    /* HOST:PORT, "" = detected by peers */
    char *node_name;           /* "" = hostname:port */
    uint64_t gossip_bandwidth; /* bytes a second */
    uint64_t gossip_ring_bytes;
    uint64_t gossip_flush_ms;    /* 0: depends on the size of the cluster */
    uint64_t gossip_relay_above; /* number of members above which some relay */

    /* Routing */
    unsigned policy; /* index into node_policy_names */
    bool shadow;
    unsigned plain_policy; /* index into node_policy_plain_names */
    double control_share;
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
    uint64_t seed; /* 0: random */

    /* Front door */
    unsigned other_paths;          /* enum node_paths */
    unsigned engine_control_paths; /* enum node_paths; ALL: a request goes to all replicas */
    unsigned engine_fields;        /* enum node_paths */
    bool replica_header;
    bool ask_usage;
    uint32_t forwarded_headers; /* enum node_forwarded */
    char *cors_allow_origin;    /* "*", "off" or "" = off, or origins separated by commas */
    uint32_t host_header;       /* 0: the replica's host, 1: the client's header */
    uint32_t client_half_close; /* 0: a half-closed client is gone, 1: that client still gets the
                                 * answer */
    uint64_t head_bytes_max;
    uint64_t headers_max;
    uint64_t body_bytes_max;
    uint64_t buffered_bytes_max;
    uint64_t connections_max;
    uint64_t connections_per_client_max; /* 0: no limit */
    bool proxy_protocol;
    struct node_strings proxy_protocol_from; /* each valid for ip_net_parse() */
    bool reuse_port;                         /* SO_REUSEPORT on the client port */
    uint64_t client_idle_timeout_ms;         /* 0: off, as in all client timeouts below */
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
    uint64_t replica_requests_max;     /* this router's requests per replica; 0: no limit */
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
    double kv_ask;          /* % of the prompts' bytes for which to ask engines for the tokens */

    /* Operation */
    unsigned log_level;  /* enum log_level */
    unsigned log_format; /* enum node_log_format */
    unsigned access_log; /* enum node_access_log */
    uint64_t drain_delay_ms;
    uint64_t drain_timeout_ms;
    char *trace_endpoint; /* URL, "" = no traces */
    double trace_sample;  /* share of requests without a traceparent to record, 0 to 1 */
    char *state_dir;      /* "" = no state is kept */
    bool core_dumps;

    /* The source of each value, by table row; for --check-config and for precedence. */
    struct node_option_origin origins[NODE_OPTIONS_MAX];
    struct node_option_lowered lowered; /* connections-max, lowered by the limit of open files */
};

struct node_options_error {
    char text[NODE_ERROR_BYTES]; /* a single line without newline */
};

enum node_option_type {
    NODE_TYPE_ADDRESS, /* struct node_address */
    NODE_TYPE_BOOL,    /* bool */
    NODE_TYPE_INTEGER, /* uint64_t */
    NODE_TYPE_MS,      /* uint64_t; "500ms", "4s", "1.5m", "1h", or a bare 0 */
    NODE_TYPE_BYTES,   /* uint64_t; "64MiB" and "64M" are equal; "64MB" is decimal */
    NODE_TYPE_FLOAT,   /* double */
    NODE_TYPE_CHOICE,  /* unsigned: index into choices */
    NODE_TYPE_STRING,  /* char *, owned */
    NODE_TYPE_PATH,    /* char *, owned */
    NODE_TYPE_LIST,    /* struct node_strings; repeated flag, commas or YAML sequence */
};

struct node_option {
    const char *name; /* "client-idle-timeout"; GRAPEVINE_CLIENT_IDLE_TIMEOUT; key in the file */
    enum node_option_type type;
    size_t offset;              /* in struct node_options */
    const char *fallback;       /* the default as text */
    double min;                 /* bounds of numbers; times in ms, sizes in bytes */
    double max;                 /* 0: no upper bound */
    bool automatic;             /* for MS: permits "auto", which is NODE_OPTION_AUTO */
    bool live;                  /* takes effect while the router runs (node/settings/change.h) */
    const char *const *choices; /* NULL-terminated names; CHOICE only */
    const char *(*wrong)(struct slice value); /* returns the error; NULL: none. May be NULL. */
    const char *unit;  /* placeholder for the value in --help: "HOST:PORT", "TIME", ... */
    const char *group; /* name of the group that this row begins; NULL: the group continues */
    const char *help;  /* a line in --help, lower case, no full stop */
    const char *more;  /* further sentences in docs/options.md and the man page, or NULL */
};

/* Returns the i-th row; NULL: no more rows. */
const struct node_option *node_option_at(unsigned i);

/* Returns the index of the row with this name, or ERR_NOT_FOUND. */
MUST_USE int node_option_find(struct slice name);

/* Records the mistake `err`, described by `error`, in o->notes and returns 0, so that reading goes
 * on. Without notes returns `err`. */
MUST_USE int node_options_note(const struct node_options *o, const struct node_options_error *error,
                               int err);

/* Sets all defaults. ERR_NOMEM. Call node_options_free() afterwards, also after errors. */
MUST_USE int node_options_init(struct node_options *o);
void node_options_free(struct node_options *o);

/* Sets a setting by name. A list from a stronger source replaces the list; the same source adds to
 * the list. A value from a weaker source is only checked. */
MUST_USE int node_options_set(struct node_options *o, struct slice name, struct slice value,
                              struct node_option_origin origin, struct node_options_error *error);

/* Reads the flags in argv, without argv[0]. Also sets o->command. */
MUST_USE int node_options_flags(struct node_options *o, int argc, char *const *argv,
                                struct node_options_error *error);

/* Reads the variables GRAPEVINE_*; an empty value counts as none. `environment` is a
 * NULL-terminated array of "NAME=value". Ignores the variables that Kubernetes makes for a service
 * named "grapevine" (GRAPEVINE_PORT, GRAPEVINE_SERVICE_HOST, ...). */
MUST_USE int node_options_environment(struct node_options *o, char *const *environment,
                                      struct node_options_error *error);

/* Checks for contradictions between settings, and for a missing source of replicas. Also sets
 * dependent defaults: an unset generation grows with the TTL. */
MUST_USE int node_options_finish(struct node_options *o, struct node_options_error *error);

/* Part of node_options_finish(): checks for contradictions between TLS settings (options_tls.c). */
MUST_USE int node_options_tls_check(const struct node_options *o, struct node_options_error *error);
/* Checks model-alias for contradictions between entries, and with replicas (options_aliases.c). */
MUST_USE int node_options_aliases_check(const struct node_options *o,
                                        struct node_options_error *error);
/* Returns why a setting has no effect beside the other settings; NULL: no such reason is known. */
const char *node_option_ignored(const struct node_options *o, const struct node_option *row);
/* True if two of this router's own ports conflict; sets `port` and `other` to their settings
 * (options_ports.c). */
bool node_options_ports_clash(const struct node_options *o, const char **port, const char **other);
/* Returns the setting of the port of this router at which a connection to `to` ends; NULL: the
 * connection ends elsewhere. */
const char *node_options_port_at(const struct node_options *o, const struct node_address *to);

/* Returns ERR_SYNTAX, or 0 and the parsed replica. Values accepted by node_options_set() always
 * parse. */
MUST_USE int node_replica_parse(struct slice text, struct node_replica_option *out);
/* Writes the name of a replica at this address: "host:port", IPv6 in brackets, or
 * "https://host:port". `out` has NODE_REPLICA_NAME_BYTES. */
void node_replica_name_of(const struct node_address *address, char *out);
/* Returns NULL, or the error in a replica with a correct form. */
const char *node_replica_wrong(struct slice text);
/* Returns the part of a replica's text to show in messages: the text from the last @ on, because a
 * password may precede the @. Without @ the whole text. */
struct slice node_replica_shown(struct slice text);
/* True for a valid name of a replica: HOST:PORT or https://HOST:PORT, with the router's name if the
 * replica is local (node/replica/local.h), and with or without a rank (node/replica/rank.h). Other
 * names from members of the cluster are refused. */
bool node_replica_is_name(struct slice name);
/* Sets `out` to the address in a replica's name. ERR_SYNTAX: not a valid name. */
MUST_USE int node_replica_address(struct slice name, struct node_address *out);
/* True if the settings show that routers run on several machines: the address of a seed, or the
 * gossip address of this router, is an IP address outside loopback. Names prove nothing. */
bool node_options_apart(const struct node_options *o);
/* Parses an entry of replica-dns. Returns NULL, or the error. Values accepted by node_options_set()
 * always parse. */
const char *node_dns_parse(struct slice text, struct node_dns_option *out);

/* Returns true if this router belongs to a cluster (gossip-listen or join was given), and sets the
 * address on which it listens to the others. */
bool node_options_gossip(const struct node_options *o, struct node_address *listen);

/* Write the text of --help, and that of --check-config, the effective settings (print.c).
 * ERR_NOMEM. */
MUST_USE int node_options_help(struct buf *out);
MUST_USE int node_options_effective(const struct node_options *o, struct buf *out);
/* Writes the settings of `wanted` that differ from `o` and wait for a restart, as comments; nothing
 * if there are none. */
MUST_USE int node_options_waiting(const struct node_options *o, const struct node_options *wanted,
                                  struct buf *out);
/* Writes docs/options.md. ERR_NOMEM. */
MUST_USE int node_options_markdown(struct buf *out);

/* Writes a row's value as a text that the row accepts ("4s", "64MiB"). */
MUST_USE int node_option_format(const struct node_options *o, const struct node_option *row,
                                struct buf *out);

#endif
