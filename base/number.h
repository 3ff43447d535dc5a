/* fmax() and fmin() without a call. The C library's functions have rules for NaN, so compilers
 * cannot replace them by a single instruction. If either argument is NaN, these return the second
 * argument. */
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
