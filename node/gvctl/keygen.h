/* The key file of a cluster: makes one, and takes it through a rotation. */
#ifndef NODE_GVCTL_KEYGEN_H
#define NODE_GVCTL_KEYGEN_H

enum keygen_step {
    KEYGEN_NEW,     /* a whole file on stdout */
    KEYGEN_NEXT,    /* the file gets a second key that is accepted already */
    KEYGEN_PROMOTE, /* the second key becomes the one that is used, the first stays accepted */
    KEYGEN_FINISH,  /* the old key goes */
};

/* Changes `path` in one step (a new file takes its place, with its mode). The exit status; what is
 * wrong stands on stderr. */
int keygen(enum keygen_step step, const char *path);

#endif
