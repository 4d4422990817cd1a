/* fmod and remainder for NVIDIA GPUs, exact as they have to be (OpenCL C 3.0, 7.4). libclc's are
 * wrong for large quotients in double, and take subnormal numbers for zero in float.
 *
 * x is reduced by multiples of y 2^k, k as large as needed, in steps that take up to 52 bits of the
 * quotient. Each is exact: the quotient of a step is an integer below 2^52, off by one at most
 * where x / y was rounded up, and x less the product is a multiple of the last place of y and
 * smaller than y, hence a double. A float is a double, and a normal one even where it is subnormal.
 */
#include <opencl-c-base.h>

#pragma OPENCL FP_CONTRACT OFF

#define CONST_FUNCTION __attribute__((const))
#define STEP 0x1p+52

/* The rest of x / y for finite x >= 0 and y > 0, and whether the quotient is odd. */
static double rest_of(double x, double y, bool *odd)
{
    while (x >= y * STEP) {
        double larger = y * STEP;
        while (x >= larger * STEP)
            larger *= STEP;
        double rest = __builtin_fma(-__builtin_trunc(x / larger), larger, x);
        x = rest < 0 ? rest + larger : rest;
    }
    double quotient = __builtin_trunc(x / y);
    double rest = __builtin_fma(-quotient, y, x);
    bool below = rest < 0;
    *odd = ((long)quotient - below) & 1;
    return below ? rest + y : rest;
}

#define NOT_A_NUMBER __builtin_nan("")

double CONST_FUNCTION __sp_libm_fmod(double x, double y)
{
    double magnitude = __builtin_fabs(x), divisor = __builtin_fabs(y);
    if (!(magnitude < INFINITY && divisor > 0))
        return NOT_A_NUMBER;
    bool odd;
    double rest = divisor < INFINITY ? rest_of(magnitude, divisor, &odd) : magnitude;
    return __builtin_copysign(rest, x);
}

double CONST_FUNCTION __sp_libm_remainder(double x, double y)
{
    double magnitude = __builtin_fabs(x), divisor = __builtin_fabs(y);
    if (!(magnitude < INFINITY && divisor > 0))
        return NOT_A_NUMBER;
    if (divisor == INFINITY)
        return x;
    bool odd;
    double rest = rest_of(magnitude, divisor, &odd), other = divisor - rest;
    if (rest > other || (rest == other && odd))
        rest -= divisor;
    return as_long(x) < 0 ? -rest : rest;
}

float CONST_FUNCTION __sp_libm_fmodf(float x, float y)
{
    return (float)__sp_libm_fmod(x, y);
}

float CONST_FUNCTION __sp_libm_remainderf(float x, float y)
{
    return (float)__sp_libm_remainder(x, y);
}
