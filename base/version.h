/* The version of the programs. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define GRAPEVINE_VERSION "0.1.0"

enum { VERSION_BYTES = 32 };

/* The version and, unless the build is a release, the commit: "0.1.0+175384ef". The Makefile
 * writes this text into the linked programs: a new commit costs no link. A build outside git and
 * all other programs have the version alone. */
extern const char version_text[VERSION_BYTES];

#endif
