/* Keys of session tickets: from a file shared by routers, or random and replaced by this router. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/io/tls_internal.h"

enum { KEY_BYTES = sizeof(struct tls_ticket_key), TEXT_BYTES = 108 };
_Static_assert((int)KEY_BYTES == 80 && (int)TEXT_BYTES == (KEY_BYTES + 2) / 3 * 4, "base64");

/* --- keys from a file ------------------------------------------------------------------------- */

static bool read_key(struct slice line, struct tls_ticket_key *out)
{
    unsigned char bytes[TEXT_BYTES / 4 * 3];
    if (line.len != TEXT_BYTES || line.at[TEXT_BYTES - 1] != '=' ||
        EVP_DecodeBlock(bytes, (const unsigned char *)line.at, (int)line.len) != (int)sizeof bytes)
        return false;
    memcpy(out, bytes, sizeof *out);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return true;
}

void *tls_tickets_make(struct io_watch *w)
{
    static const char want[] = "want one key a line, each 80 bytes in base64: "
                               "openssl rand -base64 80 | tr -d '\\n'";
    struct tls_tickets *tickets = calloc(1, sizeof *tickets);
    if (tickets == NULL)
        return tls_pem_fail(&w->files[0], w->message, "out of memory");
    const char *wrong = NULL;
    struct slice rest = buf_slice(&w->texts[0]);
    while (rest.len > 0 && wrong == NULL) {
        struct slice line = slice_trim(slice_cut(&rest, '\n'));
        if (line.len == 0 || line.at[0] == '#')
            continue;
        if (tickets->count == TLS_TICKET_KEYS_MAX)
            wrong = "want at most 16 keys";
        else if (!read_key(line, &tickets->keys[tickets->count++]))
            wrong = want;
    }
    if (wrong == NULL && tickets->count == 0)
        wrong = want;
    if (wrong == NULL)
        return tickets;
    tls_tickets_drop(tickets);
    return tls_pem_fail(&w->files[0], w->message, wrong);
}

void tls_tickets_drop(void *made)
{
    OPENSSL_cleanse(made, sizeof(struct tls_tickets));
    free(made);
}

void tls_tickets_take(void *context, void *made)
{
    struct tls_tickets *tickets = context;
    const struct tls_tickets *now = made;
    tickets->count = now->count;
    memcpy(tickets->keys, now->keys, sizeof tickets->keys);
    tls_tickets_drop(made);
}

/* --- own keys --------------------------------------------------------------------------------- */

int tls_tickets_own(struct tls_tickets *tickets)
{
    tickets->own = true;
    tickets->count = 1;
    return RAND_priv_bytes((unsigned char *)tickets->keys, KEY_BYTES) == 1 ? 0 : ERR_NOMEM;
}

/* Replaces the router's own key every TLS_SESSION_S. The former key still opens older tickets
 * during their lifetime. */
void tls_tickets_tick(struct tls_tickets *tickets, uint64_t now_ms)
{
    if (tickets->changed_ms == 0)
        tickets->changed_ms = now_ms;
    struct tls_ticket_key next;
    if (!tickets->own || now_ms - tickets->changed_ms < TLS_SESSION_S * 1000 ||
        RAND_priv_bytes((unsigned char *)&next, sizeof next) != 1)
        return;
    tickets->changed_ms = now_ms;
    tickets->keys[1] = tickets->keys[0];
    tickets->keys[0] = next;
    tickets->count = 2;
    OPENSSL_cleanse(&next, sizeof next);
}

void tls_tickets_free(struct tls_tickets *tickets)
{
    OPENSSL_cleanse(tickets->keys, sizeof tickets->keys);
    EVP_CIPHER_free(tickets->aes);
}

/* --- sealing and opening --------------------------------------------------------------------- */

static const struct tls_ticket_key *find(const struct tls_tickets *tickets,
                                         const unsigned char *name)
{
    for (unsigned i = 0; i < tickets->count; i++) {
        if (memcmp(tickets->keys[i].name, name, sizeof tickets->keys[i].name) == 0)
            return &tickets->keys[i];
    }
    return NULL;
}

int tls_tickets_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                    EVP_MAC_CTX *mac, int seal)
{
    const struct tls_tickets *tickets = &tls_stream_of(ssl)->all->tickets;
    const struct tls_ticket_key *key = seal ? &tickets->keys[0] : find(tickets, name);
    if (key == NULL)
        return 0; /* unknown key: a full handshake follows */
    if (seal) {
        memcpy(name, key->name, sizeof key->name);
        if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(tickets->aes)) != 1)
            return -1;
    }
    char sha256[] = "SHA256";
    OSSL_PARAM how[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->hmac, sizeof key->hmac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
        OSSL_PARAM_construct_end(),
    };
    if (EVP_MAC_CTX_set_params(mac, how) != 1 ||
        EVP_CipherInit_ex2(cipher, tickets->aes, key->aes, iv, seal, NULL) != 1)
        return -1;
    return seal || key == &tickets->keys[0] ? 1 : 2; /* 2: a new ticket is sent */
}
