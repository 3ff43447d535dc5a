#include "node/gvctl/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/plain.h"
#include "node/gvctl/print.h"

/* Appends the text for a query string, with special characters encoded. */
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

int ask_query(struct buf *out, const char *name, const char *value)
{
    if (value == NULL)
        return 0;
    char before = slice_find(buf_slice(out), '?') < out->len ? '&' : '?';
    int err = buf_printf(out, "%c%.*s=", before, (int)strcspn(name, "="), name);
    return err == 0 ? append_encoded(out, value) : err;
}

static int write_target(const struct given *g, const struct command *c, const char *argument,
                        struct buf *out)
{
    const struct admin_call_row *call = admin_call_row(c->call);
    bool reason = c->call == ADMIN_CALL_READYZ && g->show.format != SHOW_TABLE;
    int err = buf_append_cstr(out, call->path);
    if (err == 0 && call->argument != NULL) /* "replica=HOST:PORT": only the name is sent */
        err = ask_query(out, call->argument, argument);
    if (err == 0)
        err = ask_query(out, "model", g->model);
    if (err == 0)
        err = ask_query(out, "engine", g->engine);
    if (err == 0)
        err = ask_query(out, "all", g->all ? "1" : NULL);
    if (err == 0)
        err = ask_query(out, "format", reason ? "json" : NULL);
    return err == 0 ? buf_append_char(out, '\0') : err;
}

struct call ask_call(const struct given *g, const char *target)
{
    return (struct call){.method = "GET",
                         .target = target,
                         .token = g->token,
                         .trust = g->trust,
                         .timeout_s = g->timeout_s > 0 && !g->wait ? g->timeout_s : ASK_TIMEOUT_S};
}

int ask_command(const struct given *g, const struct command *c, const char *argument,
                struct slice body, struct buf *out)
{
    struct buf target = {0};
    int answer = CALL_FAILED;
    if (write_target(g, c, argument, &target) == 0) {
        const struct admin_call_row *row = admin_call_row(c->call);
        struct call call = ask_call(g, target.at);
        call.method = row->method;
        call.body = body;
        call.session = g->session;
        if ((row->flags & ADMIN_PROBED) != 0) /* needs no token */
            call.token = NULL;
        answer = call_admin(g->admin, &call, out);
    }
    buf_free(&target);
    return answer;
}

/* Escapes control characters in an answer for tables; JSON and YAML are escaped on printing. */
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

json_t *ask_here(const struct given *g, const char *target, bool quiet, struct buf *text,
                 int *status)
{
    struct call call = ask_call(g, target);
    call.quiet = quiet;
    *status = call_admin(g->admin, &call, text);
    json_t *answer = *status == 200 ? ask_parse(g, buf_slice(text)) : NULL;
    if (*status == 200 && answer == NULL)
        ask_other(g);
    else if (*status > 0 && *status != 200 && !quiet)
        ask_error(*status, buf_slice(text));
    return answer;
}

json_t *ask_json(const struct given *g, enum admin_call call, bool quiet)
{
    int status;
    struct buf text = {0};
    json_t *answer = ask_here(g, admin_call_row(call)->path, quiet, &text, &status);
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
    (void)fprintf(stderr,
                  "gvctl: the answer from %s is not one that this command can show: is it "
                  "grapevine %s?\n       --json prints the answer as it is.\n",
                  g->admin, version_text);
}

static int show_table(const struct given *g, const struct command *c, const json_t *answer)
{
    if (g->show.format == SHOW_NAME)
        return show_names(answer);
    return g->all ? show_explain_all(&g->show, answer) : c->show(&g->show, answer);
}

static bool serves(const json_t *replica, const char *model)
{
    size_t i;
    const json_t *name;
    bool found = false;
    json_array_foreach(json_object_get(json_object_get(replica, "models"), "names"), i, name)
    {
        found = found || (json_is_string(name) && strcmp(json_string_value(name), model) == 0);
    }
    return found;
}

/* Returns the replicas of this model; consumes the list. */
static json_t *of_model(json_t *list, const char *model)
{
    json_t *out = json_is_array(list) ? json_array() : NULL, *r;
    size_t i;
    json_array_foreach(list, i, r)
    {
        if (serves(r, model))
            (void)json_array_append(out, r);
    }
    json_decref(list);
    return out;
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
    bool some = g->model != NULL && c->call == ADMIN_CALL_REPLICAS;
    bool raw = (format == SHOW_JSON && c->parse == NULL && !some) ||
               (format == SHOW_TABLE && c->show == NULL);
    if (raw) {
        print_text(text, stdout);
        return EXIT_SUCCESS;
    }
    json_t *answer = c->parse != NULL ? made_plain(g, c->parse(text)) : ask_parse(g, text);
    if (some)
        answer = of_model(answer, g->model);
    int err = answer == NULL ? ERR_SYNTAX : 0;
    if (err == 0 && table)
        err = show_table(g, c, answer);
    else if (err == 0)
        print_as(format, answer, stdout);
    json_decref(answer);
    if (err != 0)
        ask_other(g);
    return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
