#include "http/engine_field.h"

#include <string.h>

#include "base/check.h"
#include "http/chars.h"

/* --- the table ------------------------------------------------------------------------------ */

struct entry {
    struct slice name;
    bool is_family; /* also matches all names with this prefix */
    const char *shown;
};

#define NAME(text)                                                                                 \
    {                                                                                              \
        {(text), sizeof(text) - 1}, false, (text)                                                  \
    }
#define FAMILY(text)                                                                               \
    {                                                                                              \
        {(text), sizeof(text) - 1}, true, text "*"                                                 \
    }

static const struct entry members[] = {
    /* vLLM, the protocol module of each API: hosts, ports, engine and block ids of a KV
     * connector */
    NAME("kv_transfer_params"),
    /* vLLM, each API: the same data for the encoder's cache */
    NAME("ec_transfer_params"),
    /* SGLang, GenerateReqInput: the prefill server, and the request's number there; the family
     * covers fields of later versions */
    NAME("bootstrap_host"),
    NAME("bootstrap_port"),
    NAME("bootstrap_room"),
    NAME("bootstrap_pair_key"),
    FAMILY("bootstrap_"),
    /* SGLang, GenerateReqInput: the prefill server's rank, and the tensor parallelism of the decode
     * server */
    NAME("disagg_prefill_dp_rank"),
    NAME("decode_tp_size"),
    /* TensorRT-LLM, DisaggregatedParams: the context phase's id and opaque state */
    NAME("disaggregated_params"),
};

static const struct entry headers[] = {
    /* llm-d-router, pkg/common/routing: hosts called by an engine's sidecar */
    NAME("x-prefiller-host-port"),
    NAME("x-encoder-hosts-ports"),
    NAME("x-data-parallel-host-port"),
    NAME("x-kv-cache-source-host-port"),
    /* proxies in front of vLLM: the member of the same name, as JSON */
    NAME("x-kv-transfer-params"),
    NAME("x-ec-transfer-params"),
};

/* vLLM, P2pNcclConnector: searches the request id for "___prefill_addr_HOST:PORT___" and
 * "___decode_addr_HOST:PORT". */
static const char *const in_ids[] = {"___prefill_addr_", "___decode_addr_"};

/* --- look-ups ------------------------------------------------------------------------------- */

static bool is(const struct entry *e, struct slice name)
{
    return e->is_family ? slice_starts_with(name, e->name) : slice_equal(name, e->name);
}

const char *http_engine_field_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (name.len > 0 && name.at[0] == members[i].name.at[0] && is(&members[i], name))
            return members[i].shown;
    }
    return NULL;
}

bool http_engine_header_is(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        if (slice_equal(name, headers[i].name))
            return true;
    }
    return false;
}

static bool has(struct slice text, struct slice part)
{
    return memmem(text.at, text.len, part.at, part.len) != NULL;
}

const char *http_engine_id_find(struct slice id)
{
    for (size_t i = 0; i < ARRAY_LEN(in_ids); i++) {
        if (has(id, slice_of_cstr(in_ids[i])))
            return in_ids[i];
    }
    return NULL;
}

/* --- unreadable bodies ---------------------------------------------------------------------- */

static const char hidden[] = "engine fields";

/* True if the text has a lower-case letter or '_' as \u00XX: the table's names consist of these
 * characters. */
static bool has_escape(struct slice text)
{
    while (text.len >= 6) {
        const char *at = memmem(text.at, text.len, "\\u00", 4);
        if (at == NULL || text.at + text.len - at < 6)
            return false;
        if (http_char_is(at[4], HTTP_CHAR_HEX) && http_char_is(at[5], HTTP_CHAR_HEX)) {
            char c = (char)(http_hex_value(at[4]) << 4 | http_hex_value(at[5]));
            if ((c >= 'a' && c <= 'z') || c == '_')
                return true;
        }
        text = slice_skip(text, (size_t)(at - text.at) + 4);
    }
    return false;
}

/* True if the text begins like an object in units of `size` bytes, after white space and a
 * byte-order mark. The byte at `low` is the unit's low byte. */
static bool is_wide(struct slice text, size_t size, size_t low)
{
    bool first = true;
    while (text.len >= size) {
        uint32_t unit = 0;
        for (size_t i = 0; i < size; i++)
            unit |= (uint32_t)(unsigned char)text.at[low == 0 ? i : size - 1 - i] << 8 * i;
        text = slice_skip(text, size);
        if (unit == '{')
            return true;
        bool mark = first && unit == 0xfeff;
        if (!mark && unit != ' ' && unit != '\t' && unit != '\r' && unit != '\n')
            return false;
        first = false;
    }
    return !first; /* all of the text is white space or a byte-order mark in such units */
}

/* True if the text begins like an object in UTF-16 or UTF-32, which Python's JSON reads as well. */
static bool is_wide_object(struct slice text)
{
    return is_wide(text, 2, 0) || is_wide(text, 2, 1) || is_wide(text, 4, 0) || is_wide(text, 4, 3);
}

static const char *suspect_in(struct slice text)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (has(text, members[i].name))
            return members[i].shown;
    }
    const char *in_id = http_engine_id_find(text);
    return in_id != NULL ? in_id : has_escape(text) ? hidden : NULL;
}

const char *http_engine_field_suspect(const struct body *body)
{
    /* `seam` holds the text around the border of two segments. The longest name has less than half
     * of SEAM bytes. */
    enum { SEAM = 64 };
    char seam[2 * SEAM];
    size_t held = 0, seen = 0; /* seen: bytes of the body; `seam` has the last `held` of them, up to
                                * SEAM */
    for (const struct segment *s = body->first; s != NULL; s = s->next) {
        size_t n = s->len < SEAM ? s->len : SEAM;
        memcpy(seam + held, s->data, n);
        struct slice begun = slice_of(seam, held + n);
        bool is_object = s->next != NULL || memchr(s->data, '{', s->len) != NULL;
        if (seen < SEAM && is_object && is_wide_object(begun))
            return hidden;
        seen += s->len;
        const char *found = suspect_in(slice_of(seam, held + n));
        if (found == NULL)
            found = suspect_in(slice_of(s->data, s->len));
        if (found != NULL)
            return found;
        if (s->len >= SEAM) {
            memcpy(seam, s->data + s->len - SEAM, SEAM);
            held = SEAM;
        } else {
            size_t all = held + n, over = all > SEAM ? all - SEAM : 0;
            memmove(seam, seam + over, all - over);
            held = all - over;
        }
    }
    return NULL;
}
