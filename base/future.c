#include "base/future.h"

#ifdef GRAPEVINE_LAB
bool future_active;
#endif
