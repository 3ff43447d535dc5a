/* Requests that may be poison: that may have killed the engine which they were sent to.
 *
 * When a replica dies, what had got its first token there is innocent, and is cut. What had none is
 * looked at: was it there when the engine died, or did it come later and merely share the wait? The
 * signs of a death (struct pool_death):
 *
 *   core     the engine is dead behind a server that lives: nothing came on any connection for
 *            seconds, then all end (SGLang: 5 s; not of vLLM, which refuses what would kill it).
 *            What had been sent before the silence began, and a little later, are suspects.
 *
 *   abrupt   connections end while bytes were flowing until just now, or answers say that the
 *            engine is dead (vLLM): the process is gone. All that had no token are suspects, but
 *            weak ones: mostly it was killed. So are those of a dead core whose prompts are words.
 *
 *   hang     nothing comes, and nothing has ended: no death, no suspects. Nor are there any where
 *            the port was closed for a while before connections ended: it was told to end.
 *
 * An engine that is far away may end while a request is on its way to it. The first end that came
 * within UPSTREAM_STALE_TRIPS of a request is no death to it (upstream.h, `crossed`); the next is.
 *
 * What follows of it:
 *
 *   - What merely shared the engine is sent on as ever.
 *
 *   - A weak suspect is sent on, alone where an idle replica is at hand, else where no other
 *     suspect is: also none of another router, as far as the order of routers keeps them apart.
 *
 *   - A suspect goes out on fresh connections only: a reused one into an engine that died at the
 *     same moment would count as a second death, though the request never came there.
 *
 *   - A suspect of a dead core whose prompt is token ids, which go to the engine unread, is sent
 *     on once, alone: where nothing is under way, of any router, as far as is known. If there is no
 *     such replica, it waits (QUEUE_ALONE), and the quietest is kept for it until what runs there
 *     has ended: others are placed elsewhere, and wait too where there is nothing else
 *     (QUEUE_APART). Both waits are short. If there is no place in the queue, or it takes too long,
 *     others share the replica that is kept, and the suspect is answered 502 `suspect`: one request
 *     is not worth the answers of all others on an engine. While it has no token, its replica is
 *     kept for it. All routers know of it, so that it is alone wherever it is repeated.
 *
 *   - What broke two is poison: 502 `poison` from then on, at all routers (node/route/poison.h).
 *     One that was among several at two abrupt deaths, or whose two deaths came within a second
 *     (a host fails, all engines are stopped; but not where they lived on to say that they are
 *     dead), is sent nowhere else, but remembered as a suspect only: it may have been unlucky.
 *
 *   - The first token clears it.
 *
 * Nothing here answers, sends or chooses: node/proxy/exchange/attempt.c asks, and does. How a
 * suspect gets a replica to itself stands in node/admission/admission.h. */
#ifndef NODE_PROXY_EXCHANGE_SUSPECT_H
#define NODE_PROXY_EXCHANGE_SUSPECT_H

#include "node/proxy/exchange/exchange.h"

enum {
    SUSPECT_SILENCE_MS = 4500, /* without a byte from the engine, then the end: its core was dead */
    SUSPECT_MARGIN_MS = 1000,  /* sent so long after the last byte: it may be the cause */
    SUSPECT_STEP_MS = 500,     /* the same where tokens were coming all the time: a step or two */
    SUSPECT_NOTICED_MS = 4000, /* no server notices sooner that its core is dead */
    SUSPECT_LATEST_MS = 5500,  /* nor later */
    SUSPECT_HANG_MS = 8000,    /* a server that is silent for longer hangs: its core is well */
    SUSPECT_TEXT_MS = 2000,    /* but for those that say so at once */
    SUSPECT_DEATH_MS = 1000,   /* what ends within this is one death, or one blow to several */
    SUSPECT_CLOSED_MS = 100, /* a port that refused so long before the end was closed on purpose */
    SUSPECT_ALIVE_MS = 500,  /* bytes that come later are of a living process */
    SUSPECT_TEXT_AGAIN_MS = 30000, /* a core that is dead is said to be so again and again */
};

/* How an attempt ended that had no token. */
enum suspect_end {
    SUSPECT_END_BROKEN, /* the connection ended or was reset */
    SUSPECT_END_GONE,   /* a reused one did at once, and then the port refused: it was not stale */
    SUSPECT_END_CORE_DEAD, /* the answer says that the engine is dead (verdict.h) */
    SUSPECT_END_SILENT,    /* the router gave it up: nothing came for too long */
};

/* Whether it may be taken from a replica that stands still. SGLang's server answers nothing at all
 * for the 5 s in which it ends after its core: what may be the cause waits for that end. */
bool suspect_may_move(const struct exchange *x);
/* The connections of a replica are about to be given up because nothing comes. */
void suspect_silent(struct pool *pool);
/* The attempt failed; x->now.upstream is still the connection that it was on (for BROKEN). Notes
 * what that says of the request. */
void suspect_ended(struct exchange *x, enum suspect_end end);

/* A blow to this one and maybe to others there, of a process that lives: its engine gave it up
 * (finish reason "abort"), or a data-parallel rank stands still. No request is suspected. */
void suspect_of_nothing(const struct exchange *x);

/* Whether the request may not be sent (again): then x->refusal and x->limit say why, and it is
 * answered 502. Asked before each choice. */
bool suspect_refused(struct exchange *x);
/* It is not sent (again), though it is no poison; `text`, which is borrowed: why. */
void suspect_refuse(struct exchange *x, const char *text);

/* Its first token came, or an answer that is as good. */
void suspect_answered(struct exchange *x);

#endif
