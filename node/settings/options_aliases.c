/* Checks of model-alias across entries. */
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/settings/aliases.h"
#include "node/settings/value.h"

enum { SHOWN = 80 }; /* bytes shown of an entry */

static int refuse(const struct node_options *o, struct node_options_error *error,
                  struct slice entry, struct slice reason)
{
    static const char name[] = "model-alias";
    struct buf line = {0};
    int index = node_option_find(SLICE("model-alias"));
    CHECK(index >= 0);
    DISCARD(buf_printf(&line, "bad setting %s = \"%.*s\" (", name,
                       entry.len > SHOWN ? SHOWN : (int)entry.len, entry.at));
    DISCARD(node_option_origin_append(&line, name, o->origins[index]));
    DISCARD(buf_printf(&line, "): %.*s", SLICE_ARG(reason)));
    (void)slice_to_cstr(buf_slice(&line), error->text, sizeof error->text);
    buf_free(&line);
    return ERR_RANGE;
}

/* Returns a replica in the settings whose label says that it serves this model; NULL: none. */
static const char *served_by(const struct node_options *o, struct slice model)
{
    for (unsigned i = 0; i < o->replica.count; i++) {
        struct node_replica_option replica;
        CHECK(node_replica_parse(slice_of_cstr(o->replica.at[i]), &replica) == 0);
        if (replica.labels.model.len > 0 && slice_equal(replica.labels.model, model))
            return o->replica.at[i];
    }
    return NULL;
}

static int check_replicas(const struct node_options *o, const struct node_aliases *aliases,
                          struct node_options_error *error)
{
    for (unsigned i = 0; i < aliases->count; i++) {
        const char *by = served_by(o, aliases->at[i].name);
        if (by == NULL)
            continue;
        struct buf reason = {0};
        DISCARD(buf_printf(
            &reason, "replica %s serves a model of that name, want another name for the alias",
            by));
        int err = refuse(o, error, aliases->at[i].name, buf_slice(&reason));
        buf_free(&reason);
        return err;
    }
    return ERR_OK;
}

int node_options_aliases_check(const struct node_options *o, struct node_options_error *error)
{
    struct node_aliases aliases;
    struct node_alias_fault fault;
    int err = node_aliases_make(&aliases, &o->model_alias, &fault);
    if (err == ERR_RANGE)
        return refuse(o, error, slice_of_cstr(o->model_alias.at[fault.entry]),
                      slice_of_cstr(fault.reason));
    if (err != ERR_OK)
        (void)snprintf(error->text, sizeof error->text, "%s", err_text(err));
    else
        err = check_replicas(o, &aliases, error);
    node_aliases_free(&aliases);
    return err;
}
