#include "node/gvctl/command.h"

#include <string.h>

#include "base/check.h"
#include "node/gvctl/show.h"

/* A line of --help; `name` is NULL for lines that belong to the command above. A command has one
 * line with its name or more. */
static const struct {
    struct command command;
    const char *argument, *help;
} rows[] = {
    {{NULL}, NULL, "One router:"},
    {{"replicas", ADMIN_CALL_REPLICAS, show_replicas, 0},
     "",
     "what the router believes of every replica"},
    {{"sources", ADMIN_CALL_SOURCES, show_sources, 0},
     "",
     "where replicas come from: settings, files, DNS, Kubernetes"},
    {{"queue", ADMIN_CALL_QUEUE, show_queue, 0},
     "",
     "requests in flight, and those that wait: for which model, how many, how long"},
    {{"explain", ADMIN_CALL_EXPLAIN, show_explain, OF_EXPLAIN},
     "[FILE]",
     "what each replica would cost for a request body (default: stdin)"},
    {{NULL}, "--session KEY", "as if the request's session header held this"},
    {{NULL}, "--all", "as each router of the cluster sees it, side by side"},
    {{"ready", ADMIN_CALL_READYZ, NULL, 0}, "", "exit 0 if the router can serve, 1 if not"},
    {{"alive", ADMIN_CALL_HEALTHZ, NULL, 0}, "", "exit 0 if the process lives: for containers"},
    {{"metrics", ADMIN_CALL_METRICS, NULL, 0}, "", "Prometheus text"},
    {{"config", ADMIN_CALL_CONFIG, NULL, 0}, "", "the settings in force"},
    {{"log-level", ADMIN_CALL_LOG_LEVEL, NULL, 0},
     "LEVEL",
     "error, warn, info or debug, until the next start"},
    {{NULL}, NULL, "\nThe cluster:"},
    {{"members", ADMIN_CALL_MEMBERS, show_members, 0},
     "",
     "the routers, what is known of each, and what passed between"},
    {{"convergence", ADMIN_CALL_CONVERGENCE, NULL, OF_CONVERGENCE},
     "",
     "exit 0 if all routers hold the same state, 1 if not"},
    {{NULL}, "--wait", "until they do, also for a router that does not listen yet"},
    {{NULL}, "--timeout SECONDS", "how long (default 60)"},
    {{NULL}, "--members N", "and there are so many"},
    {{"drain", ADMIN_CALL_DRAIN, NULL, 0}, "HOST:PORT", "no router sends a replica anything new"},
    {{NULL}, "HOST:PORT@RANK", "nor one of its data-parallel ranks"},
    {{"undrain", ADMIN_CALL_UNDRAIN, NULL, 0}, "HOST:PORT", "undo that"},
    {{"add", ADMIN_CALL_ADD, NULL, OF_ADD},
     "HOST:PORT",
     "a replica for all routers, until it is removed"},
    {{NULL}, "--engine NAME", "vllm, sglang or other, where it is known beforehand"},
    {{"remove", ADMIN_CALL_REMOVE, NULL, 0},
     "HOST:PORT",
     "no router uses the replica, whatever its configuration says"},
    {{"poison", ADMIN_CALL_POISON, show_poison, 0},
     "",
     "requests after which engines died, as all routers hold"},
    {{"forget", ADMIN_CALL_FORGET, NULL, 0}, "HASH", "serve one of them again"},
    {{NULL}, NULL, "\nThe cluster's key (needs no router):"},
    {{"keygen", ADMIN_CALL_COUNT, NULL, OF_KEYGEN},
     "--out FILE",
     "a new one; give the file to all routers (--cluster-key-file)"},
    {{"keygen", ADMIN_CALL_COUNT, NULL, OF_KEYGEN},
     "--next FILE",
     "to change it without a pause, in three steps. Each changes FILE;"},
    {{"keygen", ADMIN_CALL_COUNT, NULL, OF_KEYGEN},
     "--promote FILE",
     "give it to all routers, which read it within a second;"},
    {{"keygen", ADMIN_CALL_COUNT, NULL, OF_KEYGEN},
     "--finish FILE",
     "wait for cluster_key_read in the log of each before the next step"},
};

static const struct command *row_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *own = rows[i].command.name;
        if (own != NULL && strcmp(name, own) == 0)
            return &rows[i].command;
    }
    return NULL;
}

/* The name under which a call that has no row here is a command all the same: its path. NULL: it is
 * none. */
static const char *plain_name(enum admin_call call)
{
    const struct admin_call_row *row = admin_call_row(call);
    bool named = row->about != NULL && (row->flags & ADMIN_PROBED) == 0;
    return named && row_find(row->path + 1) == NULL ? row->path + 1 : NULL;
}

const struct command *command_find(const char *name)
{
    static struct command plain;
    const struct command *found = row_find(name);
    for (unsigned i = 0; i < ADMIN_CALL_COUNT && found == NULL; i++) {
        const char *path = plain_name((enum admin_call)i);
        if (path != NULL && strcmp(name, path) == 0) {
            plain = (struct command){.name = path, .call = (enum admin_call)i};
            found = &plain;
        }
    }
    return found;
}

bool command_wants_argument(const struct command *c)
{
    return c->call != ADMIN_CALL_COUNT && admin_call_row(c->call)->argument != NULL;
}

bool command_reads_body(const struct command *c)
{
    return c->call != ADMIN_CALL_COUNT && (admin_call_row(c->call)->flags & ADMIN_BODY) != 0;
}

void command_usage(FILE *to)
{
    (void)fputs("usage: gvctl [--admin URL] [--token-file FILE] [--json] COMMAND [ARGUMENT] "
                "[OPTIONS]\n\n",
                to);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char what[64];
        const char *name = rows[i].command.name;
        if (rows[i].argument == NULL) {
            (void)fprintf(to, "%s\n", rows[i].help);
            continue;
        }
        (void)snprintf(what, sizeof what, "%s %s", name != NULL ? name : " ", rows[i].argument);
        (void)fprintf(to, "  %-21s %s\n", what, rows[i].help);
    }
    for (unsigned i = 0; i < ADMIN_CALL_COUNT; i++) {
        if (plain_name((enum admin_call)i) != NULL)
            (void)fprintf(to, "  %-21s %s\n", plain_name((enum admin_call)i),
                          admin_call_row((enum admin_call)i)->about);
    }
    (void)fputs(
        "\n"
        "  --admin URL           default $GRAPEVINE_ADMIN or http://127.0.0.1:9090\n"
        "  --token-file FILE     the admin token: for calls that change something, where the "
        "router\n"
        "                        has one; without it they must come from the router's machine\n"
        "  --timeout SECONDS     how long a router may take to answer (default 10)\n"
        "  --json                the answer as it came\n"
        "  --help, --version\n"
        "\n"
        "examples: gvctl explain --all request.json\n"
        "          gvctl --admin http://10.0.0.7:9090 convergence --wait --timeout 10\n",
        to);
}
