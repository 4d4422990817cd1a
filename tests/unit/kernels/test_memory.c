/* Loads and stores, conversions from and to half, shuffles and atomics. */
#include "harness.h"

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct harness *harness;
static const int widths[] = {2, 3, 4, 8, 16};
#define NUM_WIDTHS (sizeof(widths) / sizeof(widths[0]))

static const struct {
    const char *name;
    size_t bytes;
} types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},
             {"uint", 4}, {"long", 8},  {"ulong", 8}, {"float", 4},  {"double", 8}};
#define NUM_TYPES (sizeof(types) / sizeof(types[0]))

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

static void loads_and_stores_are_aligned_for_the_element_only(void **state)
{
    (void)state;
    enum { COUNT = 48 };
    _Alignas(64) static unsigned char x[COUNT * 8 + 64], y[COUNT * 8 + 64], r[COUNT * 8 + 64];
    typedef void copy(const void *, void *, uint64_t);
    typedef void copy_local(const void *, const void *, void *, uint64_t);
    for (size_t t = 0; t < NUM_TYPES; t++) {
        size_t shift = types[t].bytes; /* off every larger alignment */
        for (size_t w = 0; w < NUM_WIDTHS; w++) {
            for (size_t i = 0; i < sizeof(x); i++) {
                x[i] = (unsigned char)(i * 7 % 61); /* small exponents: no NaN is made of them */
                y[i] = 0;
                r[i] = 0xee;
            }
            ((copy *)harness_functionf(harness, "copy_%s%d", types[t].name, widths[w]))(
                x + shift, r + shift, COUNT);
            assert_memory_equal(x + shift, r + shift, COUNT * types[t].bytes);
            assert_int_equal(r[shift + COUNT * types[t].bytes], 0xee);
            assert_int_equal(r[shift - 1], 0xee);
            memset(r, 0xee, sizeof(r));
            ((copy_local *)harness_functionf(harness, "copy_local_%s%d", types[t].name, widths[w]))(
                x + shift, y + shift, r + shift, COUNT);
            assert_memory_equal(x + shift, r + shift, COUNT * types[t].bytes);
            assert_int_equal(r[shift + COUNT * types[t].bytes], 0xee);
        }
    }
}

/* The value of a half. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* Rounds by counting in units of the last place. */
static uint16_t half_from(double x, int mode)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    int exponent = x == 0 ? -14 : ilogb(x);
    if (exponent < -14)
        exponent = -14;
    long double units = ldexpl((long double)x, 10 - exponent); /* of the last place */
    units = mode == FE_UPWARD       ? ceill(units)
            : mode == FE_DOWNWARD   ? floorl(units)
            : mode == FE_TOWARDZERO ? truncl(units)
                                    : rintl(units);
    double value = (double)ldexpl(fabsl(units), exponent - 10);
    if (value >= 65536) {
        bool to_infinity =
            mode == FE_TONEAREST || (mode == FE_UPWARD && x > 0) || (mode == FE_DOWNWARD && x < 0);
        return sign | (to_infinity ? 0x7c00 : 0x7bff);
    }
    if (value == 0)
        return sign;
    int e = ilogb(value);
    if (e < -14)
        return sign | (uint16_t)ldexp(value, 24);
    return sign | (uint16_t)((e + 15) << 10 | ((int)ldexp(value, 10 - e) & 1023));
}

enum { HALVES = 48 * 100 };

static void fill_for_halves(double *x)
{
    uint64_t random = 29;
    for (size_t i = 0; i < HALVES; i++) {
        uint64_t bits = harness_random(&random);
        double h = half_value((uint16_t)bits), next = half_value((uint16_t)(bits + 1));
        switch (i % 6) {
        case 0:
            x[i] = h;
            break;
        case 1:
            x[i] = (h + next) / 2;
            break; /* a tie */
        case 2:
            x[i] = nextafter((h + next) / 2, INFINITY);
            break; /* and what is beside it, in double only */
        case 3:
            x[i] = (double)nextafterf((float)((h + next) / 2), -INFINITY);
            break;
        case 4:
            x[i] = ldexp((double)(int64_t)bits, (int)(harness_random(&random) % 60) - 95);
            break;
        default:
            memcpy(&x[i], &bits, 8);
            break;
        }
    }
    const double edges[] = {65504,       65519.99,   65520,     65535,   65536,     -65504,
                            -65520,      -1e30,      0x1p-24,   0x1p-25, 0x1.8p-25, -0x1p-26,
                            1e-300,      -1e-300,    0x1p-1074, 1e300,   -1e300,    0.0,
                            -0.0,        INFINITY,   -INFINITY, NAN,     0x1p-14,   0x1.ffcp-15,
                            0x1.ffep-15, 0x1.fffp-15};
    memcpy(x, edges, sizeof(edges));
}

static void check_halves(const uint16_t *got, const double *x, int mode, const char *what)
{
    for (size_t i = 0; i < HALVES; i++) {
        uint16_t want = half_from(x[i], mode);
        if (isnan(x[i]) ? !isnan(half_value(got[i])) : got[i] != want)
            fail_msg("%s of %a: got %#x, expected %#x", what, x[i], got[i], want);
    }
}

static void stores_to_half_round_as_told(void **state)
{
    (void)state;
    static double xd[HALVES], xs[HALVES];
    static float xf[HALVES];
    static uint16_t r[HALVES * 2];
    static const struct {
        const char *suffix;
        int mode;
    } modes[] = {{"", FE_TONEAREST},
                 {"_rte", FE_TONEAREST},
                 {"_rtz", FE_TOWARDZERO},
                 {"_rtp", FE_UPWARD},
                 {"_rtn", FE_DOWNWARD}};
    fill_for_halves(xd);
    for (size_t i = 0; i < HALVES; i++) {
        xf[i] = (float)xd[i];
        xs[i] = (double)xf[i];
    }
    typedef void store(const void *, void *, uint64_t);
    for (size_t m = 0; m < 5; m++)
        for (int single = 0; single < 2; single++) {
            const char *type = single ? "float" : "double", *suffix = modes[m].suffix;
            const void *x = single ? (const void *)xf : xd;
            const double *values = single ? xs : xd;
            ((store *)harness_functionf(harness, "half_%s%s", type, suffix))(x, r, HALVES);
            check_halves(r, values, modes[m].mode, suffix);
            for (size_t w = 0; w < NUM_WIDTHS; w++) {
                ((store *)harness_functionf(harness, "half_%s%s%d", type, suffix, widths[w]))(
                    x, r, HALVES);
                check_halves(r, values, modes[m].mode, suffix);
                ((store *)harness_functionf(harness, "aligned_half_%s%s%d", type, suffix,
                                            widths[w]))(x, r, HALVES);
                if (widths[w] == 3)
                    for (size_t i = 0; i < HALVES; i++)
                        r[i] = r[i / 3 * 4 + i % 3];
                check_halves(r, values, modes[m].mode, suffix);
            }
        }
}

static void loads_from_half_are_exact(void **state)
{
    (void)state;
    enum { ALL = 65536 + 32 }; /* every half, and up to a multiple of 48 */
    static uint16_t x[ALL + ALL / 3], spread[ALL + ALL / 3 + 16];
    static float r[ALL];
    for (size_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
        spread[i / 3 * 4 + i % 3] = (uint16_t)i;
    }
    typedef void load(const void *, void *, uint64_t);
    for (size_t w = 0; w < 1 + 2 * NUM_WIDTHS; w++) {
        bool aligned = w > NUM_WIDTHS;
        int width = w == 0 ? 1 : widths[(w - 1) % NUM_WIDTHS];
        load *from = w == 0 ? (load *)harness_function(harness, "from_half")
                            : (load *)harness_functionf(
                                  harness, aligned ? "from_aligned_half%d" : "from_half%d", width);
        from(aligned && width == 3 ? spread : x, r, ALL);
        for (size_t i = 0; i < ALL; i++) {
            double want = half_value((uint16_t)i);
            assert_true(isnan(want) ? isnan(r[i])
                                    : (double)r[i] == want && !signbit(r[i]) == !signbit(want));
        }
    }
}

static void shuffles_take_the_low_bits_of_the_mask(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 4, 8, 16};
    uint64_t random = 31;
    typedef void shuffle(const void *, const void *, void *);
    for (size_t t = 0; t < NUM_TYPES; t++)
        for (size_t m = 0; m < 4; m++)
            for (size_t n = 0; n < 4; n++) {
                size_t bytes = types[t].bytes;
                unsigned char x[32 * 8], mask[16 * 8], r[32 * 8];
                for (size_t i = 0; i < sizeof(x); i++)
                    x[i] = (unsigned char)(i % 61);
                for (size_t i = 0; i < sizeof(mask); i++)
                    mask[i] = (unsigned char)harness_random(&random);
                ((shuffle *)harness_functionf(harness, "shuffle_%s_%zu_%zu", types[t].name,
                                              sizes[m], sizes[n]))(x, mask, r);
                for (size_t i = 0; i < sizes[n]; i++) {
                    size_t one = mask[i * bytes] % sizes[m], two = mask[i * bytes] % (2 * sizes[m]);
                    assert_memory_equal(r + i * bytes, x + one * bytes, bytes);
                    assert_memory_equal(r + (sizes[n] + i) * bytes, x + two * bytes, bytes);
                }
            }
}

#define CHECK_LEGACY(function, T, type)                                                            \
    {                                                                                              \
        typedef void legacy(T *, T, T, T *);                                                       \
        const T samples[][2] = {{5, 3}, {(T)-7, 9}, {0, (T)-1}, {(T)(~(T)0 >> 1), 77}};            \
        for (size_t s = 0; s < 4; s++) {                                                           \
            T x = samples[s][0], y = samples[s][1], object, r[24];                                 \
            const T left[12] = {                                                                   \
                (T)(x + y),    (T)(x - y), y,     (T)(x + 1), (T)(x - 1), x < y ? x : y,           \
                x < y ? y : x, x & y,      x | y, x ^ y,      y,          x};                      \
            ((legacy *)harness_function(harness, function "_" type))(&object, x, y, r);            \
            for (size_t i = 0; i < 12; i++) {                                                      \
                assert_true(r[2 * i] == x);                                                        \
                assert_true(r[2 * i + 1] == left[i]);                                              \
            }                                                                                      \
        }                                                                                          \
    }

static void atomics_of_opencl_1(void **state)
{
    (void)state;
    CHECK_LEGACY("atomic_global", int32_t, "int")
    CHECK_LEGACY("atomic_local", uint32_t, "uint")
    CHECK_LEGACY("atom_global", uint32_t, "uint")
    CHECK_LEGACY("atom_local", int64_t, "long")
    CHECK_LEGACY("atom_global", uint64_t, "ulong")
}

#define EXPECT_PAIR(returned, left)                                                                \
    assert_true(r[at] == (returned) && r[at + 1] == (left));                                       \
    at += 2;
#define EXPECT_THREE(left)                                                                         \
    for (int form = 0; form < 3; form++) {                                                         \
        EXPECT_PAIR(x, left)                                                                       \
    }
#define CHECK_C11(T, type, BITS)                                                                   \
    {                                                                                              \
        typedef void c11(T *, T, T, T *, int);                                                     \
        for (int order = 0; order <= 5; order++) {                                                 \
            T x = 6, y = 11, object, r[80];                                                        \
            int at = 0;                                                                            \
            ((c11 *)harness_function(harness, "c11_" type))(&object, x, y, r, order);              \
            EXPECT_THREE(x + y)                                                                    \
            EXPECT_THREE((T)(x - y))                                                               \
            EXPECT_THREE(x)                                                                        \
            EXPECT_THREE(y)                                                                        \
            EXPECT_THREE(y)                                                                        \
            EXPECT_PAIR(y, y)                                                                      \
            EXPECT_PAIR(y, y)                                                                      \
            EXPECT_PAIR(y, y)                                                                      \
            EXPECT_PAIR(y, y)                                                                      \
            EXPECT_PAIR(1, y)                                                                      \
            EXPECT_PAIR(x, x)                                                                      \
            EXPECT_PAIR(1, y)                                                                      \
            BITS                                                                                   \
        }                                                                                          \
    }
#define BITS EXPECT_THREE(x &y) EXPECT_THREE(x | y) EXPECT_THREE(x ^ y)

static void atomics_of_c11(void **state)
{
    (void)state;
    CHECK_C11(int32_t, "int", BITS)
    CHECK_C11(uint32_t, "uint", BITS)
    CHECK_C11(int64_t, "long", BITS)
    CHECK_C11(uint64_t, "ulong", BITS)
    CHECK_C11(float, "float", )
    CHECK_C11(double, "double", )
    typedef int flags(int *);
    int object = 0;
    assert_int_equal(((flags *)harness_function(harness, "flags"))(&object), 2);
}

static int counter;
static float sum;
typedef void count_up(int *, float *, uint64_t);

static void *count(void *function)
{
    ((count_up *)function)(&counter, &sum, 100000);
    return NULL;
}

static void atomics_are_atomic(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *function = harness_function(harness, "count_up");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, function), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, 400000);
    assert_true(sum == 400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_and_stores_are_aligned_for_the_element_only),
        cmocka_unit_test(stores_to_half_round_as_told),
        cmocka_unit_test(loads_from_half_are_exact),
        cmocka_unit_test(shuffles_take_the_low_bits_of_the_mask),
        cmocka_unit_test(atomics_of_opencl_1),
        cmocka_unit_test(atomics_of_c11),
        cmocka_unit_test(atomics_are_atomic),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
