/* Integer functions (OpenCL C 3.0, 6.15.3).
 *
 * What C's operators or an elementwise builtin of clang can say is said once for all widths. In a
 * scalar form of a type narrower than int the operators work on promoted values; each expression
 * below is right for both, and the return converts back.
 *
 * Products wider than the type: narrower types are widened; long uses a 128-bit integer, which is
 * one multiplication on every 64-bit processor.
 */
#include "gentype.h"

#define ABS_SIGNED(n, T, U, bits)                                                                  \
    U##n OVERLOAD abs(T##n x)                                                                      \
    {                                                                                              \
        T##n magnitude = __builtin_elementwise_abs(x);                                             \
        return __builtin_astype(magnitude, U##n);                                                  \
    }
#define ABS_UNSIGNED(n, T, U, bits)                                                                \
    U##n OVERLOAD abs(T##n x)                                                                      \
    {                                                                                              \
        return x;                                                                                  \
    }
SIGNED_INTEGER_TYPES(ABS_SIGNED)
UNSIGNED_INTEGER_TYPES(ABS_UNSIGNED)

/* The difference of two longs needs 65 bits with a sign, but its magnitude fits 64 without. */
#define ABS_DIFF(n, T, U, bits)                                                                    \
    U##n OVERLOAD abs_diff(T##n x, T##n y)                                                         \
    {                                                                                              \
        U##n ux = __builtin_astype(x, U##n);                                                       \
        U##n uy = __builtin_astype(y, U##n);                                                       \
        return x > y ? ux - uy : uy - ux;                                                          \
    }
INTEGER_TYPES(ABS_DIFF)

/* On a scalar narrower than int the elementwise builtin would saturate the promoted values. */
#define SATURATING(n, T, U, bits)                                                                  \
    T##n OVERLOAD add_sat(T##n x, T##n y)                                                          \
    {                                                                                              \
        return __builtin_elementwise_add_sat(x, y);                                                \
    }                                                                                              \
    T##n OVERLOAD sub_sat(T##n x, T##n y)                                                          \
    {                                                                                              \
        return __builtin_elementwise_sub_sat(x, y);                                                \
    }
#define SATURATING_NARROW(T, lowest, highest)                                                      \
    T OVERLOAD add_sat(T x, T y)                                                                   \
    {                                                                                              \
        int sum = x + y;                                                                           \
        return sum < lowest ? lowest : sum > highest ? highest : sum;                              \
    }                                                                                              \
    T OVERLOAD sub_sat(T x, T y)                                                                   \
    {                                                                                              \
        int difference = x - y;                                                                    \
        return difference < lowest ? lowest : difference > highest ? highest : difference;         \
    }                                                                                              \
    VECTOR_WIDTHS(SATURATING, T, T, 0)
SATURATING_NARROW(char, CHAR_MIN, CHAR_MAX)
SATURATING_NARROW(uchar, 0, UCHAR_MAX)
SATURATING_NARROW(short, SHRT_MIN, SHRT_MAX)
SATURATING_NARROW(ushort, 0, USHRT_MAX)
ALL_WIDTHS(SATURATING, int, uint, 32)
ALL_WIDTHS(SATURATING, uint, uint, 32)
ALL_WIDTHS(SATURATING, long, ulong, 64)
ALL_WIDTHS(SATURATING, ulong, ulong, 64)

/* x + y = 2 (x & y) + (x ^ y) = 2 (x | y) - (x ^ y), and neither form overflows when halved. */
#define HALVING(n, T, U, bits)                                                                     \
    T##n OVERLOAD hadd(T##n x, T##n y)                                                             \
    {                                                                                              \
        return (x & y) + ((x ^ y) >> (T##n)1);                                                     \
    }                                                                                              \
    T##n OVERLOAD rhadd(T##n x, T##n y)                                                            \
    {                                                                                              \
        return (x | y) - ((x ^ y) >> (T##n)1);                                                     \
    }
INTEGER_TYPES(HALVING)

/* Shifts the other way by the negated count; the masks make a count of 0, or above the width,
 * right. */
#define ROTATE(n, T, U, bits)                                                                      \
    T##n OVERLOAD rotate(T##n x, T##n y)                                                           \
    {                                                                                              \
        U##n ux = __builtin_astype(x, U##n);                                                       \
        U##n left = __builtin_astype(y, U##n) & (U##n)(bits - 1);                                  \
        U##n right = (-left) & (U##n)(bits - 1);                                                   \
        U##n result = (ux << left) | (ux >> right);                                                \
        return __builtin_astype(result, T##n);                                                     \
    }
INTEGER_TYPES(ROTATE)

#define MINIMUM_MAXIMUM(n, T, U, bits)                                                             \
    T##n OVERLOAD min(T##n x, T##n y)                                                              \
    {                                                                                              \
        return __builtin_elementwise_min(x, y);                                                    \
    }                                                                                              \
    T##n OVERLOAD max(T##n x, T##n y)                                                              \
    {                                                                                              \
        return __builtin_elementwise_max(x, y);                                                    \
    }                                                                                              \
    T##n OVERLOAD clamp(T##n x, T##n low, T##n high)                                               \
    {                                                                                              \
        return __builtin_elementwise_min(__builtin_elementwise_max(x, low), high);                 \
    }
INTEGER_TYPES(MINIMUM_MAXIMUM)

#define WITH_SCALAR(n, T)                                                                          \
    T##n OVERLOAD min(T##n x, T y)                                                                 \
    {                                                                                              \
        return __builtin_elementwise_min(x, (T##n)y);                                              \
    }                                                                                              \
    T##n OVERLOAD max(T##n x, T y)                                                                 \
    {                                                                                              \
        return __builtin_elementwise_max(x, (T##n)y);                                              \
    }                                                                                              \
    T##n OVERLOAD clamp(T##n x, T low, T high)                                                     \
    {                                                                                              \
        return __builtin_elementwise_min(__builtin_elementwise_max(x, (T##n)low), (T##n)high);     \
    }
#define VECTORS_WITH_SCALAR(T, ...) VECTOR_WIDTHS(WITH_SCALAR, T)
INTEGER_SCALARS(VECTORS_WITH_SCALAR)

#define COUNT_BITS(T, U, bits)                                                                     \
    T OVERLOAD clz(T x)                                                                            \
    {                                                                                              \
        return __builtin_clzg((U)x, bits);                                                         \
    }                                                                                              \
    T OVERLOAD ctz(T x)                                                                            \
    {                                                                                              \
        return __builtin_ctzg((U)x, bits);                                                         \
    }                                                                                              \
    T OVERLOAD popcount(T x)                                                                       \
    {                                                                                              \
        return __builtin_popcountg((U)x);                                                          \
    }                                                                                              \
    VECTORS_1(clz, T, T)                                                                           \
    VECTORS_1(ctz, T, T)                                                                           \
    VECTORS_1(popcount, T, T)

COUNT_BITS(char, uchar, 8)
COUNT_BITS(uchar, uchar, 8)
COUNT_BITS(short, ushort, 16)
COUNT_BITS(ushort, ushort, 16)
COUNT_BITS(int, uint, 32)
COUNT_BITS(uint, uint, 32)
COUNT_BITS(long, ulong, 64)
COUNT_BITS(ulong, ulong, 64)

/* W holds any x * y + z. */
#define MULTIPLY_WIDE(T, W, bits, lowest, highest)                                                 \
    T OVERLOAD mul_hi(T x, T y)                                                                    \
    {                                                                                              \
        return (T)(((W)x * (W)y) >> bits);                                                         \
    }                                                                                              \
    T OVERLOAD mad_hi(T x, T y, T z)                                                               \
    {                                                                                              \
        return mul_hi(x, y) + z;                                                                   \
    }                                                                                              \
    T OVERLOAD mad_sat(T x, T y, T z)                                                              \
    {                                                                                              \
        W sum = (W)x * (W)y + (W)z;                                                                \
        W clamped = sum < (W)lowest ? (W)lowest : sum;                                             \
        return (T)(clamped > (W)highest ? (W)highest : clamped);                                   \
    }                                                                                              \
    VECTORS_2(mul_hi, T, T, T)                                                                     \
    VECTORS_3(mad_hi, T, T, T, T)                                                                  \
    VECTORS_3(mad_sat, T, T, T, T)

MULTIPLY_WIDE(char, int, 8, CHAR_MIN, CHAR_MAX)
MULTIPLY_WIDE(uchar, uint, 8, 0, UCHAR_MAX)
MULTIPLY_WIDE(short, int, 16, SHRT_MIN, SHRT_MAX)
MULTIPLY_WIDE(ushort, uint, 16, 0, USHRT_MAX)
MULTIPLY_WIDE(int, long, 32, INT_MIN, INT_MAX)
MULTIPLY_WIDE(uint, ulong, 32, 0, UINT_MAX)
MULTIPLY_WIDE(long, _BitInt(128), 64, LONG_MIN, LONG_MAX)
MULTIPLY_WIDE(ulong, unsigned _BitInt(128), 64, 0, ULONG_MAX)

/* Outside 24 bits the result is implementation-defined, so the full product is as good as any. */
#define MULTIPLY_24(n, T)                                                                          \
    T##n OVERLOAD mul24(T##n x, T##n y)                                                            \
    {                                                                                              \
        return x * y;                                                                              \
    }                                                                                              \
    T##n OVERLOAD mad24(T##n x, T##n y, T##n z)                                                    \
    {                                                                                              \
        return x * y + z;                                                                          \
    }
ALL_WIDTHS(MULTIPLY_24, int)
ALL_WIDTHS(MULTIPLY_24, uint)

/* The high half may be signed, the low half is not. */
#define UPSAMPLE(n, R, H, L, bits)                                                                 \
    R##n OVERLOAD upsample(H##n x, L##n y)                                                         \
    {                                                                                              \
        return (__builtin_convertvector(x, R##n) << (R##n)bits) |                                  \
               __builtin_convertvector(y, R##n);                                                   \
    }
#define UPSAMPLES(R, H, L, bits)                                                                   \
    R OVERLOAD upsample(H x, L y)                                                                  \
    {                                                                                              \
        return ((R)x << bits) | (R)y;                                                              \
    }                                                                                              \
    VECTOR_WIDTHS(UPSAMPLE, R, H, L, bits)
UPSAMPLES(short, char, uchar, 8)
UPSAMPLES(ushort, uchar, uchar, 8)
UPSAMPLES(int, short, ushort, 16)
UPSAMPLES(uint, ushort, ushort, 16)
UPSAMPLES(long, int, uint, 32)
UPSAMPLES(ulong, uint, uint, 32)
