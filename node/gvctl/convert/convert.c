#include "node/gvctl/convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/version.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/print.h"
#include "node/io/read_file.h"
#include "node/settings/options.h"

enum { EXIT_USAGE = 2 };

/* --- what comes out -------------------------------------------------------------------------- */

static void print_value(const char *text, FILE *to)
{
    bool plain = text[0] != '\0' && text[0] != '-' && strchr(text, ' ') == NULL;
    for (const char *c = text; *c != '\0' && plain; c++)
        plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                strchr("._:/-@", *c) != NULL;
    if (plain && text[strlen(text) - 1] != ':')
        (void)fputs(text, to);
    else
        print_yaml_text(text, to);
}

static void print_setting(const struct convert_state *c, const struct node_option *row, FILE *to)
{
    const json_t *values = json_object_get(c->settings, row->name);
    const json_t *left = json_object_get(c->left, row->name);
    size_t i;
    const json_t *value;
    if (values == NULL && left == NULL)
        return;
    (void)fputs(values != NULL ? "# " : "# nothing is in use", to);
    json_array_foreach(json_object_get(c->origins, row->name), i, value)
    {
        (void)fprintf(to, "%s%s", i > 0 ? ", " : "", json_string_value(value));
    }
    (void)fprintf(to, "\n%s%s:", values != NULL ? "" : "# ", row->name);
    json_array_foreach(values, i, value)
    {
        (void)fputs(row->type == NODE_TYPE_LIST ? "\n  - " : " ", to);
        print_value(json_string_value(value), to);
    }
    json_array_foreach(left, i, value)
    {
        (void)fputs("\n  # - ", to);
        print_value(fields_text(value, "value"), to);
        (void)fprintf(to, "   # %s", fields_text(value, "why"));
    }
    (void)fputs("\n", to);
}

/* How many there are, printed with `title` once and `before` each; nowhere: counted. */
static unsigned print_notes(const struct convert_state *c, enum convert_kind kind,
                            const char *title, const char *before, FILE *to)
{
    size_t i;
    const json_t *note;
    unsigned n = 0;
    json_array_foreach(c->notes, i, note)
    {
        if ((int)fields_number(note, "kind") != (int)kind)
            continue;
        if (to != NULL)
            (void)fprintf(to, "%s%s%s: %s\n", n == 0 ? title : "", before,
                          fields_text(note, "flag"), fields_text(note, "note"));
        n++;
    }
    return n;
}

static void print_result(const struct convert_state *c, FILE *to)
{
    unsigned count;
    const struct node_option *rows = node_option_table(&count);
    (void)fprintf(to,
                  "# Made by gvctl convert " GRAPEVINE_VERSION " from what starts %s.\n"
                  "# Try it: grapevine --config FILE --check-config\n\n",
                  c->router->title);
    for (unsigned i = 0; i < count; i++)
        print_setting(c, &rows[i], to);
    (void)print_notes(c, CONVERT_DID, "\n# What is a little different:\n", "#   ", to);
    (void)print_notes(c, CONVERT_HAND, "\n# To be done by hand:\n", "#   ", to);
    (void)print_notes(c, CONVERT_NONE, "\n# Without a counterpart:\n", "#   ", to);
    (void)print_notes(c, CONVERT_NOT_NEEDED, "\n# Not needed:\n", "#   ", to);
}

static int finish(struct convert_state *c, const struct convert_input *input, FILE *to)
{
    convert_finish(c);
    print_result(c, to);
    unsigned hand = print_notes(c, CONVERT_HAND, "", "", NULL);
    unsigned none = print_notes(c, CONVERT_NONE, "", "", NULL);
    (void)fprintf(stderr,
                  "gvctl: of %s: %zu written, %u not needed, %u by hand, "
                  "%u without a counterpart\n",
                  c->router->name, json_object_size(c->settings),
                  print_notes(c, CONVERT_NOT_NEEDED, "", "", NULL), hand, none);
    (void)print_notes(c, CONVERT_HAND, "", "gvctl: by hand: ", stderr);
    (void)print_notes(c, CONVERT_NONE, "", "gvctl: ", stderr);
    convert_free(c);
    return input->strict && hand + none > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- what goes in ---------------------------------------------------------------------------- */

static int unknown(const char *what)
{
    (void)fprintf(stderr,
                  "gvctl: %s is not known to be a router's: --from names it (vllm-router, "
                  "production-stack, sglang-router, smg, llm-d or haproxy)\n",
                  what);
    return EXIT_USAGE;
}

/* haproxy -f FILE */
static int of_haproxy_words(const struct convert_input *input, const json_t *words, FILE *to)
{
    struct convert_state c;
    struct buf text;
    int status = EXIT_FAILURE;
    char unread[IO_FILE_MESSAGE] = "";
    buf_init(&text, 0);
    convert_begin(&c, &convert_haproxy);
    for (size_t i = 1; i < json_array_size(words) && unread[0] == '\0'; i++) {
        const char *word = convert_word(words, i), *next = convert_word(words, i + 1);
        struct convert_found found = convert_find(c.router, slice_of_cstr(word));
        if (strcmp(word, "-f") == 0)
            (void)convert_file(next, &text, unread);
        else if (found.row != NULL && word[0] == '-')
            convert_take(&c, found, word, NULL);
        else
            convert_note(&c, CONVERT_NONE, word, "this flag is not known here");
        i += found.value ? 1 : 0;
    }
    if (unread[0] == '\0') {
        convert_haproxy_text(&c, buf_slice(&text));
        status = finish(&c, input, to);
    } else {
        (void)fprintf(stderr, "%s\n", unread);
        convert_free(&c);
    }
    buf_free(&text);
    return status;
}

/* `beside`: the documents that it stands among, or NULL. */
static int of_words(const struct convert_input *input, json_t *words, const char *what,
                    json_t *beside, FILE *to)
{
    struct convert_state c;
    const struct convert_router *router =
        input->from != NULL ? convert_router_find(input->from) : convert_router_of(words);
    if (slice_ends_with(slice_of_cstr(convert_word(words, 0)), SLICE("haproxy")))
        return of_haproxy_words(input, words, to);
    if (router == NULL || router->is_config)
        return unknown(what);
    convert_begin(&c, router);
    while (json_array_size(words) > 0) { /* the program, its interpreter, a subcommand */
        const char *word = convert_word(words, 0);
        if (word[0] == '-' && strcmp(word, "-m") != 0 && strcmp(word, "-u") != 0)
            break;
        (void)json_array_remove(words, 0);
    }
    c.beside = beside;
    c.special = convert_llmd_special; /* the only one of flags */
    c.router_at = convert_router_at;
    convert_words(&c, words);
    if (router == &convert_llmd)
        convert_llmd_pool(&c, beside);
    return finish(&c, input, to);
}

static int of_yaml(const struct convert_input *input, json_t *docs, FILE *to)
{
    struct convert_state c;
    json_t *words = convert_manifest_words(docs);
    const json_t *config = words == NULL ? convert_find_config(docs) : NULL;
    if (words == NULL && config == NULL)
        return unknown(input->file);
    if (config == NULL) {
        int status = of_words(input, words, input->file, docs, to);
        json_decref(words);
        return status;
    }
    convert_begin(&c, &convert_llmd);
    convert_llmd_config(&c, config);
    convert_llmd_pool(&c, docs);
    return finish(&c, input, to);
}

static int of_text(const struct convert_input *input, FILE *to)
{
    struct convert_state c;
    if (input->from != NULL ? strcmp(input->from, convert_haproxy.name) == 0
                            : convert_is_haproxy(input->text)) {
        convert_begin(&c, &convert_haproxy);
        convert_haproxy_text(&c, input->text);
        return finish(&c, input, to);
    }
    json_t *docs = convert_yaml(input->text), *words = convert_split(input->text);
    const json_t *first = json_array_get(docs, 0);
    int status = json_is_object(first) || json_is_array(first)
                     ? of_yaml(input, docs, to)
                     : of_words(input, words, input->file, NULL, to);
    json_decref(words);
    json_decref(docs);
    return status;
}

int convert(const struct convert_input *input, FILE *to)
{
    if (input->from != NULL && convert_router_find(input->from) == NULL)
        return unknown(input->from);
    if (input->word_count == 0)
        return of_text(input, to);
    json_t *words = json_array();
    for (unsigned i = 0; i < input->word_count; i++)
        (void)json_array_append_new(words, json_string(input->words[i]));
    int status = of_words(input, words, "that command line", NULL, to);
    json_decref(words);
    return status;
}
