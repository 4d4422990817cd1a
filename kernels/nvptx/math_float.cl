/* Float functions made of the GPU's approximations (PTX ISA: ex2.approx, lg2.approx, rsqrt.approx,
 * sin.approx, ...): those that kernels spend their time in. tests/unit/kernels (math_nvptx)
 * measures their errors, against OpenCL's limits (OpenCL C 3.0, 7.4).
 *
 * Sine, cosine, tangent: x = k pi/2 + r. For |x| < 2^16 in three steps of fma with pi/2 in three
 * parts; the first is exact. Larger x are multiplied as integers with the bits of 2/pi that
 * matter (Payne and Hanek). Then polynomials on [-pi/4, pi/4], fitted for the least largest
 * relative error: 2^-27 and 2^-31. The approximations of the hardware would lose what lies near
 * zero.
 *
 * Exponentials: x log2(b) = j + f with f in [-1/2, 1/2], f in two parts; ex2.approx of f, and 2^j
 * by the bits. j stays within [-126, 126], where 2^j is normal; beyond that f grows instead, and
 * the one multiplication rounds to subnormal numbers, zero or infinity as it should.
 *
 * Powers: log2|x| as an unevaluated sum of two floats. With x = 2^e m, m in [sqrt(1/2), sqrt(2))
 * and q = 2 (m - 1) / (m + 1), log(m) = q + q z P(z), z = q^2; q is kept in two parts, P fitted to
 * 2^-37 of the whole. The product with y is in two parts too, and goes through 2^(j + f) as above.
 */
#include <opencl-c-base.h>

#pragma OPENCL FP_CONTRACT OFF

#define CONST_FUNCTION __attribute__((const))
/* Inlined after equal calls have become one (samepage-cc, gpu/gpu.c). */
#define LATE __attribute__((noinline, const))
#define FMA(x, y, z) __builtin_fmaf(x, y, z)
#define ABS(x) __builtin_fabsf(x)
#define MIN(x, y) __builtin_fminf(x, y)
#define MAX(x, y) __builtin_fmaxf(x, y)

/* Added and taken away again, it rounds to an integer, which its low bits hold in between. */
#define ROUND 0x1.8p+23f

/* --- Sine and cosine ------------------------------------------------------------------------ */

/* pi/2 = the sum of these; 2/pi. */
#define PI_2_HIGH 0x1.921fb6p+0f
#define PI_2_MIDDLE -0x1.777a5cp-25f
#define PI_2_LOW -0x1.ee59dap-50f
#define TWO_BY_PI 0x1.45f306p-1f

#define LARGE 0x1p+16f

/* The bits of 2/pi, after 32 zeros. */
__constant uint two_by_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                               0xf534ddc0, 0xdb629599, 0x3c439041};

/* What a reduction gives, in one value, so that two calls become one. */
typedef float2 reduced; /* r, and the bits of the quadrant */

/* r and the quadrant for |x| >= LARGE. |x| = m 2^e with a 32-bit m. Bits of 2/pi above the weight
 * 2^(2-e) give multiples of 4, which do not count; of the next 96 bits, times m, the upper two are
 * the quadrant and the rest its fraction. */
static reduced reduce_large(float x)
{
    uint bits = as_uint(x);
    uint m = ((bits & 0x7fffff) | 0x800000) << 8;
    uint start = ((bits >> 23) & 255) - (127 + 31) - 2 + 32;
    uint word = start / 32, shift = start % 32;
    ulong first = (ulong)two_by_pi[word] << 32 | two_by_pi[word + 1];
    ulong second = (ulong)two_by_pi[word + 1] << 32 | two_by_pi[word + 2];
    ulong third = (ulong)two_by_pi[word + 2] << 32 | two_by_pi[word + 3];
    uint f2 = (uint)((first << shift) >> 32);
    uint f1 = (uint)((second << shift) >> 32);
    uint f0 = (uint)((third << shift) >> 32);
    ulong low = (ulong)m * f0;
    ulong middle = (ulong)m * f1 + (low >> 32);
    uint high = m * f2 + (uint)(middle >> 32);
    ulong turn = (ulong)high << 32 | (uint)middle;
    int q = (int)(((turn >> 61) + 1) >> 1);
    float r = (float)((double)(long)(turn << 2) * 0x1.921fb54442d18p-64);
    bool negative = bits >> 31;
    return (reduced)(negative ? -r : r, as_float(negative ? -q : q));
}

static reduced LATE reduce(float x)
{
    float t = FMA(x, TWO_BY_PI, ROUND);
    float k = t - ROUND;
    float r = FMA(k, -PI_2_HIGH, x);
    r = FMA(k, -PI_2_MIDDLE, r);
    r = FMA(k, -PI_2_LOW, r);
    reduced result = (reduced)(r, t); /* for infinities and NaN, NaN */
    if (__builtin_expect(ABS(x) >= LARGE && ABS(x) < INFINITY, 0))
        result = reduce_large(x);
    return result;
}

static float sine_part(float r, float z)
{
    float p = FMA(z, -0x1.990384p-13f, 0x1.1106b0p-7f);
    p = FMA(p, z, -0x1.555546p-3f);
    return FMA(p, z * r, r);
}

static float cosine_part(float z)
{
    float p = FMA(z, 0x1.9a6c80p-16f, -0x1.6c0e70p-10f);
    p = FMA(p, z, 0x1.55554ep-5f);
    p = FMA(p, z, -0.5f);
    return FMA(p, z, 1.0f);
}

/* Sine of r + quadrant pi/2. Both parts are computed: work-items differ in their quadrants, and who
 * asks for the sine often asks for the cosine. */
static float sine_of(float r, int quadrant)
{
    float z = r * r;
    float sine = sine_part(r, z), cosine = cosine_part(z);
    float value = quadrant & 1 ? cosine : sine;
    return as_float(as_uint(value) ^ ((uint)(quadrant & 2) << 30));
}

float CONST_FUNCTION __sp_libm_sinf(float x)
{
    reduced part = reduce(x);
    float value = sine_of(part.x, as_int(part.y));
    return x == 0 ? x : value;
}

float CONST_FUNCTION __sp_libm_cosf(float x)
{
    reduced part = reduce(x);
    return sine_of(part.x, as_int(part.y) + 1);
}

float CONST_FUNCTION __sp_libm_tanf(float x)
{
    reduced part = reduce(x);
    float r = part.x, z = r * r;
    float sine = sine_part(r, z), cosine = cosine_part(z);
    bool odd = as_int(part.y) & 1;
    float value = (odd ? -cosine : sine) / (odd ? sine : cosine);
    return x == 0 ? x : value;
}

/* --- Exponentials --------------------------------------------------------------------------- */

#define LOG2_E_HIGH 0x1.715476p+0f
#define LOG2_E_LOW 0x1.4ae0c0p-26f
#define LOG2_10_HIGH 0x1.a934f0p+1f
#define LOG2_10_LOW 0x1.2f346ep-24f

#define LEAST_EXPONENT -126.0f
#define LARGEST_EXPONENT 126.0f

/* The integer nearest to y within the exponents' range, and its power of two. */
static float nearest_exponent(float y, float *power)
{
    float t = MIN(MAX(y, LEAST_EXPONENT), LARGEST_EXPONENT) + (ROUND + 127);
    *power = as_float(as_uint(t) << 23);
    return t - (ROUND + 127);
}

static float exponential(float x, float high, float low)
{
    float power;
    float j = nearest_exponent(x * high, &power);
    float f = FMA(x, low, FMA(x, high, -j));
    return __nvvm_ex2_approx_ftz_f(f) * power;
}

float CONST_FUNCTION __sp_target_expf(float x)
{
    return exponential(x, LOG2_E_HIGH, LOG2_E_LOW);
}

float CONST_FUNCTION __sp_target_exp10f(float x)
{
    return exponential(x, LOG2_10_HIGH, LOG2_10_LOW);
}

float CONST_FUNCTION __sp_target_exp2f(float x)
{
    float power;
    float j = nearest_exponent(x, &power);
    return __nvvm_ex2_approx_ftz_f(x - j) * power;
}

/* --- Powers --------------------------------------------------------------------------------- */

struct sum {
    float high, low;
};

/* log2 of a positive, finite number. */
static struct sum log2_of(float x)
{
    bool subnormal = x < FLT_MIN;
    uint bits = as_uint(subnormal ? x * 0x1p+24f : x);
    int exponent = ((int)bits - 0x3f3504f3) >> 23; /* sqrt(1/2) */
    float m = as_float((int)bits - (exponent << 23));
    float e = (float)(exponent - (subnormal ? 24 : 0));
    /* q = 2 (m - 1) / (m + 1), with the rest of the division. */
    float above = m - 1, below = m + 1;
    float below_rest = m - (below - 1);
    float reciprocal = __nvvm_rcp_approx_ftz_f(below);
    float q = 2 * above * reciprocal;
    float rest = FMA(-q, below_rest, FMA(-q, below, 2 * above)) * reciprocal;
    float z = q * q;
    float p = FMA(z, 0x1.e38be4p-12f, 0x1.24351ap-9f);
    p = FMA(p, z, 0x1.999a88p-7f);
    p = FMA(p, z, 0x1.555554p-4f);
    rest = FMA(p * z, q, rest);
    /* (q + rest) log2(e) + e */
    float high = q * LOG2_E_HIGH;
    float low = FMA(q, LOG2_E_HIGH, -high);
    low = FMA(q, LOG2_E_LOW, low);
    low = FMA(rest, LOG2_E_HIGH, low);
    struct sum result;
    result.high = e + high;
    result.low = high - (result.high - e) + low;
    return result;
}

/* 2^((log.high + log.low) (y + y_low)) */
static float power_of(struct sum log, float y, float y_low)
{
    float high = log.high * y;
    float low = FMA(log.high, y, -high);
    low = FMA(log.low, y, low);
    low = FMA(log.high, y_low, low);
    low = ABS(high) < 256.0f ? low : 0; /* beyond, the result is 0 or infinity whatever it is */
    float power;
    float j = nearest_exponent(high, &power);
    return __nvvm_ex2_approx_ftz_f(high - j + low) * power;
}

/* |x|^(y + y_low) for y other than 0 and NaN, x other than NaN. */
static float power_of_magnitude(float x, float y, float y_low)
{
    float magnitude = ABS(x);
    float result = power_of(log2_of(magnitude), y, y_low);
    bool to_zero = (magnitude == 0) == (y > 0);
    float at_end = to_zero ? 0 : INFINITY;
    return magnitude == 0 || magnitude == INFINITY ? at_end : result;
}

float CONST_FUNCTION __sp_libm_powf(float x, float y)
{
    if (x == 1 || y == 0)
        return 1;
    if (x != x || y != y)
        return x + y;
    float magnitude = ABS(x);
    if (ABS(y) == INFINITY)
        return magnitude == 1 ? 1 : (magnitude > 1) == (y > 0) ? INFINITY : 0;
    float result = power_of_magnitude(x, y, 0);
    bool negative = as_int(x) < 0;
    float half_y = y * 0.5f;
    bool integer = __builtin_truncf(y) == y;
    bool odd = integer && __builtin_truncf(half_y) != half_y;
    if (negative && odd)
        result = -result;
    return x < 0 && !integer && magnitude < INFINITY ? as_float(0x7fc00000) : result;
}

float CONST_FUNCTION __sp_target_pownf(float x, int n)
{
    if (n == 0 || x == 1)
        return 1;
    if (x != x)
        return x;
    float y = (float)n;
    float y_low = (float)(int)((long)n - (long)y);
    float result = power_of_magnitude(x, y, y_low);
    return as_int(x) < 0 && (n & 1) ? -result : result;
}

float CONST_FUNCTION __sp_target_rootnf(float x, int n)
{
    bool odd = n & 1;
    if (n == 0 || (x < 0 && !odd))
        return as_float(0x7fc00000);
    if (x != x)
        return x;
    float divisor = (float)n;
    float divisor_low = (float)(int)((long)n - (long)divisor);
    float y = 1 / divisor;
    float y_low = FMA(-y, divisor_low, FMA(-y, divisor, 1)) * y;
    float result = power_of_magnitude(x, y, y_low);
    return odd ? __builtin_copysignf(result, x) : result;
}

/* --- Roots ---------------------------------------------------------------------------------- */

float CONST_FUNCTION __sp_target_rsqrtf(float x)
{
    return __nvvm_rsqrt_approx_f(x);
}

/* Where correct rounding was not asked for: 3 ulp are allowed. */
float CONST_FUNCTION __sp_target_sqrtf(float x)
{
    return __nvvm_sqrt_approx_f(x);
}

/* --- native_ -------------------------------------------------------------------------------- */

float CONST_FUNCTION __sp_target_native_sinf(float x)
{
    return __nvvm_sin_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_cosf(float x)
{
    return __nvvm_cos_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_dividef(float x, float y)
{
    return __nvvm_div_approx_ftz_f(x, y);
}

float CONST_FUNCTION __sp_target_native_recipf(float x)
{
    return __nvvm_rcp_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_tanf(float x)
{
    return __nvvm_div_approx_ftz_f(__nvvm_sin_approx_ftz_f(x), __nvvm_cos_approx_ftz_f(x));
}

float CONST_FUNCTION __sp_target_native_exp2f(float x)
{
    return __nvvm_ex2_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_expf(float x)
{
    return __nvvm_ex2_approx_ftz_f(x * LOG2_E_HIGH);
}

float CONST_FUNCTION __sp_target_native_exp10f(float x)
{
    return __nvvm_ex2_approx_ftz_f(x * LOG2_10_HIGH);
}

float CONST_FUNCTION __sp_target_native_log2f(float x)
{
    return __nvvm_lg2_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_logf(float x)
{
    return __nvvm_lg2_approx_ftz_f(x) * 0x1.62e430p-1f;
}

float CONST_FUNCTION __sp_target_native_log10f(float x)
{
    return __nvvm_lg2_approx_ftz_f(x) * 0x1.344136p-2f;
}

float CONST_FUNCTION __sp_target_native_rsqrtf(float x)
{
    return __nvvm_rsqrt_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_sqrtf(float x)
{
    return __nvvm_sqrt_approx_ftz_f(x);
}

float CONST_FUNCTION __sp_target_native_powrf(float x, float y)
{
    return __nvvm_ex2_approx_ftz_f(y * __nvvm_lg2_approx_ftz_f(x));
}
