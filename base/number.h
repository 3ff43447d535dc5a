/* fmax() and fmin() without a call: those of the C library answer for NaN too, and so no compiler
 * puts an instruction in their place. Here the second one is the answer where either is NaN. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

static inline double number_max(double a, double b)
{
    return a > b ? a : b;
}

static inline double number_min(double a, double b)
{
    return a < b ? a : b;
}

#endif
