/* A whole service in a single process and in virtual time: clients, routers, their gossip, engines.
 *
 *   stream   virtual TCP: pieces, latency, small kernel buffers, FIN, RST, black holes
 *   router   a node as the daemon makes it, on these streams
 *   engine   the engine simulator's own engine
 *   ill      an engine's illnesses
 *   odd      answers that a well engine would not give, and unsolicited answers
 *   habit    an engine's permanent habits
 *   ask      requests of every kind
 *   client   connections that send the requests, in every manner, and read the answers
 *   fault    faults and their times
 *   field    real conditions: far peers, moving names, routers short of a resource
 *   judge    the rules
 *   sent     the answers of engines, as a client may see them
 *   share    the rule on replicas that fail at once
 *   pause    the rule on engines that pause
 *   use      the rule on engines that are well again
 *   run      a run, from the seed on
 *
 * A router is `struct world_node` (tests/lib/world); time, chance, datagrams between routers and
 * the queue of events are the world's. Times are the world's, in microseconds, unless another unit
 * is named. */
#ifndef TESTS_SIM_SERVICE_SERVICE_H
#define TESTS_SIM_SERVICE_SERVICE_H

#include "base/buf.h"
#include "base/bug.h"
#include "http/chunked.h"
#include "http/head.h"
#include "node/node.h"
#include "node/proxy/net.h"
#include "tests/lib/world/world.h"
#include "tests/sim/service.h"

enum {
    SERVICE_ROUTERS_MAX = 4,
    SERVICE_ENGINES_MAX = 6,
    SERVICE_ASKS_MAX = 4, /* requests on a connection */
    SERVICE_FORBIDDEN_MAX = 64,
    SERVICE_NOBODY = 99, /* instead of a router or an engine */
};

#define SERVICE_MS UINT64_C(1000)
#define SERVICE_S  UINT64_C(1000000)

struct service;
struct service_ask;
struct service_client;
struct service_engine;

/* --- stream.c -------------------------------------------------------------------------------- */

/* Callbacks of an end that is not a router's. Never called from within an action. */
struct service_owner {
    void (*connected)(void *owner, int err);
    void (*readable)(void *owner); /* service_end_take() has bytes */
    void (*ended)(void *owner, bool reset);
    void (*writable)(void *owner); /* there is room, after there was none */
};

struct service_end {
    struct net_stream net; /* first: what a router's proxy sees */
    struct service *service;
    struct service_end *peer;
    const struct service_owner *is; /* NULL: a router's */
    void *owner;
    unsigned router, engine; /* the end's owner; both SERVICE_NOBODY: a client */
    bool open;               /* in use by the owner's process */
    bool connecting;
    int connect_err;
    bool connect_known;
    bool reading;
    bool closing; /* `closed` is due */
    bool finished;
    bool gone;               /* the machine vanished silently */
    uint64_t far_us;         /* per direction, beyond the usual */
    uint32_t address;        /* address used to connect to a named engine; 0: none */
    bool asked;              /* a request was sent here */
    struct service_ask *ask; /* that request, if the engine is odd */
    bool unasked;            /* writes are unsolicited */
    bool crossed;            /* a request was sent here before an unsolicited answer arrived */
    uint64_t unasked_us;     /* when the first unsolicited bytes arrived */
    bool turned_away;        /* a client's: the router closed it at the limit of connections */
    struct buf in;           /* arrived, not read */
    bool in_end;             /* behind `in` the stream ends */
    bool in_reset;           /* ended by a reset; writing fails from now on */
    bool told_end;
    bool starved;           /* found no room to write to */
    uint64_t flying;        /* bytes on the way from here */
    uint64_t last_us;       /* arrival of the last byte on the way */
    uint64_t sent, arrived; /* pieces, so that none overtakes another */
    bool kicked;
    struct slice queued[NET_PIECES_MAX];
    unsigned queued_count;
    struct service_end *next;
};

/* The link between a router and an engine, or between a router and the clients. */
struct service_link {
    uint64_t lost_us;       /* time of the last lost packet; 0: never */
    uint64_t hole_until_us; /* nothing arrives before */
    uint64_t slow_us;       /* later than usual */
};

/* A new connection from `from` to `to`. The caller fills in both ends except for the part of
 * stream.c. The far end opens when the listener there accepts. */
struct service_end *service_end_pair(struct service *s);
void service_end_connect(struct service_end *e);
void service_end_kick(struct service_end *e);
/* Returns the number of bytes accepted, as the kernel has room. 0: none. */
size_t service_end_write(struct service_end *e, struct slice bytes);
bool service_end_fails(const struct service_end *e);
size_t service_end_take(struct service_end *e, char *out, size_t max);
void service_end_read(struct service_end *e, bool on);
uint64_t service_end_round_trip_us(const struct service_end *e);
void service_end_finish(struct service_end *e);
void service_end_close(struct service_end *e, bool reset);
/* Resets all ends of a router after the router's process is gone. */
void service_ends_of_router_drop(struct service *s, unsigned router);
/* The engine's ends were stopped, and may have work again. */
void service_ends_kick(struct service *s, unsigned engine);
/* Resets everything that a link carries. */
void service_link_reset(struct service *s, unsigned router, unsigned engine);
void service_streams_free(struct service *s);

/* --- router.c -------------------------------------------------------------------------------- */

struct service_router {
    struct world_node *node;
    struct node_options options;
    struct log log;
    struct net_actions net;
    bool listening;
    bool draining, closed;
    uint64_t close_us, cut_us;
    uint64_t began_us; /* this life */
    uint64_t looked;
    uint64_t evicted;
    uint64_t forbidden; /* retries forbidden by the budget; forbidden_us: when, if no excuse yet */
    uint64_t forbidden_us[SERVICE_FORBIDDEN_MAX];
    bool errs[SERVICE_ENGINES_MAX]; /* errs[E]: the router knows that engine E sends errors to
                                     * others, too */
    char read_buffer[65536];
};

void service_routers_open(struct service *s);
void service_router_start(struct service *s, unsigned router);
void service_router_kill(struct service *s, unsigned router);
/* SIGTERM. */
void service_router_drain(struct service *s, unsigned router);
void service_routers_free(struct service *s);
/* Called after any event at the router. */
void service_router_touch(struct service *s, unsigned router);
static inline bool service_router_up(const struct service_router *r)
{
    return r->node->node != NULL;
}

/* --- engine.c -------------------------------------------------------------------------------- */

enum service_ill {
    SERVICE_WELL,
    SERVICE_DOWN,    /* the port refuses */
    SERVICE_STOPPED, /* the process does not run */
    SERVICE_HANGS,   /* works no more, but passes the health check */
    SERVICE_SLOW,    /* waits before it works */
    SERVICE_500,     /* answers 500; /health may be well or ill */
    SERVICE_503,
    SERVICE_429,
    SERVICE_ERROR_EVENT,         /* 200, and an error event first */
    SERVICE_RESETS,              /* resets the connection in the middle of an answer */
    SERVICE_UNFINISHED,          /* streams that end before their last event */
    SERVICE_SHORT,               /* a body shorter than announced, and a FIN */
    SERVICE_GARBAGE,             /* no HTTP */
    SERVICE_DRAINS,              /* as vLLM: 500 to new requests, then gone */
    SERVICE_DRAINS_503,          /* as SGLang: /health 503, requests are served, then resets */
    SERVICE_CLOSES,              /* closes after each answer, without notice */
    SERVICE_HEALTH_SLOW,         /* only /health is slow */
    SERVICE_STUCK,               /* steps pause, HTTP answers */
    SERVICE_REJECTS,             /* rejects requests that the peers accept: another setup */
    SERVICE_LOST_MODEL,          /* lists another model for a while */
    SERVICE_ERROR_LATE,          /* an error event and [DONE], after some text */
    SERVICE_FAR,                 /* no bytes from or to the engine arrive */
    SERVICE_USUAL = SERVICE_FAR, /* any run may have the illnesses up to here */
    SERVICE_EARLY,               /* answers before the body is read, and closes */
    SERVICE_ENDLESS,             /* interim heads (1xx), and no other */
    SERVICE_ILLS,
};

/* A request at an engine. */
struct service_attempt {
    struct service_attempt *next; /* next attempt of the request */
    struct service_ask *ask;
    const struct service_end *end; /* where it arrived; the peer is the router's */
    struct service_attempt *open_next, **open_link;
    unsigned engine;
    uint64_t life;               /* the engine's life */
    uint64_t begun_us, ended_us; /* 0: running */
    bool whole;                  /* the answer was sent to the end */
    bool died;                   /* the engine died */
    bool known;                  /* the router knew that the engine answers with errors */
    enum service_ill ill;        /* the engine's last illness during the attempt */
    uint64_t ills;               /* all such illnesses, a bit each */
    bool broken;                 /* the connection broke by itself */
    bool rejected;               /* the engine rejected a request that the peers accept */
    uint64_t sent_us;            /* last time of bytes of an answer */
    unsigned writes;
    struct buf sent; /* the whole answer, including the head */
};

/* An engine's message before the end of a waiting connection. */
enum service_unasked { SERVICE_SILENT, SERVICE_SAYS_408, SERVICE_SAYS_400, SERVICE_SAYS_200 };

/* The permanent habits of an engine in a run (habit.c): options of the simulator. */
struct service_habits {
    double silence_s, silence_share, ping_s, reset_s, tokenizer_ms, tokenizer_slow_ms;
    uint64_t silence_after, digits, steps;
    unsigned at_end, framing, changes;
    const char *missing, *drop, *lead;
    bool named;                   /* reached by name */
    uint64_t idle_ms;             /* a connection's idle time before the end; 0: SIM_IDLE_MS */
    enum service_unasked unasked; /* message before that end */
    unsigned interim;             /* heads (1xx) before each answer */
};

#define SERVICE_BILLING "x-anthropic-billing-header"

struct service_engine {
    unsigned number;
    char name[32]; /* 10.0.1.N:8000 */
    char host[24]; /* 10.0.1.N */
    struct service_habits habits;
    uint64_t life;
    bool up;
    bool stopped;
    enum service_ill ill;
    bool ill_health;
    unsigned ill_after; /* writes */
    uint64_t ill_until_us;
    uint64_t gone_us;       /* last end of the process */
    uint64_t well_since_us; /* last end of an illness */
    void *engine;           /* engine.c's */
    uint64_t due_us, due_tag;
    struct service_attempt *open;
};

void service_engines_open(struct service *s);
void service_engines_free(struct service *s);
bool service_engine_accepts(const struct service_engine *e);
void service_engine_accept(struct service_engine *e, struct service_end *end);
void service_engine_kill(struct service *s, unsigned engine);
void service_engine_start(struct service *s, unsigned engine);
void service_engine_ill(struct service *s, unsigned engine, enum service_ill ill, uint64_t us);
void service_engine_heal(struct service *s, unsigned engine);
/* Requests in progress, in the background too. */
unsigned service_engine_jobs(const struct service_engine *e);
/* True if the engine's core takes steps: no request can kill an engine that hangs. */
bool service_ill_computes(const struct service_engine *e);
const char *service_ill_text(enum service_ill ill);

/* --- habit.c --------------------------------------------------------------------------------- */

struct sim_options;
bool service_is_sglang(unsigned engine);
void service_habits_draw(struct service *s, struct service_habits *h);
void service_habits_apply(const struct service_engine *e, struct sim_options *o);
void service_habits_say(const struct service *s, const struct service_engine *e);

/* --- ask.c ----------------------------------------------------------------------------------- */

enum service_kind {
    SERVICE_CHAT,
    SERVICE_COMPLETIONS,
    SERVICE_MESSAGES,
    SERVICE_RESPONSES,
    SERVICE_GENERATE,
    SERVICE_EMBEDDINGS,
    SERVICE_MODELS,
    SERVICE_HEALTH,
    SERVICE_STORED,    /* GET of a stored response */
    SERVICE_DEED,      /* a POST that does something each time */
    SERVICE_BLOB,      /* a long answer that is no completion */
    SERVICE_AUDIO,     /* multipart */
    SERVICE_NO_PATH,   /* an unknown path */
    SERVICE_NO_METHOD, /* GET instead of POST */
    SERVICE_TOO_LARGE,
    SERVICE_MALFORMED,
    SERVICE_KINDS,
};

struct service_ask {
    struct service_ask *next; /* next request of the run */
    struct service *service;
    uint64_t number;
    enum service_kind kind;
    bool stream;
    bool usage_asked; /* by the client */
    bool poison;
    bool takes_gzip;
    bool continues; /* a response that a single engine has */
    unsigned minor;
    bool close;
    bool chunked, expects;
    struct buf bytes; /* head and body as sent */
    size_t head_bytes;
    struct service_client *client;

    uint64_t begun_us; /* when the first byte was sent; 0: not yet */
    uint64_t sent_us;  /* when the last byte was sent */
    uint64_t head_us, done_us;
    bool crossed; /* an unsolicited answer crossed it, and passes for the answer */
    bool left;    /* the client left, or broke the rules of HTTP */
    uint64_t left_us;
    bool ended;
    bool whole;
    bool judged;
    unsigned status;
    char replica[32], reason[32], limit[40];
    bool answer_closes;
    struct buf body;
    struct service_attempt *attempts;
    unsigned killed;  /* engines killed by the request, in the router's view */
    unsigned ran;     /* attempts, */
    uint64_t ills;    /* engines that were ill at some time during the request, a bit each */
    bool routers_ill; /* the router went */
};

/* A request of a random kind; the text follows from the run's seed. */
struct service_ask *service_ask_make(struct service *s, struct service_client *c);
struct service_ask *service_ask_find(struct service *s, uint64_t number);
bool service_kind_computes(enum service_kind kind);
void service_asks_free(struct service *s);

/* --- client.c -------------------------------------------------------------------------------- */

enum service_manner {
    SERVICE_PLAIN,
    SERVICE_PIPELINES,
    SERVICE_TRICKLES, /* sends a few bytes at a time */
    SERVICE_READS_SLOWLY,
    SERVICE_READS_NOT,   /* from some byte of an answer on */
    SERVICE_HALF_CLOSES, /* after the request */
    SERVICE_LEAVES,      /* at some point, by FIN or RST */
    SERVICE_VANISHES,    /* at some point, without FIN or RST */
    SERVICE_STALLS,      /* in the middle of a head or a body */
    SERVICE_MANNERS,
};

struct service_client {
    struct service_client *next;
    struct service *service;
    uint64_t number;
    unsigned router;
    struct service_end *end;
    enum service_manner manner;
    struct service_ask *asks[SERVICE_ASKS_MAX];
    unsigned count;
    unsigned sending; /* the request in transit */
    size_t sent;      /* bytes of that request sent so far */
    unsigned answering;
    bool over;
    uint64_t over_us;
    size_t trouble_at; /* byte of output or input at which the manner shows */
    bool trouble_reads;
    bool trouble_resets;
    bool troubled;
    size_t took; /* bytes read in all */
    uint64_t think_us;
    uint64_t pace_us;
    bool planned;
    bool refused;

    struct buf in;
    bool in_body;
    struct http_chunked chunks;
    enum http_framing framing;
    uint64_t left;
};

void service_clients_begin(struct service *s);
void service_clients_free(struct service *s);
const char *service_manner_text(enum service_manner m);

/* --- fault.c --------------------------------------------------------------------------------- */

/* The faults of a run. */
enum service_day {
    SERVICE_MIXED,  /* anything */
    SERVICE_LONE,   /* a single engine at a time fails at once; no other faults */
    SERVICE_PAUSES, /* engines pause, and go on */
};

void service_faults_begin(struct service *s);
void service_faults_end(struct service *s);
/* The requests that are open now may have met this ill engine. */
void service_ill_meets(struct service *s, unsigned engine);
/* Answers under way from the engine may suffer from this illness. */
void service_ill_reaches(struct service *s, unsigned engine, enum service_ill ill);
/* Engines that are ill, or were until lately, a bit each. */
uint64_t service_ills(const struct service *s);

/* --- field.c --------------------------------------------------------------------------------- */

enum { SERVICE_ADDRESSES_MAX = 2 };

/* The addresses of a name, as DNS or a router has them. */
struct service_name {
    uint32_t ids[SERVICE_ADDRESSES_MAX];
    unsigned count;
};

/* A router is short of something. */
struct service_shortage {
    uint64_t until_us;
    int err;
    unsigned engine; /* towards this engine; SERVICE_NOBODY: all */
    bool late;       /* reported by an event */
    uint64_t used;   /* engines without blame when it began, a bit each */
};

/* Random conditions of a run. */
struct service_field {
    bool far, odd, shortages, names;
    uint64_t engines_us[SERVICE_ROUTERS_MAX][SERVICE_ENGINES_MAX]; /* far: delay per direction */
    uint64_t clients_us;                                           /* at most */
    struct service_shortage short_of[SERVICE_ROUTERS_MAX];
    struct service_name dns[SERVICE_ENGINES_MAX];
    uint32_t last_id;
    unsigned silent; /* look-ups of this engine's name come late; SERVICE_NOBODY: none */
    struct service_host *hosts[SERVICE_ROUTERS_MAX][SERVICE_ENGINES_MAX]; /* open ones */
};

struct service_host {
    struct net_host host; /* first */
    struct service *service;
    unsigned router, engine;
    bool closed;
    bool told;
    uint64_t asked_us; /* when the look-up began */
    struct service_name known;
};

void service_field_draw(struct service *s);
void service_field_begin(struct service *s);
void service_field_end(struct service *s);
/* Extra delay, per direction, of the end's connection. */
uint64_t service_field_far_us(struct service *s, const struct service_end *e);
/* For a connection to be opened now: 0, or the missing resource, at once (`*late`: by an event). */
int service_field_short_of(struct service *s, const struct service_host *h, bool *late);
void service_field_resolve(struct service_host *h);
/* A request, or more of a request, is sent. */
void service_field_writes(struct service_end *e, struct slice bytes);
/* Writes of an engine's end from now on are unsolicited: requests under way cross them, and the
 * router cannot tell these writes from answers. */
void service_field_unasked(struct service_end *e);
/* True if a router does not know the engine's address. */
bool service_field_is_unknown(const struct service *s, unsigned engine);
/* Rule "charged". */
void service_judge_shortage(struct service *s);

/* --- judge.c --------------------------------------------------------------------------------- */

/* Rules after each step of a router, and now and then for everything. */
void service_judge_router(struct service *s, unsigned router);
void service_judge_all(struct service *s);
/* The request kills the engine now. */
void service_judge_poison(const struct service_attempt *t);
/* True if the client got a usable part of the answer. */
bool service_has_content(const struct service_ask *a);
/* A request has an answer, or was cut, or the client left. */
void service_judge_ask(struct service_ask *a);
/* Everything is healed, and no request is open. */
void service_judge_rest(struct service *s);

/* --- sent.c ---------------------------------------------------------------------------------- */

/* Status and body of an engine's answer, without usage that the client did not ask for. False:
 * incomplete. */
bool service_sent(const struct service_attempt *t, unsigned *status, struct buf *body);
/* True if two bodies are equal except for comments of an event stream. */
bool service_same(const struct service_attempt *t, struct slice one, struct slice other);
/* True if the client got usage without asking. */
bool service_leaked(const struct service_ask *a);
/* True if a blank line ends here. */
bool service_between_events(struct slice body, size_t at);

/* --- share.c, pause.c ------------------------------------------------------------------------ */

bool service_fails_at_once(enum service_ill ill);
/* True if the engine has been well for long enough to be noticed. */
bool service_is_well(const struct service *s, unsigned engine);
/* Events: an engine is ill from now on; another engine too; a request reached an engine; a client
 * got an answer; the engine is well again. */
void service_share_begin(struct service *s, unsigned engine);
void service_share_spoil(struct service *s);
void service_share_attempt(struct service *s, unsigned engine);
void service_share_seen(struct service *s, const struct service_ask *a);
void service_share_end(struct service *s, unsigned engine);
/* A request was cut. */
void service_judge_pause(const struct service_ask *a);

/* --- use.c ----------------------------------------------------------------------------------- */

/* True if each router may use each engine; breaks the rule if a router may not for too long. */
bool service_judge_use(struct service *s);
/* True if a router believes an engine down, or backs off for a charged failure. */
bool service_is_blamed(const struct service *s, unsigned router, unsigned engine);
/* True if so by failures that the router itself saw: not by another router's report, nor because
 * the engine was silent for longer than usual with earlier requests. */
bool service_blames(const struct service *s, unsigned router, unsigned engine);
/* True if a probe of the router waits for the engine's answer. */
bool service_owes_answer(const struct service *s, unsigned router, unsigned engine);
/* Rule "charged": a failure of a connection to an engine that is well. */
void service_judge_charges(struct service *s);
/* Runs on until each router may use each engine. */
void service_judge_aftermath(struct service *s);

/* --- run.c ----------------------------------------------------------------------------------- */

/* Tries while a single engine fails at once. */
struct service_share {
    bool running;
    unsigned engine;
    uint64_t from_us;
    uint64_t all, own;
    uint64_t seen; /* the engine's rejections that clients got */
};

struct service {
    struct world world; /* first: it is the context of its events */
    struct service_settings settings;
    struct service_router routers[SERVICE_ROUTERS_MAX];
    unsigned router_count;
    struct service_engine engines[SERVICE_ENGINES_MAX];
    unsigned engine_count;
    unsigned rock; /* an engine that is always well; SERVICE_NOBODY: none */
    struct service_link links[SERVICE_ROUTERS_MAX][SERVICE_ENGINES_MAX];
    struct service_end *ends;
    struct service_client *clients;
    unsigned clients_open, clients_max;
    uint64_t client_count;
    struct service_ask *asks;
    uint64_t ask_count;
    bool working, troubled;
    bool sticks;        /* all clients use the same router */
    unsigned favourite; /* that router */
    uint64_t moves_us;  /* until then */
    bool goes_on;       /* that router has requests after the faults */
    uint64_t arrive_us; /* most time between two new clients */
    uint64_t avoided_since_us[SERVICE_ROUTERS_MAX][SERVICE_ENGINES_MAX];
    uint64_t avoided_most_ms[SERVICE_ROUTERS_MAX]
                            [SERVICE_ENGINES_MAX]; /* longest time for the present reason */
    bool routers_fail;
    unsigned seconds;
    size_t kernel_bytes; /* of a stream, in each direction */
    uint64_t longest_us; /* no request is open for longer */
    bool other_paths;    /* the routers pass them on */
    bool hosts_named;    /* engines are reached by name */
    bool patient;        /* the router computes the time limits itself */
    enum service_day day;
    struct service_field field;
    uint64_t charges[SERVICE_ROUTERS_MAX][SERVICE_ENGINES_MAX]; /* at the last look */
    uint64_t ills_before;                                       /* engines that were ill then */
    struct service_share share;
    uint64_t at_us;   /* the last event of a stream */
    unsigned at_once; /* number of events at that time */
    char stored[128]; /* id of a stored response */
    uint64_t whole, failed, cut, left;
};

uint64_t service_below(struct service *s, uint64_t below);
static inline uint64_t service_between(struct service *s, uint64_t low, uint64_t high)
{
    return low + service_below(s, high - low + 1);
}
static inline bool service_chance(struct service *s, double p)
{
    return world_chance(&s->world, p);
}
void service_later(struct service *s, uint64_t us, void (*happen)(void *, struct world_event *),
                   unsigned node, uint64_t a, void *object);
_Noreturn void service_broken(const struct service *s, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void service_say(const struct service *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
