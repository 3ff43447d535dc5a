/* The members of request bodies known to the skimmer by name (http/skim.h). */
#ifndef HTTP_MEMBER_H
#define HTTP_MEMBER_H

#include "base/chain.h"
#include "base/slice.h"

/* The purpose of a value, given by the member's name or the surrounding array. */
enum http_slot {
    HTTP_SLOT_SKIP,
    HTTP_SLOT_FIELD,
    HTTP_SLOT_INTEGER,
    HTTP_SLOT_BOOLEAN,
    HTTP_SLOT_NOTED,   /* noted as present; the value is not read */
    HTTP_SLOT_GIVEN,   /* noted if the value is neither false nor null */
    HTTP_SLOT_OBJECT,  /* holds further members of the body: metadata, ... */
    HTTP_SLOT_LIST,    /* a segment: messages, tools, texts or token ids */
    HTTP_SLOT_CONTENT, /* a segment: text or content parts */
    HTTP_SLOT_ELEMENT, /* an element of a LIST */
    HTTP_SLOT_PART,    /* a content part */
    HTTP_SLOT_ROLE,
    HTTP_SLOT_MESSAGE_CONTENT,
    HTTP_SLOT_PART_TYPE,
    HTTP_SLOT_PART_TEXT,
    HTTP_SLOT_PART_CONTENT,
    HTTP_SLOT_MEMBER,   /* a member of a message or content part: goes into the atom */
    HTTP_SLOT_ATOM,     /* inside an atom */
    HTTP_SLOT_ARGUMENT, /* changes the prompt even if all texts are the same */
    HTTP_SLOT_ENGINE,   /* a field between engines (engine_field.h) */
};

/* The objects with listed members. */
enum http_member_parent { HTTP_IN_BODY, HTTP_IN_METADATA, HTTP_IN_SAMPLING, HTTP_IN_XARGS };

struct http_member {
    struct slice name;
    uint8_t parent;
    uint8_t slot;
    /* Index of the field, number, flag or segment; for an OBJECT: an enum http_member_parent. */
    uint8_t index;
    /* If several present members fill the same segment or field, the highest rank wins. */
    uint8_t rank;
    bool is_user_message; /* the value, if a string, is a user message */
    bool has_head;        /* the segment may begin with text unseen by any model */
};

/* The listed member with this name in this object. NULL: routing does not use the name. */
const struct http_member *http_member_find(enum http_member_parent parent, struct slice name);

/* True if a content part's member of this name is, or refers to, an image, a sound, a film or a
 * file. Sets `*medium` (enum chain_medium). Anthropic's `source` counts as an image, but may also
 * be a document. */
bool http_member_is_media(struct slice name, uint8_t *medium);

/* True if a content part of this type has nothing but text. */
bool http_member_is_text_type(struct slice type);

/* For members of messages, content parts, tools, and objects like these within them. True if the
 * API defines the members of the value: then null in them equals absent. (In schemas and arguments
 * null is a value.) */
bool http_member_is_typed(struct slice name);

#endif
