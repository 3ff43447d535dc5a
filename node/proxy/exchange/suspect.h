/* Suspects: requests that may have killed an engine, and so may be poison.
 *
 * When a replica dies, requests that already have a first token are no suspects, and their answers
 * are cut. For each other request, suspect.c decides if it reached the engine before the death, or
 * only waited at an engine already dead. There are these kinds of death (struct pool_death):
 *
 *   core     the engine is dead, but the HTTP server lives: no byte on any connection for seconds,
 *            then all connections end (SGLang: 5 s; not vLLM, which refuses deadly requests).
 *            Suspects are the requests sent before the silence began, or shortly after.
 *
 *   abrupt   connections end while bytes were flowing, or answers report a dead
 *            engine (vLLM): the process is gone. All requests without a token are suspects, but
 *            weak ones, because most such processes were killed. At a dead core, requests with
 *            a prompt of text are weak suspects too.
 *
 *   hang     no byte comes, but no connection has ended: no death, and no suspects. There are no
 *            suspects either if the port refused connections some time before the open connections
 *            ended, as in a shutdown.
 *
 * A distant engine may die while a request is in transit. If the connection ends within
 * UPSTREAM_STALE_TRIPS of sending the request, the first such death does not count against the
 * request (upstream.h, `crossed`). A second death does.
 *
 * The consequences:
 *
 *   - A request that is no suspect is sent to another replica as usual.
 *
 *   - A weak suspect is sent to an idle replica, or if there is none to a replica without another
 *     suspect. Other routers' suspects count too, as far as the routers' order keeps them apart.
 *
 *   - A suspect uses only fresh connections. If another engine died at the same moment, a
 *     stale connection there would count as a second death, though the request never arrived.
 *
 *   - A strong suspect is a request at a dead core with a prompt of token ids, which the server
 *     passes to the engine unread. It is sent once more, alone: to a replica without known
 *     requests of any router. If there is none, the suspect waits (QUEUE_ALONE), and the replica
 *     with the fewest requests is reserved and gets no others. Other requests go elsewhere, or
 *     wait too if no other replica is left (QUEUE_APART).
 *
 *     Both waits are short. If the queue is full, or the wait takes too long, other requests may
 *     use the reserved replica, and the suspect is answered 502 `suspect`, because it could end all
 *     of an engine's answers. The replica stays reserved until the suspect's first token. All
 *     routers learn about the suspect, so a repetition is alone everywhere.
 *
 *   - A request that killed two engines is poison: all routers answer it 502 `poison` from then on
 *     (node/route/poison.h). Two cases are less certain: the request was among several at two
 *     abrupt deaths, or both deaths came within a second (a failing host, or all engines stopped),
 *     unless servers reported dead engines. Then the request is not sent again, but is remembered
 *     only as a suspect, because both deaths may have another cause.
 *
 *   - The first token clears the suspect.
 *
 * The functions here only judge; node/proxy/exchange/attempt.c calls them and acts.
 * node/admission/admission.h describes how a replica is reserved for a suspect. */
#ifndef NODE_PROXY_EXCHANGE_SUSPECT_H
#define NODE_PROXY_EXCHANGE_SUSPECT_H

#include "node/proxy/exchange/exchange.h"

enum {
    SUSPECT_SILENCE_MS = 4500, /* after at least this silence, an end means a dead core */
    SUSPECT_MARGIN_MS = 1000,  /* a request sent at most this long after the last byte may be the
                                * cause */
    SUSPECT_STEP_MS = 500,     /* replaces SUSPECT_MARGIN_MS while tokens flow: a step or two */
    SUSPECT_NOTICED_MS = 4000, /* the earliest time at which a server notices a dead core */
    SUSPECT_LATEST_MS = 5500,  /* the latest time at which a server notices a dead core */
    SUSPECT_HANG_MS = 8000,    /* after a longer silence the server hangs: the core is alive */
    /* Replaces SUSPECT_LATEST_MS for servers that report a dead core in answers. */
    SUSPECT_TEXT_MS = 2000,
    SUSPECT_DEATH_MS = 1000, /* ends within this time are the same death, or have a common cause */
    SUSPECT_CLOSED_MS = 100, /* a port closed at least this long before the end was closed on
                              * purpose */
    SUSPECT_ALIVE_MS = 500,  /* bytes this long after an end show that the process did not die */
    SUSPECT_TEXT_AGAIN_MS = 30000, /* for this long, reports of a dead core are of the same death */
};

/* How an attempt without a token ended. */
enum suspect_end {
    SUSPECT_END_BROKEN,    /* the connection ended or was reset */
    SUSPECT_END_GONE,      /* a reused connection ended at once, then the port refused: a death */
    SUSPECT_END_CORE_DEAD, /* the answer reports a dead engine (verdict.h) */
    SUSPECT_END_SILENT,    /* the router gave up after a long silence */
};

/* Returns true if the request may move from a stalled replica to another. SGLang's server is silent
 * for 5 s after the core's death, then ends. A request that may be the cause must wait for this
 * end. */
bool suspect_may_move(const struct exchange *x);
/* Records that a silent replica died or hangs. Called before the router gives up the replica's
 * connections. */
void suspect_silent(struct pool *pool);
/* Notes the suspicion against the request after a failed attempt. For SUSPECT_END_BROKEN,
 * x->now.upstream must still be the failed connection. */
void suspect_ended(struct exchange *x, enum suspect_end end);

/* A live process failed this request and maybe others: the engine aborted them (finish reason
 * "abort"), or a data-parallel rank stalled. No request becomes a suspect. */
void suspect_of_nothing(const struct exchange *x);

/* Returns true if the request must not be sent (again): x->refusal and x->limit have the reason,
 * and the answer is 502. Called before each choice. */
bool suspect_refused(struct exchange *x);
/* Stops further attempts of a request that is not poison. `text`, borrowed: the reason. */
void suspect_refuse(struct exchange *x, const char *text);

/* Called when the first token came, or another answer that clears the request. */
void suspect_answered(struct exchange *x);

#endif
