/* convert_ functions of every pair of types and every rounding mode, against long double, which
 * holds every value of every type, and the host's own rounding modes. */
#include "harness.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 960 /* a multiple of 48 */

static struct harness *harness;

struct type {
    const char *name;
    size_t bytes;
    enum { SIGNED, UNSIGNED, FLOATING } kind;
};
static const struct type types[] = {
    {"char", 1, SIGNED},    {"uchar", 1, UNSIGNED},  {"short", 2, SIGNED}, {"ushort", 2, UNSIGNED},
    {"int", 4, SIGNED},     {"uint", 4, UNSIGNED},   {"long", 8, SIGNED},  {"ulong", 8, UNSIGNED},
    {"float", 4, FLOATING}, {"double", 8, FLOATING},
};
#define NUM_TYPES (sizeof(types) / sizeof(types[0]))

static const struct {
    const char *suffix;
    int mode;
} roundings[] = {{"", -1},
                 {"_rte", FE_TONEAREST},
                 {"_rtz", FE_TOWARDZERO},
                 {"_rtp", FE_UPWARD},
                 {"_rtn", FE_DOWNWARD}};

static int set_up(void **state)
{
    (void)state;
    harness = harness_create(SP_TEST_BITCODE, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    harness_destroy(harness);
    return 0;
}

static long double read_value(const struct type *t, const void *array, size_t i)
{
    const char *p = (const char *)array + i * t->bytes;
    if (t->kind == FLOATING) {
        float f;
        double d;
        memcpy(&f, p, sizeof(f));
        if (t->bytes == 4)
            return (long double)f;
        memcpy(&d, p, sizeof(d));
        return (long double)d;
    }
    uint64_t bits = 0;
    memcpy(&bits, p, t->bytes);
    if (t->kind == SIGNED && t->bytes < 8 && bits >> (8 * t->bytes - 1))
        bits |= ~UINT64_C(0) << (8 * t->bytes);
    return t->kind == SIGNED ? (long double)(int64_t)bits : (long double)bits;
}

static long double lowest(const struct type *t)
{
    return t->kind == SIGNED ? -ldexpl(1, (int)(8 * t->bytes) - 1) : 0;
}

static long double highest(const struct type *t)
{
    return ldexpl(1, (int)(8 * t->bytes) - (t->kind == SIGNED)) - 1;
}

static void fill(const struct type *t, void *array)
{
    static const double edges[] = {0.0,
                                   -0.0,
                                   0.5,
                                   -0.5,
                                   1.5,
                                   -1.5,
                                   2.5,
                                   0.499999999,
                                   -0.9999,
                                   126.5,
                                   127.5,
                                   -128.5,
                                   -129,
                                   254.5,
                                   255.5,
                                   256,
                                   32767.5,
                                   32768,
                                   -32768.5,
                                   65535.5,
                                   65536,
                                   8388607.5,
                                   16777216,
                                   16777217,
                                   2147483647.0,
                                   2147483647.5,
                                   2147483648.0,
                                   -2147483648.5,
                                   4294967295.5,
                                   4294967296.0,
                                   9007199254740993.0,
                                   0x1p63,
                                   -0x1p63,
                                   0x1.fffffep62,
                                   0x1p64,
                                   0x1.fffffep63,
                                   0x1.fffffffffffffp63,
                                   1e30,
                                   -1e30,
                                   1e300,
                                   0x1.fffffefp127,
                                   -0x1.fffffffp127,
                                   1e-40,
                                   -1e-300,
                                   0x1p-149,
                                   0x1p-150,
                                   0x1.8p-150,
                                   INFINITY,
                                   -INFINITY,
                                   NAN};
    uint64_t random = 11;
    for (size_t i = 0; i < COUNT; i++) {
        char *p = (char *)array + i * t->bytes;
        uint64_t bits = harness_random(&random);
        if (t->kind == FLOATING) {
            double d;
            if (i < sizeof(edges) / sizeof(edges[0]))
                d = edges[i];
            else if (i % 3 == 0)
                memcpy(&d, &bits, sizeof(d));
            else
                d = ldexp((double)(int64_t)bits, (int)(harness_random(&random) % 70) - 66);
            float f = (float)d;
            if (t->bytes == 4)
                memcpy(p, &f, 4);
            else
                memcpy(p, &d, 8);
        } else {
            /* of every length, and next to powers of two */
            uint64_t value = i % 4 == 3 ? bits : bits >> (harness_random(&random) % 64);
            if (i % 4 == 0)
                value = (UINT64_C(1) << (i / 4 % 64)) + (i / 256 % 3) - 1;
            if (i % 4 == 1)
                value = -value;
            memcpy(p, &value, t->bytes);
        }
    }
}

/* x rounded to an integer; the default of a conversion to an integer is towards zero. */
static long double rounded(long double x, int mode)
{
    switch (mode) {
    case FE_TONEAREST:
        return rintl(x);
    case FE_UPWARD:
        return ceill(x);
    case FE_DOWNWARD:
        return floorl(x);
    default:
        return truncl(x);
    }
}

static long double as_floating(const struct type *t, long double x, int mode)
{
    if (mode >= 0)
        fesetround(mode);
    volatile long double source = x;
    volatile float f = (float)source;
    volatile double d = (double)source;
    fesetround(FE_TONEAREST);
    return t->bytes == 4 ? (long double)f : (long double)d;
}

static void check(const struct type *to, const struct type *from, const char *saturation,
                  const char *suffix, int mode)
{
    _Alignas(16) static unsigned char x[COUNT * 8], r[COUNT * 8];
    bool saturate = *saturation;
    fill(from, x);
    if (to->kind != FLOATING && !saturate) { /* what does not fit has no certain result */
        for (size_t i = 0; i < COUNT; i++) {
            long double value = read_value(from, x, i);
            bool fits = rounded(value, mode) >= lowest(to) && rounded(value, mode) <= highest(to);
            if (from->kind == FLOATING && !fits)
                memset(x + i * from->bytes, 0, from->bytes);
        }
    }
    typedef uint64_t convert(const void *, void *, uint64_t);
    uint64_t wrong = ((convert *)harness_functionf(harness, "convert_%s%s%s_%s", to->name,
                                                   saturation, suffix, from->name))(x, r, COUNT);
    if (wrong)
        fail_msg("convert_%s%s%s from %s: %d vectors differ from the scalar form", to->name,
                 saturation, suffix, from->name, (int)wrong);
    for (size_t i = 0; i < COUNT; i++) {
        long double value = read_value(from, x, i), got = read_value(to, r, i), want;
        if (to->kind == FLOATING) {
            want = as_floating(to, value, mode);
        } else if (saturate) {
            want = isnan(value) ? 0 : rounded(value, mode);
            want = want < lowest(to) ? lowest(to) : want > highest(to) ? highest(to) : want;
        } else if (from->kind == FLOATING) {
            want = rounded(value, mode);
        } else { /* integers wrap */
            uint64_t bits = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
            unsigned char low[8];
            memcpy(low, &bits, 8);
            want = read_value(to, low, 0);
        }
        if (isnan(want) ? !isnan(got)
                        : got != want || (to->kind == FLOATING && !signbit(got) != !signbit(want)))
            fail_msg("convert_%s%s%s of the %s %La: got %La, expected %La", to->name, saturation,
                     suffix, from->name, value, got, want);
    }
}

static void every_conversion(void **state)
{
    (void)state;
    for (size_t to = 0; to < NUM_TYPES; to++)
        for (size_t from = 0; from < NUM_TYPES; from++)
            for (size_t mode = 0; mode < 5; mode++) {
                check(&types[to], &types[from], "", roundings[mode].suffix, roundings[mode].mode);
                if (types[to].kind != FLOATING)
                    check(&types[to], &types[from], "_sat", roundings[mode].suffix,
                          roundings[mode].mode);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_conversion),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
