/* Chooses a replica: describes the request for policies, makes the choice, and answers if there is
 * no replica. */
#include "node/proxy/exchange/exchange_internal.h"

#include "base/check.h"
#include "base/err.h"
#include "http/multipart.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/exchange/suspect.h"
#include "node/route/policy.h"

/* Reads the product's name from a User-Agent such as "claude-cli/2.1.197 (external, cli)". Versions
 * change too often to be of use. */
void exchange_read_agent(struct exchange *x, const struct http_head *head)
{
    struct slice agent = http_head_get(head, HTTP_USER_AGENT);
    size_t len = agent.len < sizeof x->agent ? agent.len : sizeof x->agent;
    x->agent_len = 0;
    if (len == 0)
        return;
    const char *end = memchr(agent.at, '/', len);
    len = end != NULL ? (size_t)(end - agent.at) : len;
    end = memchr(agent.at, ' ', len);
    len = end != NULL ? (size_t)(end - agent.at) : len;
    memcpy(x->agent, agent.at, len);
    x->agent_len = (uint8_t)len;
}

static const char *form_of(enum http_path_kind kind)
{
    switch (kind) {
    case HTTP_PATH_CHAT:
        return "chat";
    case HTTP_PATH_MESSAGES:
        return "messages";
    case HTTP_PATH_RESPONSES:
        return "responses";
    default:
        return "other";
    }
}

void exchange_skim_begin(struct exchange *x)
{
    x->skimming = true;
    http_skim_init(&x->skim, &x->proxy->config.secret);
    if (node_router_policy(x->proxy->config.router)->wants_chunks)
        http_skim_by_chunks(&x->skim);
}

void exchange_render(struct exchange *x)
{
    struct proxy *p = x->proxy;
    x->rendered = (struct node_rendered){.key = 0};
    if (!x->skim.understood)
        return;
    x->conversation =
        node_router_wants_conversation(p->config.router) ? exchange_conversation(x) : 0;
    struct slice model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
    const struct node_client client = {slice_of(x->agent, x->agent_len), form_of(x->route.kind)};
    if (x->local)
        node_router_render_shown(p->config.router, model, &x->rendered);
    else
        node_router_render(p->config.router, &client, model, http_skim_form(&x->skim),
                           http_skim_chain(&x->skim), p->now_ms, &x->rendered);
    http_skim_join(&x->skim, x->rendered.rendering);
}

struct slice exchange_stored_response(const struct exchange *x)
{
    if (x->stored_id_len > 0)
        return slice_of(x->stored_id, x->stored_id_len);
    if (x->skimming && x->skim.understood)
        return http_skim_field(&x->skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID);
    return slice_of(NULL, 0);
}

bool exchange_only_there(const struct exchange *x)
{
    bool stored =
        x->route.kind == HTTP_PATH_RESPONSE_STORED || x->route.kind == HTTP_PATH_MEDIA_STORED;
    return stored && !x->asking_around;
}

bool exchange_reject_again(const struct exchange *x, unsigned status)
{
    bool safe = exchange_computes(x->route.kind) || exchange_begins_nothing(x->method, status);
    return safe && exchange_weighs_rejections(x->route.kind) && !x->dropped &&
           x->request.body->complete && !x->suspect.died &&
           x->retries < x->proxy->config.options->retries_max &&
           exchange_stored_response(x).len == 0;
}

void exchange_describe(const struct exchange *x, struct node_request *out)
{
    *out = (struct node_request){.session = slice_of(x->session, x->session_len),
                                 .conversation = x->conversation,
                                 .body_bytes = x->request.body->bytes,
                                 .alias = slice_of(x->alias, x->alias_len),
                                 .fell_back = x->fell_back,
                                 .replica_wanted = -1,
                                 .unpinned = exchange_unpinned(x),
                                 .sent = x->attempts > 0 && x->reached,
                                 .id = x->request_id,
                                 .attempt = x->attempts + 1,
                                 .too_long = x->too_long,
                                 .context_over = x->context_over,
                                 .kind = exchange_reject_kind(x),
                                 .again = exchange_reject_again(x, 401),
                                 .no_guess = x->looked || x->attempts > 0,
                                 .rejected = x->kept.open,
                                 .model_likely = x->model_likely};
    if (x->form) {
        uint64_t at;
        out->model = http_multipart_model(x->request.body, x->proxy->joined, &at);
    } else if (x->early) {
        out->model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
    } else if (x->skimming && x->skim.understood) {
        out->model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
        out->lora = http_skim_field(&x->skim, HTTP_SKIM_LORA);
        out->chain = http_skim_chain(&x->skim);
        out->rendered = x->rendered;
        out->continues = http_skim_field(&x->skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID).len > 0;
        out->several =
            x->skim.has_number[HTTP_SKIM_CHOICES] && x->skim.numbers[HTTP_SKIM_CHOICES] > 1;
        out->answer_whole = !x->skim.flags[HTTP_SKIM_STREAM];
        int64_t limit = http_skim_output_max(&x->skim);
        out->output_tokens_max = limit > 0 && limit < INT32_MAX ? (uint32_t)limit : 0;
    }
    struct slice stored = exchange_stored_response(x);
    if (stored.len > 0)
        out->replica_wanted = node_affinity_get(x->proxy->config.affinity, stored);
}

/* Does not ask for new lists if the refused request fits this replica's listed context: then the
 * refusal is no sign that other replicas' lists are outdated. */
enum node_longer exchange_longer(const struct exchange *x, const struct node_request *request)
{
    struct node_router *router = x->proxy->config.router;
    unsigned here = x->now.decision.replica;
    enum node_longer longer = node_router_longer(router, request, here, x->proxy->now_ms);
    if (longer == NODE_LONGER_IF_ANEW)
        return x->looked || node_router_context_doubted(router, request, here) ? NODE_LONGER_NONE
                                                                               : longer;
    return x->too_long ? NODE_LONGER_NONE : longer;
}

bool exchange_look(struct exchange *x, void (*over)(struct deadline *d))
{
    if (x->looked || !prober_look(x->proxy))
        return false;
    x->looked = x->looking = true;
    x->deadline.expired = over;
    proxy_arm(x->proxy, PROXY_LISTS, &x->deadline);
    return true;
}

static void model_unknown(struct exchange *x)
{
    struct node_request request;
    exchange_describe(x, &request);
    struct slice model = exchange_named(&request);
    exchange_answer_error(x, exchange_because(x, REFUSED_MODEL), SLICE("model"),
                          "The model `%.*s` does not exist.",
                          model.len > 256 ? 256 : (int)model.len, model.at);
}

/* Answers after the last failed attempt. An engine's last error is the best information. If the
 * last attempt did not reach the replica, the status says "no replica can serve now". */
void exchange_no_answer(struct exchange *x, const char *text)
{
    bool late = x->timed_out || x->refusal == REFUSED_CONNECT;
    unsigned status = x->said != 0 ? x->said : late ? 504 : x->reached ? 502 : 503;
    bool by_limit = x->refusal != REFUSED_NONE &&
                    (x->said == 0 || x->timed_out || x->refusal == REFUSED_RETRY_BUDGET);
    if (!by_limit) {
        x->refusal = x->said == 0 && status == 503 ? REFUSED_NO_REPLICA : REFUSED_BAD_GATEWAY;
        x->limit = x->timed_out ? x->limit : NULL;
    }
    if (x->said != 0 || text == NULL)
        exchange_answer_error(x, status, slice_of("", 0), "No replica answered (%u tried%s%s).",
                              x->attempts, x->limit != NULL ? "; " : "",
                              x->limit != NULL ? x->limit : "");
    else
        exchange_answer_error(x, status, slice_of("", 0), "%s", text);
}

void exchange_no_replica(struct exchange *x, int err)
{
    if (err == ERR_NOT_FOUND && (x->attempts == 0 || x->looked_after)) {
        model_unknown(x);
        return;
    }
    if (err == ERR_UNREACHABLE && x->looked_after) {
        exchange_answer_error(x, 503, slice_of("", 0),
                              "No replica that may serve this model is up.");
        return;
    }
    if (x->attempts == 0 || err == ERR_FULL) {
        exchange_answer_error(x, 503, slice_of("", 0),
                              err == ERR_FULL ? "Too many connections are open."
                                              : "No replica that serves this request is up.");
        return;
    }
    exchange_no_answer(x, NULL);
}

void exchange_exclude(struct exchange *x, enum node_outcome outcome)
{
    bool rank_only = outcome == NODE_OUTCOME_STALLED &&
                     node_router_rank_stalled(x->proxy->config.router, x->now.decision.replica);
    unsigned r = rank_only ? x->now.decision.replica : x->now.decision.server;
    node_replica_set_add(&x->excluded, r);
}

/* Excludes vLLM for SGLang's native path, which vLLM does not know, unless there are only vLLM
 * engines. */
void exchange_exclude_other_engines(struct exchange *x)
{
    const struct node_router *router = x->proxy->config.router;
    unsigned count = node_router_replica_count(router);
    unsigned others = 0;
    for (unsigned i = 0; i < count; i++)
        others += node_router_replica_engine(router, i) != NODE_ENGINE_VLLM;
    for (unsigned i = 0; i < count && others > 0; i++) {
        if (node_router_replica_engine(router, i) == NODE_ENGINE_VLLM)
            node_replica_set_add(&x->excluded, i);
    }
}

/* Chooses once. A search for a stored response is a question rather than work: most replicas will
 * not have the response, so nothing is recorded for them. */
int exchange_choose_once(struct exchange *x)
{
    struct proxy *p = x->proxy;
    struct node_request request;
    exchange_describe(x, &request);
    bool unknown = exchange_stored_response(x).len > 0 && request.replica_wanted < 0;
    bool prompt = x->skimming && x->skim.understood && exchange_answers_tokens(x->route.kind);
    const struct admission_question question = {
        .tenant = x->key,
        .against = suspect_refused(x) ? x->suspect.refused : REFUSED_NONE,
        .request = &request,
        .excluded = &x->excluded,
        .by_load = !prompt || unknown,
        .prompt = x->skimming,
    };
    x->asking_around = unknown && !x->asked;
    admission_ask(&p->admission, &x->admission, &question, p->now_ms, &x->plan);
    if (x->plan.verdict == ADMISSION_GO) {
        x->attempts++;
        x->refusal = REFUSED_NONE;
        x->limit = NULL;
    }
    return x->plan.err;
}
