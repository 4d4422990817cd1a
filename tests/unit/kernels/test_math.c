/* Math builtins against the host's libm in long double: errors in ulp within the limits of the full
 * profile, special values, and every vector width equal to the scalar form. With SP_TEST_VERBOSE
 * set, prints the worst error of each. */
#include "harness.h"
#include "math_functions.h"
#include "reference.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 24000 /* a multiple of 48: every width divides it */

static struct harness *harness;

static const double special[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.0,
    -2.0,
    2.5,
    -2.5,
    3.0,
    -3.0,
    4.0,
    -4.0,
    5.0,
    -5.0,
    0.25,
    -0.25,
    0.75,
    -0.75,
    7.0,
    10.0,
    -10.0,
    33.0,
    -33.0,
    100.0,
    -100.0,
    126.5,
    127.0,
    128.0,
    -126.0,
    -127.0,
    -149.0,
    -150.0,
    1023.5,
    1024.0,
    -1022.0,
    -1074.0,
    -1075.0,
    0x1p23,
    0x1p23 + 1,
    -0x1p23,
    0x1p24,
    0x1p24 - 1,
    0x1p31,
    -0x1p31,
    0x1p32,
    0x1p52,
    0x1p52 + 1,
    -0x1p53,
    0x1p53 - 1,
    0x1p63,
    0x1p64,
    0x1p100,
    -0x1p100,
    0x1p-24,
    0x1p-53,
    -0x1p-100,
    0x1.921fb6p0,
    0x1.921fb54442d18p1,
    0x1.fffffep-1,
    0x1.000002p0,
    0x1.fffffffffffffp-1,
    0x1.0000000000001p0,
    0x1p-126,
    -0x1p-126,
    0x1.fffffcp-127,
    0x1p-149,
    -0x1p-149,
    0x1p-1022,
    -0x1p-1022,
    0x0.fffffffffffffp-1022,
    0x1p-1074,
    -0x1p-1074,
    0x1.fffffep127,
    -0x1.fffffep127,
    0x1.d5bb8p127, /* over the next by 3 after rounding, and 3 times that overflows */
    0x1.57ec4ap126,
    0x1.d5bb8p1023,
    0x1.57ec4ap1022,
    DBL_MAX,
    -DBL_MAX,
    INFINITY,
    -INFINITY,
    NAN,
};
#define SPECIALS (sizeof(special) / sizeof(special[0]))

static float *x_float, *y_float, *z_float, *r_float;
static double *x_double, *y_double, *z_double, *r_double;
static int *y_int, *r_int, *v_int;

/* Numbers of all sizes: bits at random, and half of them drawn near 1, where most functions do
 * their work. */
static double random_number(uint64_t *state, bool single)
{
    uint64_t bits = harness_random(state);
    unsigned kind = (unsigned)(harness_random(state) % 4);
    if (kind < 2) {
        if (single) {
            uint32_t low = (uint32_t)bits;
            float f;
            memcpy(&f, &low, sizeof(f));
            return (double)f;
        }
        double d;
        memcpy(&d, &bits, sizeof(d));
        return d;
    }
    double d = (double)(int64_t)bits * 0x1p-63;
    return kind == 2 ? d * 4 : d * 200;
}

static void fill(uint64_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < COUNT; i++) {
        bool pair = i < SPECIALS * SPECIALS;
        double x = pair ? special[i % SPECIALS] : random_number(&state, true);
        double y = pair ? special[i / SPECIALS] : random_number(&state, true);
        x_float[i] = (float)x;
        y_float[i] = (float)y;
        z_float[i] = (float)random_number(&state, true);
        x_double[i] = pair ? x : random_number(&state, false);
        y_double[i] = pair ? y : random_number(&state, false);
        z_double[i] = random_number(&state, false);
        static const int ints[] = {0,     1,     -1,   2,     -2,       3,       -3,
                                   5,     7,     -7,   30,    127,      -127,    128,
                                   149,   -149,  150,  300,   -300,     1000,    1074,
                                   -1074, -1075, 2100, -2100, 16777217, INT_MAX, INT_MIN};
        const size_t num_ints = sizeof(ints) / sizeof(ints[0]);
        y_int[i] = i / SPECIALS < num_ints ? ints[i / SPECIALS]
                   : i % 3                 ? (int)(harness_random(&state) % 401) - 200
                                           : (int)harness_random(&state);
    }
}

static int set_up(void **state)
{
    (void)state;
    harness = harness_create(SP_TEST_BITCODE, SP_TEST_TARGET_LIBRARY);
#define ALLOCATE(p) p = calloc(COUNT, sizeof(*p))
    ALLOCATE(x_float), ALLOCATE(y_float), ALLOCATE(z_float), ALLOCATE(r_float);
    ALLOCATE(x_double), ALLOCATE(y_double), ALLOCATE(z_double), ALLOCATE(r_double);
    ALLOCATE(y_int), ALLOCATE(r_int), ALLOCATE(v_int);
    fill(1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(x_float), free(y_float), free(z_float), free(r_float);
    free(x_double), free(y_double), free(z_double), free(r_double);
    free(y_int), free(r_int), free(v_int);
    harness_destroy(harness);
    return 0;
}

/* The error in units of the last place of the reference, as conformance counts it. */
static double ulp_error(double got, long double expected, bool single)
{
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected) ? 0 : INFINITY;
    long double rounded = single ? (long double)(float)expected : (long double)(double)expected;
    if ((long double)got == rounded)
        return 0;
    if (isinf(got)) { /* too early an infinity is off by what lies between */
        got = copysign(single ? 0x1p128 : INFINITY, got);
        if (!single)
            return fabsl(expected) > (long double)DBL_MAX * (1 - 0x1p-51L) ? 1 : INFINITY;
    }
    int emin = single ? -126 : -1022, digits = single ? 24 : 53;
    int exponent = expected == 0 ? emin : ilogbl(expected);
    if (exponent < emin)
        exponent = emin;
    return (double)(fabsl((long double)got - expected) * ldexpl(1, digits - 1 - exponent));
}

static bool verbose(void)
{
    return getenv("SP_TEST_VERBOSE") != NULL;
}

struct worst {
    double error;
    size_t where;
};

static void note(struct worst *worst, double error, size_t where)
{
    if (error > worst->error)
        *worst = (struct worst){error, where};
}

static void run_1(const char *name, const char *type, const void *x, void *r, size_t bytes,
                  bool floating)
{
    harness_run_widths(harness, name, type, 1, (const void *[]){x}, r, bytes, floating, COUNT);
}

static void run_2(const char *name, const char *type, const void *x, const void *y, void *r,
                  size_t bytes)
{
    harness_run_widths(harness, name, type, 2, (const void *[]){x, y}, r, bytes, true, COUNT);
}

static void run_3(const char *name, const char *type, const void *x, const void *y, const void *z,
                  void *r, size_t bytes)
{
    harness_run_widths(harness, name, type, 3, (const void *[]){x, y, z}, r, bytes, true, COUNT);
}

static void judge(const char *name, const char *type, struct worst worst, double limit, double x,
                  double y, double got)
{
    if (verbose())
        printf("%-10s %-6s %8.3f ulp (%g allowed) at %a, %a\n", name, type, worst.error, limit, x,
               y);
    if (!(worst.error <= limit))
        fail_msg("%s %s is off by %g ulp, %g allowed, at %a, %a: got %a", name, type, worst.error,
                 limit, x, y, got);
}

/* Of zero an odd function is the same zero (C99, F.9). */
static void expect_sign_of_zero(const char *name, const char *type, double x, double got,
                                long double expected)
{
    if (x == 0 && expected == 0 && !signbit(got) != !signbit(expected))
        fail_msg("%s %s of %a: got %a", name, type, x, got);
}

static void errors_of_unary_functions_stay_within_their_limits(void **state)
{
    (void)state;
#define CHECK(name, float_ulp, double_ulp)                                                         \
    {                                                                                              \
        struct worst worst_float = {0}, worst_double = {0};                                        \
        run_1(#name, "float", x_float, r_float, 4, true);                                          \
        run_1(#name, "double", x_double, r_double, 8, true);                                       \
        for (size_t i = 0; i < COUNT; i++) {                                                       \
            note(&worst_float,                                                                     \
                 ulp_error((double)r_float[i], reference_##name((long double)x_float[i]), true),   \
                 i);                                                                               \
            note(&worst_double,                                                                    \
                 ulp_error(r_double[i], reference_##name((long double)x_double[i]), false), i);    \
            expect_sign_of_zero(#name, "float", (double)x_float[i], (double)r_float[i],            \
                                reference_##name((long double)x_float[i]));                        \
            expect_sign_of_zero(#name, "double", x_double[i], r_double[i],                         \
                                reference_##name((long double)x_double[i]));                       \
        }                                                                                          \
        judge(#name, "float", worst_float, float_ulp, (double)x_float[worst_float.where], 0,       \
              (double)r_float[worst_float.where]);                                                 \
        judge(#name, "double", worst_double, double_ulp, x_double[worst_double.where], 0,          \
              r_double[worst_double.where]);                                                       \
    }
    UNARY_FUNCTIONS(CHECK)
#undef CHECK
}

/* Those of math_exp.cl are closer than they must be, wherever one looks: over all floats, evenly. A
 * target's own may use what it is allowed. */
static void exponentials_are_close_everywhere(void **state)
{
    enum { PASSES = 8, STRIDE = 22369 };
    const char *target = SP_TEST_TARGET_LIBRARY;
    double limit = target ? 3 : 1.3;
    float *x = calloc(COUNT, sizeof(*x));
    (void)state;
    assert_non_null(x);
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t bits = (pass * COUNT + i) * STRIDE;
            memcpy(&x[i], &bits, sizeof(bits));
        }
#define CHECK(name)                                                                                \
    {                                                                                              \
        struct worst worst = {0};                                                                  \
        run_1(#name, "float", x, r_float, 4, true);                                                \
        for (size_t i = 0; i < COUNT; i++)                                                         \
            note(&worst, ulp_error((double)r_float[i], reference_##name((long double)x[i]), true), \
                 i);                                                                               \
        judge(#name, "float", worst, limit, (double)x[worst.where], 0,                             \
              (double)r_float[worst.where]);                                                       \
    }
        CHECK(exp)
        CHECK(exp2)
        CHECK(exp10)
#undef CHECK
    }
    free(x);
}

static void errors_of_binary_functions_stay_within_their_limits(void **state)
{
    (void)state;
#define CHECK_WITH(name, float_ulp, double_ulp, yf, yd)                                            \
    {                                                                                              \
        struct worst worst_float = {0}, worst_double = {0};                                        \
        run_2(#name, "float", x_float, yf, r_float, 4);                                            \
        run_2(#name, "double", x_double, yd, r_double, 8);                                         \
        for (size_t i = 0; i < COUNT; i++) {                                                       \
            note(&worst_float,                                                                     \
                 ulp_error((double)r_float[i], reference_##name((long double)x_float[i], yf[i]),   \
                           true),                                                                  \
                 i);                                                                               \
            note(&worst_double,                                                                    \
                 ulp_error(r_double[i], reference_##name((long double)x_double[i], yd[i]), false), \
                 i);                                                                               \
        }                                                                                          \
        judge(#name, "float", worst_float, float_ulp, (double)x_float[worst_float.where],          \
              (double)yf[worst_float.where], (double)r_float[worst_float.where]);                  \
        judge(#name, "double", worst_double, double_ulp, x_double[worst_double.where],             \
              (double)yd[worst_double.where], r_double[worst_double.where]);                       \
    }
#define CHECK(name, float_ulp, double_ulp)                                                         \
    CHECK_WITH(name, float_ulp, double_ulp, y_float, y_double)
    BINARY_FUNCTIONS(CHECK)
#undef CHECK
#define CHECK(name, float_ulp, double_ulp) CHECK_WITH(name, float_ulp, double_ulp, y_int, y_int)
    BINARY_INT_FUNCTIONS(CHECK)
#undef CHECK
}

/* One certain value; which zero fmax and fmin give of two is open. */
static void expect_exact(const char *name, const char *type, double got, double expected, double x,
                         double y)
{
    bool zero_is_open = !strncmp(name, "fm", 2) || strstr(name, "mag");
    bool right = isnan(expected)
                     ? isnan(got)
                     : got == expected && (zero_is_open || !signbit(got) == !signbit(expected));
    if (!right)
        fail_msg("%s %s of %a, %a: got %a, expected %a", name, type, x, y, got, expected);
}

static void exact_functions_are_exact(void **state)
{
    (void)state;
#define CHECK(name)                                                                                \
    run_1(#name, "float", x_float, r_float, 4, true);                                              \
    run_1(#name, "double", x_double, r_double, 8, true);                                           \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        expect_exact(#name, "float", (double)r_float[i], (double)exact_##name##_float(x_float[i]), \
                     (double)x_float[i], 0);                                                       \
        expect_exact(#name, "double", r_double[i], exact_##name##_double(x_double[i]),             \
                     x_double[i], 0);                                                              \
    }
    EXACT_UNARY_FUNCTIONS(CHECK)
#undef CHECK
#define CHECK(name)                                                                                \
    run_2(#name, "float", x_float, y_float, r_float, 4);                                           \
    run_2(#name, "double", x_double, y_double, r_double, 8);                                       \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        expect_exact(#name, "float", (double)r_float[i],                                           \
                     (double)exact_##name##_float(x_float[i], y_float[i]), (double)x_float[i],     \
                     (double)y_float[i]);                                                          \
        expect_exact(#name, "double", r_double[i],                                                 \
                     exact_##name##_double(x_double[i], y_double[i]), x_double[i], y_double[i]);   \
    }
    EXACT_BINARY_FUNCTIONS(CHECK)
#undef CHECK
    run_2("ldexp", "float", x_float, y_int, r_float, 4);
    run_2("ldexp", "double", x_double, y_int, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        expect_exact("ldexp", "float", (double)r_float[i], (double)ldexpf(x_float[i], y_int[i]),
                     (double)x_float[i], y_int[i]);
        expect_exact("ldexp", "double", r_double[i], ldexp(x_double[i], y_int[i]), x_double[i],
                     y_int[i]);
    }
    run_3("fma", "float", x_float, y_float, z_float, r_float, 4);
    run_3("fma", "double", x_double, y_double, z_double, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        expect_exact("fma", "float", (double)r_float[i],
                     (double)fmaf(x_float[i], y_float[i], z_float[i]), (double)x_float[i],
                     (double)y_float[i]);
        expect_exact("fma", "double", r_double[i], fma(x_double[i], y_double[i], z_double[i]),
                     x_double[i], y_double[i]);
    }
}

static int expected_ilogb(double x)
{
    return isnan(x) || isinf(x) ? INT_MAX : x == 0 ? INT_MIN : ilogb(x);
}

static void ilogb_and_nan_follow_opencl(void **state)
{
    (void)state;
    run_1("ilogb", "float", x_float, r_int, 4, false);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(r_int[i], expected_ilogb((double)x_float[i]));
    run_1("ilogb", "double", x_double, r_int, 4, false);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(r_int[i], expected_ilogb(x_double[i]));
    run_1("nan", "uint", y_int, r_float, 4, false);
    run_1("nan", "ulong", x_double, r_double, 8, false);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(isnan(r_float[i]));
        assert_true(isnan(r_double[i]));
    }
}

/* fract: OpenCL C 3.0, 6.15.2 and 7.5.1. */
static void expect_fract(double x, double got, double whole, double below_one)
{
    double expected_whole = floor(x);
    double expected = x == expected_whole ? copysign(0, x) : fmin(x - expected_whole, below_one);
    expect_exact("fract", "", got, isnan(x) ? NAN : expected, x, 0);
    expect_exact("fract", "whole", whole, expected_whole, x, 0);
}

static void functions_with_a_second_result(void **state)
{
    (void)state;
    run_2("fract", "float", x_float, z_float, r_float, 4);
    for (size_t i = 0; i < COUNT; i++) {
        double difference = (double)(float)(x_float[i] - floorf(x_float[i]));
        double expected = x_float[i] == floorf(x_float[i]) ? copysign(0, (double)x_float[i])
                                                           : fmin(difference, 0x1.fffffep-1);
        expect_exact("fract", "float", (double)r_float[i], isnan(x_float[i]) ? NAN : expected,
                     (double)x_float[i], 0);
        expect_exact("fract", "whole", (double)z_float[i], (double)floorf(x_float[i]),
                     (double)x_float[i], 0);
    }
    run_2("fract", "double", x_double, z_double, r_double, 8);
    for (size_t i = 0; i < COUNT; i++)
        expect_fract(x_double[i], r_double[i], z_double[i], 0x1.fffffffffffffp-1);

    run_2("modf", "float", x_float, z_float, r_float, 4);
    for (size_t i = 0; i < COUNT; i++) {
        float whole, part = modff(x_float[i], &whole);
        expect_exact("modf", "float", (double)r_float[i], (double)part, (double)x_float[i], 0);
        expect_exact("modf", "whole", (double)z_float[i], (double)whole, (double)x_float[i], 0);
    }
    run_2("modf", "double", x_double, z_double, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        double whole, part = modf(x_double[i], &whole);
        expect_exact("modf", "double", r_double[i], part, x_double[i], 0);
        expect_exact("modf", "whole", z_double[i], whole, x_double[i], 0);
    }

    run_2("frexp", "float", x_float, r_int, r_float, 4);
    for (size_t i = 0; i < COUNT; i++) {
        int exponent;
        expect_exact("frexp", "float", (double)r_float[i], (double)frexpf(x_float[i], &exponent),
                     (double)x_float[i], 0);
        assert_int_equal(r_int[i], isfinite(x_float[i]) ? exponent : 0);
    }
    run_2("frexp", "double", x_double, r_int, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        int exponent;
        expect_exact("frexp", "double", r_double[i], frexp(x_double[i], &exponent), x_double[i], 0);
        assert_int_equal(r_int[i], isfinite(x_double[i]) ? exponent : 0);
    }

    run_2("sincos", "float", x_float, z_float, r_float, 4);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(ulp_error((double)r_float[i], sinl((long double)x_float[i]), true) <= 4);
        assert_true(ulp_error((double)z_float[i], cosl((long double)x_float[i]), true) <= 4);
    }
    run_2("sincos", "double", x_double, z_double, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(ulp_error(r_double[i], sinl((long double)x_double[i]), false) <= 4);
        assert_true(ulp_error(z_double[i], cosl((long double)x_double[i]), false) <= 4);
    }

    run_2("lgamma_r", "double", x_double, r_int, r_double, 8);
    for (size_t i = 0; i < COUNT; i++) {
        int sign;
        long double expected = lgammal_r((long double)x_double[i], &sign);
        if (isfinite(x_double[i]) && isfinite((double)expected) &&
            !(x_double[i] < 0 && x_double[i] == floor(x_double[i])))
            assert_int_equal(r_int[i], sign);
        if (fabsl(expected) > 1)
            assert_true(ulp_error(r_double[i], expected, false) <= 16);
    }
    fill(1); /* z was written to */
}

/* The quotient is counted here by long division. */
static int expected_quotient(double x, double y)
{
    if (!isfinite(x) || isnan(y) || y == 0)
        return 0;
    double r = fabs(x), d = fabs(y);
    if (isinf(d))
        return 0;
    int exponent = r == 0 ? -2 : ilogb(r) - ilogb(d);
    unsigned q = 0;
    for (int i = exponent; i >= 0; i--) {
        long double step = ldexpl((long double)d, i);
        q <<= 1;
        if ((long double)r >= step) {
            r = (double)((long double)r - step);
            q |= 1;
        }
    }
    long double twice = 2 * (long double)r;
    if (twice > d || (twice == d && q & 1))
        q++;
    int low = (int)(q & 127);
    return signbit(x) != signbit(y) ? -low : low;
}

typedef void remquo_fn(const void *x, const void *y, int *q, void *r, uint64_t count);

static void remquo_gives_seven_bits_of_the_quotient(void **state)
{
    (void)state;
    ((remquo_fn *)harness_function(harness, "remquo_float"))(x_float, y_float, r_int, r_float,
                                                             COUNT);
    ((remquo_fn *)harness_function(harness, "remquo_float16"))(x_float, y_float, v_int, z_float,
                                                               COUNT);
    assert_memory_equal(r_int, v_int, COUNT * sizeof(int));
    fill(1); /* z was written to */
    for (size_t i = 0; i < COUNT; i++) {
        expect_exact("remquo", "float", (double)r_float[i],
                     (double)remainderf(x_float[i], y_float[i]), (double)x_float[i],
                     (double)y_float[i]);
        if (r_int[i] != expected_quotient((double)x_float[i], (double)y_float[i]))
            fail_msg("remquo of %a, %a: quotient %d", (double)x_float[i], (double)y_float[i],
                     r_int[i]);
    }
    ((remquo_fn *)harness_function(harness, "remquo_double"))(x_double, y_double, r_int, r_double,
                                                              COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        expect_exact("remquo", "double", r_double[i], remainder(x_double[i], y_double[i]),
                     x_double[i], y_double[i]);
        if (r_int[i] != expected_quotient(x_double[i], y_double[i]))
            fail_msg("remquo of %a, %a: quotient %d", x_double[i], y_double[i], r_int[i]);
    }
}

static void half_functions_are_close(void **state)
{
    (void)state;
#define CHECK(name)                                                                                \
    run_1("half_" #name, "float", x_float, r_float, 4, true);                                      \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        if (fabsf(x_float[i]) <= 0x1p16f)                                                          \
            assert_true(ulp_error((double)r_float[i], reference_##name((long double)x_float[i]),   \
                                  true) <= 8192);                                                  \
    }
    HALF_FUNCTIONS(CHECK)
#undef CHECK
}

/* Their errors are the implementation's choice; but they are the functions that they are called. */
static void native_functions_are_what_they_are_called(void **state)
{
    (void)state;
#define CHECK(name)                                                                                \
    run_1("native_" #name, "float", x_float, r_float, 4, true);                                    \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        double expected = (double)reference_##name((long double)x_float[i]);                       \
        if (fabsf(x_float[i]) > 0x1p-100f && fabsf(x_float[i]) < 100 && fabs(expected) < 16)       \
            assert_true(fabs((double)r_float[i] - expected) < 0x1p-12);                            \
    }
    HALF_FUNCTIONS(CHECK)
#undef CHECK
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_unary_functions_stay_within_their_limits),
        cmocka_unit_test(exponentials_are_close_everywhere),
        cmocka_unit_test(errors_of_binary_functions_stay_within_their_limits),
        cmocka_unit_test(exact_functions_are_exact),
        cmocka_unit_test(ilogb_and_nan_follow_opencl),
        cmocka_unit_test(functions_with_a_second_result),
        cmocka_unit_test(remquo_gives_seven_bits_of_the_quotient),
        cmocka_unit_test(half_functions_are_close),
        cmocka_unit_test(native_functions_are_what_they_are_called),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
