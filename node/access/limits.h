/* Limits of node/access; docs/limits.md says what happens at each. */
#ifndef NODE_ACCESS_LIMITS_H
#define NODE_ACCESS_LIMITS_H

enum {
    ACCESS_NAME_MAX = 64,        /* bytes of a key's name */
    ACCESS_KEYS_MAX = 65536,     /* keys of a file */
    ACCESS_MODELS_MAX = 256,     /* models of a key */
    ACCESS_MODELS_BYTES = 8192,  /* bytes of the names of a key's models */
    ACCESS_KEY_BYTES_MAX = 1024, /* bytes of a client's key; a longer key is unknown */
    ACCESS_FILE_BYTES_MAX = 16777216,
    ACCESS_LIMIT_MAX = 1000000000, /* requests, tokens or requests in flight */
    ACCESS_SHOWN_MAX = 1000,       /* names in metrics */
    ACCESS_ROWS_MAX = 262144,      /* rows of other routers' counts, all keys together */
    ACCESS_NEWS_BYTES = 8192,      /* bytes of a message to the other routers */
};

#endif
