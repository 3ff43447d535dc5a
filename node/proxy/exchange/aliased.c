/* Reads the model from the body for the engine, where an alias is replaced by the real model.
 * Counts requests by real model at the end. */
#include "http/multipart.h"
#include "node/proxy/exchange/exchange_internal.h"
#include "node/settings/aliases.h"

struct slice exchange_body_model(const struct exchange *x)
{
    uint64_t at;
    if (x->form)
        return http_multipart_model(x->request.body, x->proxy->joined, &at);
    return x->skimming && x->skim.understood && http_skim_has_model(&x->skim)
               ? http_skim_field(&x->skim, HTTP_SKIM_MODEL)
               : slice_of("", 0);
}

void exchange_alias_count(struct exchange *x)
{
    if (x->alias_len == 0 || x->attempts == 0)
        return;
    const struct node_alias *alias =
        node_alias_find(&x->proxy->aliases, slice_of(x->alias, x->alias_len));
    int at = alias != NULL ? node_alias_target(alias, exchange_body_model(x)) : -1;
    if (at < 0)
        return;
    alias->targets[at].requests++;
    alias->targets[at].fallbacks += x->fell_back;
}
