/* Messages to the service manager of this process, following sd_notify(3) of systemd: datagrams of
 * text to the socket in NOTIFY_SOCKET. Without the variable none are sent.
 *
 *   READY=1      the ports listen and the loop runs. Load balancers need /readyz instead: a router
 *                without any engine up is READY too. Otherwise systemd would restart the router
 *                again and again, and the router would lose its knowledge each time
 *   STATUS=      the text of /readyz, for `systemctl status`
 *   RELOADING=1  SIGHUP came; with the time (MONOTONIC_USEC), as Type=notify-reload of systemd
 *                253 requires. READY=1 follows once the settings are read and applied, and then
 *                `systemctl reload` returns
 *   WATCHDOG=1   sent by the tick, three times within WATCHDOG_USEC. A hanging loop sends none, so
 *                systemd restarts the process
 *   STOPPING=1   the router drains; with EXTEND_TIMEOUT_USEC, so that TimeoutStopSec does not cut
 *                answers that drain-delay and drain-timeout permit
 *
 * libsystemd is not used, because the protocol is a single datagram and stable by promise. The
 * manual recommends to reimplement the protocol rather than to link the library only for this. The
 * library would load five others (lzma, zstd, lz4, gcrypt, cap), which are not in the container.
 *
 * An unsent message is tried again by a later tick; nothing here blocks. */
#ifndef NODE_IO_SERVICE_H
#define NODE_IO_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct shell;

enum {
    SERVICE_STATUS_BYTES = 256,
    SERVICE_STATUS_MS = 1000,     /* shortest interval of STATUS messages */
    SERVICE_STOP_SPARE_MS = 10000 /* time after the drain to announce the leave and exit */
};

/* Progress of a reload. */
enum service_reload {
    SERVICE_STEADY,     /* no reload */
    SERVICE_RELOAD_DUE, /* RELOADING=1 is to be sent */
    SERVICE_RELOADING,  /* RELOADING=1 was sent, and the reload is not over */
    SERVICE_RELOADED,   /* READY=1 is to be sent */
};

struct service {
    bool asked;      /* NOTIFY_SOCKET is set */
    bool complained; /* the log has a line that the socket cannot be reached */
    bool ready;      /* READY=1 was sent */
    bool stopping;   /* STOPPING=1 was sent */
    enum service_reload reload;
    bool reload_over;   /* the reload is done, even if not reported yet */
    uint64_t reload_us; /* time of the SIGHUP */
    char status[SERVICE_STATUS_BYTES];
    int fd;
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ms; /* interval of WATCHDOG=1; 0: not required */
    uint64_t alive_at_ms; /* time of the next WATCHDOG=1 */
    uint64_t status_at_ms;
};

/* Reads the environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
void service_open(struct service *s);
/* Sends the messages that are due. Call from the loop, which the watchdog thereby supervises. */
void service_tick(struct shell *shell, uint64_t now_ms);
/* Returns true if a message is pending, or WATCHDOG=1 is frequent, so that the tick is needed
 * soon. */
bool service_waits(const struct service *s);
/* The first reports that SIGHUP is being handled, the second the end of the reload. After each call
 * of service_reloads() a call of service_reloaded() must follow. */
void service_reloads(struct shell *shell);
void service_reloaded(struct shell *shell);
void service_close(struct service *s);

#endif
