/* Exponentials (OpenCL C 3.0, 6.15.2), written to become vector code.
 *
 * glibc's scalar ones are exact but stop a loop from vectorising, and libmvec's, off by up to 4 ulp
 * where 3 are allowed, are calls around which little stays in registers. These have no branch and no
 * table.
 *
 * b^x = 2^n b^r with n the integer nearest to x log2(b), and |r| at most half of log_b(2):
 *
 *     b^r = 1 + r P(r)
 *
 * P was fitted for the least largest error, and 1 + r P(r) is off by 1.1e-8 and 6e-17 at most,
 * relatively. n comes from a sum with a number so large that its last bit is 1: it lies in the sum's
 * low bits. r = x - n log_b(2), in two parts, of which the first has so few bits that its product
 * with n is exact. 2^n may be no number while the result is one, and is multiplied in two halves;
 * what overflows or is smaller than any number does so there. NaN comes through all of it.
 */
#include "math.h"
#include "target.h"

#pragma OPENCL FP_CONTRACT ON

/* The last bit of a sum with it is 1. */
#define ROUND_float 0x1.8p+23f
#define ROUND_double 0x1.8p+52

/* P times r. */
#define P_float_exp2(r)                                                                            \
    (r * (0x1.62e430p-1f +                                                                         \
          r * (0x1.ebfbe0p-3f +                                                                    \
               r * (0x1.c6af6cp-5f +                                                               \
                    r * (0x1.3b2a52p-7f + r * (0x1.5f08b8p-10f + r * 0x1.4413a4p-13f))))))
#define P_float_exp(r)                                                                             \
    (r * (1.0f + r * (0.5f + r * (0x1.55547cp-3f +                                                 \
                                  r * (0x1.5554e8p-5f +                                            \
                                       r * (0x1.123da0p-7f + r * 0x1.6d4334p-10f))))))
#define P_float_exp10(r)                                                                           \
    (r * (0x1.26bb1cp+1f +                                                                         \
          r * (0x1.53524cp+1f +                                                                    \
               r * (0x1.046fb4p+1f +                                                               \
                    r * (0x1.2bd702p+0f + r * (0x1.1559f8p-1f + r * 0x1.a94b44p-3f))))))

#define HORNER_11(r, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10)                                  \
    (r * (c0 +                                                                                     \
          r * (c1 +                                                                                \
               r * (c2 +                                                                           \
                    r * (c3 +                                                                      \
                         r * (c4 +                                                                 \
                              r * (c5 +                                                            \
                                   r * (c6 + r * (c7 + r * (c8 + r * (c9 + r * c10)))))))))))
#define P_double_exp2(r)                                                                           \
    HORNER_11(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c598p-3, 0x1.c6b08d704a0c2p-5,                 \
              0x1.3b2ab6fba1dc6p-7, 0x1.5d87fe78a526dp-10, 0x1.4309130975155p-13,                  \
              0x1.ffcbfc6712438p-17, 0x1.62bfd46781ef6p-20, 0x1.b524fad88ed30p-24,                 \
              0x1.e6065f532c950p-28, 0x1.e9d419696e0e9p-32)
#define P_double_exp(r)                                                                            \
    HORNER_11(r, 1.0, 0x1.0000000000005p-1, 0x1.5555555555557p-3, 0x1.555555555209ap-5,            \
              0x1.11111111100d8p-7, 0x1.6c16c17f498b2p-10, 0x1.a01a01abe9ce8p-13,                  \
              0x1.a019a657c2c54p-16, 0x1.71de022bd5558p-19, 0x1.28a2d41c1698ep-22,                 \
              0x1.af4df5750ec30p-26)
#define P_double_exp10(r)                                                                          \
    HORNER_11(r, 0x1.26bb1bbb55516p+1, 0x1.53524c73cea6fp+1, 0x1.0470591de2ca6p+1,                 \
              0x1.2bd7609fd6a71p+0, 0x1.1429ffd1d3d0ep-1, 0x1.a7ed709ad715fp-3,                    \
              0x1.16e4dfcb1e5fdp-4, 0x1.411669ef75563p-6, 0x1.48979278726aap-8,                    \
              0x1.2f6758a01f362p-10, 0x1.fbe2f01085394p-13)

/* x less n log_b(2), in two parts. */
#define REDUCED(high, low) ((x - n * high) - n * low)

/* `bias` is of T's exponent, `places` the bits below it, and `most` a bound of x beyond which the
 * result is 0 or infinity, with some room. */
#define EXPONENTIAL(attributes, name, function, T, U, bias, places, most, log2_base, reduced)      \
    T attributes name(T x)                                                                         \
    {                                                                                              \
        x = x > most ? most : x;                                                                   \
        x = x < -most ? -most : x;                                                                 \
        T rounded = x * log2_base + ROUND_##T;                                                     \
        T n = rounded - ROUND_##T;                                                                 \
        T r = reduced;                                                                             \
        U exponent = __builtin_astype(rounded, U) - __builtin_astype(ROUND_##T, U) + 2 * bias;     \
        U part = exponent >> 1;                                                                    \
        T power = __builtin_astype(part << places, T);                                             \
        T rest = __builtin_astype((exponent - part) << places, T);                                 \
        return (1 + P_##T##_##function(r)) * power * rest;                                         \
    }

/* In float a target may have its own. */
#define FLOAT_EXPONENTIAL(name, most, log2_base, reduced)                                          \
    EXPONENTIAL(REPLACEABLE CONST_FUNCTION, __sp_target_##name##f, name, float, uint, 127, 23,     \
                most, log2_base, reduced)                                                          \
    float OVERLOAD name(float x)                                                                   \
    {                                                                                              \
        return __sp_target_##name##f(x);                                                           \
    }                                                                                              \
    VECTORS_1(name, float, float)
#define DOUBLE_EXPONENTIAL(name, most, log2_base, reduced)                                         \
    EXPONENTIAL(OVERLOAD, name, name, double, ulong, 1023, 52, most, log2_base, reduced)           \
    VECTORS_1(name, double, double)

FLOAT_EXPONENTIAL(exp, 104.0f, 0x1.715476p+0f, REDUCED(0x1.62e4p-1f, 0x1.7f7d1cp-20f))
FLOAT_EXPONENTIAL(exp2, 151.0f, 1.0f, x - n)
FLOAT_EXPONENTIAL(exp10, 46.0f, 0x1.a934f0p+1f, REDUCED(0x1.344p-2f, 0x1.3509f8p-18f))
DOUBLE_EXPONENTIAL(exp, 750.0, 0x1.71547652b82fep+0,
                   REDUCED(0x1.62e42fefap-1, 0x1.cf79abc9e3b3ap-40))
DOUBLE_EXPONENTIAL(exp2, 1080.0, 1.0, x - n)
DOUBLE_EXPONENTIAL(exp10, 326.0, 0x1.a934f0979a371p+1,
                   REDUCED(0x1.34413509fp-2, 0x1.e7fbcc47c4acdp-40))

/* exp(x) - 1 = 2^n r P(r) + (2^n - 1), as long as the 1 counts: up to `whole`. Below -`whole` it is -1. */
#define EXPONENTIAL_LESS_ONE(T, U, bias, places, whole, log2_base, high, low)                      \
    T OVERLOAD expm1(T x)                                                                          \
    {                                                                                              \
        T large = exp(x), given = x;                                                               \
        x = x < -whole ? -whole : x;                                                               \
        T rounded = x * log2_base + ROUND_##T;                                                     \
        T n = rounded - ROUND_##T;                                                                 \
        T r = REDUCED(high, low);                                                                  \
        U exponent = __builtin_astype(rounded, U) - __builtin_astype(ROUND_##T, U) + bias;         \
        T power = __builtin_astype(exponent << places, T);                                         \
        T result = power * P_##T##_exp(r) + (power - 1);                                           \
        result = given > whole ? large : result;                                                   \
        return given == 0 ? given : result;                                                        \
    }                                                                                              \
    VECTORS_1(expm1, T, T)

EXPONENTIAL_LESS_ONE(float, uint, 127, 23, 20.0f, 0x1.715476p+0f, 0x1.62e4p-1f, 0x1.7f7d1cp-20f)
EXPONENTIAL_LESS_ONE(double, ulong, 1023, 52, 40.0, 0x1.71547652b82fep+0, 0x1.62e42fefap-1,
                     0x1.cf79abc9e3b3ap-40)
