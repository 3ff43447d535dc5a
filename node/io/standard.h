/* The standard streams of a process, which may start without some of them ("2>&-", a supervisor
 * that closes what it does not need). A missing one's number would be given to the next file that
 * is opened: log lines would be written into a socket of a client or a pipe of the event loop. */
#ifndef NODE_IO_STANDARD_H
#define NODE_IO_STANDARD_H

/* Opens /dev/null under the numbers of the standard streams that are missing. The first thing in
 * main(), before anything else opens a file. Input then reads as empty and log lines go nowhere.
 * Standard output takes nothing, so that a write to it fails as it does to a stream that is closed:
 * `gvctl keygen` must not report success for a key that nobody has. */
void standard_open(void);

#endif
