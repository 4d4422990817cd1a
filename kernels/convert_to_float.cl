/* Conversions to floating point, from integers and between float and double (OpenCL C 3.0, 6.4.3).
 *
 * C's conversion rounds to nearest even, and is exact where every value of the source fits:
 * integers of up to 24 bits in float, of up to 53 bits in double, float in double. The directed
 * modes have work to do in three cases only:
 *
 * - double to float: convert, compare with the source, and take the neighbour if the result lies on
 * the wrong side;
 * - int and uint to float: by way of double, which holds them exactly;
 * - long and ulong to either: keep the leading bits that fit, which convert exactly and are the
 * value towards zero; one place further if bits were cut off and the mode points away from zero.
 */
#include "gentype.h"

/* Bits of a floating-point number: + 1 is the next away from zero, - 1 the next towards it. */
static float double_to_float_rtz(double x)
{
    float nearest = (float)x;
    double back = nearest;
    uint too_far = __builtin_elementwise_abs(back) > __builtin_elementwise_abs(x);
    return as_float(as_uint(nearest) - too_far);
}

static float double_to_float_rtp(double x)
{
    float nearest = (float)x;
    int low = (double)nearest < x;
    return as_float(as_int(nearest) + (x < 0 ? -low : low));
}

static float double_to_float_rtn(double x)
{
    float nearest = (float)x;
    int high = (double)nearest > x;
    return as_float(as_int(nearest) + (x < 0 ? high : -high));
}

/* The leading `places` bits of a magnitude. */
static ulong leading_bits(ulong magnitude, int places)
{
    int surplus = 64 - places - (int)__builtin_clzg(magnitude, 64);
    surplus = surplus < 0 ? 0 : surplus;
    return (magnitude >> surplus) << surplus;
}

/* away: whether a magnitude that does not fit goes away from zero. */
static float magnitude_to_float(ulong magnitude, bool away)
{
    ulong kept = leading_bits(magnitude, 24);
    return as_float(as_uint((float)kept) + (away & (kept != magnitude)));
}

static double magnitude_to_double(ulong magnitude, bool away)
{
    ulong kept = leading_bits(magnitude, 53);
    return as_double(as_ulong((double)kept) + (away & (kept != magnitude)));
}

#define FROM_LONG(D)                                                                               \
    static D long_to_##D(long x, bool away_if_positive, bool away_if_negative)                     \
    {                                                                                              \
        ulong magnitude = x < 0 ? -(ulong)x : (ulong)x;                                            \
        D result = magnitude_to_##D(magnitude, x < 0 ? away_if_negative : away_if_positive);       \
        return x < 0 ? -result : result;                                                           \
    }                                                                                              \
    static D ulong_to_##D(ulong x, bool away_if_positive, bool away_if_negative)                   \
    {                                                                                              \
        return magnitude_to_##D(x, away_if_positive);                                              \
    }
FROM_LONG(float)
FROM_LONG(double)

#define BY_WAY_OF_DOUBLE(D, S, mode) double_to_float##mode((double)x)
#define BY_MAGNITUDE(D, S, mode) S##_to_##D(x, AWAY_IF_POSITIVE##mode, AWAY_IF_NEGATIVE##mode)
#define AWAY_IF_POSITIVE_rtz false
#define AWAY_IF_NEGATIVE_rtz false
#define AWAY_IF_POSITIVE_rtp true
#define AWAY_IF_NEGATIVE_rtp false
#define AWAY_IF_POSITIVE_rtn false
#define AWAY_IF_NEGATIVE_rtn true

#define NEAREST(n, D, S, mode)                                                                     \
    D##n OVERLOAD convert_##D##n##mode(S##n x)                                                     \
    {                                                                                              \
        return __builtin_convertvector(x, D##n);                                                   \
    }
#define DIRECTED_ELEMENTS(n, D, S, mode)                                                           \
    D##n OVERLOAD convert_##D##n##mode(S##n x)                                                     \
    {                                                                                              \
        return (D##n)(EACH_##n(ELEMENT_1, convert_##D##mode));                                     \
    }
#define NEAREST_WIDTHS(D, S, mode)                                                                 \
    D OVERLOAD convert_##D##mode(S x)                                                              \
    {                                                                                              \
        return (D)x;                                                                               \
    }                                                                                              \
    VECTOR_WIDTHS(NEAREST, D, S, mode)
#define DIRECTED_WIDTHS(D, S, mode, way)                                                           \
    D OVERLOAD convert_##D##mode(S x)                                                              \
    {                                                                                              \
        return way(D, S, mode);                                                                    \
    }                                                                                              \
    VECTOR_WIDTHS(DIRECTED_ELEMENTS, D, S, mode)

#define CONVERT_EXACT(D, S)                                                                        \
    NEAREST_WIDTHS(D, S, )                                                                         \
    NEAREST_WIDTHS(D, S, _rte)                                                                     \
    NEAREST_WIDTHS(D, S, _rtz)                                                                     \
    NEAREST_WIDTHS(D, S, _rtp)                                                                     \
    NEAREST_WIDTHS(D, S, _rtn)
#define CONVERT_DIRECTED(D, S, way)                                                                \
    NEAREST_WIDTHS(D, S, )                                                                         \
    NEAREST_WIDTHS(D, S, _rte)                                                                     \
    DIRECTED_WIDTHS(D, S, _rtz, way)                                                               \
    DIRECTED_WIDTHS(D, S, _rtp, way)                                                               \
    DIRECTED_WIDTHS(D, S, _rtn, way)

CONVERT_EXACT(float, char)
CONVERT_EXACT(float, uchar)
CONVERT_EXACT(float, short)
CONVERT_EXACT(float, ushort)
CONVERT_DIRECTED(float, int, BY_WAY_OF_DOUBLE)
CONVERT_DIRECTED(float, uint, BY_WAY_OF_DOUBLE)
CONVERT_DIRECTED(float, long, BY_MAGNITUDE)
CONVERT_DIRECTED(float, ulong, BY_MAGNITUDE)
CONVERT_EXACT(float, float)
CONVERT_DIRECTED(float, double, BY_WAY_OF_DOUBLE)

CONVERT_EXACT(double, char)
CONVERT_EXACT(double, uchar)
CONVERT_EXACT(double, short)
CONVERT_EXACT(double, ushort)
CONVERT_EXACT(double, int)
CONVERT_EXACT(double, uint)
CONVERT_DIRECTED(double, long, BY_MAGNITUDE)
CONVERT_DIRECTED(double, ulong, BY_MAGNITUDE)
CONVERT_EXACT(double, float)
CONVERT_EXACT(double, double)
