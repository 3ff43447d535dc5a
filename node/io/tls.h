/* TLS 1.2 and 1.3, by OpenSSL, between the proxy and TCP streams: the proxy sees a net_stream with
 * plain bytes (node/proxy/net.h), and is unaware of TLS.
 *
 *   tls.c           opening, ticks and metrics; the certificates' and keys' files
 *   tls_stream.c    a stream: handshake, bytes in both directions, end
 *   tls_seal.c      outgoing data: records, and bytes not accepted by the kernel
 *   tls_due.c       work without a network event
 *   tls_context.c   contexts of OpenSSL: accepted versions, certificates by name
 *   tls_pem.c       certificates and keys from the text of files
 *   tls_tickets.c   keys of session tickets
 *   tls_host.c      a replica: the session to resume, and the last failure
 *   tls_failures.c  reasons of failed handshakes: counted, and logged once a minute each
 *
 * There is a single loop and no lock: a thread of libuv's pool parses files and passes the result
 * to the loop. Handshakes are computed in the loop, for about TLS_TURN_NS in each turn. Further
 * handshakes wait for the next turn, after the events of other streams (docs/adr/0041-tls.md). */
#ifndef NODE_IO_TLS_H
#define NODE_IO_TLS_H

#include <uv.h>

#include "base/err.h"
#include "base/prometheus.h"
#include "node/io/watch_file.h"
#include "node/proxy/net.h"
#include "node/proxy/proxy.h"
#include "node/settings/options.h"

enum {
    TLS_TURN_NS = 200000,         /* after this time no more handshakes begin in a turn */
    TLS_FILE_BYTES_MAX = 1 << 20, /* longest file of a certificate, a key or ticket keys */
    TLS_CA_BYTES_MAX = 4 << 20,   /* longest file of CAs */
    TLS_TICKET_KEYS_MAX = 16,     /* most keys in the file of ticket keys */
    TLS_SESSION_S = 7200,         /* lifetime of a session for resumption */
    TLS_REPLICA_SLOW_MS = 1000,   /* a replica's handshake that is given up after this time counts
                                   * as a timeout */
    TLS_FAILURES_LOG_MS = 60000,  /* interval of log lines on the same kind of failure */
};

struct shell;
struct tcp_stream;
struct tls;
struct admin_attention_list;

/* Reads the files in the settings. ERR_NOT_FOUND or ERR_NOMEM with a message of IO_FILE_MESSAGE
 * bytes. `options` and `all` are borrowed until tls_free(). */
MUST_USE int tls_open(struct tls **out, const struct node_options *options, struct io_watches *all,
                      char *message);
/* Called when the shell's loop exists. The shell is borrowed until tls_free(). */
void tls_start(struct tls *t, struct shell *shell);
void tls_tick(struct tls *t, uint64_t now_ms);
/* Returns true while clients' handshakes are under way, so that the tick is needed soon. */
bool tls_waits(const struct tls *t);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void tls_free(struct tls *t);
/* Returns the number of sets of files now unusable. */
unsigned tls_files_refused(const struct tls *t);
void tls_metrics(const struct tls *t, struct prometheus *p);
/* Adds certificates (of ports, and replica-cert) that have expired, or will in two weeks. */
void tls_attention(const struct tls *t, struct admin_attention_list *list);

/* --- replicas -------------------------------------------------------------------------------- */

struct tls_host;

/* Creates the state of an https replica. ERR_NOMEM. */
MUST_USE int tls_host_open(struct tls *t, const struct node_address *address,
                           struct tls_host **out);
/* Called when no stream to the replica is open. Accepts NULL. */
void tls_host_free(struct tls_host *host);

/* --- streams, for tcp.c ---------------------------------------------------------------------- */

/* Returns true if the port uses TLS. */
bool tls_on_port(const struct tls *t, enum proxy_port port);
/* Prepares a stream accepted on the port, which has no owner yet. ERR_NOMEM. */
MUST_USE int tls_accepted(struct tls *t, struct tcp_stream *s, enum proxy_port port);
/* Prepares a stream for a connection to the host. ERR_NOMEM. */
MUST_USE int tls_connects(struct tls *t, struct tcp_stream *s, struct tls_host *host);
/* Starts the stream, which now has an owner. `after_header`: a PROXY header comes first,
 * unencrypted. */
void tls_begin(struct tcp_stream *s, bool after_header);

/* These are actions of struct net_actions. */
ptrdiff_t tls_write(struct tcp_stream *s, const struct slice *pieces, unsigned count);
MUST_USE int tls_queue(struct tcp_stream *s, const struct slice *pieces, unsigned count);
void tls_read(struct tcp_stream *s, bool on);
void tls_finish(struct tcp_stream *s);
/* Called before the stream is closed: notifies the peer, unless `cut`. */
void tls_closing(struct tcp_stream *s, bool cut);
/* Called after the stream was closed. */
void tls_stream_free(struct tcp_stream *s);

#endif
