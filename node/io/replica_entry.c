/* Adds a replica to a list. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/io/replica_list.h"

int replica_list_fail(char *message, unsigned line, const char *what)
{
    (void)snprintf(message, REPLICA_LIST_MESSAGE, "%u: %s", line, what);
    return ERR_SYNTAX;
}

int replica_list_fail_at(char *message, unsigned line, const char *what, struct slice text)
{
    enum { SHOWN = 60 };
    char shown[SHOWN + 1];
    text = node_replica_shown(text);
    size_t len = text.len < SHOWN ? text.len : SHOWN;
    for (size_t i = 0; i < len; i++)
        shown[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
    shown[len] = '\0';
    (void)snprintf(message, REPLICA_LIST_MESSAGE, "%u: %s (here: %s%s%s)", line, what,
                   shown[0] == '@' ? "..." : "", shown, len < text.len ? "..." : "");
    return ERR_SYNTAX;
}

static int grow(struct replica_list *list, unsigned line, char *message)
{
    if (list->count < list->room)
        return ERR_OK;
    if (list->count == DISCOVER_ENTRIES_MAX) {
        (void)snprintf(message, REPLICA_LIST_MESSAGE, "%u: want at most %d replicas", line,
                       DISCOVER_ENTRIES_MAX);
        return ERR_LIMIT;
    }
    unsigned room = list->room == 0 ? 16 : list->room * 2;
    struct discover_entry *entries = realloc(list->entries, room * sizeof *entries);
    if (entries != NULL)
        list->entries = entries;
    struct replica_list_text *texts =
        entries != NULL ? realloc(list->texts, room * sizeof *texts) : NULL;
    if (texts == NULL) {
        (void)snprintf(message, REPLICA_LIST_MESSAGE, "out of memory");
        return ERR_NOMEM;
    }
    list->texts = texts;
    list->room = room;
    return ERR_OK;
}

int replica_list_add(struct replica_list *list, struct slice url, const struct node_labels *more,
                     unsigned line, char *message)
{
    struct node_replica_option replica;
    const char *wrong = node_replica_wrong(url);
    if (wrong != NULL)
        return replica_list_fail_at(message, line, wrong, url);
    int err = node_replica_parse(url, &replica);
    if (err == ERR_OK && strlen(replica.name) > NODE_NAME_MAX)
        return replica_list_fail(message, line, "want a shorter name of the host");
    if (err == ERR_OK)
        err = grow(list, line, message);
    if (err != ERR_OK)
        return err;
    struct node_labels labels = replica.labels;
    if (more != NULL && more->engine != NODE_ENGINE_AUTO)
        labels.engine = more->engine;
    if (more != NULL && more->weight > 0)
        labels.weight = more->weight;
    if (more != NULL && more->cache_tokens > 0)
        labels.cache_tokens = more->cache_tokens;
    if (more != NULL && more->context_tokens > 0)
        labels.context_tokens = more->context_tokens;
    if (more != NULL && more->ranks > 0)
        labels.ranks = more->ranks;
    if (more != NULL && more->adapters_on_demand)
        labels.adapters_on_demand = true;
    if (more != NULL && more->host_header != NODE_HOST_NOT_SAID)
        labels.host_header = more->host_header;
    if (more != NULL && more->model.len > 0)
        labels.model = more->model;
    if (more != NULL && more->health.len > 0)
        labels.health = more->health;
    if (more != NULL && more->kv_events.len > 0)
        labels.kv_events = more->kv_events;
    struct replica_list_text *text = &list->texts[list->count];
    memcpy(text->name, replica.name, sizeof text->name);
    (void)slice_to_cstr(labels.model, text->model, sizeof text->model);
    (void)slice_to_cstr(labels.health, text->health, sizeof text->health);
    (void)slice_to_cstr(labels.kv_events, text->kv_events, sizeof text->kv_events);
    list->entries[list->count++] = (struct discover_entry){.labels = labels};
    return ERR_OK;
}

void replica_list_free(struct replica_list *list)
{
    free(list->entries);
    free(list->texts);
    *list = (struct replica_list){0};
}
