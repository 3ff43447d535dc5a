/* Shared by the files of TLS. */
#ifndef NODE_IO_TLS_INTERNAL_H
#define NODE_IO_TLS_INTERNAL_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "node/io/shell.h"
#include "node/io/tcp_internal.h"
#include "node/io/tls.h"
#include "node/io/watch_file.h"

enum tls_side { TLS_CLIENTS, TLS_ADMIN, TLS_REPLICAS, TLS_SIDES };
_Static_assert((int)TLS_CLIENTS == (int)PROXY_PORT_CLIENT &&
                   (int)TLS_ADMIN == (int)PROXY_PORT_ADMIN,
               "the side of a port has its number");

/* Reasons for which a stream fails. tls_failures.c has their names and advice. */
enum tls_failure {
    TLS_FAILURE_PLAINTEXT,
    TLS_FAILURE_TIMEOUT,
    TLS_FAILURE_CLOSED,
    TLS_FAILURE_VERSION,
    TLS_FAILURE_CIPHER,
    TLS_FAILURE_ALPN,
    TLS_FAILURE_ALERT,
    TLS_FAILURE_CERTIFICATE,
    TLS_FAILURE_NAME,
    TLS_FAILURE_MALFORMED,
    TLS_FAILURES,
};

enum {
    TLS_RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
    TLS_BATCH_RECORDS = 4, /* records sealed before a call of the kernel */
    TLS_SEALED_BYTES = (TLS_BATCH_RECORDS + 1) * SSL3_RT_MAX_PACKET_SIZE,
};

/* --- a port's certificates -------------------------------------------------------------------- */

/* The contexts made from a port's files. Immutable: after a change a new object replaces the old
 * object. Each stream has a reference. */
struct tls_server {
    unsigned refs;
    unsigned count;
    SSL_CTX *ctx[NODE_TLS_CERTS_MAX]; /* in the order of the settings */
};

/* Make the contexts of a port, and of replicas. Both may run in any thread, and return NULL with a
 * message after an error. The files are in the order set by tls.c. For a port: pairs of a
 * certificate and a key. For replicas: CAs, then a certificate and a key; either part may be
 * missing. */
void *tls_server_make(struct io_watch *w);
void *tls_client_make(struct io_watch *w);
/* Makes a context for replicas, with the system's CAs. */
SSL_CTX *tls_client_of_system(char *message);
/* Drops a reference. Called only in the loop. */
void tls_server_unref(struct tls_server *server);
/* Returns the expiry of the context's certificate, in seconds of Unix time. */
int64_t tls_context_expires_s(const SSL_CTX *ctx);

/* Loads a certificate (with the chain after it) and a key into `ctx`. Returns false with a
 * message. */
bool tls_pem_pair(SSL_CTX *ctx, const struct io_file *cert, struct slice cert_text,
                  const struct io_file *key, struct slice key_text, char *message);
bool tls_pem_cas(SSL_CTX *ctx, const struct io_file *file, struct slice text, char *message);
/* Writes "SETTING "PATH": WHAT" to `message`. Returns NULL. */
void *tls_pem_fail(const struct io_file *file, char *message, const char *what);

/* --- keys of session tickets (tls_tickets.c) ------------------------------------------------- */

struct tls_ticket_key {
    unsigned char name[16], hmac[32], aes[32];
};

struct tls_tickets {
    unsigned count; /* number of keys: the first seals tickets, and all open them */
    struct tls_ticket_key keys[TLS_TICKET_KEYS_MAX];
    bool own;            /* the keys are random, and replaced every TLS_SESSION_S */
    uint64_t changed_ms; /* time of the last replacement; 0: none yet */
    EVP_CIPHER *aes;
};

void *tls_tickets_make(struct io_watch *w);
void tls_tickets_take(void *tickets, void *made);
void tls_tickets_drop(void *made);
MUST_USE int tls_tickets_own(struct tls_tickets *tickets);
void tls_tickets_tick(struct tls_tickets *tickets, uint64_t now_ms);
void tls_tickets_free(struct tls_tickets *tickets);
/* OpenSSL's callback for a ticket: sets up encryption and MAC with the key. Returns 1, 2 (an old
 * key: send a new ticket), 0 (unknown key), or -1 after an error. */
MUST_USE int tls_tickets_key(SSL *ssl, unsigned char *name, unsigned char *iv,
                             EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal);

/* --- the whole -------------------------------------------------------------------------------- */

/* A set of files, and the object made from the files. */
struct tls_files {
    struct io_watch watch;
    void *(*make)(struct io_watch *w);       /* runs in any thread; NULL with a message */
    void (*take)(void *context, void *made); /* runs in the loop, and takes ownership */
    void (*drop)(void *made);                /* frees an object not taken */
    void *context;
    void *made; /* the new object, if not taken yet; otherwise NULL */
};

struct tls_list {
    struct tls_stream *first, *last;
};

struct tls_counts {
    uint64_t handshakes, resumed;
    uint64_t failures[TLS_FAILURES];
    uint64_t truncated; /* streams ended without close_notify */
};

struct tls_complaint {  /* log lines about a kind of failure, on one side */
    uint64_t logged_ms; /* time of the last line; 0: never */
    uint64_t unlogged;  /* failures since then */
};

struct tls {
    const struct node_options *options;
    struct log *log;
    struct shell *shell;
    struct tls_server *server[PROXY_PORTS]; /* by enum proxy_port; NULL: the port has no TLS */
    SSL_CTX *client;                        /* context for replicas; NULL: not needed yet */
    unsigned client_version;                /* rises with each change of `client` */
    struct tls_tickets tickets;
    struct tls_files files[4]; /* files of the ports, of replicas, and of ticket keys */
    BIO_METHOD *bio;

    void (*run)(struct tls_stream *s); /* runs a due stream */
    uv_idle_t idle;                    /* active while any stream is due */
    uv_prepare_t prepare;              /* runs in each turn */
    bool idling, crowd_runs;
    struct tls_list due;      /* streams with bytes to deliver, or an event to report */
    struct tls_list crowded;  /* streams with a handshake waiting for the next turn */
    struct tls_list shaking;  /* clients' streams with a handshake under way, oldest first */
    uint64_t turn_ns;         /* time spent on handshakes in this turn */
    uint64_t handshake_ns;    /* time spent on handshakes since the start */
    uint64_t handshakes_late; /* handshakes delayed to a later turn */
    uint64_t streams;         /* present number of streams */
    struct tls_counts counts[TLS_SIDES];
    struct tls_complaint complaints[TLS_SIDES][TLS_FAILURES];

    char in[PROXY_READ_BYTES];     /* bytes received in the present event */
    char joined[TLS_RECORD_BYTES]; /* pieces joined into a record */
    char sealed[TLS_SEALED_BYTES]; /* OpenSSL's output, until the kernel gets it */
    size_t sealed_len;
};

/* --- a stream -------------------------------------------------------------------------------- */

enum tls_state {
    TLS_HEADER,  /* a PROXY header comes first */
    TLS_SHAKING, /* before or during the handshake */
    TLS_OPEN,
    TLS_REFUSED, /* the client sent plaintext, and may still read the error answer */
    TLS_BROKEN,
};

struct tls_link {
    struct tls_stream *next, *prev;
    struct tls_list *in; /* NULL: not in a list */
};

struct tls_stream {
    struct tls *all;
    struct tcp_stream *tcp;
    SSL *ssl;
    struct tls_server *server; /* NULL: the stream connects to `host` */
    struct tls_host *host;     /* borrowed; not used after the stream is closed */
    enum tls_side side;
    enum tls_state state;
    bool reading;   /* the owner accepts bytes */
    bool looked;    /* first byte was examined; towards a replica: the handshake has begun */
    bool peer_done; /* close_notify was received */
    bool finished;  /* tls_finish() was called */
    bool flushing;  /* `flush` is under way */
    bool telling;   /* the event `written` for the queued pieces has not been reported yet */
    struct tls_link due, shake;
    uint64_t since_ms;

    struct slice in; /* OpenSSL's input in the present event */
    struct buf held; /* input of a stream while waiting for a turn */

    /* Output. */
    uv_write_t flush;
    struct buf out;       /* output being written to the kernel */
    struct buf more;      /* output to write next */
    size_t ahead;         /* bytes already sealed, which the owner will queue next */
    struct slice *queued; /* the owner's pieces; NULL: none */
    unsigned queued_count, queued_at;
    size_t queued_offset;
};

void tls_link_add(struct tls_list *list, struct tls_stream *s, struct tls_link *link);
void tls_link_remove(struct tls_stream *s, struct tls_link *link);
/* Called when the loop exists. `run` handles a due stream. */
void tls_due_start(struct tls *t, void (*run)(struct tls_stream *s));
/* Schedules work without a network event, to run after this turn's events. `crowded`: a handshake,
 * which waits for the next turn. */
void tls_due(struct tls_stream *s, bool crowded);
/* Runs the due work. */
void tls_stream_run(struct tls_stream *s);
/* Ends the stream for this reason, and informs the owner. `detail` goes into the log; NULL:
 * OpenSSL's reason. */
void tls_stream_fail(struct tls_stream *s, enum tls_failure why, const char *detail);

/* tls_seal.c: passes OpenSSL's output to the kernel, after waiting output. */
void tls_seal_control(struct tls_stream *s);
/* Continues to seal the queued pieces. */
void tls_seal_pump(struct tls_stream *s);
/* Reports the event `written`, if it is due. */
void tls_seal_tell(struct tls_stream *s);
void tls_seal_free(struct tls_stream *s);

/* tls_failures.c: classifies OpenSSL's present error. */
enum tls_failure tls_failure_of(const struct tls_stream *s);
/* Counts and logs a failure. */
void tls_failure_note(struct tls_stream *s, enum tls_failure why, const char *detail);
const char *tls_failure_name(enum tls_failure why);

/* --- a replica ------------------------------------------------------------------------------- */

struct tls_host {
    struct tls *all;
    struct node_address address;
    SSL_SESSION *session; /* NULL: no session to resume */
    unsigned version;     /* client_version when the session began */
    bool failing;         /* the last handshake failed */
    enum tls_failure why; /* the reason if failing */
    uint64_t logged_ms;   /* time when the failure was logged */
};

/* Sets the names and the session of a connection to the host. Returns false if out of memory. */
bool tls_host_prepare(struct tls_host *host, SSL *ssl);

static inline struct tls_stream *tls_stream_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

#endif
