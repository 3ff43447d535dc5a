#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define GRAPEVINE_VERSION "0.1.0"

#endif
