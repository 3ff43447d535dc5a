#include "node/gvctl/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/plain.h"
#include "node/gvctl/print.h"

/* Appends it for a query string: what is not a plain character is encoded. */
static int append_encoded(struct buf *out, const char *text)
{
    int err = 0;
    for (const char *c = text; *c != '\0' && err == 0; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= 'A' && *c <= 'Z') || strchr("-._~:/", *c) != NULL;
        err = plain ? buf_append_char(out, *c) : buf_printf(out, "%%%02X", (unsigned char)*c);
    }
    return err;
}

static int write_target(const struct given *g, const struct command *c, const char *argument,
                        struct buf *out)
{
    const struct admin_call_row *call = admin_call_row(c->call);
    int err = buf_append_cstr(out, call->path);
    bool given = call->argument != NULL && argument != NULL;
    if (err == 0 && given) /* replica=HOST:PORT: its name */
        err = buf_printf(out, "?%.*s=", (int)strcspn(call->argument, "="), call->argument);
    if (err == 0 && given)
        err = append_encoded(out, argument);
    if (err == 0 && g->model != NULL)
        err = buf_append_cstr(out, given ? "&model=" : "?model=");
    if (err == 0 && g->model != NULL)
        err = append_encoded(out, g->model);
    if (err == 0 && g->engine != NULL)
        err = buf_append_cstr(out, "&engine=");
    if (err == 0 && g->engine != NULL)
        err = append_encoded(out, g->engine);
    if (err == 0 && g->all)
        err = buf_append_cstr(out, "?all=1");
    if (err == 0 && c->call == ADMIN_CALL_READYZ && g->show.format != SHOW_TABLE)
        err = buf_append_cstr(out, "?format=json");
    return err == 0 ? buf_append_char(out, '\0') : err;
}

int ask_command(const struct given *g, const struct command *c, const char *argument,
                struct slice body, struct buf *out)
{
    struct buf target;
    buf_init(&target, 0);
    int answer = CALL_FAILED;
    if (write_target(g, c, argument, &target) == 0) {
        const struct admin_call_row *row = admin_call_row(c->call);
        bool open = (row->flags & ADMIN_PROBED) != 0; /* it needs none */
        struct call call = {.method = row->method,
                            .target = target.at,
                            .body = body,
                            .token = open ? NULL : g->token,
                            .trust = g->trust,
                            .session = g->session,
                            .timeout_s =
                                g->timeout_s > 0 && !g->wait ? g->timeout_s : ASK_TIMEOUT_S};
        answer = call_admin(g->admin, &call, out);
    }
    buf_free(&target);
    return answer;
}

/* JSON and YAML escape by themselves. */
static json_t *made_plain(const struct given *g, json_t *answer)
{
    if (g->show.format == SHOW_TABLE || g->show.format == SHOW_NAME)
        plain_json(answer);
    return answer;
}

json_t *ask_parse(const struct given *g, struct slice text)
{
    return made_plain(g, json_loadb(text.at, text.len, JSON_DECODE_ANY, NULL));
}

json_t *ask_get(const struct given *g, const char *admin, const char *target, double timeout_s,
                bool quiet, struct buf *text, int *status)
{
    struct call call = {.method = "GET",
                        .target = target,
                        .token = g->token,
                        .trust = g->trust,
                        .timeout_s = timeout_s,
                        .quiet = quiet};
    *status = call_admin(admin, &call, text);
    return *status == 200 ? ask_parse(g, buf_slice(text)) : NULL;
}

json_t *ask_quietly(const struct given *g, const char *admin, const char *target, double timeout_s,
                    int *status)
{
    struct buf text;
    buf_init(&text, 0);
    json_t *answer = ask_get(g, admin, target, timeout_s, true, &text, status);
    buf_free(&text);
    return answer;
}

json_t *ask_here(const struct given *g, const char *target, bool quiet, struct buf *text,
                 int *status)
{
    double timeout_s = g->timeout_s > 0 ? g->timeout_s : ASK_TIMEOUT_S;
    json_t *answer = ask_get(g, g->admin, target, timeout_s, quiet, text, status);
    if (*status == 200 && answer == NULL)
        ask_other(g);
    else if (*status > 0 && *status != 200 && !quiet)
        ask_error(*status, buf_slice(text));
    return answer;
}

json_t *ask_json(const struct given *g, enum admin_call call)
{
    int status;
    struct buf text;
    buf_init(&text, 0);
    json_t *answer = ask_here(g, admin_call_row(call)->path, false, &text, &status);
    buf_free(&text);
    return answer;
}

void ask_error(int status, struct slice text)
{
    json_t *body = json_loadb(text.at, text.len, 0, NULL);
    const char *message =
        json_string_value(json_object_get(json_object_get(body, "error"), "message"));
    if (text.len == 0)
        text = SLICE("an answer without a word");
    if (message != NULL)
        plain_printf(stderr, "gvctl: %s (%d)\n", message, status);
    else
        plain_printf(stderr, "gvctl: %d: %.*s\n", status, SLICE_ARG(slice_trim(text)));
    json_decref(body);
}

void ask_other(const struct given *g)
{
    (void)fprintf(
        stderr,
        "gvctl: the answer of %s is not what this command shows: is it grapevine " GRAPEVINE_VERSION
        "?\n       --json shows it as it came.\n",
        g->admin);
}

static int show_table(const struct given *g, const struct command *c, const json_t *answer)
{
    if (g->show.format == SHOW_NAME)
        return show_names(answer);
    return g->all ? show_explain_all(&g->show, answer) : c->show(&g->show, answer);
}

int ask_show(const struct given *g, const struct command *c, struct slice text,
             const char *sentence)
{
    enum show_format format = g->show.format;
    bool table = format == SHOW_TABLE || format == SHOW_NAME;
    if (table && sentence != NULL) {
        plain_printf(stdout, "%s\n", sentence);
        return EXIT_SUCCESS;
    }
    bool raw =
        (format == SHOW_JSON && c->parse == NULL) || (format == SHOW_TABLE && c->show == NULL);
    if (raw) {
        print_text(text, stdout);
        return EXIT_SUCCESS;
    }
    json_t *answer = c->parse != NULL ? made_plain(g, c->parse(text)) : ask_parse(g, text);
    int err = answer == NULL ? ERR_SYNTAX : 0;
    if (err == 0 && format == SHOW_JSON)
        print_json(answer, stdout);
    else if (err == 0 && format == SHOW_YAML)
        print_yaml(answer, stdout);
    else if (err == 0)
        err = show_table(g, c, answer);
    json_decref(answer);
    if (err != 0)
        ask_other(g);
    return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
