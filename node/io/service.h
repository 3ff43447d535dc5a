/* What the service manager that started this process hears of it, as sd_notify(3) of systemd says:
 * datagrams of text to the socket that NOTIFY_SOCKET names. Without that variable there are none.
 *
 *   READY=1      the ports listen and the loop runs. Not that requests can be served: that is
 *                /readyz, which load balancers ask. A router whose engines are all down has started
 *                well; systemd would end it for not being ready, again and again, and each time it
 *                would lose what it knows.
 *   STATUS=      in words what /readyz says, for `systemctl status`
 *   RELOADING=1  SIGHUP came, with the time of it (MONOTONIC_USEC, as Type=notify-reload wants);
 *                READY=1 follows when the settings were read and what can change has. With that
 *                type (systemd 253) `systemctl reload` returns then
 *   WATCHDOG=1   from the tick, three times within WATCHDOG_USEC: a loop that hangs sends none, and
 *                is started again
 *   STOPPING=1   it drains; with it EXTEND_TIMEOUT_USEC, so that no TimeoutStopSec cuts answers
 *                that drain-delay and drain-timeout leave time for
 *
 * Own code, though libsystemd has this: the protocol is one datagram and stable by promise, and its
 * manual says to write it anew rather than to link for it alone. The library would bring five more
 * into the process (lzma, zstd, lz4, gcrypt, cap), which the container does without.
 *
 * What cannot be sent now is sent by a later tick; nothing here waits.
 */
#ifndef NODE_IO_SERVICE_H
#define NODE_IO_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct shell;

enum {
    SERVICE_STATUS_BYTES = 256,
    SERVICE_STATUS_MS = 1000, /* between two statuses */
    SERVICE_STOP_SPARE_MS =
        10000 /* beyond the drain's limits, to announce that it leaves and end */
};

/* What is to be told next of a reload, or was. */
enum service_reload {
    SERVICE_STEADY,
    SERVICE_RELOAD_DUE, /* RELOADING=1 */
    SERVICE_RELOADING,  /* nothing, before it is over */
    SERVICE_RELOADED,   /* READY=1 */
};

struct service {
    bool asked;      /* somebody listens */
    bool complained; /* that it cannot be reached */
    bool ready;      /* was sent, as were the next two */
    bool stopping;
    enum service_reload reload;
    bool reload_over;   /* what was asked for is done, told or not */
    uint64_t reload_us; /* when it was asked for */
    char status[SERVICE_STATUS_BYTES];
    int fd;
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ms; /* between two signs of life; 0: none are wanted */
    uint64_t alive_at_ms; /* when the next is due */
    uint64_t status_at_ms;
};

/* Reads the environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
void service_open(struct service *s);
/* From the loop that it vouches for. */
void service_tick(struct shell *shell, uint64_t now_ms);
/* Something could not be sent yet, or signs of life are wanted often: the tick is needed soon. */
bool service_waits(const struct service *s);
/* SIGHUP came, and is followed now. Each is followed by service_reloaded(). */
void service_reloads(struct shell *shell);
void service_reloaded(struct shell *shell);
void service_close(struct service *s);

#endif
