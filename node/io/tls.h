/* TLS 1.2 and 1.3, by OpenSSL, between the proxy and TCP streams: the proxy sees a net_stream whose
 * bytes are plain (node/proxy/net.h), and does not know.
 *
 *   tls.c           the whole: opened, ticked, watched, measured; which files it is made of
 *   tls_stream.c    one stream: handshake, bytes in, bytes out, the end
 *   tls_seal.c      what goes out of it: records, and what the kernel did not take
 *   tls_due.c       what is to be done though nothing came
 *   tls_context.c   contexts of OpenSSL: what is accepted, certificates by name
 *   tls_pem.c       certificates and keys out of the text of files
 *   tls_tickets.c   keys of session tickets
 *   tls_host.c      a replica: its session, and what was last wrong with it
 *   tls_failures.c  why handshakes fail: counted, and said once a minute each
 *
 * One loop, no locks: what is made of files is made in a thread of libuv's pool and handed over.
 * Handshakes are computed in the loop, TLS_TURN_NS of it a turn: what exceeds that waits for the
 * next turn, behind what other streams got meanwhile (docs/adr/0041-tls.md).
 */
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
    TLS_TURN_NS = 200000, /* of handshakes in one turn of the loop, and then no more begins */
    TLS_FILE_BYTES_MAX = 1 << 20, /* of one file; that of CAs may be TLS_CA_BYTES_MAX */
    TLS_CA_BYTES_MAX = 4 << 20,
    TLS_TICKET_KEYS_MAX = 16,    /* in the file of ticket keys */
    TLS_SESSION_S = 7200,        /* a session may be taken up again for so long */
    TLS_REPLICA_SLOW_MS = 1000,  /* a handshake that is given up after so long was too slow */
    TLS_FAILURES_LOG_MS = 60000, /* between two lines of the log on one kind of failure */
};

struct shell;
struct tcp_stream;
struct tls;
struct admin_attention_list;

/* Reads what the settings name. ERR_NOT_FOUND or ERR_NOMEM with a message of IO_FILE_MESSAGE bytes.
 * `options` and `all` are borrowed until tls_free(). */
MUST_USE int tls_open(struct tls **out, const struct node_options *options, struct io_watches *all,
                      char *message);
/* The shell's loop is there; the shell is borrowed until tls_free(). */
void tls_start(struct tls *t, struct shell *shell);
void tls_tick(struct tls *t, uint64_t now_ms);
/* Clients' handshakes are under way: the tick is needed soon. */
bool tls_waits(const struct tls *t);
/* The loop has ended, or never ran. NULL is fine. */
void tls_free(struct tls *t);
/* Sets of files that cannot be used as they are now. */
unsigned tls_files_refused(const struct tls *t);
void tls_metrics(const struct tls *t, struct prometheus *p);
/* Adds certificates that have expired, or soon will. */
void tls_attention(const struct tls *t, struct admin_attention_list *list);

/* --- replicas -------------------------------------------------------------------------------- */

struct tls_host;

/* What is remembered of an https replica. ERR_NOMEM. */
MUST_USE int tls_host_open(struct tls *t, const struct node_address *address,
                           struct tls_host **out);
/* There are no open streams to it any more. NULL is fine. */
void tls_host_free(struct tls_host *host);

/* --- streams, for tcp.c ---------------------------------------------------------------------- */

/* Whether that port speaks TLS. */
bool tls_on_port(const struct tls *t, enum proxy_port port);
/* The stream was accepted there, and belongs to nobody yet. ERR_NOMEM. */
MUST_USE int tls_accepted(struct tls *t, struct tcp_stream *s, enum proxy_port port);
/* The stream will connect there. ERR_NOMEM. */
MUST_USE int tls_connects(struct tls *t, struct tcp_stream *s, struct tls_host *host);
/* Its owner is known: bytes may come. `after_header`: a PROXY header comes first, and is not
 * sealed. */
void tls_begin(struct tcp_stream *s, bool after_header);

/* As the actions of struct net_actions. */
ptrdiff_t tls_write(struct tcp_stream *s, const struct slice *pieces, unsigned count);
MUST_USE int tls_queue(struct tcp_stream *s, const struct slice *pieces, unsigned count);
void tls_read(struct tcp_stream *s, bool on);
void tls_finish(struct tcp_stream *s);
/* Before the stream is closed: says so to the peer, unless it is to be `cut`. */
void tls_closing(struct tcp_stream *s, bool cut);
/* After it was closed. */
void tls_stream_free(struct tcp_stream *s);

#endif
