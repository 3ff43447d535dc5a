#include "node/io/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "node/io/config.h"
#include "node/io/config_yaml.h"
#include "node/io/files.h"
#include "node/io/shell.h"
#include "node/io/sources.h"
#include "node/settings/change.h"

/* What the last reading found. */
enum found {
    FOUND_NOTHING, /* there was none yet */
    FOUND_TEXT,
    FOUND_NO_FILE, /* or none that can be read */
};

struct seen {
    enum found found;
    struct buf text;
};

struct reload {
    struct node_options *in_force;
    int argc;
    char *const *argv;
    char *const *environment;
    /* Of the thread while it is busy. */
    uv_work_t work;
    struct seen seen, taken; /* by the last reading; what the settings were made of */
    struct node_options fresh;
    struct node_options_error error;
    int err;
    bool at_once; /* it need not be read twice */
    bool loaded;  /* `fresh` and `err` are of this reading */
    /* Of the loop. */
    struct shell *shell;
    bool busy, stopped;
    bool asked;                     /* SIGHUP came, and was not followed yet */
    bool answers;                   /* the reading under way follows it */
    bool began;                     /* the first reading is over */
    struct node_options *wanted;    /* what was loaded last; NULL: nothing since the start */
    char refused[NODE_ERROR_BYTES]; /* what is wrong with the file as it is; empty: nothing */
    unsigned waiting;               /* settings that wait for a restart */
    uint64_t due_ms;
};

/* --- the thread ------------------------------------------------------------------------------- */

/* A pipe has been read at the start, and would have somebody wait now. */
static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static struct seen read_file(const char *path)
{
    struct seen s = {.found = FOUND_NO_FILE};
    buf_init(&s.text, IO_CONFIG_FILE_BYTES_MAX);
    FILE *f = is_file(path) ? fopen(path, "rb") : NULL;
    if (f == NULL)
        return s;
    char chunk[4096];
    size_t n;
    int err = 0;
    while (err == 0 && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        err = buf_append(&s.text, chunk, n);
    if (err == 0 && ferror(f) == 0)
        s.found = FOUND_TEXT;
    else
        buf_clear(&s.text);
    (void)fclose(f);
    return s;
}

static bool same(const struct seen *a, const struct seen *b)
{
    return a->found == b->found && slice_equal(buf_slice(&a->text), buf_slice(&b->text));
}

static void keep(struct seen *old, struct seen *now)
{
    buf_free(&old->text);
    *old = *now;
    *now = (struct seen){0};
}

static void on_work(uv_work_t *work)
{
    struct reload *r = work->data;
    struct seen now = read_file(r->in_force->config);
    bool settled = r->at_once || same(&now, &r->seen);
    keep(&r->seen, &now);
    if (!settled || (!r->at_once && same(&r->seen, &r->taken)))
        return;
    /* Settings are made of what the file is by now: if that is not what was seen, the next reading
     * finds it changed. */
    r->err = io_config_load(&r->fresh, r->argc, r->argv, r->environment, &r->error);
    r->loaded = true;
    buf_clear(&r->taken.text);
    r->taken.found = buf_append_slice(&r->taken.text, buf_slice(&r->seen.text)) == 0
                         ? r->seen.found
                         : FOUND_NOTHING;
}

/* --- the loop --------------------------------------------------------------------------------- */

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
                  LOG_CSTR("want", "a restart: this setting is taken at the start"));
}

static bool replicas_differ(const struct reload *r)
{
    unsigned count;
    int row = node_option_find(SLICE("replica"));
    bool same = true;
    CHECK(row >= 0);
    return node_option_same(r->in_force, &r->fresh, &node_option_table(&count)[row], &same) == 0 &&
           !same;
}

/* The settings are loaded and right. */
static int follow(struct reload *r, struct node_options_changes *changes)
{
    struct shell *shell = r->shell;
    struct node_options_told told = {.differs = on_differs, .context = shell};
    struct io_files files;
    unsigned level = r->in_force->log_level;
    bool replicas = replicas_differ(r);
    io_files_fit(&r->fresh, &files); /* as at the start */
    int err = node_options_change(r->in_force, &r->fresh, &told, changes);
    if (err != 0)
        return err;
    if (r->in_force->log_level != level)
        shell->log->level = (enum log_level)r->in_force->log_level;
    if (changes->changed > 0) {
        node_renew(shell->node, r->in_force, shell_now_ms(shell));
        for (unsigned i = 0; i < ARRAY_LEN(shell->listeners); i++)
            listener_renew(&shell->listeners[i]);
    }
    if (replicas)
        sources_renew(shell);
    return 0;
}

/* What waits for a restart is shown by the admin port. */
static void keep_wanted(struct reload *r)
{
    struct node_options *wanted = malloc(sizeof *wanted);
    if (wanted == NULL) {
        node_options_free(&r->fresh);
        return;
    }
    *wanted = r->fresh;
    admin_options_wanted(r->shell->admin, wanted);
    if (r->wanted != NULL)
        node_options_free(r->wanted);
    free(r->wanted);
    r->wanted = wanted;
}

/* Shown until the file can be used again: by the admin port, in metrics. */
static void keep_refused(struct reload *r, const char *why)
{
    (void)snprintf(r->refused, sizeof r->refused, "%s", why);
    admin_options_refused(r->shell->admin, why[0] != '\0' ? r->refused : NULL);
}

bool reload_refused(const struct reload *r)
{
    return r != NULL && r->refused[0] != '\0';
}

unsigned reload_waiting(const struct reload *r)
{
    return r != NULL ? r->waiting : 0;
}

static void take(struct reload *r)
{
    struct log *log = r->shell->log;
    struct node_options_changes changes = {0};
    bool refused = r->err != 0;
    bool tells = r->began || r->answers; /* the first reading is what the start has read */
    if (!refused)
        r->err = follow(r, &changes);
    if (refused)
        log_event(log, LOG_ERROR, "config_refused", LOG_CSTR("error", r->error.text),
                  LOG_CSTR("effect", "nothing has changed; what was in force goes on"));
    else if (r->err != 0)
        log_event(log, LOG_ERROR, "config_refused", LOG_CSTR("error", err_text(r->err)));
    else if (tells || changes.changed + changes.waiting > 0)
        log_event(log, LOG_INFO, "config_reloaded", LOG_CSTR("file", r->in_force->config),
                  LOG_CSTR("by", r->answers ? "signal" : "change"),
                  LOG_UINT("changed", changes.changed),
                  LOG_UINT("restart_needed", changes.waiting));
    keep_refused(r, refused ? r->error.text : r->err != 0 ? err_text(r->err) : "");
    if (r->err == 0)
        r->waiting = changes.waiting;
    if (refused)
        node_options_free(&r->fresh);
    else
        keep_wanted(r);
}

static void on_worked(uv_work_t *work, int status)
{
    struct reload *r = work->data;
    r->busy = false;
    if (!r->loaded)
        return;
    r->loaded = false;
    if (status == 0 && !r->stopped)
        take(r);
    else
        node_options_free(&r->fresh);
    r->began = true;
    if (r->answers && !r->asked) /* another SIGHUP may have come meanwhile */
        service_reloaded(r->shell);
}

static void begin(struct reload *r)
{
    r->due_ms = shell_now_ms(r->shell) + RELOAD_INTERVAL_MS;
    r->answers = r->asked;
    r->at_once = r->asked || !r->began;
    r->busy = uv_queue_work(r->shell->loop, &r->work, on_work, on_worked) == 0;
    if (r->busy)
        r->asked = false;
}

void reload_tick(struct shell *shell, uint64_t now_ms)
{
    struct reload *r = shell->reload;
    if (r == NULL || r->busy || r->stopped || (!r->asked && now_ms < r->due_ms))
        return;
    r->shell = shell;
    begin(r);
}

bool reload_ask(struct shell *shell)
{
    struct reload *r = shell->reload;
    if (r == NULL)
        return false;
    r->asked = true;
    reload_tick(shell, shell_now_ms(shell));
    return true;
}

int reload_open(struct reload **out, struct node_options *in_force, int argc, char *const *argv,
                char *const *environment)
{
    *out = NULL;
    if (in_force->config[0] == '\0' || !is_file(in_force->config))
        return ERR_OK;
    struct reload *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->in_force = in_force;
    r->argc = argc;
    r->argv = argv;
    r->environment = environment;
    r->work.data = r;
    *out = r;
    return ERR_OK;
}

void reload_stop(struct reload *r)
{
    r->stopped = true;
    if (r->busy)
        (void)uv_cancel((uv_req_t *)&r->work);
}

void reload_free(struct reload *r)
{
    if (r == NULL)
        return;
    CHECK(!r->busy);
    buf_free(&r->seen.text);
    buf_free(&r->taken.text);
    if (r->wanted != NULL)
        node_options_free(r->wanted);
    free(r->wanted);
    free(r);
}
