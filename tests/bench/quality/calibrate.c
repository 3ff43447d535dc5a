#include "tests/bench/quality/calibrate.h"

#include <math.h>

#include "tests/bench/quality/chooser.h"

enum { ROUNDS = 4 };

/* A second of a fast engine counts more, by the engine's speed. */
double load_of(const struct outcome *o, const struct quality_case *c)
{
    double computed = 0, rates = 0, running = 0, held_token_s = 0, places = 0, tokens = 0;
    double last_s = 0;
    for (unsigned k = 0; k < c->engines; k++) {
        double rate = c->specs[k].model.prefill_tokens_per_s;
        computed += o->computed_s[k] * rate;
        rates += rate;
        places += c->specs[k].model.running_max * rate;
        tokens += (double)c->specs[k].model.cache_blocks * c->specs[k].model.block_tokens;
    }
    for (unsigned i = 0; i < o->count; i++) {
        const struct sample *s = &o->samples[i];
        running += (s->end_s - s->ttft_s) * c->specs[s->engine].model.prefill_tokens_per_s;
        held_token_s += (s->end_s - s->ttft_s) * s->prompt_tokens;
        last_s = fmax(last_s, s->sent_s);
    }
    last_s = fmax(last_s, 1e-3);
    return fmax(computed / rates, fmax(running / places, held_token_s / tokens)) / last_s;
}

void calibrate(struct quality_case *c, double load)
{
    /* Begins with the time for the prompts if nothing is cached. */
    double prompt_s = 0, rates = 0, last_s = 1e-3;
    for (unsigned k = 0; k < c->engines; k++)
        rates += c->specs[k].model.prefill_tokens_per_s;
    for (unsigned i = 0; i < c->work->count; i++) {
        const struct talk *t = &c->work->talks[i];
        last_s = fmax(last_s, t->start_s);
        for (unsigned j = 0; j < t->count; j++)
            prompt_s += (double)prompt_tokens(&t->asks[j].prompt) / rates;
    }
    c->pace = load * last_s / prompt_s / c->speed;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct outcome o;
        play(c, &chooser_load, &o);
        double factor = load / load_of(&o, c);
        outcome_free(&o);
        c->pace *= fmin(fmax(factor, 0.25), 4);
        if (fabs(factor - 1) < 0.03)
            break;
    }
}
