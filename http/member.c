#include "http/member.h"

#include "base/check.h"
#include "http/names.h"
#include "http/prompt.h"
#include "http/skim.h"

#define MEMBER_OF(parent_, name_, slot_, index_)                                                   \
    .name = {(name_), sizeof(name_) - 1}, .parent = (parent_), .slot = (slot_), .index = (index_)

static const struct http_member members[] = {
    {MEMBER_OF(HTTP_IN_BODY, "model", HTTP_SLOT_FIELD, HTTP_SKIM_MODEL)},
    {MEMBER_OF(HTTP_IN_BODY, "user", HTTP_SLOT_FIELD, HTTP_SKIM_USER)},
    {MEMBER_OF(HTTP_IN_BODY, "prompt_cache_key", HTTP_SLOT_FIELD, HTTP_SKIM_PROMPT_CACHE_KEY)},
    {MEMBER_OF(HTTP_IN_BODY, "session_id", HTTP_SLOT_FIELD, HTTP_SKIM_SESSION_ID)},
    {MEMBER_OF(HTTP_IN_BODY, "cache_salt", HTTP_SLOT_FIELD, HTTP_SKIM_CACHE_SALT)},
    {MEMBER_OF(HTTP_IN_BODY, "extra_key", HTTP_SLOT_FIELD, HTTP_SKIM_EXTRA_KEY)},
    {MEMBER_OF(HTTP_IN_BODY, "lora_path", HTTP_SLOT_FIELD, HTTP_SKIM_LORA), .rank = 2},
    {MEMBER_OF(HTTP_IN_BODY, "lora_name", HTTP_SLOT_FIELD, HTTP_SKIM_LORA), .rank = 1},
    {MEMBER_OF(HTTP_IN_BODY, "previous_response_id", HTTP_SLOT_FIELD,
               HTTP_SKIM_PREVIOUS_RESPONSE_ID)},
    {MEMBER_OF(HTTP_IN_BODY, "request_id", HTTP_SLOT_FIELD, HTTP_SKIM_REQUEST_ID)},
    {MEMBER_OF(HTTP_IN_BODY, "max_completion_tokens", HTTP_SLOT_INTEGER,
               HTTP_SKIM_MAX_COMPLETION_TOKENS)},
    {MEMBER_OF(HTTP_IN_BODY, "max_output_tokens", HTTP_SLOT_INTEGER, HTTP_SKIM_MAX_OUTPUT_TOKENS)},
    {MEMBER_OF(HTTP_IN_BODY, "max_tokens", HTTP_SLOT_INTEGER, HTTP_SKIM_MAX_TOKENS)},
    {MEMBER_OF(HTTP_IN_BODY, "priority", HTTP_SLOT_INTEGER, HTTP_SKIM_PRIORITY)},
    {MEMBER_OF(HTTP_IN_BODY, "n", HTTP_SLOT_INTEGER, HTTP_SKIM_CHOICES)},
    {MEMBER_OF(HTTP_IN_SAMPLING, "n", HTTP_SLOT_INTEGER, HTTP_SKIM_CHOICES)},
    {MEMBER_OF(HTTP_IN_BODY, "stream", HTTP_SLOT_BOOLEAN, HTTP_SKIM_STREAM)},
    {MEMBER_OF(HTTP_IN_BODY, "stream_options", HTTP_SLOT_NOTED, HTTP_SKIM_STREAM_OPTIONS)},
    {MEMBER_OF(HTTP_IN_BODY, "return_token_ids", HTTP_SLOT_NOTED, HTTP_SKIM_OWN_IDS)},
    {MEMBER_OF(HTTP_IN_BODY, "echo", HTTP_SLOT_NOTED, HTTP_SKIM_OWN_IDS)},
    {MEMBER_OF(HTTP_IN_BODY, "background", HTTP_SLOT_GIVEN, HTTP_SKIM_BACKGROUND)},
    {MEMBER_OF(HTTP_IN_BODY, "metadata", HTTP_SLOT_OBJECT, HTTP_IN_METADATA)},
    {MEMBER_OF(HTTP_IN_METADATA, "user_id", HTTP_SLOT_FIELD, HTTP_SKIM_METADATA_USER_ID)},
    {MEMBER_OF(HTTP_IN_BODY, "sampling_params", HTTP_SLOT_OBJECT, HTTP_IN_SAMPLING)},
    {MEMBER_OF(HTTP_IN_SAMPLING, "max_new_tokens", HTTP_SLOT_INTEGER, HTTP_SKIM_MAX_NEW_TOKENS)},
    {MEMBER_OF(HTTP_IN_SAMPLING, "max_tokens", HTTP_SLOT_INTEGER, HTTP_SKIM_MAX_TOKENS)},
    /* vLLM: both become the engine's extra_args, in which the engine looks for
     * kv_transfer_params. */
    {MEMBER_OF(HTTP_IN_BODY, "vllm_xargs", HTTP_SLOT_OBJECT, HTTP_IN_XARGS)},
    {MEMBER_OF(HTTP_IN_SAMPLING, "extra_args", HTTP_SLOT_OBJECT, HTTP_IN_XARGS)},
    {MEMBER_OF(HTTP_IN_BODY, "tools", HTTP_SLOT_LIST, HTTP_PROMPT_TOOLS), .rank = 2},
    {MEMBER_OF(HTTP_IN_BODY, "functions", HTTP_SLOT_LIST, HTTP_PROMPT_TOOLS), .rank = 1},
    {MEMBER_OF(HTTP_IN_BODY, "system", HTTP_SLOT_CONTENT, HTTP_PROMPT_SYSTEM), .rank = 3,
     .has_head = true},
    {MEMBER_OF(HTTP_IN_BODY, "instructions", HTTP_SLOT_CONTENT, HTTP_PROMPT_SYSTEM), .rank = 2,
     .has_head = true},
    {MEMBER_OF(HTTP_IN_BODY, "documents", HTTP_SLOT_LIST, HTTP_PROMPT_SYSTEM), .rank = 1},
    {MEMBER_OF(HTTP_IN_BODY, "input_ids", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 7},
    {MEMBER_OF(HTTP_IN_BODY, "token_ids", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 6},
    {MEMBER_OF(HTTP_IN_BODY, "messages", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 5,
     .has_head = true},
    {MEMBER_OF(HTTP_IN_BODY, "prompt", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 4},
    {MEMBER_OF(HTTP_IN_BODY, "input", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 3,
     .is_user_message = true, .has_head = true},
    {MEMBER_OF(HTTP_IN_BODY, "text", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 2},
    {MEMBER_OF(HTTP_IN_BODY, "query", HTTP_SLOT_LIST, HTTP_PROMPT_TEXT), .rank = 1},
    /* Members passed to the template in addition to the text, by vLLM and SGLang: docs/adr/0050 has
     * the sources. */
    {MEMBER_OF(HTTP_IN_BODY, "chat_template", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "chat_template_kwargs", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "reasoning_effort", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "reasoning", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "thinking", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "output_config", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "add_special_tokens", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "mm_processor_kwargs", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "media_io_kwargs", HTTP_SLOT_ARGUMENT, 0)},
    {MEMBER_OF(HTTP_IN_BODY, "truncate_prompt_tokens", HTTP_SLOT_ARGUMENT, 0)},
};

static struct http_names names_of_members;

/* Runs before main(), so no thread sees an incomplete table. */
__attribute__((constructor)) static void names_make(void)
{
    for (unsigned i = ARRAY_LEN(members); i > 0; i--)
        http_names_put(&names_of_members, i - 1, members[i - 1].name);
}

const struct http_member *http_member_find(enum http_member_parent parent, struct slice name)
{
    const struct http_names *names = &names_of_members;
    for (unsigned i = http_names_first(names, name); i != 0; i = names->next[i]) {
        const struct http_member *member = &members[i - 1];
        if (member->parent == parent && slice_equal(member->name, name))
            return member;
    }
    return NULL;
}

bool http_member_is_media(struct slice name, uint8_t *medium)
{
    static const struct {
        struct slice name;
        enum chain_medium medium;
    } media[] = {
        {{"image_url", 9}, CHAIN_IMAGE}, {{"video_url", 9}, CHAIN_FILM},
        {{"audio_url", 9}, CHAIN_SOUND}, {{"input_audio", 11}, CHAIN_SOUND},
        {{"source", 6}, CHAIN_IMAGE},    {{"image", 5}, CHAIN_IMAGE},
        {{"audio", 5}, CHAIN_SOUND},     {{"video", 5}, CHAIN_FILM},
        {{"file", 4}, CHAIN_FILM},       {{"file_data", 9}, CHAIN_FILM},
        {{"file_url", 8}, CHAIN_FILM},
    };
    for (size_t i = 0; i < ARRAY_LEN(media); i++) {
        if (slice_equal(media[i].name, name)) {
            *medium = (uint8_t)media[i].medium;
            return true;
        }
    }
    return false;
}

bool http_member_is_text_type(struct slice type)
{
    return slice_equal(type, SLICE("text")) || slice_equal(type, SLICE("input_text")) ||
           slice_equal(type, SLICE("output_text"));
}

bool http_member_is_typed(struct slice name)
{
    static const struct slice typed[] = {
        {"function", 8},  {"tool_calls", 10}, {"custom", 6},         {"image_url", 9},
        {"video_url", 9}, {"audio_url", 9},   {"input_audio", 11},   {"source", 6},
        {"file", 4},      {"audio", 5},       {"function_call", 13},
    };
    for (size_t i = 0; i < ARRAY_LEN(typed); i++) {
        if (slice_equal(typed[i], name))
            return true;
    }
    return false;
}
