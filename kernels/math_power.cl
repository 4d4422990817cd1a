/* pown, powr and rootn (OpenCL C 3.0, 6.15.2; special values in 7.5.1). pow itself is glibc's
 * (math_libm.cl).
 *
 * pown: an int need not fit a float, and its last bit decides about the sign; it fits a double. So
 * float goes through the double function, which makes it exact as well.
 *
 * powr: pow for x >= 0 where y is taken for a real number that only happens to be an integer: no
 * sign comes out, and what has no limit is NaN.
 *
 * rootn: |x|^(1/n), with the sign of x where n is odd. In double 1/n is rounded, and the result is
 * off by as many ulp as log(x) is large; x^(h + l) = x^h (1 + l log x) puts it right, with l what h
 * lacks from 1/n.
 */
#include "math.h"
#include "target.h"

float REPLACEABLE CONST_FUNCTION __sp_target_pownf(float x, int y)
{
    return (float)__sp_libm_pow(x, y);
}

float OVERLOAD pown(float x, int y)
{
    return __sp_target_pownf(x, y);
}

double OVERLOAD pown(double x, int y)
{
    return __sp_libm_pow(x, y);
}

VECTORS_2(pown, float, float, int)
VECTORS_2(pown, double, double, int)

#define POWR(T, libm_pow)                                                                          \
    T OVERLOAD powr(T x, T y)                                                                      \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x); /* of -0 too */                                \
        T result = libm_pow(magnitude, y);                                                         \
        bool undefined = x < 0 || (y == 0 && (magnitude == 0 || magnitude == INFINITY)) ||         \
                         (x == 1 && __builtin_elementwise_abs(y) == INFINITY);                     \
        result = undefined ? (T)NAN : result;                                                      \
        return x == x && y == y ? result : x + y;                                                  \
    }
POWR(float, __sp_libm_powf)
POWR(double, __sp_libm_pow)

FLOAT_VECTORS_2(powr)

/* The root of a magnitude. */
static float OVERLOAD root(float x, int n)
{
    return (float)__sp_libm_pow(x, 1.0 / n);
}

static double OVERLOAD root(double x, int n)
{
    double high = 1.0 / n;
    double low = __builtin_fma(-high, (double)n, 1.0) * high;
    double result = __sp_libm_pow(x, high);
    bool regular = x > 0 && x < INFINITY && result < INFINITY;
    return result + (regular ? result * (low * log(x)) : 0);
}

#define ROOTN(T, attributes, name)                                                                 \
    T attributes name(T x, int n)                                                                  \
    {                                                                                              \
        bool odd = n & 1;                                                                          \
        T result = root(__builtin_elementwise_abs(x), n == 0 ? 1 : n);                             \
        result = odd ? __builtin_elementwise_copysign(result, x) : result;                         \
        return n == 0 || (x < 0 && !odd) ? (T)NAN : result;                                        \
    }
ROOTN(float, REPLACEABLE CONST_FUNCTION, __sp_target_rootnf)
ROOTN(double, OVERLOAD, rootn)

float OVERLOAD rootn(float x, int n)
{
    return __sp_target_rootnf(x, n);
}

VECTORS_2(rootn, float, float, int)
VECTORS_2(rootn, double, double, int)
