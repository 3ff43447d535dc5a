/* The client's key and the key's limits. Without keys (client-keys-file) this file has no
 * effect. */
#include "node/proxy/exchange/exchange_internal.h"

/* Returns the key in the head, in the order of preference; empty: none. */
static struct slice secret_of(const struct http_head *head)
{
    struct slice bearer = http_head_get(head, HTTP_AUTHORIZATION);
    struct slice scheme = SLICE("bearer ");
    if (bearer.len > scheme.len && slice_equal_nocase(slice_of(bearer.at, scheme.len), scheme))
        return slice_trim(slice_skip(bearer, scheme.len));
    struct slice key = http_head_get(head, HTTP_X_API_KEY);
    return key.len > 0 ? key : http_head_get(head, HTTP_API_KEY);
}

uint64_t exchange_key_client(const struct exchange *x, const struct http_head *head)
{
    struct slice secret = secret_of(head);
    if (secret.len == 0)
        secret = slice_of_cstr(x->client->peer);
    uint64_t hash = hash64(&x->proxy->config.secret, secret.at, secret.len);
    if (x->agent_len > 0)
        hash = hash_mix(hash ^ hash64(&x->proxy->config.secret, x->agent, x->agent_len));
    return hash | 1;
}

bool exchange_key_refuse(struct exchange *x, const struct http_head *head)
{
    struct access *access = x->proxy->config.access;
    if (access == NULL || x->route.kind == HTTP_PATH_HEALTH || x->route.kind == HTTP_PATH_ROOT)
        return false;
    struct slice secret = secret_of(head);
    struct access_key *k = access_find(access, secret);
    if (k == NULL) {
        x->refusal = REFUSED_CLIENT_KEY;
        struct http_line challenge = {SLICE("www-authenticate"), SLICE("Bearer")};
        exchange_answer_error_with(
            x, 401,
            secret.len == 0
                ? "No API key was given. Send yours as Authorization: Bearer KEY, or as x-api-key."
                : "This API key is unknown: it is mistyped or revoked. Ask the operator of "
                  "this router for a new one.",
            &challenge);
        return true;
    }
    access_key_hold(k);
    x->key = k;
    return false;
}

/* Returns true if the router certainly reads the same model as the engine. A key for certain models
 * may only use such paths. */
static bool model_is_read(enum http_path_kind kind, const struct http_head *head)
{
    switch (kind) {
    case HTTP_PATH_MEDIA: /* in a form a file may look like the model field, */
    case HTTP_PATH_JOBS:  /* and another text may look like JSON */
        return exchange_is_json(head);
    case HTTP_PATH_GENERATE:    /* names no model */
    case HTTP_PATH_INVOCATIONS: /* X-Amzn-SageMaker-Adapter-Identifier replaces the model (vLLM) */
    case HTTP_PATH_OTHER:
    case HTTP_PATH_STATUS:
    case HTTP_PATH_CONTROL:
        return false;
    default:
        return true;
    }
}

static void refuse_model(struct exchange *x, struct slice model)
{
    access_note_refusal(x->proxy->config.access, x->key, ACCESS_OTHER_MODEL);
    (void)exchange_because(x, REFUSED_KEY_MODEL);
    exchange_answer_error(x, 404, SLICE("model"),
                          "The model `%.*s` does not exist, or this API key may not use it.",
                          model.len > 256 ? 256 : (int)model.len, model.at);
}

void exchange_key_limited(struct exchange *x)
{
    const struct access_limits *l = &x->key->limits;
    enum access_verdict v = x->plan.over;
    uint64_t most = v == ACCESS_OVER_REQUESTS ? l->requests
                    : v == ACCESS_OVER_TOKENS ? l->tokens
                                              : l->in_flight;
    x->refusal = REFUSED_KEY_LIMIT;
    x->limit = access_verdict_name(v);
    x->retry_after_s = x->plan.retry_after_s;
    exchange_answer_error(x, 429, slice_of("", 0),
                          "Rate limit reached for the API key `%s`: %s is %llu.", x->key->use->name,
                          x->limit, (unsigned long long)most);
}

/* Returns true if any proxy before an engine reads the path in the same way. */
static bool is_plain(struct slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        bool segment = i > 0 && path.at[i - 1] == '/';
        if (strchr("%\\;", path.at[i]) != NULL || (segment && strchr("/.", path.at[i]) != NULL))
            return false;
    }
    return true;
}

/* Refuses an engine's list of jobs, which has the jobs of all clients. */
static bool refuse_jobs(struct exchange *x)
{
    access_note_refusal(x->proxy->config.access, x->key, ACCESS_OTHER_RESPONSE);
    exchange_answer_refusal(x, REFUSED_KEY_RESPONSE);
    return true;
}

bool exchange_key_refuse_path(struct exchange *x, const struct http_head *head)
{
    bool unknown = x->route.kind == HTTP_PATH_OTHER || x->route.behind;
    if (x->key != NULL && unknown && !is_plain(head->path)) {
        /* possibly another key's stored response in disguise */
        exchange_answer(x, 404, SLICE("application/json"), SLICE(HTTP_BODY_NOT_FOUND), NULL, 0);
        return true;
    }
    if (x->key != NULL && x->route.kind == HTTP_PATH_RESPONSE_STORED)
        return exchange_owner_refuse(x, x->route.id, SLICE("response_id"));
    if (x->key != NULL && x->route.kind == HTTP_PATH_MEDIA_STORED)
        return exchange_owner_refuse(x, x->route.id, slice_of("", 0));
    if (x->key != NULL && x->route.kind == HTTP_PATH_JOBS && x->method != HTTP_METHOD_POST)
        return refuse_jobs(x);
    if (x->key == NULL || x->key->models == NULL ||
        (!x->route.behind && model_is_read(x->route.kind, head)))
        return false;
    access_note_refusal(x->proxy->config.access, x->key, ACCESS_OTHER_MODEL);
    exchange_answer_refusal(x, REFUSED_KEY_MODEL);
    return true;
}

/* Refuses keys without the right to control engines. Also refuses keys for certain models, because
 * a control request affects all models of a replica. */
bool exchange_key_refuse_control(struct exchange *x)
{
    struct proxy *p = x->proxy;
    if (x->key == NULL || (x->key->control && x->key->models == NULL)) {
        const struct admission_question question = {.tenant = x->key};
        admission_ask(&p->admission, &x->admission, &question, p->now_ms, &x->plan);
        bool refused = x->plan.verdict == ADMISSION_REFUSE;
        if (refused)
            exchange_key_limited(x);
        return refused;
    }
    x->refusal = REFUSED_CONTROL;
    x->limit = "client-keys-file";
    exchange_answer_error(
        x, 403, slice_of("", 0),
        x->key->control ? "This API key is for certain models only: it may not control engines."
                        : "This API key may not control engines (`control` in "
                          "client-keys-file).");
    return true;
}

static bool refuse_model_of_body(struct exchange *x)
{
    if (x->key->models == NULL ||
        (!exchange_carries_prompt(x->route.kind) && !exchange_names_model(x->route.kind)))
        return false;
    struct node_request request;
    exchange_describe(x, &request);
    bool odd = x->skimming && (http_skim_is_odd(&x->skim, HTTP_SKIM_MODEL) ||
                               http_skim_is_odd(&x->skim, HTTP_SKIM_LORA));
    bool adapter = request.lora.len == 0 || access_key_allows(x->key, request.lora);
    if (request.model.len > 0 && adapter && !odd && access_key_allows(x->key, request.model))
        return false;
    refuse_model(x, adapter ? request.model : request.lora);
    return true;
}

/* Refuses background answers to a key with limits. Such an answer comes at once and empty, so the
 * router could not count the later use, or the work under way. */
static bool refuse_background(struct exchange *x)
{
    const struct access_limits *l = &x->key->limits;
    bool may = x->route.kind == HTTP_PATH_RESPONSES || x->route.kind == HTTP_PATH_INVOCATIONS;
    if ((l->tokens == 0 && l->in_flight == 0) || !x->skimming || !may ||
        !x->skim.flags[HTTP_SKIM_BACKGROUND])
        return false;
    enum access_verdict v = l->tokens != 0 ? ACCESS_OVER_TOKENS : ACCESS_OVER_IN_FLIGHT;
    access_note_refusal(x->proxy->config.access, x->key, v);
    x->refusal = REFUSED_KEY_LIMIT;
    x->limit = access_verdict_name(v);
    exchange_answer_error(x, 403, SLICE("background"),
                          "This API key has a limit (%s), so it may not use background responses: "
                          "the router cannot count their tokens.",
                          x->limit);
    return true;
}

bool exchange_key_refuse_body(struct exchange *x)
{
    return x->key != NULL &&
           (refuse_model_of_body(x) || exchange_owner_refuse_body(x) || refuse_background(x));
}

struct slice exchange_key_of_engines(const struct proxy *p)
{
    unsigned version;
    if (p->config.access == NULL || p->config.replica_key == NULL)
        return slice_of("", 0);
    return p->config.replica_key(p->config.replica_key_context, &version);
}
