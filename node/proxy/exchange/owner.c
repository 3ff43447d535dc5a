/* The owner of a stored response: the client's key by which the response was made. Engines return,
 * continue, cancel and delete a response for any client that knows the id, so the router refuses
 * other keys.
 *
 * The owner is stored like the response's replica (node/route/affinity.h), in two more entries. The
 * first marks the response as owned, and the second names the owner. So routers share owners as
 * they share replicas, and older versions forward the entries. */
#include "node/proxy/exchange/exchange_internal.h"

enum owner {
    /* The response was made without a key, or the owner is not known yet, or forgotten. */
    OWNER_UNKNOWN,
    OWNER_SAME,
    OWNER_OTHER,
};

enum { MARK_MAX = HTTP_USAGE_ID_MAX + 1 + ACCESS_NAME_MAX };

/* Writes the key of an entry. No id contains the NUL between the parts. An empty name means any
 * owner. */
static struct slice mark(char *out, struct slice id, const char *name)
{
    size_t len = strlen(name);
    memcpy(out, id.at, id.len);
    out[id.len] = '\0';
    memcpy(out + id.len + 1, name, len);
    return slice_of(out, id.len + 1 + len);
}

static bool is_marked(const struct exchange *x, struct slice id, const char *name)
{
    char text[MARK_MAX];
    return node_affinity_get(x->proxy->config.affinity, mark(text, id, name)) >= 0;
}

static void put_mark(const struct exchange *x, struct slice id, const char *name)
{
    char text[MARK_MAX];
    node_affinity_put(x->proxy->config.affinity, mark(text, id, name), x->now.decision.replica);
}

static enum owner owner_of(const struct exchange *x, struct slice id)
{
    if (id.len > HTTP_USAGE_ID_MAX)
        return OWNER_UNKNOWN;
    if (is_marked(x, id, x->key->use->name)) {
        /* Refresh both entries, because they are useful only together. */
        (void)is_marked(x, id, "");
        return OWNER_SAME;
    }
    char text[MARK_MAX];
    bool any = node_affinity_peek(x->proxy->config.affinity, mark(text, id, "")) >= 0;
    return any ? OWNER_OTHER : OWNER_UNKNOWN;
}

static void note_refusal(struct exchange *x)
{
    access_note_refusal(x->proxy->config.access, x->key, ACCESS_OTHER_RESPONSE);
    x->refusal = REFUSED_KEY_RESPONSE;
}

/* Answers like an engine without the response. */
static bool refuse(struct exchange *x, struct slice id, struct slice param)
{
    note_refusal(x);
    exchange_answer_error(x, 404, param, "Response with id '%.*s' not found.",
                          id.len > 256 ? 256 : (int)id.len, id.at);
    return true;
}

bool exchange_owner_refuse(struct exchange *x, struct slice id, struct slice param)
{
    enum owner owner = owner_of(x, id);
    bool any_model = x->key->models == NULL; /* the response's model is unknown too */
    if (owner == OWNER_SAME || (owner == OWNER_UNKNOWN && any_model))
        return false;
    return refuse(x, id, param);
}

/* Returns the id that the client chose for the response, by request_id (vLLM, SGLang); empty:
 * none. */
static struct slice chosen_id(const struct exchange *x)
{
    bool chooses = x->route.kind == HTTP_PATH_RESPONSES && x->skimming;
    return chooses ? http_skim_field(&x->skim, HTTP_SKIM_REQUEST_ID) : slice_of("", 0);
}

bool exchange_owner_refuse_body(struct exchange *x)
{
    bool stored = x->route.kind == HTTP_PATH_RESPONSES || x->route.kind == HTTP_PATH_PROMPT ||
                  x->route.kind == HTTP_PATH_INVOCATIONS;
    if (!x->skimming || !stored)
        return false;
    if (!x->skim.understood) {
        note_refusal(x);
        exchange_answer_error(x, 403, slice_of("", 0),
                              "The router could not read the request, so it cannot check whether "
                              "this API key may send it.");
        return true;
    }
    struct slice previous = http_skim_field(&x->skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID);
    if (previous.len > 0 && exchange_owner_refuse(x, previous, SLICE("previous_response_id")))
        return true;
    struct slice chosen = chosen_id(x);
    if (chosen.len > 0 && owner_of(x, chosen) == OWNER_OTHER) /* the new response would replace the
                                                               * other key's response */
        return refuse(x, chosen, SLICE("request_id"));
    return false;
}

/* Notes the owner of a response. A chosen id gets no owner: the engine may still have a response
 * forgotten by the router, and a client could claim that response by asking for the id. */
void exchange_owner_put(struct exchange *x)
{
    struct slice id = slice_of_cstr(x->usage.response_id);
    if (x->key != NULL && owner_of(x, id) == OWNER_OTHER)
        return;
    node_affinity_put(x->proxy->config.affinity, id, x->now.decision.replica);
    if (x->key == NULL || chosen_id(x).len > 0)
        return;
    put_mark(x, id, x->key->use->name);
    put_mark(x, id, "");
}
