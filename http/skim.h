/* The skimmer of request bodies: extracts what routing needs from a JSON body as it streams.
 *
 *     http_skim_init(&skim, &secret);
 *     http_skim_by_chunks(&skim);            if the policy uses chunks
 *     http_skim_feed(&skim, bytes, len);     for each piece of the body, in any splits
 *     http_skim_finish(&skim);               results are valid from here on
 *
 * The skimmer recognises the bodies of OpenAI (chat, completions, responses, embeddings), Anthropic
 * (messages), vLLM (tokenize, generate) and SGLang (generate) by their member names, in a single
 * code path. It does not store the body, allocates nothing, and never fails the request. A body
 * that is no JSON object, or beyond a limit (nesting of HTTP_SKIM_DEPTH_MAX inside the prompt,
 * json.h), is "not understood" and forwarded unchanged.
 *
 * The prompt becomes a chain (base/chain.h) by http/prompt.h. Its canonical form:
 *
 * 1. Segments: tools (tools, functions), system (system, instructions, documents), prompt
 *    (input_ids, token_ids, messages, prompt, input, text, query, in this precedence), each with a
 *    separate head (http/prompt.h). Members of the body may come in any order.
 * 2. Text streams: string contents, text parts, prompts. Token ids are four bytes each, little
 *    endian. Everything else (roles, tool calls, tool definitions, names) is an atom: a digest of
 *    the JSON value, independent of the order of members. An atom's weight in bytes is the sum of
 *    the lengths of all strings in the value. A content part's `type` is left out if the type is
 *    text.
 * 3. A message is the content, then an atom of all other members. The role is also mixed into
 *    every point within the message. Content as a string and as a single text part is the same;
 *    further content parts are separated. A string `input` is a user message.
 * 4. A content part with an image, audio or a file counts as CHAIN_MEDIUM_BYTES, whatever the
 *    length. A URL counts without the signature (http/media_url.h). `cache_control` is ignored
 *    everywhere in the prompt. So are null members of messages, content parts and tools, and of
 *    objects within them if the API names those objects' members.
 * 5. Of repeated members of the body, and of a message's repeated role or content, only the
 *    last counts. Inside atoms all of them count. A null segment counts as absent.
 * 6. Model, LoRA names, cache_salt, extra_key and previous_response_id are the namespace: chains of
 *    different namespaces share no id. The template's arguments count in the same way
 *    (chat_template_kwargs, reasoning_effort, ...), unless the rendering says that they do not
 *    count, or they are null or an empty object. An argument that only changes the end of a prompt
 *    (add_generation_prompt, continue_final_message) does not count.
 *
 * docs/adr/0050 has the engines' behaviour behind each rule, with sources.
 */
#ifndef HTTP_SKIM_H
#define HTTP_SKIM_H

#include "base/chain.h"
#include "base/hash.h"
#include "base/slice.h"
#include "http/json.h"
#include "http/path.h"
#include "http/prompt.h"

enum {
    HTTP_SKIM_SCRATCH = 1024,
};

_Static_assert(HTTP_SKIM_FIELD_MAX <= UINT8_MAX, "the length of a field has one byte");
_Static_assert(HTTP_SKIM_SCRATCH <= UINT16_MAX, "that of the scratch has two");

/* String members of the body. */
enum http_skim_name {
    HTTP_SKIM_MODEL, /* SGLang's "base:adapter" stays unchanged */
    HTTP_SKIM_USER,
    HTTP_SKIM_PROMPT_CACHE_KEY,
    HTTP_SKIM_SESSION_ID,
    HTTP_SKIM_METADATA_USER_ID,
    HTTP_SKIM_CACHE_SALT,
    HTTP_SKIM_EXTRA_KEY, /* SGLang: part of the namespace, too */
    HTTP_SKIM_LORA,      /* lora_path or lora_name */
    HTTP_SKIM_PREVIOUS_RESPONSE_ID,
    HTTP_SKIM_REQUEST_ID,
    HTTP_SKIM_NAMES,
};

/* Number members of the body. */
enum http_skim_number {
    HTTP_SKIM_MAX_COMPLETION_TOKENS,
    HTTP_SKIM_MAX_OUTPUT_TOKENS,
    HTTP_SKIM_MAX_TOKENS,
    HTTP_SKIM_MAX_NEW_TOKENS, /* max_new_tokens in sampling_params */
    HTTP_SKIM_PRIORITY,
    HTTP_SKIM_CHOICES, /* `n` */
    HTTP_SKIM_NUMBERS,
};

enum http_skim_flag {
    HTTP_SKIM_STREAM,
    HTTP_SKIM_STREAM_OPTIONS, /* the body has stream_options, whatever the value */
    HTTP_SKIM_BACKGROUND,     /* also set for "yes" and 1, which engines take for true */
    HTTP_SKIM_OWN_IDS,        /* the body has return_token_ids, or has echo, for which the answer
                               * repeats the prompt */
    HTTP_SKIM_FLAGS,
};

struct http_skim_field {
    bool is_digest; /* longer than HTTP_SKIM_FIELD_MAX: `text` is the digest, in 32 hex digits */
    uint8_t rank;   /* rank of the member that set the field, if several may */
    uint8_t len;
    char text[HTTP_SKIM_FIELD_MAX + HTTP_JSON_SLACK];
};

/* An open object or array (skim.c). */
struct http_skim_frame {
    uint8_t kind;
    uint8_t rank;  /* message or part: rank of the member that streams, of which there is only one;
                    * body or object: enum http_member_parent */
    bool is_first; /* array: has no element yet */
    bool is_media; /* content part: the member being read is an image or other medium, or is inside
                      a medium */
    bool is_typed; /* the API names the object's members */
    bool key_is_typed;   /* the API names the members of the member being read */
    bool takes_argument; /* body: the member being read is a template argument */
    uint8_t medium;      /* enum chain_medium, if is_media */
    uint64_t key;        /* hash of the member's name */
    uint64_t role;       /* message: hash of the role */
    uint8_t by;          /* message: enum http_prompt_by */
    uint64_t key_weight;
    uint64_t weight;
    struct hash128 sum;
    struct chain_content media;   /* content part: the media read so far */
    struct http_prompt_mark mark; /* where a message or content part began */
};

struct http_member;

struct http_skim {
    /* Results, valid after http_skim_finish(). */
    bool understood;
    bool flags[HTTP_SKIM_FLAGS];
    bool has_number[HTTP_SKIM_NUMBERS];
    int64_t numbers[HTTP_SKIM_NUMBERS];
    uint64_t model_at;        /* offset in the body of the model's string, with the quotes */
    uint64_t model_bytes;     /* length of the model's string; see http_skim_has_model() */
    const char *engine_field; /* a non-null member of the body that http/engine_field.h lists;
                                 for a request id the text in it, or "request_id" if too long to
                                 be checked; NULL: none */

    /* Private to skim.c and skim_string.c. */
    bool failed;
    bool has_body; /* the body's object was opened */
    bool finished;
    uint8_t text;                        /* destination of the string being read */
    uint8_t slot;                        /* purpose of the next value */
    const struct http_member *member;    /* the body's member whose value is being read */
    const char *engine_name;             /* name of the member if `slot` is HTTP_SLOT_ENGINE */
    uint8_t ranks[HTTP_PROMPT_SEGMENTS]; /* ranks of the segments' members */
    uint16_t depth;                      /* frames in use */
    uint16_t skip_depth;                 /* open containers inside a skipped value */
    uint16_t scratch_len;
    uint64_t fed;           /* bytes of the body, with the present piece */
    uint64_t string_at;     /* offset of the text of the string being read */
    uint64_t scratch_total; /* bytes of the string, including bytes no longer in the scratch */
    struct hash128 scratch_state;
    bool scratch_cut;    /* true: the string's digest leaves out the rest of the string */
    uint32_t kilopixels; /* thousands of pixels of an image in a string of the part's present
                          * member */
    uint32_t present;    /* bits 1 << enum http_skim_name of the set fields */
    uint32_t odd;        /* bits 1 << enum http_skim_name: see http_skim_is_odd() */
    const struct hash_secret *secret;
    struct http_json json;
    char scratch[sizeof(struct hash128) + HTTP_SKIM_SCRATCH + HTTP_JSON_SLACK];
    struct http_prompt prompt; /* `prompt.chain` is the result, see http_skim_chain() */
    struct http_skim_frame frames[HTTP_SKIM_DEPTH_MAX];
    struct http_skim_field fields[HTTP_SKIM_NAMES];
};

/* Begins to read a body. `secret` is borrowed until http_skim_finish(). The struct is about 25 KB;
 * do not zero it first. */
void http_skim_init(struct http_skim *s, const struct hash_secret *secret);

/* Makes the chain's points chunks (base/chain.h); call before the first piece. */
static inline void http_skim_by_chunks(struct http_skim *s)
{
    http_prompt_by_chunks(&s->prompt);
}

/* Reads a piece of the body. Cheap once the body is found not to be understood. */
void http_skim_feed(struct http_skim *s, const void *bytes, size_t len);

/* Ends the reading. Call once, after the whole body. All results but the chain are then valid. */
void http_skim_end(struct http_skim *s);
/* Call once, after _end(): builds the chain as an engine with this rendering sees the prompt. */
void http_skim_join(struct http_skim *s, struct rendering rendering);
/* Calls http_skim_end() and http_skim_join() with the empty rendering. */
static inline void http_skim_finish(struct http_skim *s)
{
    http_skim_end(s);
    http_skim_join(s, (struct rendering){0});
}

/* The value of a string member. Empty if the body has no such member; 32 hex digits of a digest if
 * the value is longer than HTTP_SKIM_FIELD_MAX. The slice points into `s`. */
static inline struct slice http_skim_field(const struct http_skim *s, enum http_skim_name name)
{
    const struct http_skim_field *field = &s->fields[name];
    return (s->present >> name & 1) != 0 ? slice_of(field->text, field->len) : slice_of("", 0);
}

/* True if the body has the member, at least once, with a value that is neither text nor null: an
 * engine may accept such a value as a name. */
static inline bool http_skim_is_odd(const struct http_skim *s, enum http_skim_name name)
{
    return (s->odd >> name & 1) != 0;
}

/* True if the body names a model, and the whole name was stored. */
static inline bool http_skim_has_model(const struct http_skim *s)
{
    return (s->present >> HTTP_SKIM_MODEL & 1) != 0 && !s->fields[HTTP_SKIM_MODEL].is_digest;
}
/* Replaces the body's model by a name of at most HTTP_SKIM_FIELD_MAX bytes. Call between
 * http_skim_end() and http_skim_join(). */
void http_skim_model_set(struct http_skim *s, struct slice model);

/* The engine's bound on output tokens, or -1 if there is none: the first present member of
 * max_completion_tokens, max_output_tokens, max_tokens and sampling_params.max_new_tokens. */
int64_t http_skim_output_max(const struct http_skim *s);

/* The most likely API, judged by the body member with the prompt, for requests whose path does not
 * tell the API. HTTP_PATH_OTHER: there is no prompt. */
enum http_path_kind http_skim_path(const struct http_skim *s);

/* True if the prompt has tools, in any form. */
static inline bool http_skim_has_tools(const struct http_skim *s)
{
    return s->ranks[HTTP_PROMPT_TOOLS] != 0;
}

/* The prompt's chain. The length is 0 if the body was not understood, or has no prompt or only a
 * short prompt. */
static inline const struct chain *http_skim_chain(const struct http_skim *s)
{
    return &s->prompt.chain;
}

/* The prompt's segments, after http_skim_end(). */
static inline const struct http_prompt_form *http_skim_form(const struct http_skim *s)
{
    return &s->prompt.form;
}

#endif
