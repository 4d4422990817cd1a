/* tgamma for NVIDIA GPUs, within 16 ulp (OpenCL C 3.0, 7.4). libclc's is the exponential of lgamma,
 * which loses as many bits as the result has in its exponent, and gives negative arguments up.
 *
 * gamma(x) = (x - 1) (x - 2) ... y gamma(y) with y in (1, 2]. The product is kept in two doubles,
 * and scaled down by 2^512 whenever it grows beyond that. 1 / gamma(3/2 + t) on [-1/2, 1/2] is a
 * polynomial, fitted to 2^-61. For x below 0: gamma(x) = -pi / (|x| sin(pi |x|) gamma(|x|)).
 */
#include <opencl-c-base.h>

#pragma OPENCL FP_CONTRACT OFF

#define CONST_FUNCTION __attribute__((const))
#define FMA(x, y, z) __builtin_fma(x, y, z)

double __attribute__((overloadable)) CONST_FUNCTION sinpi(double);

/* Beyond it gamma overflows, and its counterpart below zero is less than any number. */
#define LARGEST 190.0

#define LARGE 0x1p+512
#define SCALE 0x1p-512

/* gamma(x) = value / SCALE^scaled for 0 < x < LARGEST. */
struct scaled {
    double value;
    int scaled;
};

static double one_by_gamma(double t)
{
    double p = FMA(t, 0x1.208631be23365p-26, -0x1.82a763cb534e2p-24);
    p = FMA(p, t, 0x1.f2f98393ddbd0p-25);
    p = FMA(p, t, 0x1.2172d43208db7p-19);
    p = FMA(p, t, -0x1.d24cf73fe046cp-17);
    p = FMA(p, t, 0x1.a963741b4289bp-16);
    p = FMA(p, t, 0x1.3f8460ac27223p-13);
    p = FMA(p, t, -0x1.232bd8525453dp-10);
    p = FMA(p, t, 0x1.15f7f0600d309p-9);
    p = FMA(p, t, 0x1.b16203e5456f5p-8);
    p = FMA(p, t, -0x1.5955cc39719fbp-5);
    p = FMA(p, t, 0x1.a18540be33690p-5);
    p = FMA(p, t, 0x1.669be41a93887p-3);
    p = FMA(p, t, -0x1.0da5a671c048cp-1);
    p = FMA(p, t, -0x1.514d3d90584b3p-5);
    return FMA(p, t, 0x1.20dd750429b6dp+0);
}

static struct scaled gamma_of(double x)
{
    struct scaled result = {1, 0};
    double rest = 0, y = x < 1 ? x + 1 : x;
    while (y > 2) {
        y -= 1;
        double product = result.value * y;
        rest = FMA(result.value, y, -product) + rest * y;
        result.value = product;
        if (product > LARGE) {
            result.value *= SCALE;
            rest *= SCALE;
            result.scaled++;
        }
    }
    result.value = (result.value + rest) / one_by_gamma(y - 1.5);
    if (x < 1)
        result.value /= x;
    return result;
}

double CONST_FUNCTION __sp_libm_tgamma(double x)
{
    double magnitude = __builtin_fabs(x);
    if (magnitude < 0x1p-60) /* and zero */
        return 1 / x;
    if (x >= LARGEST)
        return INFINITY;
    if (x > 0) {
        struct scaled value = gamma_of(x);
        for (int i = 0; i < value.scaled; i++)
            value.value *= LARGE;
        return value.value;
    }
    double sine = sinpi(magnitude);
    if (!(magnitude < INFINITY) || sine == 0) /* a pole, or NaN */
        return x == x ? __builtin_nan("") : x;
    if (magnitude >= LARGEST)
        return sine > 0 ? -0.0 : 0.0;
    struct scaled value = gamma_of(magnitude);
    double result = -0x1.921fb54442d18p+1 / (magnitude * sine) / value.value;
    for (int i = 0; i < value.scaled; i++)
        result *= SCALE;
    return result;
}

float CONST_FUNCTION __sp_libm_tgammaf(float x)
{
    return (float)__sp_libm_tgamma(x);
}
