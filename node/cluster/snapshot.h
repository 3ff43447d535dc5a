/* The kinds of chunks in a snapshot's answer, by the first byte of each chunk. A joining node skips
 * unknown kinds, and unknown bytes after the known part of a head or a vector. */
#ifndef NODE_CLUSTER_SNAPSHOT_H
#define NODE_CLUSTER_SNAPSHOT_H

enum node_snapshot_chunk {
    NODE_SNAPSHOT_HEAD = 1, /* ready 1 | cluster time 6 | count varint | {router 8 | epoch 6} per
                             * live router */
    NODE_SNAPSHOT_STATE,    /* a chunk of crdt/state.h */
    NODE_SNAPSHOT_VECTOR,   /* gossip_vector_write(), the last chunk */
};

#endif
