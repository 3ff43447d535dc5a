/* Access control: the right to call the admin port, and to change something there. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/admin/admin_internal.h"

static bool shows(struct slice (*token)(void *context), void *context, const struct http_head *head)
{
    struct slice given = http_head_get(head, HTTP_AUTHORIZATION);
    struct slice prefix = SLICE("Bearer ");
    return token != NULL && slice_starts_with(given, prefix) &&
           slice_equal_secret(slice_skip(given, prefix.len), token(context));
}

/* True if the request shows the token for changes, which also permits reading. */
static bool has_token(const struct admin *a, const struct http_head *head)
{
    return shows(a->config.token, a->config.token_context, head);
}

static bool has_any_token(const struct admin *a, const struct http_head *head)
{
    return has_token(a, head) || shows(a->config.read_token, a->config.token_context, head);
}

/* Answers 401 with `text`, after a sentence about a wrong or weaker token. `who` is from
 * admin_who(). */
static void answer_no_token(struct exchange *x, const struct admin_who *who, const char *text)
{
    struct http_line challenge = {SLICE("www-authenticate"), SLICE("Bearer")};
    char said[400];
    bool wrong = strcmp(who->token, "wrong") == 0, reads = strcmp(who->token, "read") == 0;
    (void)snprintf(said, sizeof said, "%s%s",
                   wrong   ? "This router does not know that token. "
                   : reads ? "That token may only read. "
                           : "",
                   text);
    exchange_answer_error_with(x, 401, said, &challenge);
}

/* True if the name is the host in `at`, HOST[:PORT]. */
static bool is_host_of(struct slice name, const char *at)
{
    struct node_address own;
    return node_address_parse_bare(slice_of_cstr(at), 0, &own) == 0 &&
           slice_equal_nocase(name, slice_of_cstr(own.host));
}

/* True if the authority's host can only be this router: an IP address, localhost, the name in
 * admin-listen, or the name announced to the others (the machine's, if the port listens on all
 * addresses). A foreign page cannot have such a host name. */
static bool is_our_host(const struct admin *a, struct slice authority)
{
    char host[NODE_HOST_BYTES];
    bool ipv6 = authority.len > 0 && authority.at[0] == '[';
    if (ipv6)
        authority = slice_skip(authority, 1);
    struct slice name = slice_of(authority.at, slice_find(authority, ipv6 ? ']' : ':'));
    if (!slice_to_cstr(name, host, sizeof host))
        return false;
    bool address = node_host_is_ip(host) && ipv6 == (strchr(host, ':') != NULL);
    const struct node_options *o = a->config.options;
    const struct node_replication *n = a->config.replication;
    return address || slice_equal_nocase(name, SLICE("localhost")) ||
           slice_equal_nocase(name, slice_of_cstr(o->admin_listen.host)) ||
           is_host_of(name, o->admin_advertise) ||
           is_host_of(name, n != NULL ? node_replication_admin_is(n) : "");
}

/* True for a call by a page that this router served. The page's origin equals the request's `Host`,
 * which is_our_host() has accepted, and nobody else serves pages at our address and port. Fetch
 * metadata, if the browser sends any, must agree. */
static bool is_own_page(const struct http_head *head, struct slice origin)
{
    struct slice site = http_head_find(head, SLICE("sec-fetch-site"));
    static const struct slice schemes[] = {SLICE("http://"), SLICE("https://")};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (slice_starts_with(origin, schemes[i]))
            return head->host.len > 0 &&
                   slice_equal_nocase(slice_skip(origin, schemes[i].len), head->host) &&
                   (site.at == NULL || slice_equal(site, SLICE("same-origin")));
    }
    return false;
}

/* True for a call by a page of another origin. Such a page could read nothing, but could keep
 * streams of /live open. A person may follow a link to our page, although the link is on a page of
 * another origin; sending a form (POST) is no link. */
static bool is_foreign_page(const struct http_head *head)
{
    struct slice site = http_head_find(head, SLICE("sec-fetch-site"));
    struct slice mode = http_head_find(head, SLICE("sec-fetch-mode"));
    struct slice dest = http_head_find(head, SLICE("sec-fetch-dest"));
    bool foreign = slice_equal(site, SLICE("cross-site")) || slice_equal(site, SLICE("same-site"));
    bool reads = head->method == HTTP_METHOD_GET || head->method == HTTP_METHOD_HEAD;
    bool link =
        reads && slice_equal(mode, SLICE("navigate")) && slice_equal(dest, SLICE("document"));
    return foreign && !link;
}

/* A page in an operator's browser must not talk to this port: neither under a foreign name pointed
 * at this address (DNS rebinding), nor by sending forms. Answers 403 to both. */
bool admin_may_call(const struct admin *a, struct exchange *x, const struct http_head *head,
                    bool changes)
{
    if (has_token(a, head) || (!changes && has_any_token(a, head)))
        return true;
    if (head->host.len > 0 && !is_our_host(a, head->host)) {
        exchange_answer_error(x, 403, slice_of("", 0),
                              "The Host header (%.*s) does not name this admin port: use its "
                              "address, localhost or the name in admin-listen "
                              "or admin-advertise, or give the admin token.",
                              head->host.len > 200 ? 200 : (int)head->host.len, head->host.at);
        return false;
    }
    struct slice origin = http_head_find(head, SLICE("origin"));
    bool own = !changes && is_own_page(head, origin);
    if ((origin.at != NULL && !own) || is_foreign_page(head)) {
        exchange_answer_error(x, 403, slice_of("", 0),
                              "The admin port refuses calls from web pages (Origin) without the "
                              "admin token, except calls from its own page that change nothing.");
        return false;
    }
    return true;
}

/* Reading needs a token if admin-read-token-file is set. The token for changes works too. */
bool admin_may_read(const struct admin *a, struct exchange *x, const struct http_head *head)
{
    struct admin_who who;
    if (a->config.read_token == NULL || has_any_token(a, head))
        return true;
    admin_who(a, x, head, &who);
    answer_no_token(x, &who,
                    "The admin port of this router requires a token, also for reading: gvctl "
                    "--token-file FILE, or the header Authorization: Bearer TOKEN.");
    return false;
}

/* --- refusals, and callers for the log -------------------------------------------------------- */

void admin_who(const struct admin *a, const struct exchange *x, const struct http_head *head,
               struct admin_who *out)
{
    (void)snprintf(out->from, sizeof out->from, "%s", x->client->peer);
    out->token = has_token(a, head)                                ? "admin"
                 : has_any_token(a, head)                          ? "read"
                 : http_head_get(head, HTTP_AUTHORIZATION).len > 0 ? "wrong"
                                                                   : "none";
}

/* Returns the row of this address and call, or a new row. NULL: all rows are in use by refusals
 * logged within the last minute. */
static struct admin_refusal *find_refusal(struct admin *a, const char *from, const char *path,
                                          uint64_t now_ms)
{
    struct admin_refusal *oldest = &a->refusals[0];
    for (size_t i = 0; i < ARRAY_LEN(a->refusals); i++) {
        struct admin_refusal *r = &a->refusals[i];
        if (strcmp(r->from, from) == 0 && strcmp(r->path, path) == 0)
            return r;
        oldest = r->said_ms < oldest->said_ms ? r : oldest;
    }
    if (oldest->from[0] != '\0' && now_ms - oldest->said_ms < ADMIN_REFUSALS_MS)
        return NULL;
    a->refusals_unsaid += oldest->unsaid;
    *oldest = (struct admin_refusal){0};
    (void)snprintf(oldest->from, sizeof oldest->from, "%s", from);
    (void)snprintf(oldest->path, sizeof oldest->path, "%s", path);
    return oldest;
}

/* Logs a refusal once a minute for each address and call, for at most ADMIN_REFUSALS_MAX pairs. */
static void tell_refused(struct admin *a, const struct exchange *x, const struct admin_who *who)
{
    uint64_t now_ms = proxy_now_ms(a->proxy);
    struct admin_refusal *r = find_refusal(a, who->from, x->path, now_ms);
    if (r == NULL) {
        a->refusals_unsaid++;
        return;
    }
    r->unsaid++;
    if (r->said && now_ms - r->said_ms < ADMIN_REFUSALS_MS)
        return;
    log_event(a->config.log, LOG_WARN, "admin_refused", LOG_CSTR("from", who->from),
              LOG_CSTR("path", x->path), LOG_CSTR("token", who->token),
              LOG_UINT("count", r->unsaid), LOG_UINT("of_others", a->refusals_unsaid));
    r->said = true;
    r->said_ms = now_ms;
    r->unsaid = 0;
    a->refusals_unsaid = 0;
}

/* True for a program on this machine, unless it is a proxy for a remote client. */
static bool is_from_here(const struct exchange *x, const struct http_head *head)
{
    static const uint8_t proxied[] = {
        HTTP_FORWARDED,         HTTP_VIA,       HTTP_X_FORWARDED_FOR, HTTP_X_FORWARDED_HOST,
        HTTP_X_FORWARDED_PROTO, HTTP_X_REAL_IP, HTTP_FORWARDING};
    for (size_t i = 0; i < ARRAY_LEN(proxied); i++) {
        if (http_head_has(head, (enum http_field_id)proxied[i]))
            return false;
    }
    return node_host_is_loopback(x->client->peer);
}

/* Names the origin of a call denied by is_from_here(), for a message. */
static const char *elsewhere(const struct exchange *x, const struct admin_who *who)
{
    return node_host_is_loopback(x->client->peer) ? "a proxy on this machine" : who->from;
}

/* Answers 401 with `needs` if a token would help. If not, answers 403 with `elsewhere_format`. The
 * two strings for the format are the caller's origin, and advice: a call by loopback, or `never` if
 * the port does not listen there. Returns false. */
static bool refuse(struct admin *a, struct exchange *x, const struct http_head *head,
                   bool token_helps, const char *needs, const char *elsewhere_format,
                   const char *never)
{
    struct admin_who who;
    admin_who(a, x, head, &who);
    tell_refused(a, x, &who);
    if (token_helps)
        answer_no_token(x, &who, needs);
    else
        exchange_answer_error(x, 403, slice_of("", 0), elsewhere_format, elsewhere(x, &who),
                              a->on_loopback ? ": call it on its own machine by 127.0.0.1, or"
                                             : never);
    return false;
}

/* A change needs the token if a token is configured: without it, 401. If none is configured, the
 * call must come from this machine: from elsewhere, 403. The reason: anybody able to add a replica
 * receives prompts. */
bool admin_may_change(struct admin *a, struct exchange *x, const struct http_head *head)
{
    bool has = a->config.token != NULL;
    return (has ? has_token(a, head) : is_from_here(x, head)) ||
           refuse(
               a, x, head, has,
               "This call changes state and needs the admin token: gvctl "
               "--token-file FILE, or the header Authorization: Bearer TOKEN.",
               "This call changes state and comes from %s. A router without an admin token accepts "
               "changes from loopback only%s start it with admin-token-file and give the token "
               "(gvctl --token-file FILE).",
               ", and this router's admin port does not listen there, so it accepts no changes:");
}

/* A prompt's cost reveals whether a prompt with the same beginning was served lately. A caller on
 * another machine therefore has to show a token, even if reading needs none. */
bool admin_may_ask(struct admin *a, struct exchange *x, const struct http_head *head)
{
    return is_from_here(x, head) || has_any_token(a, head) ||
           refuse(
               a, x, head, a->config.token != NULL || a->config.read_token != NULL,
               "This call reveals whether a text was served, and comes from another "
               "machine: it needs the admin token or the one for reading: gvctl "
               "--token-file FILE, or the header Authorization: Bearer TOKEN.",
               "This call reveals whether a text was served, and comes from %s. A router without a "
               "token accepts it from loopback only%s start it with admin-token-file or "
               "admin-read-token-file and give a token (gvctl --token-file FILE).",
               ", and this router's admin port does not listen there:");
}
