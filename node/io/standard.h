/* The standard streams of a process, which may start without some of them ("2>&-", or a supervisor
 * closes them). The next opened file would get the number of a missing stream: log lines would go
 * to a client's socket or a pipe of the event loop. */
#ifndef NODE_IO_STANDARD_H
#define NODE_IO_STANDARD_H

/* Opens /dev/null under the numbers of missing standard streams. Called first in main(), before any
 * other file is opened. Input then reads as empty and log lines go nowhere. Standard output refuses
 * writes, like a closed stream: `gvctl keygen` must not report success if the key is lost. */
void standard_open(void);

#endif
