/* Loads and stores that convert from and to half (OpenCL C 3.0, 6.15.7; the type half is storage
 * only).
 *
 * Widening is exact. Narrowing rounds to nearest even with the processor's own conversion from
 * float; the directed modes then step back by one place where that went the wrong way. An overflow
 * to infinity steps back to the largest finite number by the same rule.
 *
 * A double must not be rounded twice. It becomes a float rounded to odd first: cut off, with the
 * last bit set where something was cut, which keeps for the second rounding, in whatever mode, on
 * which side of a tie or of a half the value lies. (Sound as float has more than two bits over
 * half.)
 */
#include "gentype.h"

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

static float round_to_odd(double x)
{
    float nearest = (float)x;
    uint bits = as_uint(nearest);
    double back = nearest;
    bits -= __builtin_elementwise_abs(back) > __builtin_elementwise_abs(x);
    bits |= back != x; /* NaN stays NaN */
    return as_float(bits);
}

static ushort half_rte(float x)
{
    return as_ushort((half)x);
}

static ushort half_rtz(float x)
{
    ushort bits = half_rte(x);
    float back = as_half(bits);
    return bits - (__builtin_elementwise_abs(back) > __builtin_elementwise_abs(x));
}

/* Away from zero adds one place, towards zero takes one away: by the sign. */
static ushort half_rtp(float x)
{
    ushort bits = half_rte(x);
    bool low = (float)as_half(bits) < x;
    return bits + (as_int(x) < 0 ? -low : low);
}

static ushort half_rtn(float x)
{
    ushort bits = half_rte(x);
    bool high = (float)as_half(bits) > x;
    return bits + (as_int(x) < 0 ? high : -high);
}

#define STORE_HALF(AS, T, suffix, to_half, as_float_first)                                         \
    void OVERLOAD vstore_half##suffix(T value, size_t offset, AS half *p)                          \
    {                                                                                              \
        ((AS ushort *)p)[offset] = to_half(as_float_first(value));                                 \
    }

#define UNALIGNED(n, T) typedef T##n unaligned_##T##n __attribute__((aligned(sizeof(T))));
VECTOR_WIDTHS(UNALIGNED, ushort)
VECTOR_WIDTHS(UNALIGNED, half)

#define FLOAT_TO_HALF(to_half, i) to_half(x.s##i)
#define DOUBLE_TO_HALF(to_half, i) to_half(round_to_odd(x.s##i))

#define STORE_HALVES(n, AS, T, suffix, to_half, element)                                           \
    void OVERLOAD vstore_half##n##suffix(T##n x, size_t offset, AS half *p)                        \
    {                                                                                              \
        *(AS unaligned_ushort##n *)(p + offset * n) = (ushort##n)(EACH_##n(element, to_half));     \
    }                                                                                              \
    void OVERLOAD vstorea_half##n##suffix(T##n x, size_t offset, AS half *p)                       \
    {                                                                                              \
        vstore_half##n##suffix(x, offset, p);                                                      \
    }

/* Three elements take the place of four in the aligned form, and the fourth is left alone in both.
 */
#define STORE_THREE_HALVES(AS, T, suffix, name, stride)                                            \
    void OVERLOAD name##suffix(T##3 x, size_t offset, AS half *p)                                  \
    {                                                                                              \
        p += offset * stride;                                                                      \
        vstore_half##suffix(x.s0, 0, p);                                                           \
        vstore_half##suffix(x.s1, 1, p);                                                           \
        vstore_half##suffix(x.s2, 2, p);                                                           \
    }

#define STORE_ALL_WIDTHS(AS, T, suffix, to_half, as_float_first, element)                          \
    STORE_HALF(AS, T, suffix, to_half, as_float_first)                                             \
    STORE_THREE_HALVES(AS, T, suffix, vstore_half3, 3)                                             \
    STORE_THREE_HALVES(AS, T, suffix, vstorea_half3, 4)                                            \
    STORE_HALVES(2, AS, T, suffix, to_half, element)                                               \
    STORE_HALVES(4, AS, T, suffix, to_half, element)                                               \
    STORE_HALVES(8, AS, T, suffix, to_half, element)                                               \
    STORE_HALVES(16, AS, T, suffix, to_half, element)

#define STORES(AS, suffix, to_half)                                                                \
    STORE_ALL_WIDTHS(AS, float, suffix, to_half, , FLOAT_TO_HALF)                                  \
    STORE_ALL_WIDTHS(AS, double, suffix, to_half, round_to_odd, DOUBLE_TO_HALF)

WRITABLE_SPACES(STORES, , half_rte)
WRITABLE_SPACES(STORES, _rte, half_rte)
WRITABLE_SPACES(STORES, _rtz, half_rtz)
WRITABLE_SPACES(STORES, _rtp, half_rtp)
WRITABLE_SPACES(STORES, _rtn, half_rtn)

#define LOAD_HALVES(n, AS)                                                                         \
    float##n OVERLOAD vload_half##n(size_t offset, const AS half *p)                               \
    {                                                                                              \
        return __builtin_convertvector(*(const AS unaligned_half##n *)(p + offset * n), float##n); \
    }                                                                                              \
    float##n OVERLOAD vloada_half##n(size_t offset, const AS half *p)                              \
    {                                                                                              \
        return vload_half##n(offset, p);                                                           \
    }

#define LOADS(AS, ...)                                                                             \
    float OVERLOAD vload_half(size_t offset, const AS half *p)                                     \
    {                                                                                              \
        return p[offset];                                                                          \
    }                                                                                              \
    LOAD_HALVES(2, AS)                                                                             \
    LOAD_HALVES(4, AS)                                                                             \
    LOAD_HALVES(8, AS)                                                                             \
    LOAD_HALVES(16, AS)                                                                            \
    float3 OVERLOAD vload_half3(size_t offset, const AS half *p)                                   \
    {                                                                                              \
        p += offset * 3;                                                                           \
        return (float3)(p[0], p[1], p[2]);                                                         \
    }                                                                                              \
    float3 OVERLOAD vloada_half3(size_t offset, const AS half *p)                                  \
    {                                                                                              \
        p += offset * 4;                                                                           \
        return (float3)(p[0], p[1], p[2]);                                                         \
    }

WRITABLE_SPACES(LOADS)
LOADS(__constant)
