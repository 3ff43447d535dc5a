#include "base/check.h"
#include "base/err.h"
#include "node/replica/engine_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int see(void *context, struct slice id, struct slice object)
{
    const struct slice *json = context;
    CHECK(id.len > 0 && id.len <= NODE_MODEL_ID_MAX);
    CHECK(object.at >= json->at && object.at + object.len <= json->at + json->len);
    CHECK(object.at[0] == '{' && object.at[object.len - 1] == '}');
    (void)node_models_owner(object);
    CHECK(node_models_context(object) <= NODE_CONTEXT_TOKENS_MAX);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice json = slice_of((const char *)data, size);
    struct node_scrape s;
    uint32_t context = 0;
    int err = node_models_parse(json, see, &json);
    CHECK(err == 0 || err == ERR_SYNTAX);
    (void)node_error_model_unknown(json);
    err = node_server_info_parse(json, &s, &context);
    CHECK(context <= NODE_CONTEXT_TOKENS_MAX);
    CHECK(err == 0 || err == ERR_SYNTAX || err == ERR_NOT_FOUND);
    return 0;
}
