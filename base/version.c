#include "base/version.h"

/* In a section of its own, where the Makefile finds it. Compiled without link-time optimisation,
 * which would copy the text into its users. */
__attribute__((section(".grapevine.version"))) const char version_text[VERSION_BYTES] =
    GRAPEVINE_VERSION;
