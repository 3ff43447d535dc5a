/* A host and a log of node/discover for tests that check neither. */
#ifndef TESTS_LIB_DISCOVER_QUIET_H
#define TESTS_LIB_DISCOVER_QUIET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

static void on_name(void *context, struct slice name)
{
    (void)context;
    (void)name;
}

static bool on_busy(void *context, struct slice name)
{
    (void)context;
    (void)name;
    return false;
}

static bool on_has(void *context, struct slice name)
{
    (void)context;
    (void)name;
    return true;
}

static void on_line(void *context, struct slice line)
{
    (void)context;
    (void)line;
}

static uint64_t on_clock(void *context)
{
    (void)context;
    return 0;
}

#endif
