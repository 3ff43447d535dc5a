/* Families of header fields: all names of a family share an id. Names are compared in lower case
 * and with '_' as '-', because servers behind the router (WSGI, CGI, nginx) treat both as the same
 * name. */
#include <string.h>

#include "base/check.h"
#include "http/chars.h"
#include "http/engine_field.h"
#include "http/field.h"

enum { NAME_MAX = 32 }; /* compared bytes of a name; no name below is longer */

/* Fields in which proxies give the client's address. Each product uses another name. The first two
 * names have ids of their own if written with '-' (field.h), and are of this family if written with
 * '_'. */
static const struct slice addresses[] = {
    SLICE("x-forwarded-for"),
    SLICE("x-real-ip"),
    SLICE("x-original-forwarded-for"), /* ingress-nginx */
    SLICE("x-client-ip"),              /* Apache's mod_remoteip */
    SLICE("x-cluster-client-ip"),      /* Rackspace, Zeus */
    SLICE("true-client-ip"),           /* Akamai, Cloudflare */
    SLICE("cf-connecting-ip"),
    SLICE("cf-connecting-ipv6"),       /* Cloudflare */
    SLICE("fastly-client-ip"),         /* Fastly */
    SLICE("x-envoy-external-address"), /* Envoy */
};

enum http_field_id http_field_family(struct slice name)
{
    char folded[NAME_MAX];
    size_t n = name.len < sizeof folded ? name.len : sizeof folded;
    for (size_t i = 0; i < n; i++)
        folded[i] = name.at[i] == '_' ? '-' : http_lower(name.at[i]);
    struct slice text = slice_of(folded, n);
    if (slice_starts_with(text, SLICE("x-forwarded-")))
        return HTTP_FORWARDING;
    if (slice_starts_with(text, SLICE("x-grapevine-")))
        return HTTP_X_GRAPEVINE;
    if (name.len >= sizeof folded)
        return HTTP_FIELD_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        if (slice_equal(text, addresses[i]))
            return HTTP_FORWARDING;
    }
    return http_engine_header_is(text) ? HTTP_ENGINE_HEADER : HTTP_FIELD_OTHER;
}
