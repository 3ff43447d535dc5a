#include "http/multipart.h"

/* The value of the form field `model` in `text`. The slice's `at` is NULL if `text` does not have
 * all of the field. */
static struct slice form_model(struct slice text)
{
    static const char needle[] = "name=\"model\"";
    const char *at = memmem(text.at, text.len, needle, sizeof needle - 1);
    if (at == NULL)
        return slice_of(NULL, 0);
    text = slice_skip(text, (size_t)(at - text.at));
    at = memmem(text.at, text.len, "\r\n\r\n", 4);
    if (at == NULL)
        return slice_of(NULL, 0);
    text = slice_skip(text, (size_t)(at - text.at) + 4);
    size_t len = slice_find(text, '\r');
    return len < text.len ? slice_of(text.at, len) : slice_of(NULL, 0);
}

struct slice http_multipart_model(const struct body *body, char *seam, uint64_t *at)
{
    enum { SEAM = HTTP_MULTIPART_SEAM_BYTES / 2 };
    uint64_t before_s = 0; /* bytes of the body before `s` */
    for (const struct segment *s = body->first; s != NULL; before_s += s->len, s = s->next) {
        if (s != body->first && s->next != NULL && s->next != body->last)
            continue; /* the middle of a file */
        struct slice found = form_model(slice_of(s->data, s->len));
        if (found.at != NULL)
            *at = before_s + (uint64_t)(found.at - s->data);
        if (found.at == NULL && s->next != NULL) {
            size_t before = s->len < SEAM ? s->len : SEAM;
            size_t after = s->next->len < SEAM ? s->next->len : SEAM;
            memcpy(seam, s->data + s->len - before, before);
            memcpy(seam + before, s->next->data, after);
            found = form_model(slice_of(seam, before + after));
            if (found.at != NULL)
                *at = before_s + s->len - before + (uint64_t)(found.at - seam);
        }
        if (found.at != NULL)
            return found;
    }
    return slice_of(NULL, 0);
}
