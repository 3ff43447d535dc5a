#include "base/err.h"

const char *err_text(int err)
{
    switch (err) {
    case ERR_OK:
        return "ok";
#define ERR_CASE(name, value, text)                                                                \
    case ERR_##name:                                                                               \
        return text;
        ERR_MAP(ERR_CASE)
#undef ERR_CASE
    default:
        return "unknown error";
    }
}
