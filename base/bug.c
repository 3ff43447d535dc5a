#include "base/bug.h"

#ifdef GRAPEVINE_LAB

#include <string.h>

enum bug bug_active;
unsigned bug_chances;

bool bug_choose(const char *name)
{
    static const char *const names[] = {"NONE",
#define BUG_NAME(name, ...) #name,
                                        BUG_MAP(BUG_NAME) BUG_REAL_MAP(BUG_NAME)
                                            BUG_LIAR_MAP(BUG_NAME)
#undef BUG_NAME
    };
    for (unsigned i = 0; i < BUG_COUNT; i++) {
        if (name == NULL || strcmp(names[i], name) == 0) {
            bug_active = (enum bug)i;
            return true;
        }
    }
    return false;
}

#endif
