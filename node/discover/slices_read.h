/* Reads the API server's answers about EndpointSlices, in pieces of any size:
 *
 *   LIST    a page of an EndpointSliceList: each slice as it ends, then the page's end
 *   WATCH   event after event: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
 *   STATUS  the body of an error answer
 *
 *     discover_read_begin(r, DISCOVER_READ_WATCH);
 *     struct slice in = the bytes just received;
 *     while ((what = discover_read_next(r, &in)) > DISCOVER_READ_MORE) ...
 *
 * Members may come in any order; unknown members are ignored. Anything but strict JSON, or a slice
 * beyond the limits of slices.h, is an error. After an error every further call returns the error.
 */
#ifndef NODE_DISCOVER_SLICES_READ_H
#define NODE_DISCOVER_SLICES_READ_H

#include "base/err.h"
#include "http/json.h"
#include "node/discover/slices.h"

enum {
    DISCOVER_OBJECT_BYTES_MAX = 4 << 20, /* bytes of a slice or event as JSON */
    DISCOVER_VERSION_MAX = 127,          /* bytes of a resource version */
    DISCOVER_CONTINUE_MAX = 2047,        /* bytes of the token for the next page */
    DISCOVER_MESSAGE_MAX = 255,          /* bytes of an error's text; the rest is cut */
};

enum discover_read_kind { DISCOVER_READ_LIST, DISCOVER_READ_WATCH, DISCOVER_READ_STATUS };

enum discover_read_what {
    DISCOVER_READ_ERROR, /* `error` says which */
    DISCOVER_READ_MORE,  /* the input is used up */
    DISCOVER_READ_SLICE, /* a slice of a list: `slice` */
    DISCOVER_READ_PAGE,  /* the list has ended: `list_version`, `next` */
    DISCOVER_READ_EVENT, /* `type`, `slice` and `version`; for ERROR `code` and `message` */
    DISCOVER_READ_DONE,  /* the status has ended: `code` and `message` */
};

struct discover_reader {
    /* The results; valid until the next call. */
    struct discover_slice slice;
    char version[DISCOVER_VERSION_MAX + 1]; /* version of the object */
    char list_version[DISCOVER_VERSION_MAX + 1];
    char next[DISCOVER_CONTINUE_MAX + 1]; /* "": this is the last page */
    char type[16];
    char message[DISCOVER_MESSAGE_MAX + 1];
    unsigned code;     /* code of a status; 0: none */
    const char *error; /* a literal */

    /* Private to the reader. */
    enum discover_read_kind kind;
    struct http_json json;
    uint8_t roles[8]; /* roles of the open containers being read */
    unsigned depth;
    unsigned skipped; /* number of open containers that are skipped */
    bool is_key;      /* the text being read is a key */
    bool drawing;     /* a key or string is being read */
    bool done;
    size_t bytes; /* bytes of this object so far */
    size_t key_len, text_len;
    struct discover_endpoint endpoint;
    struct discover_port port;
    bool port_is_tcp;
    struct discover_port ports[DISCOVER_SLICE_PORTS_MAX];
    struct discover_endpoint endpoints[DISCOVER_SLICE_ENDPOINTS_MAX];
    char key[32 + HTTP_JSON_SLACK];
    char text[DISCOVER_CONTINUE_MAX + 1 + HTTP_JSON_SLACK];
};

void discover_read_begin(struct discover_reader *r, enum discover_read_kind kind);
MUST_USE enum discover_read_what discover_read_next(struct discover_reader *r, struct slice *in);

#endif
