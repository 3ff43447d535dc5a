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
 * Text is collected in a stage and hashed in units that end at the next checkpoint, at
 * HTTP_PROMPT_STAGE bytes, or where an atom comes: state = XXH3-128(state, unit). So each byte is
 * touched once by the unescaper and once by the hash, and the state at a checkpoint is ready to be
 * read. An atom is hashed the same way. It moves the position by its weight, and the checkpoints
 * inside it read the state behind it.
 *
 * Every segment is hashed from its own start, because the segments before it may come later in the
 * body, and because an engine may leave one out. http_prompt_join() mixes the namespace and the
 * digests of the earlier segments into each point. A segment that another one follows gets one more
 * point near its end, so that shared tools and system texts count whole.
 *
 * The *head* of a system text or of a conversation is cut into segments of its own, for that is
 * where clients and proxies put what no template shows the model (docs/adr/0051): its first line,
 * if it ends within HTTP_PROMPT_LINE_MAX bytes, and the rest of its first text, if that is shorter
 * than the points of a block reach. A first text of a system list that begins as Claude Code's
 * billing header does is a segment too, and what follows it is the head.
 *
 * A system message behind what was said is *late*. It is hashed where it stands. An engine that
 * moves it to the head shares what was said with another prompt only if both have the same late
 * messages: then a digest of all that is said up to the last one is mixed into what was said.
 *
 * With chain.chunks the points are chunks instead (http/chunk_cut.h): a state begins anew behind
 * each, so the same text has the same ids wherever it stands. A chunk ends at its cut, and where a
 * message or a content part ends. Roles are not in it. What is shorter than half a block has no
 * point. An atom is a chunk by itself.
 *
 * 1. Points and ids depend on the sequence of text and atoms only, not on how text was cut.
 * 2. Points of a segment are in order; after http_prompt_end() all are in the order of segments.
 */
#ifndef HTTP_PROMPT_H
#define HTTP_PROMPT_H

#include "base/chain.h"
#include "base/hash.h"
#include "base/rendering.h"
#include "http/json.h"

/* In the order of the prompt. */
enum http_prompt_segment {
    HTTP_PROMPT_TOOLS,
    HTTP_PROMPT_HEADER, /* Claude Code's billing header */
    HTTP_PROMPT_SYSTEM_LINE,
    HTTP_PROMPT_SYSTEM_BLOCK,
    HTTP_PROMPT_SYSTEM, /* all of it, or what its head leaves */
    HTTP_PROMPT_TEXT_LINE,
    HTTP_PROMPT_TEXT_BLOCK,
    HTTP_PROMPT_TEXT, /* messages, or the plain prompt; or what their head leaves */
    HTTP_PROMPT_SEGMENTS,
};

enum { HTTP_PROMPT_STAGE = 4096 };
#define HTTP_PROMPT_HEADER_TEXT "x-anthropic-billing-header"

/* A place to come back to, between two pieces of text. */
struct http_prompt_mark {
    struct hash128 state;
    uint64_t bytes;
    uint16_t points; /* of the segment, */
    uint8_t segment; /* which was open, */
    uint16_t at;     /* and of all */
    bool may_be_header;
    bool has_ids;
    bool has_other;
    struct chain_content content;
};

struct http_prompt_piece {
    struct http_prompt_mark end; /* the state when it was closed */
    uint16_t first;              /* its points in chain.points */
    uint16_t count;
    bool has_end_point;
};

/* A prompt whose segments are not joined yet. */
struct http_prompt_form {
    struct hash128 namespace;
    struct hash128 arguments; /* of the template, and the like; zero: none */
    struct hash128 tools_set; /* of the tools, in any order */
    uint64_t opening;    /* of the messages up to the user's first, less a head; 0: not known */
    bool goes_on;        /* something was said behind it */
    bool is_led;         /* the first message is a system message */
    uint64_t said_from;  /* bytes of TEXT that leading system messages fill */
    struct hash128 late; /* of TEXT up to the last late system message; zero: there is none */
    uint64_t late_bytes; /* of all of these */
    uint8_t filled;      /* segments that are closed and not empty, one bit each */
    struct http_prompt_piece parts[HTTP_PROMPT_SEGMENTS]; /* of the others nothing is set */
};

struct http_prompt {
    const struct hash_secret *secret;
    struct http_prompt_form form;
    int8_t open;                 /* the segment being written, -1 = none */
    bool may_be_header;          /* the text of the head that comes now */
    bool is_opened;              /* the user's first message is past */
    uint32_t used;               /* bytes in the stage */
    struct http_prompt_mark now; /* state and position without the stage */
    char stage[sizeof(struct hash128) + HTTP_PROMPT_STAGE + HTTP_JSON_SLACK];
    struct chain chain; /* the result */
};

/* `secret` is borrowed until http_prompt_join(). */
void http_prompt_init(struct http_prompt *p, const struct hash_secret *secret);
/* The points are to be chunks; before anything is written. */
void http_prompt_by_chunks(struct http_prompt *p);

/* The speaker of the message that ends now, before its atom comes; `from`: where it began. */
enum http_prompt_by { HTTP_PROMPT_BY_OTHER, HTTP_PROMPT_BY_SYSTEM, HTTP_PROMPT_BY_USER };
void http_prompt_said(struct http_prompt *p, enum http_prompt_by by,
                      const struct http_prompt_mark *from);

/* Starts TOOLS, SYSTEM or TEXT, empty; what it and its head had before is dropped. None may be
 * open. */
void http_prompt_open(struct http_prompt *p, enum http_prompt_segment segment);
/* Starts SYSTEM or TEXT with its head. `blocks`: it is a list of texts, so the first may be a
 * header. */
void http_prompt_open_head(struct http_prompt *p, enum http_prompt_segment segment, bool blocks);
/* A text ended: if it was the first one, so did the head. */
void http_prompt_text_end(struct http_prompt *p);
void http_prompt_close(struct http_prompt *p);

/* Where text goes, with HTTP_JSON_SLACK bytes of slack behind the room; the room is never 0. */
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
/* The atom that comes next holds these media. */
void http_prompt_media(struct http_prompt *p, const struct chain_content *media);

/* A boundary between two texts: they differ from the same text in one piece. */
void http_prompt_separate(struct http_prompt *p);

/* Remembers this place, and drops everything that was written since. */
struct http_prompt_mark http_prompt_mark(struct http_prompt *p);
void http_prompt_rewind(struct http_prompt *p, const struct http_prompt_mark *mark);

/* Mixes `salt` into the points read since `mark`. */
void http_prompt_tint(struct http_prompt *p, const struct http_prompt_mark *mark, uint64_t salt);

/* No segment may be open. Brings the points into the order of segments; http_prompt_join() follows.
 */
void http_prompt_end(struct http_prompt *p, struct hash128 namespace_digest,
                     struct hash128 arguments);
/* Makes a chain of the points of the segments, which are in it, as an engine with this rendering
 * would see the prompt. Its other members are set. */
void http_prompt_join(const struct http_prompt_form *form, const struct hash_secret *secret,
                      struct rendering rendering, struct chain *chain);

/* --- what a rendering makes of the segments ------------------------------------------------ */

static inline bool http_prompt_fills(const struct http_prompt_form *form, int segment)
{
    return (form->filled >> segment & 1) != 0;
}
/* Whether there is a system text beside the messages. */
static inline bool http_prompt_has_system(const struct http_prompt_form *form)
{
    const unsigned system =
        1U << HTTP_PROMPT_SYSTEM_LINE | 1U << HTTP_PROMPT_SYSTEM_BLOCK | 1U << HTTP_PROMPT_SYSTEM;
    return (form->filled & system) != 0;
}
/* Whether there is a late system message. */
static inline bool http_prompt_has_late(const struct http_prompt_form *form)
{
    return (form->late.low | form->late.high) != 0;
}
/* Bytes of a segment that stand before late system messages, where these are moved to the head;
 * UINT64_MAX: all of it does. */
uint64_t http_prompt_before_late(const struct http_prompt_form *form,
                                 enum http_prompt_segment segment);
/* The segments that are in the prompt, in order; how many. Not those that are empty or that no
 * model sees. */
unsigned http_prompt_order(const struct http_prompt_form *form, struct rendering rendering,
                           uint8_t out[HTTP_PROMPT_SEGMENTS]);
/* Of all of one. */
struct hash128 http_prompt_digest(const struct http_prompt_form *form, struct rendering rendering,
                                  enum http_prompt_segment segment);

#endif
