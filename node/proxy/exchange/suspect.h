/* Suspects of poison: requests that may have killed their engine.
 *
 * When a replica dies, requests with a first token there are innocent, and are cut. The others are
 * examined: did the request arrive before the death, or later, and merely share the wait? The signs
 * of a death (struct pool_death):
 *
 *   core     the engine is dead behind a live server: no byte on any connection for seconds, then
 *            all connections end (SGLang: 5 s; not vLLM, which refuses deadly requests).
 *            Suspects are the requests sent before the silence began, and shortly after.
 *
 *   abrupt   connections end while bytes were flowing, or answers report a dead
 *            engine (vLLM): the process is gone. All requests without a token are suspects, but
 *            weak ones, because most such processes were killed. So are requests in words at a
 *            dead core.
 *
 *   hang     no byte comes, and no connection has ended: no death, no suspects. Nor are there any
 *            if the port closed some time before the connections ended, as in a shutdown.
 *
 * A distant engine may end while a request is in transit. The first end within UPSTREAM_STALE_TRIPS
 * of a request is no death for the request (upstream.h, `crossed`); the next is.
 *
 * The consequences:
 *
 *   - A request that merely shared the engine is sent on as usual.
 *
 *   - A weak suspect is sent on: alone if an idle replica is available, else to a replica without
 *     another suspect. This includes other routers' suspects, as far as the routers' order keeps
 *     them apart.
 *
 *   - A suspect uses only fresh connections. A stale connection to an engine that died at the same
 *     moment would count as a second death, though the request never arrived there.
 *
 *   - A suspect of a dead core with a prompt of token ids, which go to the engine unread, goes on
 *     once, alone: to a replica where no router has a request, as far as known. If there is none,
 *     the suspect waits (QUEUE_ALONE), and the quietest replica is kept until its requests have
 *     ended. Other requests go elsewhere, or wait too if nothing else is left (QUEUE_APART).
 *
 *     Both waits are short. If the queue is full, or the wait takes too long, others share the
 *     kept replica, and the suspect is answered 502 `suspect`. One request is not worth the answers
 *     of all others on an engine. Until the first token, the replica stays kept. All routers learn
 *     about the suspect, so a repetition is alone everywhere.
 *
 *   - A request that broke two engines is poison: 502 `poison` from then on, at all routers
 *     (node/route/poison.h). Two cases are less certain: the request was among several at two
 *     abrupt deaths, or both deaths came within a second (a failing host, all engines stopped;
 *     not if engines lived on to report their death). Such a request is sent nowhere else, but
 *     remembered only as a suspect, because it may have been unlucky.
 *
 *   - The first token clears the suspect.
 *
 * Nothing here answers, sends or chooses: node/proxy/exchange/attempt.c asks, and acts.
 * node/admission/admission.h describes how a suspect gets a replica to itself. */
#ifndef NODE_PROXY_EXCHANGE_SUSPECT_H
#define NODE_PROXY_EXCHANGE_SUSPECT_H

#include "node/proxy/exchange/exchange.h"

enum {
    SUSPECT_SILENCE_MS = 4500, /* without a byte from the engine, then the end: a dead core */
    SUSPECT_MARGIN_MS = 1000,  /* a request sent so long after the last byte may be the cause */
    SUSPECT_STEP_MS = 500,     /* the same during a flow of tokens: a step or two */
    SUSPECT_NOTICED_MS = 4000, /* no server notices a dead core sooner, */
    SUSPECT_LATEST_MS = 5500,  /* nor later */
    SUSPECT_HANG_MS = 8000,    /* a server silent for longer hangs: the core is alive */
    SUSPECT_TEXT_MS = 2000,    /* except servers that report a dead core at once */
    SUSPECT_DEATH_MS = 1000,   /* ends within this time are a single death, or have a single
                                  cause */
    SUSPECT_CLOSED_MS = 100, /* a port that refused so long before the end was closed on purpose */
    SUSPECT_ALIVE_MS = 500,  /* later bytes are from a live process */
    SUSPECT_TEXT_AGAIN_MS = 30000, /* a dead core is reported again and again for so long */
};

/* The end of an attempt without a token. */
enum suspect_end {
    SUSPECT_END_BROKEN,    /* the connection ended or was reset */
    SUSPECT_END_GONE,      /* a reused connection ended at once, and the port refused: not stale */
    SUSPECT_END_CORE_DEAD, /* the answer reports a dead engine (verdict.h) */
    SUSPECT_END_SILENT,    /* the router gave up after a long silence */
};

/* Returns true if a stalled replica may lose the request to another. SGLang's server answers
 * nothing for the 5 s between the core's end and its own, so a possible cause waits for that
 * end. */
bool suspect_may_move(const struct exchange *x);
/* The connections of a silent replica are about to be given up. */
void suspect_silent(struct pool *pool);
/* Notes what a failed attempt says about the request; for BROKEN, x->now.upstream is still the
 * failed connection. */
void suspect_ended(struct exchange *x, enum suspect_end end);

/* Notes an event of a live process that affects this request and maybe others there. The engine
 * gave the request up (finish reason "abort"), or a data-parallel rank stalled. No request is
 * suspected. */
void suspect_of_nothing(const struct exchange *x);

/* Returns true if the request must not be sent (again): x->refusal and x->limit have the reason,
 * and the answer is 502. Called before each choice. */
bool suspect_refused(struct exchange *x);
/* Stops further attempts, though the request is no poison; `text`, borrowed: the reason. */
void suspect_refuse(struct exchange *x, const char *text);

/* The first token came, or an equivalent answer. */
void suspect_answered(struct exchange *x);

#endif
