/* The permanent habits of an engine in a run: like real engines, and unlike most simulators. */
#include "base/check.h"
#include "tests/sim/service/engine_internal.h"

enum { HABITS_MAX = 3 };

static double seconds(struct service *s, uint64_t least_ms, uint64_t most_ms)
{
    return (double)service_between(s, least_ms, most_ms) / 1e3;
}

bool service_is_sglang(unsigned engine)
{
    return engine % 3 == 2;
}

/* Text that parsers hold back, and pings that keep such a stream alive. */
static void draw_silence(struct service *s, struct service_habits *h)
{
    h->silence_s = seconds(s, 200, 6000);
    h->silence_after = service_below(s, 4);
    h->silence_share = service_chance(s, 0.3) ? 1 : 0.3;
    h->ping_s = service_chance(s, 0.3) ? seconds(s, 20, 500) : 0;
}

static void draw_metrics(struct service *s, struct service_habits *h)
{
    static const char *const missing[] = {
        "", "vllm:iteration_tokens_total,sglang:realtime_tokens_total",
        "vllm:generation_tokens_total,sglang:gen_throughput",
        "vllm:iteration_tokens_total,vllm:generation_tokens_total,vllm:prompt_tokens_total,"
        "sglang:realtime_tokens_total,sglang:gen_throughput,sglang:generation_tokens_total"};
    h->digits = service_chance(s, 0.5) ? 2 : 17;
    h->steps = service_chance(s, 0.5) ? 40 : 1;
    h->at_end = (unsigned)service_below(s, 3);
    h->missing = missing[service_below(s, ARRAY_LEN(missing))];
    h->reset_s = service_chance(s, 0.3) ? seconds(s, 500, 5000) : 0;
}

static void draw_framing(struct service *s, struct service_habits *h)
{
    static const unsigned bits[] = {SIM_FRAMING_COMMENTS, SIM_FRAMING_CRLF, SIM_FRAMING_NO_SPACE,
                                    SIM_FRAMING_GIANT,    SIM_FRAMING_GZIP, SIM_FRAMING_IDENTITY};
    for (size_t i = 0; i < ARRAY_LEN(bits); i++)
        h->framing |= service_chance(s, 0.3) ? bits[i] : 0;
    h->framing |= service_chance(s, 0.15) ? SIM_FRAMING_BYTES : 0;
    if ((h->framing & SIM_FRAMING_GZIP) && (h->framing & SIM_FRAMING_IDENTITY))
        h->framing |= SIM_FRAMING_GZIP_ALWAYS; /* a request that names no coding accepts any */
    h->ping_s = service_chance(s, 0.2) ? seconds(s, 20, 500) : h->ping_s;
}

/* First tokens are late, although no request waits. */
static void draw_tokenizer(struct service *s, struct service_habits *h)
{
    h->tokenizer_ms = (double)service_between(s, 5, 50);
    h->tokenizer_slow_ms = service_chance(s, 0.5) ? 300 : 0;
}

static void draw_prompt(struct service *s, struct service_habits *h)
{
    h->drop = service_chance(s, 0.5) ? SERVICE_BILLING : NULL;
    h->lead = service_chance(s, 0.3) ? "Today is Friday." : NULL;
    h->changes = (unsigned)service_below(s, 8);
}

/* The end of waiting connections, and the engine's message at the end or before an answer. */
static void draw_closing(struct service *s, struct service_habits *h)
{
    if ((s->field.far || s->field.odd) && service_chance(s, 0.7))
        h->idle_ms = service_between(s, 20, 600);
    if (s->field.odd && service_chance(s, 0.8))
        h->unasked = (enum service_unasked)service_between(s, SERVICE_SAYS_408, SERVICE_SAYS_200);
    if (s->field.odd && service_chance(s, 0.4))
        h->interim = (unsigned)service_between(s, 1, 3);
}

void service_habits_draw(struct service *s, struct service_habits *h)
{
    *h = (struct service_habits){
        .silence_share = 1, .digits = 17, .steps = 1, .missing = "", .named = s->hosts_named};
    unsigned count = service_chance(s, 0.5) ? 1 + (unsigned)service_below(s, HABITS_MAX) : 0;
    for (unsigned i = 0; i < count; i++) {
        switch (service_below(s, 5)) {
        case 0:
            draw_silence(s, h);
            break;
        case 1:
            draw_metrics(s, h);
            break;
        case 2:
            draw_framing(s, h);
            break;
        case 3:
            draw_tokenizer(s, h);
            break;
        default:
            draw_prompt(s, h);
        }
    }
    draw_closing(s, h);
}

void service_habits_apply(const struct service_engine *e, struct sim_options *o)
{
    const struct service_habits *h = &e->habits;
    o->silence_s = h->silence_s;
    o->silence_after = h->silence_after;
    o->silence_share = h->silence_share;
    o->ping_s = h->ping_s;
    o->tokenizer_ms = h->tokenizer_ms;
    o->tokenizer_slow_ms = h->tokenizer_slow_ms;
    o->metrics_digits = h->digits;
    o->metrics_steps = h->steps;
    o->metrics_at_end = h->at_end;
    o->metrics_missing = h->missing;
    o->metrics_reset_s = h->reset_s;
    o->framing = h->framing;
    o->prompt_drop = h->drop;
    o->prompt_lead = h->lead;
    o->prompt_changes = h->changes;
    o->host_name = h->named ? e->host : NULL;
}

void service_habits_say(const struct service *s, const struct service_engine *e)
{
    const struct service_habits *h = &e->habits;
    service_say(
        s,
        "engine %u: silence %.1f s of %.1f after %llu, ping %.2f, digits %llu, steps %llu, "
        "at end %u, reset %.1f, framing %x, tokenizer %.0f, %.0f, prompt %x%s%s, missing %s, "
        "idle %llu, unasked %u, interim %u",
        e->number, h->silence_s, h->silence_share, (unsigned long long)h->silence_after, h->ping_s,
        (unsigned long long)h->digits, (unsigned long long)h->steps, h->at_end, h->reset_s,
        h->framing, h->tokenizer_ms, h->tokenizer_slow_ms, h->changes,
        h->drop != NULL ? " drops" : "", h->lead != NULL ? " leads" : "", h->missing,
        (unsigned long long)h->idle_ms, h->unasked, h->interim);
}
