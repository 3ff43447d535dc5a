/* The identity of a prompt, as a list of checkpoints: what the skimmer makes, what the index keeps
 * and what the policies compare. A plain value without pointers.
 *
 * A prompt has up to three segments (tools, system, messages), each with checkpoints from its own
 * start; the ids of a later segment cover the earlier ones. Points stand in prompt order. So the
 * longest prefix that a replica holds ends at the last point that it holds, and `blocks` of that
 * point is the length of that prefix.
 *
 * A list of *chunks* is the same, but for what an id covers: the text back to the point before, and
 * nothing else. So a replica may hold any of them, wherever they stood when it saw them.
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHAIN_POINTS_MAX = 640,
    CHAIN_MEDIUM_BYTES = 4096, /* canonical length of an image, a sound, a film, a file */
};

enum chain_medium {
    CHAIN_IMAGE,
    CHAIN_SOUND,
    CHAIN_FILM, /* or a file of any kind */
    CHAIN_MEDIA,
};

/* A prompt's bytes by kind. Strings of tool definitions, roles and other members are in no
 * count. A prompt of token ids has no counts at all. */
struct chain_content {
    uint32_t letters; /* ASCII */
    uint32_t spaces;
    uint32_t digits;
    uint32_t marks; /* all other ASCII: punctuation, line ends */
    uint32_t wide;  /* beyond ASCII: Latin with accents to Arabic has two bytes a character, */
    uint32_t leads; /* Thai, Chinese, Korean three or four: the first bytes of these */
    uint16_t media[CHAIN_MEDIA]; /* how many, each CHAIN_MEDIUM_BYTES */
    uint16_t sized;              /* images of a known size, of these, */
    uint32_t kilopixels;         /* and all their thousands of pixels */
};

struct chain_point {
    uint64_t id;     /* keyed hash of everything up to here, or of the chunk; namespace included */
    uint32_t blocks; /* blocks of 256 bytes from the start of the prompt up to here, > 0 */
    uint8_t code;    /* weight code back to the point before (base/checkpoint.h) */
    uint16_t media;  /* how many begin before it */
};

struct chain {
    uint64_t bytes;  /* canonical length of the whole prompt, the part beyond the last point too */
    uint16_t length; /* points in use */
    bool token_ids;  /* the prompt came as token ids: 4 bytes are exactly one token */
    bool chunks;     /* the points are chunks */
    struct chain_content content;
    struct chain_point points[CHAIN_POINTS_MAX];
};

static inline unsigned chain_media(const struct chain_content *c)
{
    return (unsigned)c->media[CHAIN_IMAGE] + c->media[CHAIN_SOUND] + c->media[CHAIN_FILM];
}

#endif
