/* Messages of KV events in an engine's array form. */
#ifndef TESTS_LIB_KV_MESSAGES_H
#define TESTS_LIB_KV_MESSAGES_H

#include <msgpack.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

static struct buf kv_message; /* the message being made; free with buf_free() */

static inline int kv_message_append(void *context, const char *bytes, size_t len)
{
    (void)context;
    CHECK(buf_append(&kv_message, bytes, len) == ERR_OK);
    return 0;
}

static inline void kv_message_text(msgpack_packer *p, const char *t)
{
    msgpack_pack_str(p, strlen(t));
    msgpack_pack_str_body(p, t, strlen(t));
}

/* Begins a message with this number of events. */
static inline msgpack_packer kv_message_begin(unsigned events)
{
    msgpack_packer p;
    buf_clear(&kv_message);
    msgpack_packer_init(&p, NULL, kv_message_append);
    msgpack_pack_array(&p, 2);
    msgpack_pack_double(&p, 1);
    msgpack_pack_array(&p, events);
    return p;
}

#endif
