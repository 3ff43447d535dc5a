/* The identity of a prompt, as a list of checkpoints: made by the skimmer, kept by the index and
 * compared by the policies. A plain value without pointers.
 *
 * A prompt has up to three segments (tools, system, messages), each with checkpoints from the
 * segment's start; the ids of a later segment cover the earlier ones. Points are in prompt order.
 * So a replica's longest cached prefix ends at the last point found in the replica's cache, and has
 * the length `blocks` of that point.
 *
 * In a list of *chunks*, an id covers only the text back to the point before. So a replica may hold
 * any of the chunks, whatever their position in an earlier prompt.
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHAIN_POINTS_MAX = 640,
    CHAIN_MEDIUM_BYTES = 4096, /* each image, sound, film or file counts as this many bytes */
};

enum chain_medium {
    CHAIN_IMAGE,
    CHAIN_SOUND,
    CHAIN_FILM, /* a film, or a file of any kind */
    CHAIN_MEDIA,
};

/* A prompt's bytes by kind. Strings of tool definitions, roles and other JSON fields are not
 * counted. A prompt of token ids has no counts at all. */
struct chain_content {
    uint32_t letters; /* ASCII */
    uint32_t spaces;
    uint32_t digits;
    uint32_t marks; /* ASCII punctuation, line ends and controls */
    uint32_t wide;  /* bytes beyond ASCII (two to four per character) */
    uint32_t leads; /* first bytes of characters of three or four bytes (Thai, Chinese, Korean) */
    uint16_t media[CHAIN_MEDIA]; /* number of media by kind; each counts CHAIN_MEDIUM_BYTES */
    uint16_t sized;              /* number of images of a known size */
    uint32_t kilopixels;         /* thousands of pixels of all images of a known size */
};

struct chain_point {
    uint64_t id;     /* keyed hash of everything up to here, or of the chunk; namespace included */
    uint32_t blocks; /* blocks of 256 bytes from the start of the prompt up to here, > 0 */
    uint8_t code;    /* weight code of the blocks since the point before (base/checkpoint.h) */
    uint16_t media;  /* number of media that begin before this point; the last may end after it */
};

struct chain {
    uint64_t bytes;  /* canonical length of the whole prompt, with the part after the last point */
    uint16_t length; /* points in use */
    bool token_ids;  /* the prompt came as token ids: 4 bytes are exactly 1 token */
    bool chunks;     /* the points are chunks */
    struct chain_content content;
    struct chain_point points[CHAIN_POINTS_MAX];
};

static inline unsigned chain_media(const struct chain_content *c)
{
    return (unsigned)c->media[CHAIN_IMAGE] + c->media[CHAIN_SOUND] + c->media[CHAIN_FILM];
}

#endif
