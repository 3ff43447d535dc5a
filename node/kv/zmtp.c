#include "node/kv/zmtp.h"

#include <string.h>

#include "base/check.h"

enum state {
    GREETING,
    HEAD, /* the head of a frame */
    BODY,
    ENDED, /* a message or a command has ended; the next call drops the content */
};

enum { TOPIC, NUMBER, PAYLOAD, PARTS };

/* Flags of a frame. */
enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4, FLAGS_UNKNOWN = 0xf8 };

enum { VERSION_AT = 10, MECHANISM_AT = 12, MECHANISM_BYTES = 20, PING_CONTEXT_MAX = 16 };

enum { KEPT_BYTES = 64 << 10 }; /* memory beyond this is freed after each message */

static const char greeting[KV_ZMTP_GREETING + 1] = "\xff\0\0\0\0\0\0\0\0\x7f"
                                                   "\x03\0"
                                                   "NULL";

struct slice kv_zmtp_greeting(void)
{
    return slice_of(greeting, KV_ZMTP_GREETING);
}

bool kv_zmtp_is_ready(const struct kv_zmtp *z)
{
    return z->ready;
}

struct slice kv_zmtp_topic(const struct kv_zmtp *z)
{
    return slice_of(z->topic, z->topic_len);
}

uint64_t kv_zmtp_number(const struct kv_zmtp *z)
{
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof z->number; i++)
        number = number << 8 | (unsigned char)z->number[i];
    return number;
}

struct slice kv_zmtp_payload(const struct kv_zmtp *z)
{
    return buf_slice(&z->body);
}

size_t kv_zmtp_held(const struct kv_zmtp *z)
{
    return z->body.cap;
}

void kv_zmtp_begin(struct kv_zmtp *z)
{
    *z = (struct kv_zmtp){.ready = false};
    buf_init(&z->body, KV_ZMTP_MESSAGE_MAX);
}

void kv_zmtp_free(struct kv_zmtp *z)
{
    buf_free(&z->body);
}

/* --- commands -------------------------------------------------------------------------------- */

/* Takes a field from the front. The first `width` bytes are the field's length. Returns false if
 * the field is longer than what is left. */
static bool cut(struct slice *s, size_t width, struct slice *out)
{
    size_t len = 0;
    if (s->len < width)
        return false;
    for (size_t i = 0; i < width; i++)
        len = len << 8 | (unsigned char)s->at[i];
    *s = slice_skip(*s, width);
    if (s->len < len)
        return false;
    *out = slice_of(s->at, len);
    *s = slice_skip(*s, len);
    return true;
}

/* Returns true for READY with the socket type PUB or XPUB. */
static bool is_publisher(struct slice name, struct slice rest)
{
    struct slice key, value;
    bool publishes = false;
    while (rest.len > 0) {
        if (!cut(&rest, 1, &key) || !cut(&rest, 4, &value))
            return false;
        if (slice_equal_nocase(key, SLICE("Socket-Type")))
            publishes = slice_equal(value, SLICE("PUB")) || slice_equal(value, SLICE("XPUB"));
    }
    return publishes && slice_equal(name, SLICE("READY"));
}

/* Answers a PING. The PONG has the PING's context, which follows a time to live of two bytes (RFC
 * 37). */
static bool pong(struct kv_zmtp *z, struct slice rest)
{
    static const char head[] = "\4\0\4PONG";
    enum { OWN = sizeof head - 1 };
    _Static_assert(OWN + PING_CONTEXT_MAX <= sizeof z->reply_text, "it fits");
    if (rest.len < 2 || rest.len > 2 + PING_CONTEXT_MAX)
        return false;
    memcpy(z->reply_text, head, OWN);
    memcpy(z->reply_text + OWN, rest.at + 2, rest.len - 2);
    z->reply_text[1] = (char)(OWN - 2 + rest.len - 2);
    z->reply = slice_of(z->reply_text, OWN + rest.len - 2);
    return true;
}

/* Handles a command. The first command identifies the peer. */
static int command(struct kv_zmtp *z)
{
    struct slice rest = buf_slice(&z->body), name;
    if (!cut(&rest, 1, &name) || (!z->ready && !is_publisher(name, rest)))
        return ERR_SYNTAX;
    if (!z->ready) {
        z->ready = true;
        z->reply = SLICE("\0\1\1"); /* a message: subscribe to all topics */
        return KV_ZMTP_REPLY;
    }
    if (!slice_equal(name, SLICE("PING")))
        return KV_ZMTP_MORE;
    return pong(z, rest) ? KV_ZMTP_REPLY : ERR_SYNTAX;
}

/* --- frames ---------------------------------------------------------------------------------- */

static int greeted(struct kv_zmtp *z)
{
    bool good = z->head[0] == greeting[0] && z->head[9] == greeting[9] && z->head[VERSION_AT] >= 3;
    if (!good || memcmp(z->head + MECHANISM_AT, greeting + MECHANISM_AT, MECHANISM_BYTES) != 0)
        return ERR_SYNTAX;
    z->have = 0;
    z->state = HEAD;
    z->reply = SLICE("\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB");
    return KV_ZMTP_REPLY;
}

/* Called when the head of a frame is complete. */
static int body_begin(struct kv_zmtp *z)
{
    unsigned flags = (unsigned char)z->head[0];
    bool is_command = (flags & FLAG_COMMAND) != 0;
    z->left = 0;
    for (unsigned i = 1; i < z->have; i++)
        z->left = z->left << 8 | (unsigned char)z->head[i];
    if ((flags & FLAGS_UNKNOWN) != 0 || (!z->ready && !is_command) ||
        (is_command && ((flags & FLAG_MORE) != 0 || z->part != TOPIC)))
        return ERR_SYNTAX;
    if (z->left > (is_command ? KV_ZMTP_COMMAND_MAX : KV_ZMTP_MESSAGE_MAX))
        return ERR_LIMIT;
    z->flags = (uint8_t)flags;
    z->have = 0;
    z->state = BODY;
    return ERR_OK;
}

/* Stores bytes of a part or a command. Bytes beyond the limit of a topic or a number make the
 * message odd. */
static int body_take(struct kv_zmtp *z, struct slice s)
{
    if (z->part == PAYLOAD || (z->flags & FLAG_COMMAND) != 0)
        return buf_append_slice(&z->body, s);
    char *to = z->part == TOPIC ? z->topic : z->number;
    size_t *len = z->part == TOPIC ? &z->topic_len : &z->number_len;
    size_t room = z->part == TOPIC ? sizeof z->topic : sizeof z->number;
    z->odd |= s.len > room - *len; /* a message of four parts becomes odd at the end */
    if (z->odd || s.len == 0)
        return ERR_OK;
    memcpy(to + *len, s.at, s.len);
    *len += s.len;
    return ERR_OK;
}

static int body_end(struct kv_zmtp *z)
{
    z->state = ENDED;
    if ((z->flags & FLAG_COMMAND) != 0)
        return command(z);
    if ((z->flags & FLAG_MORE) != 0) {
        z->state = HEAD;
        z->part += z->part < PARTS;
        return KV_ZMTP_MORE;
    }
    bool good = !z->odd && z->part == PAYLOAD && z->number_len == sizeof z->number;
    return good && z->body.len > 0 ? KV_ZMTP_MESSAGE : KV_ZMTP_ODD;
}

static void message_begin(struct kv_zmtp *z)
{
    z->state = HEAD;
    z->part = TOPIC;
    z->odd = false;
    z->topic_len = z->number_len = 0;
    buf_clear(&z->body);
    if (z->body.cap > KEPT_BYTES)
        buf_free(&z->body);
}

/* Takes up to `want` bytes of a head. Returns true if the head is complete. */
static bool head_take(struct kv_zmtp *z, struct slice *in, size_t want)
{
    while (z->have < want && in->len > 0) {
        z->head[z->have++] = in->at[0];
        *in = slice_skip(*in, 1);
    }
    return z->have >= want;
}

/* Reads a frame's head or the greeting. Returns true if the head or the greeting is complete. */
static bool head_read(struct kv_zmtp *z, struct slice *in)
{
    if (z->state == GREETING)
        return head_take(z, in, KV_ZMTP_GREETING);
    if (!head_take(z, in, 1))
        return false;
    return head_take(z, in, (z->head[0] & FLAG_LONG) != 0 ? KV_ZMTP_HEAD : 2);
}

/* Takes at most a single step: the rest of a head, or the available bytes of a body. */
static int step(struct kv_zmtp *z, struct slice *in)
{
    if (z->state == GREETING || z->state == HEAD) {
        if (!head_read(z, in))
            return KV_ZMTP_MORE;
        int err = z->state == GREETING ? greeted(z) : body_begin(z);
        return err == ERR_OK && z->left == 0 ? body_end(z) : err;
    }
    size_t len = in->len < z->left ? in->len : (size_t)z->left;
    int err = body_take(z, slice_of(in->at, len));
    *in = slice_skip(*in, len);
    z->left -= len;
    return err == ERR_OK && z->left == 0 ? body_end(z) : err;
}

int kv_zmtp_take(struct kv_zmtp *z, struct slice *in)
{
    int event = KV_ZMTP_MORE;
    do {
        if (z->state == ENDED)
            message_begin(z);
        event = step(z, in);
    } while (event == KV_ZMTP_MORE && in->len > 0);
    return event;
}
