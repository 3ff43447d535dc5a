#include "node/io/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/config.h"
#include "node/io/config_yaml.h"
#include "node/io/files.h"
#include "node/io/shell.h"
#include "node/io/sources.h"
#include "node/io/watch_file.h"
#include "node/settings/change.h"

struct reload {
    struct node_options *in_force;
    int argc;
    char *const *argv;
    char *const *environment;
    struct io_watch watch;
    struct node_options fresh;  /* made, but not taken yet; all zero: none */
    struct node_options wanted; /* the last loaded; all zero: none since the start */
    struct shell *shell;
    bool began;       /* the first reading is over */
    unsigned waiting; /* number of changed settings not in force before a restart */
};

/* Runs in the thread. Loads the settings from the file's present text. If the file has changed
 * since the watch read it, the next reading finds a change. */
static int make(void *context)
{
    struct reload *r = context;
    struct node_options_error error;
    int err = io_config_load(&r->fresh, r->argc, r->argv, r->environment, &error);
    if (err == 0)
        return 0;
    (void)snprintf(r->watch.message, IO_FILE_MESSAGE, "%s", error.text);
    node_options_free(&r->fresh);
    return err;
}

static void on_differs(void *context, const struct node_option *row, struct slice before,
                       struct slice now)
{
    struct shell *shell = context;
    if (row->live)
        log_event(shell->log, LOG_INFO, "setting_changed", LOG_CSTR("setting", row->name),
                  LOG_STR("before", before), LOG_STR("now", now));
    else
        log_event(shell->log, LOG_WARN, "setting_waits", LOG_CSTR("setting", row->name),
                  LOG_STR("in_force", before), LOG_STR("wanted", now),
                  LOG_CSTR("want", "restart the router: this setting is read only at the start"));
}

static bool replicas_differ(const struct reload *r)
{
    int row = node_option_find(SLICE("replica"));
    bool same = true;
    CHECK(row >= 0);
    return node_option_same(r->in_force, &r->fresh, node_option_at((unsigned)row), &same) == 0 &&
           !same;
}

/* Applies settings that were loaded and are valid. */
static int follow(struct reload *r, struct node_options_changes *changes)
{
    struct shell *shell = r->shell;
    struct node_options_told told = {.differs = on_differs, .context = shell};
    struct io_files files;
    unsigned level = r->in_force->log_level;
    bool replicas = replicas_differ(r);
    io_files_fit(&r->fresh, &files); /* lowers connections-max to the limit on open files, as at the
                                      * start */
    int err = node_options_change(r->in_force, &r->fresh, &told, changes);
    if (err != 0)
        return err;
    if (r->in_force->log_level != level)
        shell->log->level = (enum log_level)r->in_force->log_level;
    if (changes->changed > 0) {
        io_config_warn(r->in_force, shell->log);
        node_renew(shell->node, r->in_force, shell_now_ms(shell));
        for (unsigned i = 0; i < ARRAY_LEN(shell->listeners); i++)
            listener_renew(&shell->listeners[i]);
    }
    if (replicas)
        sources_renew(shell);
    return 0;
}

/* Keeps the loaded settings, so that the admin port can show settings not in force before a
 * restart. */
static void keep_wanted(struct reload *r)
{
    node_options_free(&r->wanted);
    r->wanted = r->fresh;
    r->fresh = (struct node_options){0};
    admin_options_wanted(r->shell->admin, &r->wanted);
}

bool reload_refused(const struct reload *r)
{
    return r != NULL && r->watch.told[0] != '\0';
}

unsigned reload_waiting(const struct reload *r)
{
    return r != NULL ? r->waiting : 0;
}

static void take(void *context)
{
    struct reload *r = context;
    struct io_watch *w = &r->watch;
    struct node_options_changes changes = {.waiting = w->made ? 0 : r->waiting};
    bool tells = r->began || w->answers; /* the first reading repeats the reading at the start, so
                                          * tells nothing unless SIGHUP requested it */
    if (w->made && (w->err = follow(r, &changes)) != 0)
        (void)snprintf(w->message, IO_FILE_MESSAGE, "%s", err_text(w->err));
    if (w->made)
        keep_wanted(r);
    r->began = true;
    /* Shown until the file is usable again. */
    admin_options_refused(r->shell->admin, w->err != 0 ? w->told : NULL);
    if (w->err != 0)
        return;
    r->waiting = changes.waiting;
    if (w->mended || (w->made && (tells || changes.changed + changes.waiting > 0)))
        log_event(w->all->log, LOG_INFO, "config_reloaded", LOG_CSTR("file", r->in_force->config),
                  LOG_CSTR("by", w->answers ? "signal" : "change"),
                  LOG_UINT("changed", changes.changed),
                  LOG_UINT("restart_needed", changes.waiting));
}

bool reload_ask(struct reload *r)
{
    return r != NULL && io_watch_ask(&r->watch);
}

bool reload_is_asked(const struct reload *r)
{
    return r != NULL && io_watch_is_asked(&r->watch);
}

int reload_open(struct shell *shell, struct node_options *in_force, int argc, char *const *argv,
                char *const *environment)
{
    struct stat status;
    if (in_force->config[0] == '\0' || stat(in_force->config, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return ERR_OK;
    struct reload *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->shell = shell;
    r->in_force = in_force;
    r->argc = argc;
    r->argv = argv;
    r->environment = environment;
    r->watch = (struct io_watch){
        .all = &shell->watches,
        .refused = "config_refused",
        .make = make,
        .taken = take,
        .context = r,
        .count = 1,
        .files[0] = io_config_file(in_force->config),
    };
    io_watch_start(&r->watch);
    shell->reload = r;
    return ERR_OK;
}

void reload_free(struct reload *r)
{
    if (r == NULL)
        return;
    io_watch_free(&r->watch);
    node_options_free(&r->fresh);
    node_options_free(&r->wanted);
    free(r);
}
