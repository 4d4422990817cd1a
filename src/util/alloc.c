/* See alloc.h. The countdown is the only state: read from the environment by whoever allocates
 * first, then counted down by every allocation until it is used up. */
#include "util/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTDOWN_UNREAD INT64_MIN
#define COUNTDOWN_OFF INT64_MAX

/* Relaxed throughout: only the number matters, nothing is published with it. */
static _Atomic int64_t countdown = COUNTDOWN_UNREAD;

static int64_t countdown_from_environment(void)
{
    const char *text = getenv("SAMEPAGE_FAIL_ALLOC");
    long long number = text ? atoll(text) : 0;
    return number > 0 ? (int64_t)number : COUNTDOWN_OFF;
}

bool sp_alloc_may_fail(void)
{
    int64_t left = atomic_load_explicit(&countdown, memory_order_relaxed);
    if (__builtin_expect(left == COUNTDOWN_OFF, 1))
        return false;
    if (left == COUNTDOWN_UNREAD) {
        int64_t unread = COUNTDOWN_UNREAD;
        atomic_compare_exchange_strong_explicit(&countdown, &unread, countdown_from_environment(),
                                                memory_order_relaxed, memory_order_relaxed);
        return sp_alloc_may_fail();
    }
    /* Below zero it would take 2^63 allocations to come round again. */
    return atomic_fetch_sub_explicit(&countdown, 1, memory_order_relaxed) == 1;
}

void sp_alloc_fail_at(unsigned n)
{
    atomic_store_explicit(&countdown, n ? (int64_t)n : COUNTDOWN_OFF, memory_order_relaxed);
}

void *sp_alloc(size_t size)
{
    return sp_alloc_may_fail() ? NULL : calloc(1, size ? size : 1);
}

void *sp_alloc_array(size_t count, size_t size)
{
    return sp_alloc_may_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *sp_realloc(void *memory, size_t size)
{
    return sp_alloc_may_fail() ? NULL : realloc(memory, size ? size : 1);
}

char *sp_strdup(const char *string)
{
    return sp_memdup0(string, strlen(string));
}

char *sp_memdup0(const void *bytes, size_t size)
{
    char *copy = sp_alloc(size + 1);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

char *sp_format(const char *format, ...)
{
    if (sp_alloc_may_fail())
        return NULL;
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}
