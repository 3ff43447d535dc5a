#include "node/replica/tokens.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/number.h"
#include "node/replica/constants.h"

/* Initial values. Tokens of a byte, relative to a byte of English, which is the unit of
 * bytes_per_token; and the standard deviations. By least squares over texts of 17 languages and
 * formats and five tokenizers of 32,000 to 200,000 tokens (docs/adr/0032). A digit counts for more
 * than a token, because hexadecimal and base64 are read as letters and digits. Media: an image has
 * 256 (a thumbnail) to 2,500 tokens (a page), speech about 25 a second, a film 100 to 300. */
static const struct {
    double tokens;
    double spread;
    unsigned medium; /* CHAIN_MEDIA: text */
} prior[NODE_KINDS] = {
    [NODE_KIND_LETTER] = {1, 0.5, CHAIN_MEDIA},     [NODE_KIND_DIGIT] = {5.6, 0.8, CHAIN_MEDIA},
    [NODE_KIND_MARK] = {2.2, 0.6, CHAIN_MEDIA},     [NODE_KIND_TWO] = {0.76, 0.8, CHAIN_MEDIA},
    [NODE_KIND_THREE] = {0.8, 0.8, CHAIN_MEDIA},    [NODE_KIND_OTHER] = {1, 0.6, CHAIN_MEDIA},
    [NODE_KIND_IMAGE] = {1000, 1, CHAIN_IMAGE},     [NODE_KIND_SOUND] = {500, 1, CHAIN_SOUND},
    [NODE_KIND_FILM] = {3000, 1, CHAIN_FILM},       [NODE_KIND_SIZED] = {150, 1, CHAIN_IMAGE},
    [NODE_KIND_MEGAPIXEL] = {1000, 1, CHAIN_IMAGE},
};

static bool is_text(unsigned kind)
{
    return prior[kind].medium == CHAIN_MEDIA;
}

void node_tokens_init(struct node_tokens *t, double bytes_per_token)
{
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        t->first[i] = is_text(i) ? prior[i].tokens / bytes_per_token : prior[i].tokens;
        t->factor[i] = 1;
        for (unsigned k = 0; k < NODE_KINDS; k++) {
            double share = i == k ? 1 : is_text(i) && is_text(k) ? RULE(TOKENS_ALIKE) : 0;
            t->variance[i][k] = share * prior[i].spread * prior[k].spread;
        }
    }
}

static void amounts_of(uint64_t bytes, const struct chain_content *c, double amount[NODE_KINDS])
{
    amount[NODE_KIND_LETTER] = c->letters;
    amount[NODE_KIND_DIGIT] = c->digits;
    amount[NODE_KIND_MARK] = c->marks;
    amount[NODE_KIND_THREE] = number_min(3.0 * c->leads, c->wide);
    amount[NODE_KIND_TWO] = c->wide - amount[NODE_KIND_THREE];
    double known = c->spaces;
    for (unsigned i = 0; i < NODE_KIND_OTHER; i++)
        known += amount[i];
    amount[NODE_KIND_SIZED] = c->sized;
    amount[NODE_KIND_MEGAPIXEL] = c->kilopixels / 1000.0;
    for (unsigned i = 0; i < CHAIN_MEDIA; i++) {
        amount[NODE_KIND_IMAGE + i] = c->media[i] - (i == CHAIN_IMAGE ? c->sized : 0);
        known += (double)c->media[i] * CHAIN_MEDIUM_BYTES;
    }
    amount[NODE_KIND_OTHER] = number_max((double)bytes - known, 0);
}

double node_tokens_of(const struct node_tokens *t, uint64_t bytes,
                      const struct chain_content *content, double *media)
{
    double amount[NODE_KINDS], sums[2] = {0, 0};
    amounts_of(bytes, content, amount);
    for (unsigned i = 0; i < NODE_KINDS; i++)
        sums[is_text(i)] += amount[i] * node_tokens_each(t, (enum node_kind)i);
    if (media != NULL)
        *media = sums[false];
    return sums[false] + sums[true];
}

/* Widens the deviations, up to the initial deviations. */
static void widen(struct node_tokens *t)
{
    double grows[NODE_KINDS];
    for (unsigned i = 0; i < NODE_KINDS; i++)
        grows[i] = number_max(
            number_min(RULE(TOKENS_DOUBT), prior[i].spread / sqrt(t->variance[i][i])), 1);
    for (unsigned i = 0; i < NODE_KINDS; i++)
        for (unsigned k = 0; k < NODE_KINDS; k++)
            t->variance[i][k] *= grows[i] * grows[k];
}

/* The relative variance of a prompt of these amounts, `sum` tokens as believed; and each factor's
 * part in the variance. */
static double variance_of(const struct node_tokens *t, const double amount[NODE_KINDS], double sum,
                          double moves[NODE_KINDS])
{
    double share[NODE_KINDS];
    double variance = RULE(TOKENS_NOISE) * RULE(TOKENS_NOISE) +
                      RULE(TOKENS_TEMPLATE) / sum * RULE(TOKENS_TEMPLATE) / sum;
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        share[i] = amount[i] * t->first[i] / sum;
        moves[i] = 0;
    }
    for (unsigned k = 0; k < NODE_KINDS; k++) {
        for (unsigned i = 0; share[k] > 0 && i < NODE_KINDS; i++)
            moves[i] += t->variance[k][i] * share[k];
    }
    for (unsigned i = 0; i < NODE_KINDS; i++)
        variance += moves[i] * share[i];
    return variance;
}

double node_tokens_deviation(const struct node_tokens *t, uint64_t bytes,
                             const struct chain_content *content)
{
    double amount[NODE_KINDS], moves[NODE_KINDS];
    double sum = node_tokens_of(t, bytes, content, NULL);
    amounts_of(bytes, content, amount);
    return sum > 0 ? sqrt(variance_of(t, amount, sum, moves)) : 0;
}

/* A step of the filter: `amount` had `tokens` tokens. */
static void step(struct node_tokens *t, const double amount[NODE_KINDS], double tokens)
{
    double moves[NODE_KINDS], sum = 0;
    for (unsigned i = 0; i < NODE_KINDS; i++)
        sum += amount[i] * node_tokens_each(t, (enum node_kind)i);
    if (sum <= 0 || tokens <= 0)
        return;
    double deviation = sqrt(variance_of(t, amount, sum, moves));
    double most = RULE(TOKENS_DEVIATIONS) * deviation;
    double off = number_min(number_max(tokens / sum, 1 / RULE(CLEARLY)), RULE(CLEARLY)) - 1;
    bool surprises = fabs(off) > most;
    off = number_min(number_max(off, -most), most) / deviation;
    for (unsigned i = 0; i < NODE_KINDS; i++)
        moves[i] /= deviation;
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        double spread = prior[i].spread;
        double factor = t->factor[i] + off * moves[i];
        t->factor[i] = number_min(number_max(factor, 1 / RULE(TOKENS_MAX)), RULE(TOKENS_MAX));
        for (unsigned k = 0; moves[i] != 0 && k < NODE_KINDS; k++)
            t->variance[i][k] -= moves[i] * moves[k]; /* equal to [k][i], to the last bit */
        if (t->variance[i][i] < spread * spread)
            t->variance[i][i] += spread * RULE(TOKENS_DRIFT) * spread * RULE(TOKENS_DRIFT);
    }
    if (surprises)
        widen(t);
}

void node_tokens_add(struct node_tokens *t, uint64_t bytes, const struct chain_content *content,
                     double tokens, const int64_t media_tokens[CHAIN_MEDIA])
{
    double amount[NODE_KINDS];
    amounts_of(bytes, content, amount);
    for (unsigned i = 0; i < CHAIN_MEDIA; i++) {
        if (media_tokens[i] <= 0)
            continue;
        double alone[NODE_KINDS] = {0};
        for (unsigned k = 0; k < NODE_KINDS; k++) {
            if (prior[k].medium != i)
                continue;
            alone[k] = amount[k];
            amount[k] = 0;
        }
        step(t, alone, (double)media_tokens[i]);
        tokens -= (double)media_tokens[i];
    }
    step(t, amount, tokens);
}

/* --- for the next life ----------------------------------------------------------------------- */

/* Writes the tokens of a byte of English, the unit of the others. Then, for each kind, the factor,
 * and the variances with itself and the later kinds. */
void node_tokens_keep(const struct node_tokens *t, struct wire_writer *w)
{
    wire_write_double(w, t->first[NODE_KIND_LETTER]);
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        wire_write_double(w, t->factor[i]);
        for (unsigned k = i; k < NODE_KINDS; k++)
            wire_write_double(w, t->variance[i][k]);
    }
}

/* True if the matrix has a Cholesky root, as every covariance matrix has. */
static bool has_root(double v[NODE_KINDS][NODE_KINDS])
{
    double root[NODE_KINDS][NODE_KINDS];
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        for (unsigned k = 0; k <= i; k++) {
            double left = v[i][k];
            for (unsigned n = 0; n < k; n++)
                left -= root[i][n] * root[k][n];
            if (i == k && !(left > 0 && isfinite(left)))
                return false;
            root[i][k] = i == k ? sqrt(left) : left / root[k][k];
        }
    }
    return true;
}

bool node_tokens_recall(struct node_tokens *t, struct wire_reader *in)
{
    struct node_tokens was;
    double letter = wire_read_double(in);
    bool good = isnormal(letter) && letter > 0;
    for (unsigned i = 0; i < NODE_KINDS; i++) {
        was.first[i] = is_text(i) ? prior[i].tokens * letter : prior[i].tokens;
        was.factor[i] = wire_read_double(in);
        good &= was.factor[i] >= 1 / RULE(TOKENS_MAX) && was.factor[i] <= RULE(TOKENS_MAX);
        for (unsigned k = i; k < NODE_KINDS; k++)
            was.variance[i][k] = was.variance[k][i] = wire_read_double(in);
    }
    if (!good || in->bad || !has_root(was.variance))
        return false;
    *t = was;
    return true;
}
