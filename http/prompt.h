/* The chained hash of a prompt: canonical text and atoms in, checkpoints out (base/chain.h).
 *
 * A prompt is written segment by segment, in any order, each at most once at a time:
 *
 *     http_prompt_open(p, HTTP_PROMPT_TOOLS);
 *     n bytes of text to http_prompt_at(p), n <= http_prompt_room(p); http_prompt_commit(p, n);
 *     http_prompt_atom(p, digest, weight);
 *     http_prompt_close(p);
 *     http_prompt_finish(p, namespace);
 *
 * Text is collected in a stage and hashed in units that end at the next checkpoint, at
 * HTTP_PROMPT_STAGE bytes, or where an atom comes: state = XXH3-128(state, unit). So each byte is
 * touched once by the unescaper and once by the hash, and the state at a checkpoint is ready to be
 * read. An atom is hashed the same way. It moves the position by its weight, and the checkpoints
 * inside it read the state behind it.
 *
 * Every segment is hashed from its own start, because the segments before it may come later in the
 * body. http_prompt_finish() mixes the namespace and the digests of the earlier segments into each
 * point. A segment that another one follows gets one more point near its end, so that shared tools
 * and system texts count whole.
 *
 * With `by_chunks` the points are chunks instead (http/chunk_cut.h): a state begins anew behind
 * each, so the same text has the same ids wherever it stands. A chunk ends at its cut, and where a
 * message or a content part ends. Roles are not in it. What is shorter than half a block has no
 * point. An atom is a chunk by itself.
 *
 * 1. Points and ids depend on the sequence of text and atoms only, not on how text was cut.
 * 2. Points of a segment are in order; after finish all points are in the order of segments.
 */
#ifndef HTTP_PROMPT_H
#define HTTP_PROMPT_H

#include "base/chain.h"
#include "base/hash.h"
#include "http/json.h"

enum http_prompt_segment {
    HTTP_PROMPT_TOOLS,
    HTTP_PROMPT_SYSTEM,
    HTTP_PROMPT_TEXT, /* messages, or the plain prompt */
    HTTP_PROMPT_SEGMENTS,
};

enum { HTTP_PROMPT_STAGE = 4096 };

/* A place to come back to, between two pieces of text. */
struct http_prompt_mark {
    struct hash128 state;
    uint64_t bytes;
    uint16_t points; /* of the segment */
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

struct http_prompt {
    const struct hash_secret *secret;
    struct http_prompt_piece parts[HTTP_PROMPT_SEGMENTS];
    int8_t open; /* the segment being written, -1 = none */
    bool by_chunks;
    uint32_t used;               /* bytes in the stage */
    struct http_prompt_mark now; /* state and position without the stage */
    char stage[sizeof(struct hash128) + HTTP_PROMPT_STAGE + HTTP_JSON_SLACK];
    struct chain chain; /* the result */
};

/* `secret` is borrowed until http_prompt_finish(). */
void http_prompt_init(struct http_prompt *p, const struct hash_secret *secret);
/* The points are to be chunks; before anything is written. */
void http_prompt_by_chunks(struct http_prompt *p);

/* Starts a segment, empty; what it had before is dropped. None may be open. */
void http_prompt_open(struct http_prompt *p, enum http_prompt_segment segment);
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

/* Makes `chain`. No segment may be open. */
void http_prompt_finish(struct http_prompt *p, struct hash128 namespace_digest);

#endif
