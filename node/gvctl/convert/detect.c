/* What a command line or a file is of. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/gvctl/convert/detect_internal.h"

enum { TELLS = 10 };

static const struct convert_router *const routers[] = {&convert_vllm, &convert_production_stack,
                                                       &convert_smg,  &convert_sglang,
                                                       &convert_llmd, &convert_haproxy};

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

/* How a program is named on a command line, as a whole word or the end of a path. */
static const struct {
    const char *word;
    const struct convert_router *router;
} programs[] = {{"vllm_router.launch_router", &convert_vllm},
                {"vllm_router.app", &convert_production_stack},
                {"sglang_router.launch_router", &convert_sglang},
                {"sglang_router.launch_server", &convert_sglang},
                {"sglang-router", &convert_sglang},
                {"sgl-router", &convert_sglang},
                {"sglang_router", &convert_sglang},
                {"sgl-model-gateway", &convert_smg},
                {"smg.launch_router", &convert_smg},
                {"smg", &convert_smg},
                {"amg", &convert_smg},
                {"epp", &convert_llmd},
                {"llm-d-inference-scheduler", &convert_llmd},
                {"llm-d-router", &convert_llmd}};

/* Flags that engines have too: they tell nothing of a router. */
static const char *const engines_have[] = {"model",
                                           "model-path",
                                           "tokenizer-path",
                                           "chat-template",
                                           "reasoning-parser",
                                           "tool-call-parser",
                                           "served-model-name"};

/* Whether a word, or the end of a path, is this. */
static bool is_program(struct slice word, struct slice name)
{
    bool whole =
        word.len == name.len || (word.len > name.len && word.at[word.len - name.len - 1] == '/');
    return whole && slice_ends_with(word, name);
}

/* Whether one router alone has the flag, or several by one table, or it says where workers are. */
static bool tells(struct slice name)
{
    unsigned tables = 0;
    for (size_t i = 0; i < ARRAY_LEN(engines_have); i++) {
        if (slice_equal(name, slice_of_cstr(engines_have[i])))
            return false;
    }
    for (size_t k = 0; k < ARRAY_LEN(routers); k++) {
        bool again = k > 0 && routers[k]->rows == routers[k - 1]->rows;
        tables += !again && convert_find(routers[k], name) != NULL ? 1 : 0;
    }
    return tables == 1 || slice_equal(name, SLICE("worker-urls"));
}

/* How many of the words are flags of the router; those that tell count most. */
static unsigned likeness(const struct convert_router *router, const json_t *words)
{
    unsigned n = 0;
    size_t i;
    const json_t *word;
    json_array_foreach(words, i, word)
    {
        struct slice text = slice_of_cstr(json_string_value(word));
        if (!slice_starts_with(text, SLICE("--")))
            continue;
        text = slice_skip(text, 2);
        struct slice name = slice_cut(&text, '=');
        if (slice_starts_with(name, SLICE("router-")))
            name = slice_skip(name, 7);
        n += convert_find(router, name) == NULL ? 0 : tells(name) ? TELLS : 1;
    }
    return n;
}

const struct convert_router *convert_router_of(const json_t *words)
{
    size_t i;
    const json_t *word;
    bool either = false; /* "vllm-router" is the name of two */
    json_array_foreach(words, i, word)
    {
        struct slice text = slice_of_cstr(json_string_value(word));
        either = either || is_program(text, SLICE("vllm-router"));
        if (slice_starts_with(text, SLICE("-")) && i > 0 && !slice_equal(text, SLICE("-m")))
            break;
        for (size_t k = 0; k < ARRAY_LEN(programs); k++) {
            if (is_program(text, slice_of_cstr(programs[k].word)))
                return programs[k].router;
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
    size_t i;
    json_t *word;
    if (json_is_string(value)) {
        json_t *split = convert_split(slice_of_cstr(json_string_value(value)));
        (void)json_array_extend(words, split);
        json_decref(split);
    }
    json_array_foreach(json_is_array(value) ? value : NULL, i, word)
    {
        if (json_is_string(word))
            (void)json_array_append(words, word);
    }
}

static bool is_shell(const json_t *words)
{
    const char *first = json_string_value(json_array_get(words, 0));
    const char *second = json_string_value(json_array_get(words, 1));
    return first != NULL && second != NULL && strstr(first, "sh") != NULL && second[0] == '-' &&
           strchr(second, 'c') != NULL && json_array_size(words) > 2;
}

/* The command line of a container: command and args (Kubernetes), entrypoint and command
 * (Compose). */
static json_t *container_words(json_t *container)
{
    json_t *words = json_array();
    append_words(words, json_object_get(container, "entrypoint"));
    append_words(words, json_object_get(container, "command"));
    append_words(words, json_object_get(container, "args"));
    if (is_shell(words)) {
        json_t *inner = convert_split(slice_of_cstr(json_string_value(json_array_get(words, 2))));
        json_decref(words);
        return inner;
    }
    return words;
}

json_t *convert_manifest_words(json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    if (depth > 32)
        return NULL;
    if (json_is_object(value)) {
        json_t *words = container_words(value);
        if (convert_router_of(words) != NULL)
            return words;
        json_decref(words);
        json_object_foreach(value, key, member)
        {
            json_t *found = convert_manifest_words(member, depth + 1);
            if (found != NULL)
                return found;
        }
    }
    json_array_foreach(json_is_array(value) ? value : NULL, i, member)
    {
        json_t *found = convert_manifest_words(member, depth + 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}
