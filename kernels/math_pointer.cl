/* Math functions with a second result behind a pointer (OpenCL C 3.0, 6.15.2): fract, frexp,
 * lgamma_r, modf, remquo and sincos.
 *
 * The two results of each are two functions without side effects here. The pointer may lead to any
 * writable address space, and then both are called; what they share, the optimiser finds.
 */
#include "math.h"

/* fract: what floor leaves, but below 1 even where the difference rounds to it. */
static float OVERLOAD fract_part(float x)
{
    float whole = __builtin_elementwise_floor(x);
    float part = __builtin_elementwise_min(x - whole, 0x1.fffffep-1f);
    part = x == whole ? __builtin_elementwise_copysign(0.0f, x) : part; /* infinity too */
    return x == x ? part : x;
}

static double OVERLOAD fract_part(double x)
{
    double whole = __builtin_elementwise_floor(x);
    double part = __builtin_elementwise_min(x - whole, 0x1.fffffffffffffp-1);
    part = x == whole ? __builtin_elementwise_copysign(0.0, x) : part;
    return x == x ? part : x;
}

/* modf: both parts have the sign of x. */
#define MODF_PART(T)                                                                               \
    static T OVERLOAD modf_part(T x)                                                               \
    {                                                                                              \
        T whole = __builtin_elementwise_trunc(x);                                                  \
        T part = x == whole ? 0 : x - whole; /* infinity too */                                    \
        return __builtin_elementwise_copysign(part, x);                                            \
    }
MODF_PART(float)
MODF_PART(double)

/* frexp: a magnitude in [0.5, 1), so the exponent field is one below the bias. */
static float OVERLOAD frexp_fraction(float x)
{
    float magnitude = __builtin_elementwise_abs(x);
    float normal = magnitude < FLT_MIN ? x * 0x1p+24f : x;
    uint bits = (as_uint(normal) & (FLOAT_SIGN | FLOAT_FRACTION)) | 126u << 23;
    return magnitude > 0 && magnitude < INFINITY ? as_float(bits) : x;
}

static double OVERLOAD frexp_fraction(double x)
{
    double magnitude = __builtin_elementwise_abs(x);
    double normal = magnitude < DBL_MIN ? x * 0x1p+54 : x;
    ulong bits = (as_ulong(normal) & (DOUBLE_SIGN | DOUBLE_FRACTION)) | 1022ul << 52;
    return magnitude > 0 && magnitude < INFINITY ? as_double(bits) : x;
}

static int OVERLOAD frexp_exponent(float x)
{
    float magnitude = __builtin_elementwise_abs(x);
    bool subnormal = magnitude < FLT_MIN;
    float normal = subnormal ? magnitude * 0x1p+24f : magnitude;
    int exponent = (as_int(normal) >> 23) - (subnormal ? 126 + 24 : 126);
    return magnitude > 0 && magnitude < INFINITY ? exponent : 0;
}

static int OVERLOAD frexp_exponent(double x)
{
    double magnitude = __builtin_elementwise_abs(x);
    bool subnormal = magnitude < DBL_MIN;
    double normal = subnormal ? magnitude * 0x1p+54 : magnitude;
    int exponent = (int)(as_long(normal) >> 52) - (subnormal ? 1022 + 54 : 1022);
    return magnitude > 0 && magnitude < INFINITY ? exponent : 0;
}

/* The sign of gamma(x): it alternates between the poles at 0, -1, -2, ...; and at -0 it is that of
 * -0. */
#define LGAMMA_SIGN(T)                                                                             \
    static int OVERLOAD lgamma_sign(T x)                                                           \
    {                                                                                              \
        T half_floor = __builtin_elementwise_floor(x) / 2;                                         \
        bool odd = half_floor != __builtin_elementwise_floor(half_floor);                          \
        bool minus_zero = x == 0 && __builtin_elementwise_copysign((T)1, x) < 0;                   \
        return (x < 0 && odd) || minus_zero ? -1 : 1;                                              \
    }
LGAMMA_SIGN(float)
LGAMMA_SIGN(double)

/* The low 7 bits of the quotient that remainder rounds to, with its sign. Taking multiples of
 * 128 y off x changes neither these bits nor the remainder; then x / y - remainder / y is small and
 * an integer but for rounding. (x - remainder could overflow.) */
#define REMQUO_BITS(T, libm_fmod, libm_remainder, largest)                                         \
    static int OVERLOAD remquo_bits(T x, T y)                                                      \
    {                                                                                              \
        T ax = __builtin_elementwise_abs(x);                                                       \
        T ay = __builtin_elementwise_abs(y);                                                       \
        T reduced = ay > largest / 128 ? ax : libm_fmod(ax, ay * 128);                             \
        T quotient = reduced / ay - libm_remainder(ax, ay) / ay;                                   \
        bool defined = ax < INFINITY && ay > 0; /* ay may be infinite, not a NaN */                \
        int bits = (int)__builtin_elementwise_rint(defined ? quotient : 0) & 127;                  \
        return (x < 0) != (y < 0) ? -bits : bits;                                                  \
    }
REMQUO_BITS(float, __sp_libm_fmodf, __sp_libm_remainderf, FLT_MAX)
REMQUO_BITS(double, __sp_libm_fmod, __sp_libm_remainder, DBL_MAX)

FLOAT_VECTORS_1(fract_part)
FLOAT_VECTORS_1(modf_part)
FLOAT_VECTORS_1(frexp_fraction)
VECTORS_1(frexp_exponent, int, float)
VECTORS_1(frexp_exponent, int, double)
VECTORS_1(lgamma_sign, int, float)
VECTORS_1(lgamma_sign, int, double)
VECTORS_2(remquo_bits, int, float, float)
VECTORS_2(remquo_bits, int, double, double)

#define WITH_POINTERS(n, T, AS)                                                                    \
    T##n OVERLOAD fract(T##n x, AS T##n *whole)                                                    \
    {                                                                                              \
        *whole = __builtin_elementwise_floor(x);                                                   \
        return fract_part(x);                                                                      \
    }                                                                                              \
    T##n OVERLOAD modf(T##n x, AS T##n *whole)                                                     \
    {                                                                                              \
        *whole = __builtin_elementwise_trunc(x);                                                   \
        return modf_part(x);                                                                       \
    }                                                                                              \
    T##n OVERLOAD sincos(T##n x, AS T##n *cosine)                                                  \
    {                                                                                              \
        *cosine = cos(x);                                                                          \
        return sin(x);                                                                             \
    }                                                                                              \
    T##n OVERLOAD frexp(T##n x, AS int##n *exponent)                                               \
    {                                                                                              \
        *exponent = frexp_exponent(x);                                                             \
        return frexp_fraction(x);                                                                  \
    }                                                                                              \
    T##n OVERLOAD lgamma_r(T##n x, AS int##n *sign)                                                \
    {                                                                                              \
        *sign = lgamma_sign(x);                                                                    \
        return lgamma(x);                                                                          \
    }                                                                                              \
    T##n OVERLOAD remquo(T##n x, T##n y, AS int##n *quotient)                                      \
    {                                                                                              \
        *quotient = remquo_bits(x, y);                                                             \
        return remainder(x, y);                                                                    \
    }

#define IN_SPACE(AS, ...) FLOAT_TYPES(WITH_POINTERS, AS)
WRITABLE_SPACES(IN_SPACE)
