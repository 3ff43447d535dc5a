#include "node/admission/admission.h"

#include "base/check.h"
#include "base/err.h"

void admission_init(struct admission *a, struct node_router *router, struct access *access,
                    const struct node_options *options, const struct hash_secret *secret)
{
    *a = (struct admission){
        .router = router, .access = access, .options = options, .secret = *secret};
    queue_init(&a->queue, options->queue_max);
    budget_init(&a->budget, options->retry_budget);
}

/* --- the answers ----------------------------------------------------------------------------- */

static void refuse(struct admission_answer *out, enum refusal why, const char *text)
{
    out->verdict = ADMISSION_REFUSE;
    out->why = why;
    out->text = text;
}

static bool is_suspect(const struct admission_request *r)
{
    return r->company == NODE_COMPANY_ALONE;
}

/* Returns the time that the request has waited in this class. A suspect's time is increased so that
 * ADMISSION_ALONE_MS is reached when the request is ADMISSION_OPEN_MS old. */
static uint64_t waited_ms(const struct admission_request *r, enum queue_class class,
                          uint64_t now_ms)
{
    uint64_t open_ms = now_ms - r->came_ms + ADMISSION_ALONE_MS;
    uint64_t by_age_ms = open_ms > ADMISSION_OPEN_MS ? open_ms - ADMISSION_OPEN_MS : 0;
    uint64_t before_ms = r->waited_ms[class];
    return class == QUEUE_ALONE && by_age_ms > before_ms ? by_age_ms : before_ms;
}

/* Returns the error text for the suspect's client if the suspect may not wait; NULL: the suspect
 * may wait. */
static const char *why_not_wait(const struct admission *a, const struct admission_request *r,
                                int err, uint64_t now_ms)
{
    if (!queue_has_place(&a->queue, &r->waiter))
        return "An engine died after this request, and too many such requests wait for an engine "
               "without other requests.";
    if (err == ERR_LIMIT)
        return "An engine died after this request. The only other engine has other requests, so "
               "the router does not send it there.";
    if (waited_ms(r, QUEUE_ALONE, now_ms) >= ADMISSION_ALONE_MS)
        return "An engine died after this request, and no engine was without other requests in "
               "time.";
    return NULL;
}

/* Keeps the replica with the fewest requests for the waiting suspects, unless a replica is kept
 * already or the pause lasts. */
static void keep_quietest(struct admission *a, const struct admission_question *q, uint64_t now_ms)
{
    if (a->kept != 0 || now_ms < a->pause_until_ms)
        return;
    int quietest = node_router_quietest(a->router, q->request, q->excluded, now_ms);
    if (quietest < 0)
        return;
    a->kept = (unsigned)quietest + 1;
    node_router_keep(a->router, (unsigned)quietest, true);
}

/* Lets the request wait, or refuses it, after node_router_place() failed with `err`: ERR_AGAIN,
 * ERR_EXISTS or ERR_LIMIT. A request already in the queue keeps waiting. */
static void wait(struct admission *a, struct admission_request *r,
                 const struct admission_question *q, int err, uint64_t now_ms,
                 struct admission_answer *out)
{
    enum queue_class class = err == ERR_AGAIN ? QUEUE_ROOM
                             : is_suspect(r)  ? QUEUE_ALONE
                                              : QUEUE_APART;
    bool waits = err != ERR_LIMIT && queue_waits(&r->waiter) && r->waiter.class == class;
    const char *why = class == QUEUE_ALONE && !waits ? why_not_wait(a, r, err, now_ms) : NULL;
    if (why != NULL) {
        refuse(out, REFUSED_SUSPECT, why);
        if (a->kept != 0)
            a->pause_until_ms = now_ms + ADMISSION_PAUSE_MS;
    } else if (!waits && !queue_has_place(&a->queue, &r->waiter)) {
        refuse(out, REFUSED_QUEUE_FULL, NULL);
        out->retry_after_s = queue_retry_after_s(&a->queue, class, now_ms);
    } else {
        out->verdict = ADMISSION_WAIT;
        out->class = class;
        out->waited_ms = waited_ms(r, class, now_ms);
        if (class == QUEUE_ALONE)
            keep_quietest(a, q, now_ms);
    }
}

/* Keeps the replica `server` for the request placed there, if the request must not share a
 * replica. */
static void place(struct admission *a, struct admission_request *r, unsigned server,
                  uint64_t now_ms)
{
    r->waited_ms[QUEUE_ALONE] = r->waited_ms[QUEUE_APART] = 0;
    if (r->company == NODE_COMPANY_ANY)
        return;
    CHECK(r->kept == NODE_COMPANY_ANY);
    r->kept = r->company;
    node_router_keep(a->router, server, true);
    if (is_suspect(r)) {
        a->placed++;
        a->placed_until_ms = now_ms + ADMISSION_KEEP_MS;
    }
}

/* --- the question ---------------------------------------------------------------------------- */

bool admission_is_full(const struct admission *a)
{
    return node_router_booked(a->router) >= a->options->requests_max;
}

/* Returns the lane's key, equal for requests that can go to the same replicas. */
static uint64_t key_of(const struct admission *a, const struct admission_question *q)
{
    const struct node_request *request = q->request;
    uint64_t key = (uint64_t)(int64_t)request->replica_wanted;
    if (request->model.len > 0)
        key ^= hash64(&a->secret, request->model.at, request->model.len);
    for (size_t i = 0; i < NODE_REPLICAS_MAX / 64; i++) {
        if (q->excluded->words[i] != 0)
            key = hash_mix(key ^ hash_mix(q->excluded->words[i] + i));
    }
    return key;
}

static bool must_queue(const struct admission *a, const struct admission_request *r,
                       const struct admission_question *q)
{
    return admission_is_full(a) ||
           (a->queue.lines[QUEUE_ROOM].length > 0 &&
            queue_has_waiters(&a->queue, &r->waiter, QUEUE_ROOM, key_of(a, q)));
}

static int choose(const struct admission *a, const struct admission_request *r,
                  const struct admission_question *q, uint64_t now_ms, struct node_decision *out)
{
    bool kept = a->kept != 0 || (a->placed > 0 && now_ms < a->placed_until_ms);
    bool patient =
        r->waited_ms[QUEUE_APART] < ADMISSION_APART_MS && queue_has_place(&a->queue, &r->waiter);
    if (must_queue(a, r, q))
        return ERR_AGAIN;
    q->request->company = r->company;
    q->request->kept_for_it = (int)a->kept - 1;
    q->request->may_wait = kept && patient && q->prompt;
    return q->by_load ? node_router_place_by_load(a->router, q->request, q->excluded, now_ms, out)
                      : node_router_place(a->router, q->request, q->excluded, now_ms, out);
}

/* Counts the request for its tenant, once. Returns false after a refusal because a limit is
 * exceeded. */
static bool begin(struct admission *a, struct admission_request *r, struct access_key *tenant,
                  uint64_t now_ms, struct admission_answer *out)
{
    unsigned after_s;
    if (tenant == NULL || r->counted)
        return true;
    out->over = access_begin(a->access, tenant, now_ms, &after_s);
    r->counted = out->over == ACCESS_GOOD;
    if (r->counted)
        return true;
    refuse(out, REFUSED_KEY_LIMIT, NULL);
    out->retry_after_s = after_s;
    return false;
}

static void judge(struct admission *a, struct admission_request *r,
                  const struct admission_question *q, uint64_t now_ms, struct admission_answer *out)
{
    if (!begin(a, r, q->tenant, now_ms, out))
        return;
    if (q->against != REFUSED_NONE)
        refuse(out, q->against, NULL);
    if (q->against != REFUSED_NONE || q->request == NULL)
        return;
    if (!r->asked)
        budget_fill(&a->budget);
    r->asked = true;
    int err = choose(a, r, q, now_ms, &out->decision);
    if (err == ERR_AGAIN || err == ERR_EXISTS || err == ERR_LIMIT) {
        wait(a, r, q, err, now_ms, out);
    } else if (err != 0) {
        out->verdict = ADMISSION_REFUSE;
        out->err = err;
    } else {
        place(a, r, out->decision.server, now_ms);
    }
}

static void leave(struct admission *a, struct admission_request *r, bool served, uint64_t now_ms)
{
    if (!queue_waits(&r->waiter))
        return;
    r->waited_ms[r->waiter.class] += now_ms - r->waiter.since_ms;
    deadline_clear(&r->deadline);
    if (served)
        queue_take(&a->queue, &r->waiter, now_ms);
    else
        queue_remove(&a->queue, &r->waiter);
}

void admission_ask(struct admission *a, struct admission_request *r,
                   const struct admission_question *q, uint64_t now_ms,
                   struct admission_answer *out)
{
    *out = (struct admission_answer){.verdict = ADMISSION_GO};
    judge(a, r, q, now_ms, out);
    bool waits = out->verdict == ADMISSION_WAIT;
    if (queue_waits(&r->waiter) && waits && r->waiter.class == out->class)
        return;
    leave(a, r, out->verdict == ADMISSION_GO, now_ms);
    if (waits)
        CHECK(queue_push(&a->queue, &r->waiter, out->class, key_of(a, q), now_ms) == 0);
}

/* --- waiting and placed requests ------------------------------------------------------------- */

void admission_leave(struct admission *a, struct admission_request *r, uint64_t now_ms)
{
    leave(a, r, false, now_ms);
}

void admission_alone(struct admission *a, struct admission_request *r, unsigned server)
{
    if (r->kept == NODE_COMPANY_ANY)
        return;
    node_router_keep(a->router, server, false);
    a->placed -= r->kept == NODE_COMPANY_ALONE;
    a->due = true;
    r->kept = NODE_COMPANY_ANY;
}

bool admission_settle(struct admission *a)
{
    bool look = a->due;
    if (a->kept != 0 && a->queue.lines[QUEUE_ALONE].length == 0) {
        node_router_keep(a->router, a->kept - 1, false);
        a->kept = 0;
        look = true;
    }
    a->due = false;
    return look && a->queue.length > 0;
}

struct admission_request *admission_next(const struct admission *a, const struct queue_look *look)
{
    struct queue_waiter *w = queue_look_next(&a->queue, look);
    if (w == NULL || (w->class == QUEUE_ROOM && admission_is_full(a)))
        return NULL;
    return CONTAINER_OF(w, struct admission_request, waiter);
}
