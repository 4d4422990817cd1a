/* Conversions from floating point to integers (OpenCL C 3.0, 6.4.3).
 *
 * The value is rounded to an integer in its own type, exactly; the default is towards zero, which
 * C's conversion does by itself. Then it converts, or saturates:
 *
 * - NaN gives 0;
 * - the lower limit of the integer type is a power of two or 0, the upper one is a power of two
 *   less 1, so the comparison with the powers themselves is exact in both source types, and
 *   whatever passes it converts without overflow.
 *
 * Written with selections only; the conversion may run on values that are then not selected.
 */
#include "gentype.h"

#define ROUND_(x) x
#define ROUND__rte(x) __builtin_elementwise_rint(x)
#define ROUND__rtz(x) x
#define ROUND__rtp(x) __builtin_elementwise_ceil(x)
#define ROUND__rtn(x) __builtin_elementwise_floor(x)

#define CONVERT(D, S, mode, lowest, highest, above)                                                \
    D OVERLOAD convert_##D##mode(S x)                                                              \
    {                                                                                              \
        return (D)ROUND_##mode(x);                                                                 \
    }                                                                                              \
    D OVERLOAD convert_##D##_sat##mode(S x)                                                        \
    {                                                                                              \
        S rounded = ROUND_##mode(x);                                                               \
        D result = (D)rounded;                                                                     \
        result = rounded >= (S)above ? highest : result;                                           \
        result = rounded <= (S)lowest ? lowest : result;                                           \
        return rounded == rounded ? result : 0;                                                    \
    }

#define CONVERT_VECTOR(n, D, S, mode)                                                              \
    D##n OVERLOAD convert_##D##n##mode(S##n x)                                                     \
    {                                                                                              \
        return __builtin_convertvector(ROUND_##mode(x), D##n);                                     \
    }                                                                                              \
    D##n OVERLOAD convert_##D##n##_sat##mode(S##n x)                                               \
    {                                                                                              \
        return (D##n)(EACH_##n(ELEMENT_1, convert_##D##_sat##mode));                               \
    }

#define CONVERT_WIDTHS(D, S, mode, lowest, highest, above)                                         \
    CONVERT(D, S, mode, lowest, highest, above)                                                    \
    VECTOR_WIDTHS(CONVERT_VECTOR, D, S, mode)

#define CONVERT_MODES(D, S, lowest, highest, above)                                                \
    CONVERT_WIDTHS(D, S, , lowest, highest, above)                                                 \
    CONVERT_WIDTHS(D, S, _rte, lowest, highest, above)                                             \
    CONVERT_WIDTHS(D, S, _rtz, lowest, highest, above)                                             \
    CONVERT_WIDTHS(D, S, _rtp, lowest, highest, above)                                             \
    CONVERT_WIDTHS(D, S, _rtn, lowest, highest, above)

#define CONVERT_FROM(S)                                                                            \
    CONVERT_MODES(char, S, CHAR_MIN, CHAR_MAX, 0x1p7f)                                             \
    CONVERT_MODES(uchar, S, 0, UCHAR_MAX, 0x1p8f)                                                  \
    CONVERT_MODES(short, S, SHRT_MIN, SHRT_MAX, 0x1p15f)                                           \
    CONVERT_MODES(ushort, S, 0, USHRT_MAX, 0x1p16f)                                                \
    CONVERT_MODES(int, S, INT_MIN, INT_MAX, 0x1p31f)                                               \
    CONVERT_MODES(uint, S, 0, UINT_MAX, 0x1p32f)                                                   \
    CONVERT_MODES(long, S, LONG_MIN, LONG_MAX, 0x1p63f)                                            \
    CONVERT_MODES(ulong, S, 0, ULONG_MAX, 0x1p64f)

CONVERT_FROM(float)
CONVERT_FROM(double)
