/* Settings changed by an operator at run time: lists, key, context length. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"

/* Memory of the changed options, which point here. */
struct sim_set {
    char *models;
    char *adapters;
    char *api_key;
};

static struct sim_set *set_of(struct sim_engine *e)
{
    if (e->set == NULL)
        e->set = calloc(1, sizeof *e->set);
    CHECK(e->set != NULL);
    return e->set;
}

static char *keep(char **at, const char *text)
{
    char *copy = strdup(text);
    CHECK(copy != NULL);
    free(*at);
    *at = copy;
    return copy;
}

void sim_set_free(struct sim_engine *e)
{
    if (e->set == NULL)
        return;
    free(e->set->models);
    free(e->set->adapters);
    free(e->set->api_key);
    free(e->set);
    e->set = NULL;
}

/* Cuts the text at commas; o->models point into it. */
static void models_set(struct sim_engine *e, char *text)
{
    struct sim_options *o = &e->options;
    o->model_count = 0;
    for (char *name = strtok(text, ","); name != NULL && o->model_count < SIM_MODELS_MAX;
         name = strtok(NULL, ","))
        o->models[o->model_count++] = name;
    if (o->model_count == 0) /* an empty list: name in answers to requests without a model */
        o->models[0] = "none";
}

void sim_engine_serve(struct sim_engine *e, const char *models, const char *adapters)
{
    if (models != NULL)
        models_set(e, keep(&set_of(e)->models, models));
    if (adapters != NULL)
        e->options.adapters = keep(&set_of(e)->adapters, adapters);
}

/* Appends the names of a JSON list, separated by commas. False: not a list of names. */
static bool names_of(const json_t *list, struct buf *out)
{
    size_t i;
    const json_t *name;
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name))
            return false;
        sim_put(out, "%s%s", i == 0 ? "" : ",", json_string_value(name));
    }
    sim_put(out, "%c", '\0');
    return json_is_array(list);
}

/* False: nothing is set. */
static bool wish_do(struct sim_engine *e, const json_t *wish)
{
    const json_t *models = json_object_get(wish, "models");
    const json_t *adapters = json_object_get(wish, "adapters");
    const json_t *key = json_object_get(wish, "api_key");
    const json_t *len = json_object_get(wish, "max_model_len");
    struct buf model_names = {.at = NULL}, adapter_names = {.at = NULL};
    bool well = json_is_object(wish) && (models == NULL || names_of(models, &model_names)) &&
                (adapters == NULL || names_of(adapters, &adapter_names)) &&
                (key == NULL || json_is_string(key)) &&
                (len == NULL || json_integer_value(len) >= 2);
    if (well)
        sim_engine_serve(e, model_names.at, adapter_names.at);
    if (well && key != NULL)
        e->options.api_key = keep(&set_of(e)->api_key, json_string_value(key));
    if (well && len != NULL)
        e->options.model_len_max = (uint64_t)json_integer_value(len);
    buf_free(&model_names);
    buf_free(&adapter_names);
    return well;
}

void sim_control_set(struct sim_engine *e, struct sim_conn *c, struct slice body)
{
    json_t *wish = json_loadb(body.at, body.len, 0, NULL);
    bool well = wish_do(e, wish);
    json_decref(wish);
    sim_http_answer(c, well ? 200 : 400, SIM_JSON,
                    well ? SLICE("{\"ok\":true}") : SLICE("{\"error\":\"not understood\"}"), NULL);
}
