#include "node/io/config.h"

#include <stdio.h>

#include "base/err.h"
#include "base/version.h"
#include "node/io/config_yaml.h"

static int load(struct node_options *o, int argc, char *const *argv, char *const *environment,
                struct node_options_error *error)
{
    int err = node_options_flags(o, argc, argv, error);
    bool reads_nothing = o->command != NODE_COMMAND_RUN && o->command != NODE_COMMAND_CHECK_CONFIG;
    if (err != 0 || reads_nothing)
        return err;
    err = node_options_environment(o, environment, error);
    if (err == 0 && o->config[0] != '\0')
        err = io_config_yaml_load(o, o->config, error);
    bool mistakes = o->notes != NULL && o->notes->count > 0;
    return err == 0 && !mistakes ? node_options_finish(o, error) : err;
}

int io_config_load_all(struct node_options *o, int argc, char *const *argv,
                       char *const *environment, struct node_options_notes *notes)
{
    struct node_options_error error;
    int err = node_options_init(o);
    if (err != 0)
        (void)snprintf(error.text, sizeof error.text, "%s", err_text(err));
    o->notes = notes;
    if (err == 0)
        err = load(o, argc, argv, environment, &error);
    err = node_options_note(o, &error, err);
    o->notes = NULL;
    return err == 0 && notes->count > 0 ? notes->err : err;
}

int io_config_load(struct node_options *o, int argc, char *const *argv, char *const *environment,
                   struct node_options_error *error)
{
    int err = node_options_init(o);
    if (err == 0)
        return load(o, argc, argv, environment, error);
    (void)snprintf(error->text, sizeof error->text, "%s", err_text(err));
    return err;
}

void io_config_warn(const struct node_options *o, struct log *log)
{
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        const char *why = node_option_ignored(o, row);
        if (why != NULL)
            log_event(log, LOG_WARN, "setting_ignored", LOG_CSTR("setting", row->name),
                      LOG_CSTR("why", why));
    }
}

int io_config_command(const struct node_options *o)
{
    struct buf text = {0};
    int err = 0;
    switch (o->command) {
    case NODE_COMMAND_RUN:
        break;
    case NODE_COMMAND_HELP:
        err = node_options_help(&text);
        break;
    case NODE_COMMAND_VERSION:
        err = buf_printf(&text, "grapevine %s\n", version_text);
        break;
    case NODE_COMMAND_CHECK_CONFIG:
        err = node_options_effective(o, &text);
        break;
    case NODE_COMMAND_PRINT_MARKDOWN:
        err = node_options_markdown(&text);
        break;
    }
    bool written = err == 0 && fwrite(text.at, 1, text.len, stdout) == text.len;
    buf_free(&text);
    return written && fflush(stdout) == 0 ? 0 : 1;
}
