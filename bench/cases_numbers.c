/* Kernels that compute more than they load. */
#include <math.h>
#include <string.h>

#include "cases.h"
#include "reference.h"

static void set_up_nbody(void *const *memory)
{
    cl_float4 *body = memory[0];
    for (int i = 0; i < NBODY_N; i++)
        for (int k = 0; k < 4; k++)
            body[i].s[k] = (float)((i * 7919 + k * 104729) % 1000) / 1000;
}

static void launch_nbody(struct bench_run *run)
{
    bench_launch(run, "nbody", bench_line(NBODY_N, 0), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_UINT(NBODY_N));
}

static bool check_nbody(void *const *memory)
{
    const cl_float4 *body = memory[0], *force = memory[1];
    for (int i = 0; i < NBODY_N; i += 509) {
        double f[3] = {0}, size = 0;
        for (int j = 0; j < NBODY_N; j++) {
            double d[3], r2 = 0.01;
            for (int k = 0; k < 3; k++) {
                d[k] = (double)body[j].s[k] - body[i].s[k];
                r2 += d[k] * d[k];
            }
            for (int k = 0; k < 3; k++) {
                f[k] += d[k] * body[j].s[3] / (r2 * sqrt(r2));
                size += fabs(d[k] * body[j].s[3] / (r2 * sqrt(r2)));
            }
        }
        for (int k = 0; k < 3; k++)
            if (!bench_close("n-body", force[i].s[k] / size, f[k] / size, 1e-5))
                return false;
    }
    return true;
}

#define FFT_POINTS ((size_t)FFT_SIZE * FFT_BATCH)

/* Memory: in, out, exp(-2 pi i k / FFT_SIZE). */
static void set_up_fft(void *const *memory)
{
    cl_float2 *in = memory[0], *twiddle = memory[2];
    cl_uint state = 5;
    for (size_t i = 0; i < FFT_POINTS; i++)
        for (int k = 0; k < 2; k++)
            in[i].s[k] = (float)(bench_random(&state) % 2001) / 1000 - 1;
    for (int k = 0; k < FFT_SIZE; k++) {
        twiddle[k].s[0] = (float)cos(2 * M_PI * k / FFT_SIZE);
        twiddle[k].s[1] = (float)-sin(2 * M_PI * k / FFT_SIZE);
    }
}

static void launch_fft(struct bench_run *run)
{
    bench_launch(run, "fft", bench_line(FFT_POINTS / 2, FFT_SIZE / 2), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_MEM(2));
}

/* Some frequencies of some transforms by the definition. Sums of 512 numbers of about 1: errors
 * count against their size, about 20. */
static bool check_fft(void *const *memory)
{
    const cl_float2 *in = memory[0], *out = memory[1];
    for (size_t t = 0; t < FFT_BATCH; t += 97)
        for (int f = (int)(t % 5); f < FFT_SIZE; f += 13) {
            double re = 0, im = 0;
            for (int k = 0; k < FFT_SIZE; k++) {
                const float *x = in[t * FFT_SIZE + (size_t)k].s;
                double c = cos(2 * M_PI * k * f / FFT_SIZE), s = -sin(2 * M_PI * k * f / FFT_SIZE);
                re += x[0] * c - x[1] * s;
                im += x[0] * s + x[1] * c;
            }
            const float *got = out[t * FFT_SIZE + (size_t)f].s;
            if (!bench_close("FFT", got[0] / 20, re / 20, 2e-6) ||
                !bench_close("FFT", got[1] / 20, im / 20, 2e-6))
                return false;
        }
    return true;
}

/* Memory: price, strike, years; call, put. */
static void set_up_black_scholes(void *const *memory)
{
    float *price = memory[0], *strike = memory[1], *years = memory[2];
    cl_uint state = 7;
    for (int i = 0; i < BLACK_SCHOLES_N; i++) {
        price[i] = 5 + (float)(bench_random(&state) % 25000) / 1000;
        strike[i] = 1 + (float)(bench_random(&state) % 99000) / 1000;
        years[i] = 0.25f + (float)(bench_random(&state) % 9750) / 1000;
    }
}

static void launch_black_scholes(struct bench_run *run)
{
    bench_launch(run, "black_scholes", bench_line(BLACK_SCHOLES_N, 0), BENCH_MEM(0), BENCH_MEM(1),
                 BENCH_MEM(2), BENCH_MEM(3), BENCH_MEM(4), BENCH_FLOAT(BLACK_SCHOLES_RATE),
                 BENCH_FLOAT(BLACK_SCHOLES_VOLATILITY));
}

/* Against the normal distribution itself: the polynomial is right to 7.5e-8, for prices of up to
 * 100. */
static bool check_black_scholes(void *const *memory)
{
    const float *price = memory[0], *strike = memory[1], *years = memory[2];
    const float *call = memory[3], *put = memory[4];
    double rate = BLACK_SCHOLES_RATE, volatility = BLACK_SCHOLES_VOLATILITY;
    for (int i = 0; i < BLACK_SCHOLES_N; i += 101) {
        double s = price[i], x = strike[i], t = years[i];
        double d1 =
            (log(s / x) + (rate + volatility * volatility / 2) * t) / (volatility * sqrt(t));
        double d2 = d1 - volatility * sqrt(t), discounted = x * exp(-rate * t);
        double n1 = erfc(-d1 / M_SQRT2) / 2, n2 = erfc(-d2 / M_SQRT2) / 2;
        if (!bench_close("Black-Scholes", call[i], s * n1 - discounted * n2, 5e-5) ||
            !bench_close("Black-Scholes", put[i], discounted * (1 - n2) - s * (1 - n1), 5e-5))
            return false;
    }
    return true;
}

static void set_up_sha256(void *const *memory)
{
    cl_uint *messages = memory[0], state = 11;
    for (int i = 0; i < SHA_N * 16; i++)
        messages[i] = bench_random(&state) * 257;
}

static void launch_sha256(struct bench_run *run)
{
    bench_launch(run, "sha256", bench_line(SHA_N, 0), BENCH_MEM(0), BENCH_MEM(1));
}

static uint32_t rotate_right(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

/* FIPS 180-4, with the constants from their definition: 32 bits of the roots of the first primes.
 */
static void sha_block(uint32_t *state, const uint32_t *block)
{
    uint32_t w[64], v[8];
    memcpy(w, block, 64);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, state, sizeof v);
    for (int i = 0, prime = 2; i < 64; prime++) {
        bool is_prime = true;
        for (int d = 2; d * d <= prime; d++)
            is_prime = is_prime && prime % d;
        if (!is_prime)
            continue;
        long double root = cbrtl(prime);
        uint32_t k = (uint32_t)((root - floorl(root)) * 4294967296.0L);
        uint32_t t1 = v[7] +
                      (rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25)) +
                      ((v[4] & v[5]) ^ (~v[4] & v[6])) + k + w[i++];
        uint32_t t2 = (rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22)) +
                      ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[0] = t1 + t2;
        v[4] += t1;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

static bool check_sha256(void *const *memory)
{
    const uint32_t *messages = memory[0], *digests = memory[1];
    for (size_t m = 0; m < SHA_N; m += 61) {
        uint32_t block[16], padding[16] = {[0] = 0x80000000, [15] = 512};
        uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        for (int i = 0; i < 16; i++)
            block[i] = __builtin_bswap32(messages[m * 16 + (size_t)i]);
        sha_block(state, block);
        sha_block(state, padding);
        for (int i = 0; i < 8; i++)
            if (digests[m * 8 + (size_t)i] != __builtin_bswap32(state[i]))
                return bench_wrong("SHA-256", m);
    }
    return true;
}

/* Memory: points, coordinate by coordinate; centres; nearest centre; sums, counts of each centre.
 */
static void set_up_kmeans(void *const *memory)
{
    float *points = memory[0], *centers = memory[1];
    cl_uint state = 13;
    for (int i = 0; i < KMEANS_N * KMEANS_COORDINATES; i++)
        points[i] = (float)(bench_random(&state) % 1000) / 1000;
    for (int i = 0; i < KMEANS_CENTERS * KMEANS_COORDINATES; i++)
        centers[i] = (float)(bench_random(&state) % 1000) / 1000;
}

static void launch_kmeans(struct bench_run *run)
{
    bench_clear(run, 3);
    bench_clear(run, 4);
    bench_launch(run, "kmeans", bench_line(KMEANS_N, 256), BENCH_MEM(0), BENCH_MEM(1), BENCH_MEM(2),
                 BENCH_MEM(3), BENCH_MEM(4), BENCH_UINT(KMEANS_N));
}

/* A centre as near as the nearest but for rounding is right; sums and counts are exact for what was
 * chosen. */
static bool check_kmeans(void *const *memory)
{
    enum { D = KMEANS_COORDINATES };
    const float *points = memory[0], *centers = memory[1];
    const cl_uint *nearest = memory[2];
    const cl_int *sums = memory[3], *counts = memory[4];
    cl_int expected_sums[KMEANS_CENTERS * D] = {0}, expected_counts[KMEANS_CENTERS] = {0};
    for (size_t i = 0; i < KMEANS_N; i++) {
        double distances[KMEANS_CENTERS] = {0}, least = INFINITY;
        for (int c = 0; c < KMEANS_CENTERS; c++) {
            for (int d = 0; d < D; d++) {
                double difference = (double)points[d * KMEANS_N + i] - centers[c * D + d];
                distances[c] += difference * difference;
            }
            least = fmin(least, distances[c]);
        }
        if (nearest[i] >= KMEANS_CENTERS || distances[nearest[i]] > least + 1e-5)
            return bench_wrong("k-means step", i);
        expected_counts[nearest[i]]++;
        for (int d = 0; d < D; d++)
            expected_sums[nearest[i] * D + (cl_uint)d] += (int)(points[d * KMEANS_N + i] * 1024.0f);
    }
    for (size_t i = 0; i < KMEANS_CENTERS * D; i++)
        if (sums[i] != expected_sums[i])
            return bench_wrong("sums of the k-means step", i);
    for (size_t i = 0; i < KMEANS_CENTERS; i++)
        if (counts[i] != expected_counts[i])
            return bench_wrong("counts of the k-means step", i);
    return true;
}

static void launch_monte_carlo(struct bench_run *run)
{
    bench_launch(run, "monte_carlo", bench_line(MONTE_CARLO_ITEMS, 0), BENCH_MEM(0),
                 BENCH_UINT(MONTE_CARLO_SAMPLES));
}

/* A point on the circle may be rounded in or out; more than one among 256 samples is not to be
 * expected. */
static bool check_monte_carlo(void *const *memory)
{
    const cl_uint *hits = memory[0];
    for (uint32_t id = 0; id < MONTE_CARLO_ITEMS; id++) {
        uint32_t state = id * 747796405u + 2891336453u;
        int count = 0;
        for (int i = 0; i < MONTE_CARLO_SAMPLES; i++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            uint64_t x = state >> 16, y = state & 0xffff;
            count += x * x + y * y < (uint64_t)1 << 32;
        }
        if ((cl_uint)(count + 1) - hits[id] > 2)
            return bench_wrong("Monte Carlo", id);
    }
    return true;
}

const struct bench_case bench_number_cases[] = {
    {"n-body",
     "Gint/s",
     1e-9 * NBODY_N *NBODY_N,
     bench_source,
     {NBODY_N * 16, NBODY_N * 16},
     set_up_nbody,
     launch_nbody,
     bench_c_nbody,
     check_nbody},
    {"FFT",
     "GFLOP/s",
     5e-9 * 9 * (double)FFT_POINTS,
     bench_numbers_source,
     {FFT_POINTS * 8, FFT_POINTS * 8, FFT_SIZE * 8},
     set_up_fft,
     launch_fft,
     bench_c_fft,
     check_fft},
    {"Black-Scholes",
     "M/s",
     1e-6 * BLACK_SCHOLES_N,
     bench_numbers_source,
     {BLACK_SCHOLES_N * 4, BLACK_SCHOLES_N * 4, BLACK_SCHOLES_N * 4, BLACK_SCHOLES_N * 4,
      BLACK_SCHOLES_N * 4},
     set_up_black_scholes,
     launch_black_scholes,
     bench_c_black_scholes,
     check_black_scholes},
    {"SHA-256",
     "M/s",
     1e-6 * SHA_N,
     bench_numbers_source,
     {SHA_N * 64, SHA_N * 32},
     set_up_sha256,
     launch_sha256,
     bench_c_sha256,
     check_sha256},
    {"k-means step",
     "M/s",
     1e-6 * KMEANS_N,
     bench_numbers_source,
     {KMEANS_N * KMEANS_COORDINATES * 4, KMEANS_CENTERS *KMEANS_COORDINATES * 4, KMEANS_N * 4,
      KMEANS_CENTERS *KMEANS_COORDINATES * 4, KMEANS_CENTERS * 4},
     set_up_kmeans,
     launch_kmeans,
     bench_c_kmeans,
     check_kmeans},
    {"Monte Carlo",
     "M/s",
     1e-6 * MONTE_CARLO_ITEMS *MONTE_CARLO_SAMPLES,
     bench_numbers_source,
     {MONTE_CARLO_ITEMS * 4},
     NULL,
     launch_monte_carlo,
     bench_c_monte_carlo,
     check_monte_carlo},
    {0},
};
