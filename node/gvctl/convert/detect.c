/* What a command line or a file is of. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert_internal.h"

enum { TELLS = 10 };

static const struct convert_router *const routers[] = {&convert_vllm, &convert_production_stack,
                                                       &convert_smg,  &convert_sglang,
                                                       &convert_llmd, &convert_haproxy};

/* Flags that engines have too: they tell nothing of a router. */
static const char engines_have[] = " model model-path tokenizer-path chat-template "
                                   "reasoning-parser tool-call-parser served-model-name ";

const struct convert_router *convert_router_at(unsigned i)
{
    return i < ARRAY_LEN(routers) ? routers[i] : NULL;
}

const struct convert_router *convert_router_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(routers); i++) {
        if (strcmp(routers[i]->name, name) == 0)
            return routers[i];
    }
    return NULL;
}

/* Whether a word, or the end of a path, is this. */
static bool is_program(struct slice word, struct slice name)
{
    bool whole =
        word.len == name.len || (word.len > name.len && word.at[word.len - name.len - 1] == '/');
    return whole && slice_ends_with(word, name);
}

/* Whether one router alone has the flag, or several by one table, or it says where workers are. */
static bool tells(const char *name)
{
    unsigned tables = 0;
    char spaced[160];
    (void)snprintf(spaced, sizeof spaced, " %s ", name);
    for (size_t k = 0; k < ARRAY_LEN(routers); k++) {
        if (routers[k] != &convert_sglang) /* which has those of SMG */
            tables += convert_find(routers[k], slice_of_cstr(name)).row != NULL ? 1 : 0;
    }
    return strstr(engines_have, spaced) == NULL &&
           (tables == 1 || strcmp(name, "worker-urls") == 0);
}

/* How many of the words are flags of the router; those that tell count most. */
static unsigned likeness(const struct convert_router *router, const json_t *words)
{
    unsigned n = 0;
    for (size_t i = 0; i < json_array_size(words); i++) {
        struct slice text = slice_of_cstr(convert_word(words, i));
        char name[128];
        if (!slice_starts_with(text, SLICE("--")))
            continue;
        text = slice_skip(text, slice_starts_with(text, SLICE("--router-")) ? 9 : 2);
        (void)slice_to_cstr(slice_cut(&text, '='), name, sizeof name);
        if (convert_find(router, slice_of_cstr(name)).row != NULL)
            n += tells(name) ? TELLS : 1;
    }
    return n;
}

const struct convert_router *convert_router_of(const json_t *words)
{
    bool either = false; /* "vllm-router" is the name of two */
    for (size_t i = 0; i < json_array_size(words); i++) {
        struct slice text = slice_of_cstr(convert_word(words, i));
        either = either || is_program(text, SLICE("vllm-router"));
        if (slice_starts_with(text, SLICE("-")) && i > 0 && !slice_equal(text, SLICE("-m")))
            break;
        for (size_t k = 0; k < ARRAY_LEN(routers); k++) {
            struct slice names = slice_of_cstr(routers[k]->programs);
            while (names.len > 0) {
                if (is_program(text, slice_cut(&names, ' ')))
                    return routers[k];
            }
        }
    }
    const struct convert_router *best = either ? &convert_vllm : NULL;
    unsigned most = either ? likeness(best, words) : 0;
    for (size_t k = 0; k < ARRAY_LEN(routers); k++) {
        bool possible = either ? routers[k] == &convert_production_stack : !routers[k]->is_config;
        unsigned n = possible ? likeness(routers[k], words) : 0;
        best = n > most ? routers[k] : best;
        most = n > most ? n : most;
    }
    return either || most >= TELLS ? best : NULL;
}

/* --- manifests ------------------------------------------------------------------------------- */

static void append_words(json_t *words, json_t *value)
{
    json_t *split = json_is_string(value)  ? convert_split(slice_of_cstr(json_string_value(value)))
                    : json_is_array(value) ? json_incref(value)
                                           : NULL;
    for (size_t i = 0; i < json_array_size(split); i++) {
        if (json_is_string(json_array_get(split, i)))
            (void)json_array_append(words, json_array_get(split, i));
    }
    json_decref(split);
}

/* The command line of a container: command and args (Kubernetes), entrypoint and command
 * (Compose), or what a shell runs. NULL: it is no router's. */
static json_t *container_words(json_t *container)
{
    json_t *words = json_array();
    append_words(words, json_object_get(container, "entrypoint"));
    append_words(words, json_object_get(container, "command"));
    append_words(words, json_object_get(container, "args"));
    const char *second = convert_word(words, 1);
    if (strstr(convert_word(words, 0), "sh") != NULL && second[0] == '-' &&
        strchr(second, 'c') != NULL && json_array_size(words) > 2) {
        json_t *inner = convert_split(slice_of_cstr(convert_word(words, 2)));
        json_decref(words);
        words = inner;
    }
    if (convert_router_of(words) != NULL)
        return words;
    json_decref(words);
    return NULL;
}

json_t *convert_manifest_words(json_t *docs)
{
    return convert_walk(docs, 0, container_words);
}
