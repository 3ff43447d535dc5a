/* What the files of TLS share. */
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

/* Why a stream failed; names and advice in tls_failures.c. */
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
    TLS_BATCH_RECORDS = 4, /* sealed before the kernel is asked */
    TLS_SEALED_BYTES = (TLS_BATCH_RECORDS + 1) * SSL3_RT_MAX_PACKET_SIZE,
};

/* --- what a port shows ----------------------------------------------------------------------- */

/* Made of the files of a port, and never changed: others take its place. Each stream holds it. */
struct tls_server {
    unsigned refs;
    unsigned count;
    SSL_CTX *ctx[NODE_TLS_CERTS_MAX]; /* in the order of the settings */
};

/* Both in any thread; NULL with a message. Their files are in the order in which tls.c sets them:
 * a certificate and its key, again and again; CAs, certificate and key (or without one of both). */
void *tls_server_make(struct io_watch *w);
void *tls_client_make(struct io_watch *w);
/* For replicas, with the CAs of the system. */
SSL_CTX *tls_client_of_system(char *message);
/* Counted in the loop. */
void tls_server_unref(struct tls_server *server);
/* When its certificate ends, in seconds of Unix time. */
int64_t tls_context_expires_s(const SSL_CTX *ctx);

/* Puts certificate (with what stands behind it) and key into `ctx`. False with a message. */
bool tls_pem_pair(SSL_CTX *ctx, const struct io_file *cert, struct slice cert_text,
                  const struct io_file *key, struct slice key_text, char *message);
bool tls_pem_cas(SSL_CTX *ctx, const struct io_file *file, struct slice text, char *message);
/* "SETTING "PATH": WHAT" into `message`. Returns NULL. */
void *tls_pem_fail(const struct io_file *file, char *message, const char *what);

/* --- keys of session tickets (tls_tickets.c) ------------------------------------------------- */

struct tls_ticket_key {
    unsigned char name[16], hmac[32], aes[32];
};

struct tls_tickets {
    unsigned count; /* the first seals, all open */
    struct tls_ticket_key keys[TLS_TICKET_KEYS_MAX];
    bool own;            /* made up here, and changed every TLS_SESSION_S */
    uint64_t changed_ms; /* 0: not yet, by this clock */
    EVP_CIPHER *aes;
};

void *tls_tickets_make(struct io_watch *w);
void tls_tickets_take(void *tickets, void *made);
void tls_tickets_drop(void *made);
MUST_USE int tls_tickets_own(struct tls_tickets *tickets);
void tls_tickets_tick(struct tls_tickets *tickets, uint64_t now_ms);
void tls_tickets_free(struct tls_tickets *tickets);
/* The callback of OpenSSL. */
MUST_USE int tls_tickets_key(SSL *ssl, unsigned char *name, unsigned char *iv,
                             EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seal);

/* --- all of it ------------------------------------------------------------------------------- */

/* What is made of a set of files. */
struct tls_files {
    struct io_watch watch;
    void *(*make)(struct io_watch *w);       /* in any thread; NULL with a message */
    void (*take)(void *context, void *made); /* in the loop: owns it from now on */
    void (*drop)(void *made);                /* what nobody took */
    void *context;
    void *made; /* and not taken yet */
};

struct tls_list {
    struct tls_stream *first, *last;
};

struct tls_counts {
    uint64_t handshakes, resumed;
    uint64_t failures[TLS_FAILURES];
    uint64_t truncated; /* ended without close_notify */
};

struct tls_complaint {  /* on failures of one kind, on one side */
    uint64_t logged_ms; /* 0: never */
    uint64_t unlogged;
};

struct tls {
    const struct node_options *options;
    struct log *log;
    struct shell *shell;
    struct tls_server *server[PROXY_PORTS]; /* by enum proxy_port; NULL: plain */
    SSL_CTX *client;                        /* towards replicas; NULL: not needed yet */
    unsigned client_version;                /* rises with each */
    struct tls_tickets tickets;
    struct tls_files files[4]; /* of the ports, of replicas, of tickets */
    BIO_METHOD *bio;

    void (*run)(struct tls_stream *s); /* what is due */
    uv_idle_t idle;                    /* while anything is due */
    uv_prepare_t prepare;              /* each turn */
    bool idling, crowd_runs;
    struct tls_list due;      /* have bytes to hand out, or something to say */
    struct tls_list crowded;  /* handshakes that wait for the next turn */
    struct tls_list shaking;  /* of clients: handshakes under way, the oldest first */
    uint64_t turn_ns;         /* spent on handshakes in this turn */
    uint64_t handshake_ns;    /* since the start */
    uint64_t handshakes_late; /* that had to wait */
    uint64_t streams;         /* there now */
    struct tls_counts counts[TLS_SIDES];
    struct tls_complaint complaints[TLS_SIDES][TLS_FAILURES];

    char in[PROXY_READ_BYTES];     /* what the kernel gave, of one event */
    char joined[TLS_RECORD_BYTES]; /* pieces that become one record */
    char sealed[TLS_SEALED_BYTES]; /* what OpenSSL wrote, until the kernel gets it */
    size_t sealed_len;
};

/* --- a stream -------------------------------------------------------------------------------- */

enum tls_state {
    TLS_HEADER,  /* a PROXY header comes first */
    TLS_SHAKING, /* the handshake, or before it */
    TLS_OPEN,
    TLS_REFUSED, /* it spoke plainly, heard so, and may read that */
    TLS_BROKEN,
};

struct tls_link {
    struct tls_stream *next, *prev;
    struct tls_list *in; /* NULL: in none */
};

struct tls_stream {
    struct tls *all;
    struct tcp_stream *tcp;
    SSL *ssl;
    struct tls_server *server; /* NULL: it connected to `host` */
    struct tls_host *host;     /* borrowed; not looked at after it was closed */
    enum tls_side side;
    enum tls_state state;
    bool reading;   /* its owner takes bytes */
    bool looked;    /* at its first byte; towards replicas: the handshake has begun */
    bool peer_done; /* close_notify came */
    bool finished;  /* tls_finish() */
    bool flushing;  /* `flush` is under way */
    bool telling;   /* `written` is owed for what was queued */
    struct tls_link due, shake;
    uint64_t since_ms;

    struct slice in; /* of the present event: what OpenSSL reads */
    struct buf held; /* what waits for its turn */

    /* Out of it. */
    uv_write_t flush;
    struct buf out;       /* under way to the kernel */
    struct buf more;      /* goes next */
    size_t ahead;         /* bytes that the owner will queue next, and that are sealed already */
    struct slice *queued; /* the owner's pieces; NULL: none */
    unsigned queued_count, queued_at;
    size_t queued_offset;
};

void tls_link_add(struct tls_list *list, struct tls_stream *s, struct tls_link *link);
void tls_link_remove(struct tls_stream *s, struct tls_link *link);
/* The loop is there; `run` does what is due. */
void tls_due_start(struct tls *t, void (*run)(struct tls_stream *s));
/* It has something to do that no event of the network brings: after this turn's events. */
void tls_due(struct tls_stream *s, bool crowded);
/* What is due now. */
void tls_stream_run(struct tls_stream *s);
/* It ends, for that reason, and its owner hears so. `detail` goes into the log; NULL: what OpenSSL
 * says. */
void tls_stream_fail(struct tls_stream *s, enum tls_failure why, const char *detail);

/* tls_seal.c: hands what OpenSSL wrote to the kernel, behind what waits. */
void tls_seal_control(struct tls_stream *s);
/* Goes on with what is queued. */
void tls_seal_pump(struct tls_stream *s);
/* The `written` that is owed, if it is its time. */
void tls_seal_tell(struct tls_stream *s);
void tls_seal_free(struct tls_stream *s);

/* tls_failures.c: what OpenSSL's present error stands for. */
enum tls_failure tls_failure_of(const struct tls_stream *s);
/* Counts and logs it. */
void tls_failure_note(struct tls_stream *s, enum tls_failure why, const char *detail);
const char *tls_failure_name(enum tls_failure why);

/* --- a replica ------------------------------------------------------------------------------- */

struct tls_host {
    struct tls *all;
    struct node_address address;
    SSL_SESSION *session; /* NULL: none to take up again */
    unsigned version;     /* of `all->client` when it began */
    bool failing;         /* its last handshake failed, */
    enum tls_failure why; /* for that reason, */
    uint64_t logged_ms;   /* which the log has */
};

/* Sets the names and the session of a connection to it. False: no memory. */
bool tls_host_prepare(struct tls_host *host, SSL *ssl);

static inline struct tls_stream *tls_stream_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

#endif
