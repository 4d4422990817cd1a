/* Integer builtins against the same in 128-bit arithmetic, and every vector width against the
 * scalar form. */
#include "harness.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4800 /* a multiple of 48 */

typedef __int128 wide;

static struct harness *harness;
static uint64_t x[COUNT], y[COUNT], z[COUNT], r[COUNT];
static uint32_t fields[2 * COUNT];

/* Values near the limits of every type, then anything. */
static uint64_t sample(uint64_t *state)
{
    static const uint64_t edges[] = {
        0,     1,      2,      3,         0x7f,       0x80,       0xff,
        0x100, 0x7fff, 0x8000, 0xffff,    0x7fffffff, 0x80000000, 0xffffffff,
        31,    63,     64,     INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 1};
    uint64_t bits = harness_random(state);
    if (bits % 3 == 0)
        return edges[(bits >> 32) % (sizeof(edges) / sizeof(edges[0]))];
    return bits % 3 == 1 ? harness_random(state) : harness_random(state) >> (bits >> 58);
}

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

/* A value of `bytes` bytes from element i of an array of such. */
static wide element(const void *array, size_t i, size_t bytes, bool is_signed)
{
    const unsigned char *p = (const unsigned char *)array + i * bytes;
    uint64_t bits = 0;
    memcpy(&bits, p, bytes);
    if (is_signed && bytes < 8 && bits >> (8 * bytes - 1))
        bits |= ~UINT64_C(0) << (8 * bytes);
    return is_signed ? (wide)(int64_t)bits : (wide)bits;
}

static wide truncated(wide value, size_t bytes, bool is_signed)
{
    uint64_t bits = (uint64_t)value;
    return element(&bits, 0, bytes, is_signed);
}

struct type {
    const char *name;
    size_t bytes;
    bool is_signed;
};

static const struct type types[] = {{"char", 1, true},    {"uchar", 1, false}, {"short", 2, true},
                                    {"ushort", 2, false}, {"int", 4, true},    {"uint", 4, false},
                                    {"long", 8, true},    {"ulong", 8, false}};

static wide lowest(const struct type *t)
{
    return t->is_signed ? -((wide)1 << (8 * t->bytes - 1)) : 0;
}

static wide highest(const struct type *t)
{
    return ((wide)1 << (8 * t->bytes - t->is_signed)) - 1;
}

static wide clamped(wide value, wide low, wide high)
{
    return value < low ? low : value > high ? high : value;
}

/* The expected result of a function by name. Narrow results are cut to the type by the caller. */
static wide expected(const char *name, const struct type *t, wide a, wide b, wide c)
{
    unsigned bits = (unsigned)t->bytes * 8;
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t u = (uint64_t)a & mask;
#define IS(text) (!strcmp(name, text))
    if (IS("abs"))
        return a < 0 ? -a : a;
    if (IS("clz"))
        return u ? __builtin_clzll(u) - (64 - (int)bits) : (int)bits;
    if (IS("ctz"))
        return u ? __builtin_ctzll(u) : (int)bits;
    if (IS("popcount"))
        return __builtin_popcountll(u);
    if (IS("bit_reverse")) {
        uint64_t reversed = 0;
        for (unsigned i = 0; i < bits; i++)
            reversed |= (u >> i & 1) << (bits - 1 - i);
        return (wide)reversed;
    }
    if (IS("abs_diff"))
        return a > b ? a - b : b - a;
    if (IS("add_sat"))
        return clamped(a + b, lowest(t), highest(t));
    if (IS("sub_sat"))
        return clamped(a - b, lowest(t), highest(t));
    if (IS("hadd"))
        return (a + b) >> 1;
    if (IS("rhadd"))
        return (a + b + 1) >> 1;
    if (IS("mul_hi") || IS("mad_hi")) {
        wide high = t->is_signed ? (a * b) >> bits
                                 : (wide)(((unsigned __int128)a * (unsigned __int128)b) >> bits);
        return IS("mul_hi") ? high : high + c;
    }
    if (IS("mad_sat")) {
        if (t->is_signed)
            return clamped(a * b + c, lowest(t), highest(t));
        unsigned __int128 sum = (unsigned __int128)a * (unsigned __int128)b + (unsigned __int128)c;
        return sum > (unsigned __int128)highest(t) ? highest(t) : (wide)sum;
    }
    if (IS("rotate")) {
        unsigned n = (unsigned)b & (bits - 1);
        return (wide)((u << n) | (n ? u >> (bits - n) : 0));
    }
    if (IS("min"))
        return a < b ? a : b;
    if (IS("max"))
        return a > b ? a : b;
    if (IS("mul24"))
        return a * b;
    if (IS("mad24"))
        return a * b + c;
    return clamped(a, b, c); /* clamp */
}

static void check(const char *name, const struct type *t, size_t arguments, bool unsigned_result)
{
    harness_run_widths(harness, name, t->name, arguments, (const void *[]){x, y, z}, r, t->bytes,
                       false, COUNT);
    bool is_signed = t->is_signed && !unsigned_result;
    for (size_t i = 0; i < COUNT; i++) {
        wide a = element(x, i, t->bytes, t->is_signed), b = element(y, i, t->bytes, t->is_signed),
             c = element(z, i, t->bytes, t->is_signed);
        if (!strcmp(name, "clamp") && b > c)
            continue; /* undefined */
        wide want = truncated(expected(name, t, a, b, c), t->bytes, is_signed);
        wide got = element(r, i, t->bytes, is_signed);
        if (got != want)
            fail_msg("%s %s of %lld, %lld, %lld: got %lld, expected %lld", name, t->name,
                     (long long)a, (long long)b, (long long)c, (long long)got, (long long)want);
    }
}

static void fill(void)
{
    uint64_t random = 7;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = sample(&random);
        y[i] = sample(&random);
        z[i] = sample(&random);
    }
}

static void all_types(void **state)
{
    (void)state;
    static const char *const unary[] = {"clz", "ctz", "popcount", "bit_reverse"};
    static const char *const binary[] = {"add_sat", "sub_sat", "hadd", "rhadd",
                                         "mul_hi",  "rotate",  "min",  "max"};
    static const char *const ternary[] = {"clamp", "mad_hi", "mad_sat"};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        /* The arrays are read in elements of the type: its own edges must stand there. */
        fill();
        for (size_t i = 0; i < COUNT; i++) {
            memmove((char *)x + i * types[t].bytes, &x[i], types[t].bytes);
            memmove((char *)y + i * types[t].bytes, &y[i], types[t].bytes);
            memmove((char *)z + i * types[t].bytes, &z[i], types[t].bytes);
        }
        check("abs", &types[t], 1, true);
        check("abs_diff", &types[t], 2, true);
        for (size_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++)
            check(unary[i], &types[t], 1, false);
        for (size_t i = 0; i < sizeof(binary) / sizeof(binary[0]); i++)
            check(binary[i], &types[t], 2, false);
        for (size_t i = 0; i < sizeof(ternary) / sizeof(ternary[0]); i++)
            check(ternary[i], &types[t], 3, false);
        typedef uint64_t scalar_forms(const void *, const void *, const void *, uint64_t);
        assert_int_equal(((scalar_forms *)harness_functionf(harness, "scalar_forms_%s",
                                                            types[t].name))(x, y, z, COUNT),
                         0);
    }
}

static void products_of_24_bits(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (size_t i = 0; i < COUNT; i++) {
        ((int32_t *)x)[i] = (int32_t)harness_random(&random) >> 8;
        ((int32_t *)y)[i] = (int32_t)harness_random(&random) >> 8;
        ((int32_t *)z)[i] = (int32_t)harness_random(&random);
    }
    check("mul24", &types[4], 2, false);
    check("mad24", &types[4], 3, false);
    for (size_t i = 0; i < COUNT; i++) {
        ((uint32_t *)x)[i] &= 0xffffff;
        ((uint32_t *)y)[i] &= 0xffffff;
    }
    check("mul24", &types[5], 2, false);
    check("mad24", &types[5], 3, false);
}

static void upsample_puts_two_halves_together(void **state)
{
    (void)state;
    fill();
    for (size_t t = 0; t + 2 < sizeof(types) / sizeof(types[0]); t++) {
        size_t bytes = types[t].bytes;
        harness_run_widths(harness, "upsample", types[t].name, 2, (const void *[]){x, y}, r,
                           2 * bytes, false, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            wide want = element(x, i, bytes, types[t].is_signed) * ((wide)1 << (8 * bytes)) +
                        element(y, i, bytes, false);
            assert_true(element(r, i, 2 * bytes, types[t].is_signed) == want);
        }
    }
}

static void bit_fields(void **state)
{
    (void)state;
    static const struct type some[] = {
        {"char", 1, true}, {"ushort", 2, false}, {"int", 4, true}, {"ulong", 8, false}};
    static uint64_t as_signed[COUNT], as_unsigned[COUNT];
    uint64_t random = 5;
    fill();
    for (size_t t = 0; t < 4; t++) {
        size_t bytes = some[t].bytes;
        uint32_t bits = (uint32_t)bytes * 8;
        for (size_t i = 0; i < COUNT; i++) {
            fields[2 * i] = (uint32_t)(harness_random(&random) % (bits + 1));
            fields[2 * i + 1] = (uint32_t)(harness_random(&random) % (bits - fields[2 * i] + 1));
        }
        typedef void bit_field(const void *, const void *, const void *, void *, void *, void *,
                               uint64_t);
        ((bit_field *)harness_functionf(harness, "bit_field_%s", some[t].name))(
            x, y, fields, r, as_signed, as_unsigned, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t a = (uint64_t)element(x, i, bytes, false),
                     b = (uint64_t)element(y, i, bytes, false);
            uint32_t offset = fields[2 * i], count = fields[2 * i + 1];
            uint64_t low = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
            uint64_t field = offset == 64 ? 0 : (a >> offset) & low;
            uint64_t inserted = offset == 64 ? a : (a & ~(low << offset)) | ((b & low) << offset);
            wide extended =
                count && field >> (count - 1) & 1 ? (wide)field - ((wide)1 << count) : (wide)field;
            assert_true(element(r, i, bytes, false) == truncated((wide)inserted, bytes, false));
            assert_true(element(as_unsigned, i, bytes, false) == (wide)field);
            assert_true(element(as_signed, i, bytes, true) == truncated(extended, bytes, true));
        }
    }
}

static void dot_products(void **state)
{
    (void)state;
    typedef void dots(const uint32_t *, const uint32_t *, int32_t *);
    const uint32_t a = 0x80ff7f01,
                   b = 0xff02fe80; /* bytes from the low end: 1 127 -1 -128; -128 -2 2 -1 */
    int32_t got[6];
    ((dots *)harness_function(harness, "dot_products"))(&a, &b, got);
    assert_int_equal(got[0], 1 * -128 + 127 * -2 + -1 * 2 + -128 * -1);
    assert_int_equal(got[1], 1 * 128 + 127 * 254 + 255 * 2 + 128 * 255);
    assert_int_equal(got[2], 1 * 128 + 127 * 254 + -1 * 2 + -128 * 255);
    assert_int_equal(got[3], 1 * -128 + 127 * -2 + 255 * 2 + 128 * -1);
    assert_int_equal(got[4], INT_MAX - 10 + got[0]);
    assert_int_equal((uint32_t)got[5], UINT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types),
        cmocka_unit_test(products_of_24_bits),
        cmocka_unit_test(upsample_puts_two_halves_together),
        cmocka_unit_test(bit_fields),
        cmocka_unit_test(dot_products),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
