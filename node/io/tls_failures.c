/* Reasons of failed handshakes: classified, counted, and logged once a minute for each kind. */
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/io/tls_internal.h"

static const struct {
    const char *name;
    const char *of_client; /* advice; NULL: none */
    const char *of_replica;
} kinds[TLS_FAILURES] = {
    [TLS_FAILURE_PLAINTEXT] = {"plaintext", "https:// in the client's URL",
                               "http:// in the replica's URL, or TLS at its port"},
    [TLS_FAILURE_TIMEOUT] =
        {"timeout", "use a client that completes its handshake within tls-handshake-timeout",
         "find out why the replica does not answer within upstream-connect-timeout"},
    [TLS_FAILURE_CLOSED] = {"closed", NULL,
                            "check that the replica speaks TLS 1.2 or 1.3 at this port; set "
                            "replica-cert if it asks for a certificate"},
    [TLS_FAILURE_VERSION] = {"version", "use a client with TLS 1.2 or 1.3",
                             "enable TLS 1.2 or 1.3 at the replica"},
    [TLS_FAILURE_CIPHER] = {"cipher", "use a client with ECDHE and AES-GCM or ChaCha20-Poly1305",
                            "enable ECDHE and AES-GCM or ChaCha20-Poly1305 at the replica"},
    [TLS_FAILURE_ALPN] = {"alpn", "use a client that accepts HTTP/1.1",
                          "enable HTTP/1.1 at the replica"},
    [TLS_FAILURE_ALERT] =
        {"alert", "make the client trust the CA of this port's certificate",
         "set replica-cert to a certificate that the replica trusts, or set replica-tls-name"},
    [TLS_FAILURE_CERTIFICATE] =
        {"certificate", NULL,
         "give the replica a valid certificate, and put its CA in replica-ca-file"},
    [TLS_FAILURE_NAME] =
        {"name", NULL, "address the replica by a name in its certificate, or set replica-tls-name"},
    [TLS_FAILURE_MALFORMED] = {"malformed", "use a client that speaks TLS (https)",
                               "check the replica's port: it does not speak TLS"},
};

const char *tls_failure_name(enum tls_failure why)
{
    return kinds[why].name;
}

static enum tls_failure of_reason(int reason)
{
    switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER: /* bytes other than TLS */
        return TLS_FAILURE_PLAINTEXT;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return TLS_FAILURE_VERSION;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_GROUPS:
        return TLS_FAILURE_CIPHER;
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return TLS_FAILURE_ALPN;
    default: /* alerts from the peer: SSL_AD_REASON_OFFSET plus the number */
        return reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256
                   ? TLS_FAILURE_ALERT
                   : TLS_FAILURE_MALFORMED;
    }
}

enum tls_failure tls_failure_of(const struct tls_stream *s)
{
    long verified = s->side == TLS_REPLICAS ? SSL_get_verify_result(s->ssl) : X509_V_OK;
    unsigned long error = ERR_peek_last_error();
    if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return TLS_FAILURE_NAME;
    if (verified != X509_V_OK)
        return TLS_FAILURE_CERTIFICATE;
    return error == 0 ? TLS_FAILURE_CLOSED : of_reason(ERR_GET_REASON(error));
}

/* Returns OpenSSL's reason, in words. */
static const char *words(const struct tls_stream *s, enum tls_failure why)
{
    if (why == TLS_FAILURE_NAME || why == TLS_FAILURE_CERTIFICATE)
        return X509_verify_cert_error_string(SSL_get_verify_result(s->ssl));
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : kinds[why].name;
}

static void say_of_replica(struct tls_stream *s, enum tls_failure why, const char *detail)
{
    char name[NODE_REPLICA_NAME_BYTES];
    struct tls_host *host = s->host;
    uint64_t now = shell_now_ms(s->tcp->shell);
    bool again = host->failing && host->why == why;
    if (again && now - host->logged_ms < TLS_FAILURES_LOG_MS)
        return;
    host->failing = true;
    host->why = why;
    host->logged_ms = now;
    node_replica_name_of(&host->address, name);
    log_event(s->all->log, LOG_WARN, "replica_tls_failed", LOG_CSTR("replica", name),
              LOG_CSTR("reason", kinds[why].name), LOG_CSTR("error", detail),
              LOG_CSTR("want", kinds[why].of_replica));
}

static void say_of_client(struct tls_stream *s, enum tls_failure why, const char *detail)
{
    struct tls_complaint *complaint = &s->all->complaints[s->side][why];
    uint64_t now = shell_now_ms(s->tcp->shell);
    complaint->unlogged++;
    if (kinds[why].of_client == NULL ||
        (complaint->logged_ms != 0 && now - complaint->logged_ms < TLS_FAILURES_LOG_MS))
        return;
    log_event(s->all->log, LOG_WARN, "tls_handshake_failed",
              LOG_CSTR("port_of", s->side == TLS_CLIENTS ? "clients" : "admin"),
              LOG_CSTR("from", proxy_peer(&s->tcp->stream)), LOG_CSTR("reason", kinds[why].name),
              LOG_CSTR("error", detail), LOG_UINT("count", complaint->unlogged),
              LOG_CSTR("want", kinds[why].of_client));
    complaint->logged_ms = now;
    complaint->unlogged = 0;
}

void tls_failure_note(struct tls_stream *s, enum tls_failure why, const char *detail)
{
    s->all->counts[s->side].failures[why]++;
    if (detail == NULL)
        detail = words(s, why);
    if (s->side == TLS_REPLICAS)
        say_of_replica(s, why, detail);
    else
        say_of_client(s, why, detail);
}
