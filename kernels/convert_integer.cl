/* Conversions between integers (OpenCL C 3.0, 6.4.3).
 *
 * A rounding mode has no meaning here but is allowed in the name, so each conversion has five names
 * with and five without saturation. Saturation clamps to the range that both types share, given in
 * the source type: LOW and HIGH fold to constants, and where they are the source's own limits the
 * clamp folds away.
 */
#include "gentype.h"

#define MIN_char ((long)CHAR_MIN)
#define MIN_short ((long)SHRT_MIN)
#define MIN_int ((long)INT_MIN)
#define MIN_long LONG_MIN
#define MIN_uchar 0l
#define MIN_ushort 0l
#define MIN_uint 0l
#define MIN_ulong 0l
#define MAX_char ((ulong)CHAR_MAX)
#define MAX_short ((ulong)SHRT_MAX)
#define MAX_int ((ulong)INT_MAX)
#define MAX_long ((ulong)LONG_MAX)
#define MAX_uchar ((ulong)UCHAR_MAX)
#define MAX_ushort ((ulong)USHRT_MAX)
#define MAX_uint ((ulong)UINT_MAX)
#define MAX_ulong ULONG_MAX
#define LOW(D, S) ((S)(MIN_##D > MIN_##S ? MIN_##D : MIN_##S))
#define HIGH(D, S) ((S)(MAX_##D < MAX_##S ? MAX_##D : MAX_##S))
#define CLAMP(n, D, S)                                                                             \
    __builtin_elementwise_min(__builtin_elementwise_max(x, (S##n)LOW(D, S)), (S##n)HIGH(D, S))

/* (D)x for scalars, the elementwise conversion for vectors. */
#define TO_(D, x) ((D)(x))
#define TO_2(D, x) __builtin_convertvector(x, D##2)
#define TO_3(D, x) __builtin_convertvector(x, D##3)
#define TO_4(D, x) __builtin_convertvector(x, D##4)
#define TO_8(D, x) __builtin_convertvector(x, D##8)
#define TO_16(D, x) __builtin_convertvector(x, D##16)

#define CONVERT(n, D, S, mode)                                                                     \
    D##n OVERLOAD convert_##D##n##mode(S##n x)                                                     \
    {                                                                                              \
        return TO_##n(D, x);                                                                       \
    }                                                                                              \
    D##n OVERLOAD convert_##D##n##_sat##mode(S##n x)                                               \
    {                                                                                              \
        S##n clamped = CLAMP(n, D, S);                                                             \
        return TO_##n(D, clamped);                                                                 \
    }

#define CONVERT_WIDTHS(n, D, S)                                                                    \
    CONVERT(n, D, S, )                                                                             \
    CONVERT(n, D, S, _rte)                                                                         \
    CONVERT(n, D, S, _rtz)                                                                         \
    CONVERT(n, D, S, _rtp)                                                                         \
    CONVERT(n, D, S, _rtn)

#define CONVERT_FROM(S, D) ALL_WIDTHS(CONVERT_WIDTHS, D, S)

INTEGER_SCALARS(CONVERT_FROM, char)
INTEGER_SCALARS(CONVERT_FROM, uchar)
INTEGER_SCALARS(CONVERT_FROM, short)
INTEGER_SCALARS(CONVERT_FROM, ushort)
INTEGER_SCALARS(CONVERT_FROM, int)
INTEGER_SCALARS(CONVERT_FROM, uint)
INTEGER_SCALARS(CONVERT_FROM, long)
INTEGER_SCALARS(CONVERT_FROM, ulong)
