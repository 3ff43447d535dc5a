/* Recorded bytes of the protocol (tests/unit/cluster/recorded/): files of hex, an item per line. */
#ifndef TESTS_LIB_RECORDED_H
#define TESTS_LIB_RECORDED_H

#include "base/buf.h"
#include "base/slice.h"

enum { RECORDED_VERSION = 1 /* the newest folder */, RECORDED_MAX = 24 };

struct recorded {
    unsigned count;
    struct buf item[RECORDED_MAX];
};

/* Loads the items of the file with this version and name. To write a new file, a caller adds items
 * to a zeroed struct instead. */
void recorded_load(struct recorded *r, unsigned version, const char *name);
void recorded_add(struct recorded *r, struct slice bytes);
void recorded_free(struct recorded *r);
/* With RECORDED=update, writes the file of this version again. */
void recorded_update(const struct recorded *r, unsigned version, const char *name);
/* Borrowed. */
struct slice recorded_item(const struct recorded *r, unsigned index);

#endif
