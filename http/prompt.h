/* The chained hash of a prompt: canonical text and atoms in, checkpoints out (base/chain.h).
 *
 * A prompt is written segment by segment, in any order, each at most once at a time:
 *
 *     http_prompt_open(p, HTTP_PROMPT_TOOLS);
 *     n bytes of text to http_prompt_at(p), n <= http_prompt_room(p); http_prompt_commit(p, n);
 *     http_prompt_atom(p, digest, weight);
 *     http_prompt_close(p);
 *     http_prompt_end(p, namespace, arguments);
 *     http_prompt_join(&p->form, p->secret, rendering, &p->chain);
 *
 * Text is collected in a stage and hashed in units. A unit ends at the next checkpoint, at
 * HTTP_PROMPT_STAGE bytes, or before an atom: state = XXH3-128(state, unit). So the unescaper and
 * the hash each touch a byte once, and the state at a checkpoint is the checkpoint's id. An atom is
 * hashed the same way. The atom moves the position by the weight, and checkpoints inside the atom
 * get the state after it.
 *
 * Every segment is hashed from the segment's start, because earlier segments may come later in the
 * body, and because an engine may leave a segment out. http_prompt_join() mixes the namespace and
 * the digests of the earlier segments into each point. A segment before another gets an additional
 * point near the end, so that shared tools and system texts count as a whole.
 *
 * The *head* of a system text or of a conversation is cut into separate segments, because clients
 * and proxies put text there that no template shows the model. See docs/adr/0051. The first line is
 * a segment, if it ends within HTTP_PROMPT_LINE_MAX bytes. The rest of the first text is a segment,
 * if there are fewer points than HTTP_PROMPT_POINTS_BLOCK. If the first text of a system list
 * begins like Claude Code's billing header, this text is a segment too, and the text behind it is
 * the head.
 *
 * A system message that follows other messages is *late*. It is hashed in place. An engine that
 * moves late messages to the head shares messages with another prompt only if both have the same
 * late messages. In that case a digest of everything up to the last late message is mixed into the
 * messages.
 *
 * With chain.chunks the points are chunks instead (http/chunk_cut.h): a new state begins after each
 * chunk, so the same text has the same ids at any position. A chunk ends at a cut, and at the end
 * of a message or a content part. Roles are not part of a chunk. A chunk shorter than half a block
 * has no point. An atom is a chunk by itself.
 *
 * 1. Points and ids depend on the sequence of text and atoms only, not on how the text was split.
 * 2. Points of a segment are in order; after http_prompt_end() all are in the order of segments.
 */
#ifndef HTTP_PROMPT_H
#define HTTP_PROMPT_H

#include "base/chain.h"
#include "base/hash.h"
#include "base/rendering.h"
#include "http/json.h"

/* In the order of the canonical prompt. */
enum http_prompt_segment {
    HTTP_PROMPT_TOOLS,
    HTTP_PROMPT_HEADER, /* Claude Code's billing header */
    HTTP_PROMPT_SYSTEM_LINE,
    HTTP_PROMPT_SYSTEM_BLOCK,
    HTTP_PROMPT_SYSTEM, /* the system text after the head */
    HTTP_PROMPT_TEXT_LINE,
    HTTP_PROMPT_TEXT_BLOCK,
    HTTP_PROMPT_TEXT, /* the messages or the plain prompt, after the head */
    HTTP_PROMPT_SEGMENTS,
};

enum { HTTP_PROMPT_STAGE = 4096 };
#define HTTP_PROMPT_HEADER_TEXT "x-anthropic-billing-header"

/* A position between two pieces of text, to return to. */
struct http_prompt_mark {
    struct hash128 state;
    uint64_t bytes;
    uint16_t points; /* points of the open segment so far */
    uint8_t segment; /* the open segment */
    uint16_t at;     /* points of all segments so far */
    bool may_be_header;
    bool has_ids;
    bool has_other;
    struct chain_content content;
};

struct http_prompt_piece {
    struct http_prompt_mark end; /* the state when the segment was closed */
    uint16_t first;              /* index in chain.points of the segment's first point */
    uint16_t count;
    bool has_end_point;
};

/* A prompt with segments not joined yet. */
struct http_prompt_form {
    struct hash128 namespace;
    struct hash128 arguments; /* digest of the template's arguments; zero: none */
    struct hash128 tools_set; /* digest of the tools, in any order */
    uint64_t opening;         /* hash of the messages up to the user's first, without the head; 0:
                               * unknown */
    bool goes_on;             /* there is a message of another speaker than user and system */
    bool is_led;              /* the first message is a system message */
    uint64_t said_from;       /* bytes of TEXT in leading system messages */
    struct hash128 late;      /* digest of TEXT up to the last late system message; zero: none */
    uint64_t late_bytes;      /* bytes of all late system messages */
    uint8_t filled;           /* closed segments with content, a bit each */
    struct http_prompt_piece parts[HTTP_PROMPT_SEGMENTS]; /* set for the `filled` segments only */
};

struct http_prompt {
    const struct hash_secret *secret;
    struct http_prompt_form form;
    int8_t open;                 /* the segment being written, -1 = none */
    bool may_be_header;          /* the text of the current head may be a billing header */
    bool is_opened;              /* the user's first message has ended */
    uint32_t used;               /* bytes in the stage */
    struct http_prompt_mark now; /* state and position without the stage */
    char stage[sizeof(struct hash128) + HTTP_PROMPT_STAGE + HTTP_JSON_SLACK];
    struct chain chain; /* the result */
};

/* Begins an empty prompt. `secret` is borrowed until http_prompt_join(). */
void http_prompt_init(struct http_prompt *p, const struct hash_secret *secret);
/* Makes the points chunks; call before anything is written. */
void http_prompt_by_chunks(struct http_prompt *p);

/* Tells the speaker of the message that ends now. Call before the message's atom. `from`: the
 * message's start. */
enum http_prompt_by { HTTP_PROMPT_BY_OTHER, HTTP_PROMPT_BY_SYSTEM, HTTP_PROMPT_BY_USER };
void http_prompt_said(struct http_prompt *p, enum http_prompt_by by,
                      const struct http_prompt_mark *from);

/* Starts TOOLS, SYSTEM or TEXT, empty; drops the previous content of the segment and of the
 * segment's head. No segment may be open. */
void http_prompt_open(struct http_prompt *p, enum http_prompt_segment segment);
/* Starts SYSTEM or TEXT with the head. `blocks`: the segment is a list of texts, so the first may
 * be a header. */
void http_prompt_open_head(struct http_prompt *p, enum http_prompt_segment segment, bool blocks);
/* Call at the end of each text. At the end of the first text, the head ends too. */
void http_prompt_text_end(struct http_prompt *p);
void http_prompt_close(struct http_prompt *p);

/* The place to write text to, with HTTP_JSON_SLACK bytes of slack after the room. The room is never
 * 0. */
static inline char *http_prompt_at(struct http_prompt *p)
{
    return p->stage + sizeof(struct hash128) + p->used;
}
static inline size_t http_prompt_room(const struct http_prompt *p)
{
    return HTTP_PROMPT_STAGE - p->used;
}
void http_prompt_commit(struct http_prompt *p, size_t len);

void http_prompt_token_id(struct http_prompt *p, uint32_t id);
void http_prompt_atom(struct http_prompt *p, struct hash128 digest, uint64_t weight);
/* Counts media in the next atom. */
void http_prompt_media(struct http_prompt *p, const struct chain_content *media);

/* Marks a boundary between two texts, so that their hash differs from the hash of the joined
 * text. */
void http_prompt_separate(struct http_prompt *p);

/* _mark() returns the current position; _rewind() drops everything written since. */
struct http_prompt_mark http_prompt_mark(struct http_prompt *p);
void http_prompt_rewind(struct http_prompt *p, const struct http_prompt_mark *mark);

/* Mixes `salt` into the ids of the points added since `mark`. Chunks stay unchanged. */
void http_prompt_tint(struct http_prompt *p, const struct http_prompt_mark *mark, uint64_t salt);

/* Ends the prompt: sorts the points by segment. No segment may be open. http_prompt_join() must
 * follow. */
void http_prompt_end(struct http_prompt *p, struct hash128 namespace_digest,
                     struct hash128 arguments);
/* Turns `chain`, which has the segments' points and `chunks`, into the prompt's chain as seen by an
 * engine with this rendering. Sets the other members of `chain` too. */
void http_prompt_join(const struct http_prompt_form *form, const struct hash_secret *secret,
                      struct rendering rendering, struct chain *chain);

/* --- what a rendering makes of the segments ------------------------------------------------ */

static inline bool http_prompt_fills(const struct http_prompt_form *form, int segment)
{
    return (form->filled >> segment & 1) != 0;
}
/* True if there is a system text in addition to the messages. */
static inline bool http_prompt_has_system(const struct http_prompt_form *form)
{
    const unsigned system =
        1U << HTTP_PROMPT_SYSTEM_LINE | 1U << HTTP_PROMPT_SYSTEM_BLOCK | 1U << HTTP_PROMPT_SYSTEM;
    return (form->filled & system) != 0;
}
/* True if there is a late system message. */
static inline bool http_prompt_has_late(const struct http_prompt_form *form)
{
    return (form->late.low | form->late.high) != 0;
}
/* Bytes at the start of a segment that stay in front of late system messages if an engine moves
 * these to the head. UINT64_MAX: the whole segment stays in front. */
uint64_t http_prompt_before_late(const struct http_prompt_form *form,
                                 enum http_prompt_segment segment);
/* Writes the prompt's segments, in order, to `out`, and returns their number. Segments that are
 * empty, or unseen by the model, are left out. */
unsigned http_prompt_order(const struct http_prompt_form *form, struct rendering rendering,
                           uint8_t out[HTTP_PROMPT_SEGMENTS]);
/* Digest of a whole segment. */
struct hash128 http_prompt_digest(const struct http_prompt_form *form, struct rendering rendering,
                                  enum http_prompt_segment segment);

#endif
