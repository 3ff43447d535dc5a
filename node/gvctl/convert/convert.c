#include "node/gvctl/convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/version.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/gvctl/print.h"

enum {
    EXIT_USAGE = 2,
    NAMED = 1000, /* points for a matching program name; a matching flag gets 1 */
    MARKED = 100, /* points for a flag that identifies the router */
};

/* In the order of the page; the first of equal matches wins. */
const struct convert_router *const convert_routers[] = {
    &convert_vllm, &convert_production_stack, &convert_smg, &convert_sglang,
    &convert_llmd, &convert_haproxy,          NULL};

/* --- output ----------------------------------------------------------------------------------- */

static void print_value(const char *text, FILE *to)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._:/-@";
    size_t n = strlen(text);
    if (n > 0 && text[0] != '-' && text[n - 1] != ':' && strspn(text, plain) == n)
        (void)fputs(text, to);
    else
        print_yaml_text(text, to);
}

/* Prints a setting's values with their origins; values not to be used become comments. */
static void print_setting(const struct convert_state *c, const struct node_option *row, FILE *to)
{
    json_t *values = json_object_get(c->settings, row->name);
    json_t *left = json_object_get(c->left, row->name), *why;
    const char *text, *between = "";
    if (values == NULL && left == NULL)
        return;
    (void)fputs(values != NULL ? "# " : "# no value in use", to);
    json_object_foreach(json_object_get(c->origins, row->name), text, why)
    {
        (void)fprintf(to, "%s%s", between, text);
        between = ", ";
    }
    (void)fprintf(to, "\n%s%s:", values != NULL ? "" : "# ", row->name);
    json_object_foreach(values, text, why)
    {
        (void)fputs(row->type == NODE_TYPE_LIST ? "\n  - " : " ", to);
        print_value(text, to);
    }
    json_object_foreach(left, text, why)
    {
        (void)fputs("\n  # - ", to);
        print_value(text, to);
        (void)fprintf(to, "   # %s", json_string_value(why));
    }
    (void)fputs("\n", to);
}

static void print_notes(json_t *notes, const char *title, const char *before, FILE *to)
{
    const char *text;
    json_t *none;
    (void)fputs(json_object_size(notes) > 0 ? title : "", to);
    json_object_foreach(notes, text, none)
    {
        (void)fprintf(to, "%s%s\n", before, text);
    }
}

/* Prints the result. Returns the exit status. */
static int print_result(const struct convert_state *c, bool strict, FILE *to)
{
    const struct node_option *row;
    json_t *hand = c->notes[CONVERT_HAND], *none = c->notes[CONVERT_NONE];
    (void)fprintf(to,
                  "# Made by gvctl convert " GRAPEVINE_VERSION " from the settings of %s.\n"
                  "# Try it: grapevine --config FILE --check-config\n\n",
                  c->router->title);
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++)
        print_setting(c, row, to);
    print_notes(c->notes[CONVERT_DID], "\n# Slightly different:\n", "#   ", to);
    print_notes(hand, "\n# Set by hand:\n", "#   ", to);
    print_notes(none, "\n# Without a counterpart:\n", "#   ", to);
    print_notes(c->notes[CONVERT_NOT_NEEDED], "\n# Not needed:\n", "#   ", to);
    (void)fprintf(stderr,
                  "gvctl: converted %s: %zu written, %zu not needed, %zu by hand, "
                  "%zu without a counterpart\n",
                  c->router->name, json_object_size(c->settings),
                  json_object_size(c->notes[CONVERT_NOT_NEEDED]), json_object_size(hand),
                  json_object_size(none));
    print_notes(hand, "", "gvctl: by hand: ", stderr);
    print_notes(none, "", "gvctl: ", stderr);
    return strict && json_object_size(hand) + json_object_size(none) > 0 ? EXIT_FAILURE
                                                                         : EXIT_SUCCESS;
}

/* --- recognising the router ------------------------------------------------------------------- */

static bool is_haproxy(struct slice text)
{
    bool found = false;
    while (text.len > 0 && !found) {
        json_t *words = convert_split(slice_cut(&text, '\n'));
        found = convert_is_one("global defaults frontend listen backend", convert_word(words, 0));
        json_decref(words);
    }
    return found;
}

/* Returns the index of the first flag: after the program, the interpreter or a subcommand. */
static size_t first_flag(const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = convert_word(words, i);
        if (convert_is_flag(word) && strcmp(word, "-m") != 0 && strcmp(word, "-u") != 0)
            return i;
    }
    return json_array_size(words);
}

static unsigned likeness(const struct convert_router *router, const json_t *words)
{
    size_t first = first_flag(words);
    unsigned flags = 0, shown = 0;
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = convert_word(words, i), *slash = strrchr(word, '/');
        struct slice rest = slice_skip(slice_of_cstr(word), 2), name = slice_cut(&rest, '=');
        char text[128];
        if (i < first && convert_is_one(router->programs, slash != NULL ? slash + 1 : word))
            shown = NAMED;
        if (strncmp(word, "--", 2) != 0 || !slice_to_cstr(name, text, sizeof text))
            continue;
        if (shown == 0 && convert_is_one(router->marks, text))
            shown = MARKED;
        flags += convert_find(router, CONVERT_FLAG, name).row != NULL ? 1 : 0;
    }
    return shown > 0 ? shown + flags : 0;
}

/* Finds the router by the program's name or the flags; NULL: none. */
static const struct convert_router *router_of(const json_t *words)
{
    const struct convert_router *best = NULL;
    unsigned most = 0;
    for (size_t i = 0; convert_routers[i] != NULL; i++) {
        unsigned n = likeness(convert_routers[i], words);
        best = n > most ? convert_routers[i] : best;
        most = n > most ? n : most;
    }
    return best;
}

/* Returns the command line of a container: command and args (Kubernetes), entrypoint and command
 * (Compose), or a shell's command. NULL: not a router's. */
static const json_t *container_words(struct convert_state *c, json_t *container)
{
    static const char *const keys[] = {"entrypoint", "command", "args"};
    json_t *words = convert_own(c, json_array());
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_t *value = json_object_get(container, keys[i]);
        if (json_is_string(value))
            value = convert_own(c, convert_split(slice_of_cstr(json_string_value(value))));
        (void)json_array_extend(words, value);
    }
    const char *second = convert_word(words, 1);
    if (strstr(convert_word(words, 0), "sh") != NULL && second[0] == '-' &&
        strchr(second, 'c') != NULL && json_array_size(words) > 2)
        words = convert_own(c, convert_split(slice_of_cstr(convert_word(words, 2))));
    return router_of(words) != NULL ? words : NULL;
}

/* --- input ------------------------------------------------------------------------------------ */

static const struct convert_router *find_router(const char *name)
{
    const struct convert_router *const *r = convert_routers;
    while (*r != NULL && (name == NULL || strcmp((*r)->name, name) != 0))
        r++;
    return *r;
}

/* Takes words from the first flag on. "--flag=value" is two words. --enable-mesh comes first,
 * because it changes the meaning of other flags. */
static void take_flags(struct convert_state *c, const json_t *words)
{
    json_t *flags = convert_own(c, json_array());
    for (size_t i = first_flag(words); i < json_array_size(words); i++) {
        const char *word = convert_word(words, i);
        struct slice value = slice_of_cstr(word), name = value;
        if (convert_is_flag(word))
            name = slice_cut(&value, '=');
        bool mesh = convert_is_one("--enable-mesh --router-enable-mesh", word);
        (void)json_array_insert_new(flags, mesh ? 0 : json_array_size(flags),
                                    json_stringn(name.at, name.len));
        if (name.len < strlen(word))
            (void)json_array_append_new(flags, json_stringn(value.at, value.len));
    }
    convert_words(c, CONVERT_FLAG, flags, 0);
}

/* Reads the input and sets c->router; NULL: unknown. Returns the command line, if there is one. */
static const json_t *read_input(struct convert_state *c, const struct convert_input *input)
{
    const struct convert_router *from = find_router(input->from);
    const json_t *words = NULL;
    json_t *line = convert_own(c, json_array());
    for (unsigned i = 0; i < input->word_count; i++)
        (void)json_array_append_new(line, json_string(input->words[i]));
    if (input->word_count > 0) {
        words = line;
    } else if (input->from != NULL ? from == &convert_haproxy : is_haproxy(input->text)) {
        c->router = &convert_haproxy;
        if (buf_append(&c->text, input->text.at, input->text.len) != 0)
            abort();
        return NULL;
    } else {
        json_t *docs = convert_own(c, convert_yaml(input->text));
        const json_t *first = json_array_get(docs, 0);
        c->docs = json_is_object(first) || json_is_array(first) ? docs : NULL;
        words = c->docs != NULL ? convert_search(c, c->docs, container_words)
                                : convert_own(c, convert_split(input->text));
        c->config = words == NULL ? convert_find_config(c, c->docs) : NULL;
    }
    c->router = words == NULL         ? c->config != NULL ? &convert_llmd : NULL
                : input->from != NULL ? from
                                      : router_of(words);
    return words;
}

int convert(const struct convert_input *input, FILE *to)
{
    struct convert_state c = {.routers = convert_routers, .owned = json_array()};
    json_t **const objects[] = {&c.settings, &c.origins,  &c.left,     &c.parts,   &c.limits,
                                &c.notes[0], &c.notes[1], &c.notes[2], &c.notes[3]};
    int status = EXIT_USAGE;
    for (size_t i = 0; i < ARRAY_LEN(objects); i++)
        *objects[i] = convert_own(&c, json_object());
    buf_init(&c.text, 0);
    if (node_options_init(&c.options) != 0)
        abort();
    const json_t *words = read_input(&c, input);
    if (c.router == NULL) {
        bool named = input->from != NULL && find_router(input->from) == NULL;
        (void)fprintf(stderr,
                      "gvctl: cannot recognise a router in %s: name it with --from (vllm-router, "
                      "production-stack, sglang-router, smg, llm-d or haproxy)\n",
                      named                   ? input->from
                      : input->word_count > 0 ? "the command line"
                                              : input->file);
    } else {
        take_flags(&c, words);
        if (c.router->finish != NULL)
            c.router->finish(&c);
        convert_finish(&c);
        if (c.unread[0] != '\0')
            (void)fprintf(stderr, "%s\n", c.unread);
        status = c.unread[0] != '\0' ? EXIT_FAILURE : print_result(&c, input->strict, to);
    }
    node_options_free(&c.options);
    buf_free(&c.text);
    json_decref(c.owned);
    return status;
}
