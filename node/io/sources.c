#include "node/io/sources.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/discover/discover.h"
#include "node/io/replica_dns.h"
#include "node/io/replica_file.h"
#include "node/io/replica_kubernetes.h"
#include "node/io/shell.h"

struct sources {
    struct replica_dns *dns;               /* all --replica-dns; NULL: none */
    struct replica_kubernetes *kubernetes; /* all --replica-kubernetes; NULL: none */
    int settings;                          /* the source of all --replica; -1: none */
    unsigned file_count;
    struct replica_file *files[NODE_SOURCES_MAX];
};

/* Takes the replicas of --replica. If a name is too long, logs the name and refuses the whole list
 * with ERR_RANGE. */
static int take_settings(struct shell *shell)
{
    const struct node_strings *list = &shell->options->replica;
    struct node_replica_option *replicas = calloc(list->count + 1, sizeof *replicas);
    struct discover_entry *entries = calloc(list->count + 1, sizeof *entries);
    int err = replicas != NULL && entries != NULL ? ERR_OK : ERR_NOMEM;
    for (unsigned i = 0; i < list->count && err == ERR_OK; i++) {
        err = node_replica_parse(slice_of_cstr(list->at[i]), &replicas[i]);
        CHECK(err == ERR_OK);
        struct slice name = slice_of_cstr(replicas[i].name);
        entries[i] = (struct discover_entry){.name = name, .labels = replicas[i].labels};
        if (name.len > NODE_NAME_MAX) {
            err = ERR_RANGE;
            log_event(shell->log, LOG_ERROR, "replica_refused", LOG_STR("replica", name),
                      LOG_CSTR("error", err_text(err)));
        }
    }
    struct discover *d = shell->node->discover;
    struct sources *s = shell->sources;
    if (err == ERR_OK && s->settings < 0)
        err = s->settings = discover_source(d, "settings", SLICE(""));
    if (err >= 0) {
        discover_hint(d, (unsigned)s->settings, "the settings no longer name a replica");
        err = discover_list(d, (unsigned)s->settings, entries, list->count, shell_now_ms(shell));
    }
    free(entries);
    free(replicas);
    return err;
}

static int start_files(struct shell *shell)
{
    struct sources *s = shell->sources;
    const struct node_strings *list = &shell->options->replica_file;
    for (unsigned i = 0; i < list->count; i++) {
        int err =
            replica_file_open(&s->files[i], list->at[i], shell->node->discover, &shell->watches);
        if (err != ERR_OK)
            return err;
        s->file_count++;
    }
    return ERR_OK;
}

int sources_start(struct shell *shell)
{
    const struct node_options *options = shell->options;
    shell->sources = calloc(1, sizeof *shell->sources);
    int err = shell->sources != NULL ? ERR_OK : ERR_NOMEM;
    if (err == ERR_OK)
        shell->sources->settings = -1;
    if (err == ERR_OK && options->replica.count > 0)
        err = take_settings(shell);
    if (err == ERR_OK)
        err = start_files(shell);
    if (err == ERR_OK && options->replica_dns.count > 0)
        err = replica_dns_open(&shell->sources->dns, shell->loop, options, shell->node->discover);
    bool said = false; /* the reason is already logged */
    if (err == ERR_OK && options->replica_kubernetes.count > 0) {
        err = replica_kubernetes_open(&shell->sources->kubernetes, shell->loop, options,
                                      shell->node->discover, shell->log);
        said = err == ERR_NOT_FOUND || err == ERR_EXISTS;
    }
    if (err != ERR_OK && !said)
        log_event(shell->log, LOG_ERROR, "sources_refused", LOG_CSTR("error", err_text(err)));
    return err;
}

void sources_renew(struct shell *shell)
{
    int err = take_settings(shell);
    if (err != ERR_OK)
        log_event(shell->log, LOG_ERROR, "sources_refused", LOG_CSTR("error", err_text(err)));
}

void sources_tick(struct shell *shell)
{
    struct sources *s = shell->sources;
    if (s->dns != NULL)
        replica_dns_tick(s->dns, shell_now_ms(shell));
}

uint64_t sources_due_ms(const struct shell *shell)
{
    const struct replica_dns *dns = shell->sources->dns;
    return dns != NULL ? replica_dns_due_ms(dns) : UINT64_MAX;
}

void sources_stop(struct shell *shell)
{
    struct sources *s = shell->sources;
    if (s == NULL)
        return;
    if (s->dns != NULL)
        replica_dns_stop(s->dns);
    if (s->kubernetes != NULL)
        replica_kubernetes_stop(s->kubernetes);
}

void sources_free(struct shell *shell)
{
    struct sources *s = shell->sources;
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->file_count; i++)
        replica_file_free(s->files[i]);
    replica_dns_free(s->dns);
    replica_kubernetes_free(s->kubernetes);
    free(s);
    shell->sources = NULL;
}
