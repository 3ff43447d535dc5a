#include "base/check.h"
#include "base/err.h"
#include "node/replica/engine_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int see(void *context, const struct node_listed *model)
{
    const struct slice *json = context, *object = &model->object;
    CHECK(model->id.len > 0 && model->id.len <= NODE_MODEL_ID_MAX);
    CHECK(model->parent.len <= NODE_MODEL_ID_MAX);
    CHECK(object->at >= json->at && object->at + object->len <= json->at + json->len);
    CHECK(object->at[0] == '{' && object->at[object->len - 1] == '}');
    CHECK(model->context_tokens <= NODE_CONTEXT_TOKENS_MAX);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice json = slice_of((const char *)data, size);
    struct node_scrape s;
    struct node_engine_error error;
    uint32_t context = 0;
    int err = node_models_parse(json, see, &json);
    CHECK(err == 0 || err == ERR_SYNTAX);
    node_error_read(json, &error);
    err = node_server_info_parse(json, &s, &context);
    CHECK(context <= NODE_CONTEXT_TOKENS_MAX);
    CHECK(err == 0 || err == ERR_SYNTAX || err == ERR_NOT_FOUND);
    return 0;
}
