/* JSON text written into a struct buf: objects, arrays, strings, numbers, with commas and escapes.
 *
 *     struct json_writer w = json_writer_of(&out);
 *     json_object_begin(&w);
 *     json_put_u64(&w, "replicas", 3);
 *     json_object_end(&w);
 *     err = json_writer_finish(&w);
 *
 * Errors (ERR_NOMEM, ERR_LIMIT) stick: later calls do nothing, and json_writer_finish() returns the
 * first error and cuts `out` back to the length at the start. Wrong nesting is a bug and aborts.
 */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "base/buf.h"
#include "base/err.h"

enum { JSON_DEPTH_MAX = 32 };

struct json_writer {
    struct buf *out;
    size_t start; /* out->len when the writer began */
    int err;
    unsigned depth;
    uint64_t object;   /* bit d: level d is an object (1) or an array (0) */
    uint64_t nonempty; /* bit d: level d has an element, so the next needs a comma */
    bool after_key;
};

struct json_writer json_writer_of(struct buf *out);
/* Returns 0 or the first error. All objects and arrays must have been ended. */
MUST_USE int json_writer_finish(struct json_writer *w);

void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);

/* Writes the key of the next value, in an object. */
void json_key(struct json_writer *w, const char *key);
void json_key_slice(struct json_writer *w, struct slice key);

/* A string of any bytes: invalid UTF-8 becomes U+FFFD, so the result is always valid JSON.
 * (jansson, which tests link, has taken the names json_string and json_null.) */
void json_slice(struct json_writer *w, struct slice text);
void json_cstr(struct json_writer *w, const char *text);
void json_u64(struct json_writer *w, uint64_t value);
void json_i64(struct json_writer *w, int64_t value);
/* NaN and infinities become null, because JSON does not have them. */
void json_double(struct json_writer *w, double value);
void json_bool(struct json_writer *w, bool value);
void json_nil(struct json_writer *w);
/* Writes `json`, the text of a single value, unchanged. The caller guarantees valid JSON. */
void json_raw(struct json_writer *w, struct slice json);

/* Writes a member of an object: key and value. */
void json_put_slice(struct json_writer *w, const char *key, struct slice text);
/* NULL counts as "". */
void json_put_cstr(struct json_writer *w, const char *key, const char *text);
void json_put_u64(struct json_writer *w, const char *key, uint64_t value);
/* Writes null if the value is not known. */
void json_put_known(struct json_writer *w, const char *key, bool known, uint64_t value);
void json_put_i64(struct json_writer *w, const char *key, int64_t value);
void json_put_double(struct json_writer *w, const char *key, double value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
/* Begins an object or array as a member. End it with json_object_end() or json_array_end(). */
void json_put_object(struct json_writer *w, const char *key);
void json_put_array(struct json_writer *w, const char *key);

/* Appends a JSON string with quotes, without a writer. */
MUST_USE int json_string_append(struct buf *out, struct slice text);

#endif
