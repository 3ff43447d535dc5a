/* Rejections by a replica with another setup than the peers, in either engine's words. */
#include "tests/engine-sim/job.h"

#define NO_TEMPLATE_VLLM                                                                           \
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a " \
    "chat template if the tokenizer does not define one."
#define NO_TEMPLATE_SGLANG                                                                         \
    "Cannot use chat template functions because tokenizer.chat_template is not set and no "        \
    "template argument was passed! For information about writing templates and setting the "       \
    "tokenizer.chat_template attribute, please see the documentation at "                          \
    "https://huggingface.co/docs/transformers/main/en/chat_templating"
#define NO_AUTO_TOOLS                                                                              \
    "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"
#define NO_TOOLS "tool_choice=\"required\" requires --tool-call-parser to be set"
#define UNPROCESSABLE                                                                              \
    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"messages\"],\"msg\":\"Field "          \
    "required\","                                                                                  \
    "\"input\":null}]}"

static enum sim_reject of_fail(enum sim_fail_mode mode)
{
    switch (mode) {
    case SIM_FAIL_401:
        return SIM_REJECT_401;
    case SIM_FAIL_403:
        return SIM_REJECT_403;
    case SIM_FAIL_404:
        return SIM_REJECT_404;
    case SIM_FAIL_422:
        return SIM_REJECT_422;
    case SIM_FAIL_NO_TEMPLATE:
        return SIM_REJECT_NO_TEMPLATE;
    case SIM_FAIL_NO_TOOL_PARSER:
        return SIM_REJECT_NO_TOOL_PARSER;
    default:
        return SIM_REJECT_NONE;
    }
}

enum sim_reject sim_reject_of(const struct sim_engine *e, enum sim_fail_mode mode)
{
    return of_fail(mode) != SIM_REJECT_NONE ? of_fail(mode) : (enum sim_reject)e->options.reject;
}

bool sim_rejected(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                  const struct sim_ask *a, enum sim_reject reject)
{
    bool sglang = e->options.sglang;
    bool chat = form == &sim_form_chat || form == &sim_form_messages || form == &sim_form_responses;
    switch (reject) {
    case SIM_REJECT_401:
        sim_http_answer(c, 401, SIM_JSON, SLICE("{\"error\":\"Unauthorized\"}"), NULL);
        return true;
    case SIM_REJECT_403:
        sim_http_answer(c, 403, SIM_JSON, SLICE("{\"detail\":\"Forbidden\"}"), NULL);
        return true;
    case SIM_REJECT_404:
        sim_answer_error(e, c, 404, "NotFoundError", "model", "The model `%.*s` does not exist.",
                         SLICE_ARG(a->model));
        return true;
    case SIM_REJECT_422:
        sim_http_answer(c, 422, SIM_JSON, SLICE(UNPROCESSABLE), NULL);
        return true;
    case SIM_REJECT_NO_TEMPLATE:
        if (chat)
            sim_answer_error(e, c, 400, NULL, NULL, "%s",
                             sglang ? NO_TEMPLATE_SGLANG : NO_TEMPLATE_VLLM);
        return chat;
    case SIM_REJECT_NO_TOOL_PARSER: /* SGLang accepts, and answers with the call as text */
        if (sglang || !a->has_tools || a->tool_choice == SIM_TOOL_NONE)
            return false;
        sim_answer_error(e, c, 400, NULL, NULL, "%s",
                         a->tool_choice == SIM_TOOL_AUTO ? NO_AUTO_TOOLS : NO_TOOLS);
        return true;
    default:
        return false;
    }
}
