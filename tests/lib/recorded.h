/* Recorded bytes of the protocol (tests/unit/cluster/recorded/): files of hex, one item a line. */
#ifndef TESTS_LIB_RECORDED_H
#define TESTS_LIB_RECORDED_H

#include "base/buf.h"
#include "base/slice.h"

enum { RECORDED_VERSION = 1 /* the newest folder */, RECORDED_MAX = 24 };

struct recorded {
    unsigned count;
    struct buf item[RECORDED_MAX];
};

/* The items of the file of that version and name, or what the caller adds to an empty one. */
void recorded_load(struct recorded *r, unsigned version, const char *name);
void recorded_add(struct recorded *r, struct slice bytes);
void recorded_free(struct recorded *r);
/* With RECORDED=update, writes the file of this version again. */
void recorded_update(const struct recorded *r, unsigned version, const char *name);
/* Borrowed. */
struct slice recorded_item(const struct recorded *r, unsigned index);

#endif
