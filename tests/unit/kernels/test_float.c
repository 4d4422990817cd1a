/* Common, geometric and relational builtins. */
#include "harness.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4800 /* a multiple of 48 */

static struct harness *harness;
static float xf[COUNT], yf[COUNT], zf[COUNT], rf[COUNT];
static double xd[COUNT], yd[COUNT], zd[COUNT], rd[COUNT];
static int ri[COUNT];

static const double special[] = {0.0,       -0.0,         1,       -1,       0.5,     -0.5,
                                 2,         1e30,         -1e30,   1e-30,    FLT_MIN, FLT_MIN / 4,
                                 DBL_MIN,   -DBL_MIN / 8, FLT_MAX, -FLT_MAX, DBL_MAX, INFINITY,
                                 -INFINITY, NAN,          -NAN};
#define SPECIALS (sizeof(special) / sizeof(special[0]))

static int set_up(void **state)
{
    (void)state;
    harness = harness_create(SP_TEST_BITCODE, NULL);
    uint64_t random = 17;
    for (size_t i = 0; i < COUNT; i++) {
        bool pair = i < SPECIALS * SPECIALS;
        xd[i] = pair ? special[i % SPECIALS] : (double)(int64_t)harness_random(&random) * 0x1p-61;
        yd[i] = pair ? special[i / SPECIALS] : (double)(int64_t)harness_random(&random) * 0x1p-61;
        zd[i] = (double)(int64_t)harness_random(&random) * 0x1p-61;
        xf[i] = (float)xd[i], yf[i] = (float)yd[i], zf[i] = (float)zd[i];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    harness_destroy(harness);
    return 0;
}

static void run_float(const char *name, size_t arguments)
{
    harness_run_widths(harness, name, "float", arguments, (const void *[]){xf, yf, zf}, rf, 4, true,
                       COUNT);
    harness_run_widths(harness, name, "double", arguments, (const void *[]){xd, yd, zd}, rd, 8,
                       true, COUNT);
}

static void near(double got, double expected, double relative)
{
    if (isnan(expected) ? !isnan(got)
                        : got != expected &&
                              !(fabs(got - expected) <= relative * fabs(expected) + DBL_TRUE_MIN))
        fail_msg("got %a, expected %a", got, expected);
}

static bool any_nan(double a, double b, double c)
{
    return isnan(a) || isnan(b) || isnan(c);
}

static double expected_sign(double v)
{
    return isnan(v) ? 0 : v > 0 ? 1 : v < 0 ? -1 : v;
}

static void common_functions(void **state)
{
    (void)state;
    run_float("degrees", 1);
    for (size_t i = 0; i < COUNT; i++) {
        near((double)rf[i], (double)(xf[i] * (float)(180 / M_PI)), 3e-7);
        near(rd[i], xd[i] * (180 / M_PI), 5e-16);
    }
    run_float("radians", 1);
    for (size_t i = 0; i < COUNT; i++) {
        near((double)rf[i], (double)(xf[i] * (float)(M_PI / 180)), 3e-7);
        near(rd[i], xd[i] * (M_PI / 180), 5e-16);
    }
    run_float("sign", 1);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true((double)rf[i] == expected_sign((double)xf[i]) &&
                    !signbit(rf[i]) == !signbit(isnan(xf[i]) ? 0 : xf[i]));
        assert_true(rd[i] == expected_sign(xd[i]));
    }
    run_float("step", 2);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(any_nan((double)xf[i], (double)yf[i], 0) || rf[i] == (float)!(yf[i] < xf[i]));
        assert_true(any_nan(xd[i], yd[i], 0) || rd[i] == !(yd[i] < xd[i]));
    }
    run_float("min", 2);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(any_nan(xd[i], yd[i], 0) ||
                    (rd[i] == fmin(xd[i], yd[i]) && rf[i] == fminf(xf[i], yf[i])));
    run_float("max", 2);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(any_nan(xd[i], yd[i], 0) ||
                    (rd[i] == fmax(xd[i], yd[i]) && rf[i] == fmaxf(xf[i], yf[i])));
    run_float("clamp", 3);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(any_nan(xd[i], yd[i], zd[i]) || yd[i] > zd[i] ||
                    rd[i] == fmin(fmax(xd[i], yd[i]), zd[i]));
    run_float("mix", 3);
    for (size_t i = SPECIALS * SPECIALS; i < COUNT; i++)
        near(rd[i], xd[i] + (yd[i] - xd[i]) * zd[i], 1e-15);
    run_float("smoothstep", 3);
    for (size_t i = SPECIALS * SPECIALS; i < COUNT; i++) {
        double t = fmin(fmax((zd[i] - xd[i]) / (yd[i] - xd[i]), 0), 1);
        near(rd[i], t * t * (3 - 2 * t), 1e-14);
    }
    typedef uint64_t scalar_forms(const void *, const void *, const void *, uint64_t);
    assert_int_equal(
        ((scalar_forms *)harness_function(harness, "scalar_forms_float"))(xf, yf, zf, COUNT), 0);
    assert_int_equal(
        ((scalar_forms *)harness_function(harness, "scalar_forms_double"))(xd, yd, zd, COUNT), 0);
}

typedef uint64_t relation(const void *, const void *, int *, uint64_t);

static void relations(void **state)
{
    (void)state;
#define CHECK(name, expression)                                                                    \
    assert_int_equal(((relation *)harness_function(harness, name "_float"))(xf, yf, ri, COUNT),    \
                     0);                                                                           \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        float a = xf[i], b = yf[i];                                                                \
        (void)b;                                                                                   \
        assert_int_equal(ri[i], !!(expression));                                                   \
    }                                                                                              \
    assert_int_equal(((relation *)harness_function(harness, name "_double"))(xd, yd, ri, COUNT),   \
                     0);                                                                           \
    for (size_t i = 0; i < COUNT; i++) {                                                           \
        double a = xd[i], b = yd[i];                                                               \
        (void)b;                                                                                   \
        assert_int_equal(ri[i], !!(expression));                                                   \
    }
    CHECK("isequal", a == b)
    CHECK("isnotequal", a != b)
    CHECK("isgreater", isgreater(a, b))
    CHECK("isgreaterequal", isgreaterequal(a, b))
    CHECK("isless", isless(a, b))
    CHECK("islessequal", islessequal(a, b))
    CHECK("islessgreater", islessgreater(a, b))
    CHECK("isordered", !isunordered(a, b))
    CHECK("isunordered", isunordered(a, b))
    CHECK("first_isnan", isnan(a))
    CHECK("first_isinf", isinf(a))
    CHECK("first_isfinite", isfinite(a))
    CHECK("first_isnormal", isnormal(a))
    CHECK("first_signbit", signbit(a))
#undef CHECK
}

static void selections(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},
                 {"uint", 4}, {"long", 8},  {"ulong", 8}, {"float", 4},  {"double", 8}};
    static unsigned char x[COUNT * 8], y[COUNT * 8], c[COUNT * 8], r[COUNT * 8];
    uint64_t random = 23;
    for (size_t i = 0; i < sizeof(x); i++) {
        x[i] = (unsigned char)harness_random(&random);
        y[i] = (unsigned char)harness_random(&random);
        c[i] = harness_random(&random) % 3 ? 0 : (unsigned char)harness_random(&random);
    }
    typedef void select(const void *, const void *, const void *, void *, uint64_t);
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        size_t bytes = types[t].bytes;
        harness_run_widths(harness, "bitselect", types[t].name, 3, (const void *[]){x, y, c}, r,
                           bytes, false, COUNT);
        for (size_t i = 0; i < COUNT * bytes; i++)
            assert_int_equal(r[i], (unsigned char)((x[i] & ~c[i]) | (y[i] & c[i])));
        ((select *)harness_functionf(harness, "select_%s", types[t].name))(x, y, c, r, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            bool nonzero = false, top = c[i * bytes + bytes - 1] & 0x80;
            for (size_t k = 0; k < bytes; k++)
                nonzero |= c[i * bytes + k] != 0;
            bool condition = i % 6 < 2 ? nonzero : top;
            if (memcmp(r + i * bytes, (condition ? y : x) + i * bytes, bytes))
                fail_msg("select %s at element %zu", types[t].name, i);
        }
    }
    static const char *const signed_names[] = {"char", "short", "int", "long"};
    static const unsigned widths[] = {1, 2, 3, 4, 8, 16};
    for (size_t t = 0; t < 4; t++) {
        size_t bytes = (size_t)1 << t;
        for (unsigned set = 0; set < 65536; set += set < 64 ? 1 : 977) {
            for (size_t i = 0; i < 16; i++) {
                memset(x + i * bytes, 0x7f, bytes);
                if (set >> i & 1)
                    x[i * bytes + bytes - 1] = 0x80;
            }
            typedef uint32_t any_all(const void *);
            uint32_t got =
                ((any_all *)harness_functionf(harness, "any_all_%s", signed_names[t]))(x);
            for (size_t w = 0; w < 6; w++) {
                unsigned mask = (1u << widths[w]) - 1;
                assert_int_equal(got >> w & 1, (set & mask) != 0);
                assert_int_equal(got >> (16 + w) & 1, (set & mask) == mask);
            }
        }
    }
}

typedef void geometric(const void *, const void *, void *);

static void check_geometric(size_t n, bool single, const double *a, const double *b, double scale)
{
    double x[4], y[4], r[7], tolerance = single ? 3e-7 * (double)n : 6e-16 * (double)n;
    float fx[4], fy[4], fr[7];
    long double dot = 0, square = 0, distance = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = a[i] * scale, y[i] = b[i] * scale;
        fx[i] = (float)x[i], fy[i] = (float)y[i];
        if (single)
            x[i] = (double)fx[i], y[i] = (double)fy[i];
        dot += (long double)x[i] * (long double)y[i];
        square += (long double)x[i] * (long double)x[i];
        distance +=
            ((long double)x[i] - (long double)y[i]) * ((long double)x[i] - (long double)y[i]);
        largest = fmaxl(largest, fabsl((long double)x[i] * (long double)y[i]));
    }
    if (single) {
        ((geometric *)harness_functionf(harness, "geometric_float%zu", n))(fx, fy, fr);
        for (size_t i = 0; i < 3 + n; i++)
            r[i] = (double)fr[i];
    } else {
        ((geometric *)harness_functionf(harness, "geometric_double%zu", n))(x, y, r);
    }
    if (scale == 1)
        assert_true(fabsl((long double)r[0] - dot) <= (long double)tolerance * 4 * largest);
    near(r[1], (double)sqrtl(square), tolerance);
    near(r[2], (double)sqrtl(distance), tolerance);
    for (size_t i = 0; i < n; i++)
        near(r[3 + i], square == 0 ? x[i] : (double)((long double)x[i] / sqrtl(square)), tolerance);
}

static void geometry_does_not_overflow(void **state)
{
    (void)state;
    for (size_t i = SPECIALS * SPECIALS; i + 4 < COUNT; i += 4)
        for (size_t n = 1; n <= 4; n++) {
            static const double float_scales[] = {1,        0x1p100, 0x1p122, 0x1p-100,
                                                  0x1p-115, 0x1p60,  0x1p-50};
            for (size_t s = 0; s < 7; s++) {
                check_geometric(n, true, xd + i, yd + i, float_scales[s]);
                check_geometric(n, false, xd + i, yd + i,
                                s == 0 ? 1 : ldexp(1, 7 * ilogb(float_scales[s])));
            }
        }
    float zero[4] = {0}, inf[4] = {INFINITY, 1, -INFINITY, 3}, r[7];
    ((geometric *)harness_function(harness, "geometric_float4"))(zero, zero, r);
    for (size_t i = 0; i < 7; i++)
        assert_true(r[i] == 0);
    ((geometric *)harness_function(harness, "geometric_float4"))(inf, zero, r);
    assert_true(isinf(r[1]) && isinf(r[2]));
    assert_true(r[4] == 0 && r[6] == 0 && fabsf(r[3] - (float)M_SQRT1_2) < 1e-6f && r[5] == -r[3]);
    /* Beside a large element a small one keeps all its bits, down to where they are subnormal. */
    float far[4] = {0x1.8p62f, 0x1.2468acp-70f, FLT_MAX, 0x1.fffffep-1f};
    ((geometric *)harness_function(harness, "geometric_float2"))(far, zero, r);
    assert_true(r[3] == 1 && r[4] == far[1] / far[0]);
    ((geometric *)harness_function(harness, "geometric_float2"))(far + 2, zero, r);
    assert_true(r[3] == 1 && r[4] == far[3] / far[2]);
    double wide[2] = {0x1.8p510, 0x1.2468acf13579bp-530}, zeroes[2] = {0}, normal[5];
    ((geometric *)harness_function(harness, "geometric_double2"))(wide, zeroes, normal);
    assert_true(normal[3] == 1 && normal[4] == wide[1] / wide[0]);
}

static void cross_products(void **state)
{
    (void)state;
    const float a[4] = {1, 2, 3, 100}, b[4] = {-4, 5, 6, 100};
    const double c[4] = {1, 2, 3, 100}, d[4] = {-4, 5, 6, 100};
    float rs[7];
    double rl[7];
    ((geometric *)harness_function(harness, "cross_float"))(a, b, rs);
    ((geometric *)harness_function(harness, "cross_double"))(c, d, rl);
    const double expected[7] = {2 * 6 - 3 * 5,
                                3 * -4 - 1 * 6,
                                1 * 5 - 2 * -4,
                                2 * 6 - 3 * 5,
                                3 * -4 - 1 * 6,
                                1 * 5 - 2 * -4,
                                0};
    for (size_t i = 0; i < 7; i++) {
        assert_true((double)rs[i] == expected[i]);
        assert_true(rl[i] == expected[i]);
    }
    float r[11];
    ((geometric *)harness_function(harness, "fast_geometric"))(a, b, r);
    near((double)r[0], sqrt(10014), 1e-6);
    near((double)r[1], sqrt(25 + 9 + 9), 1e-6);
    near((double)r[2], 1 / sqrt(10014), 1e-6);
    near((double)r[6], sqrt(5), 1e-6);
    near((double)r[7], 1, 1e-6);
    near((double)r[10], 3 / sqrt(14), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_functions), cmocka_unit_test(relations),
        cmocka_unit_test(selections),       cmocka_unit_test(geometry_does_not_overflow),
        cmocka_unit_test(cross_products),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
