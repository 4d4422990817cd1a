/* Hand-written C with floating point that may be reordered: compiled with -ffast-math, as its
 * tolerance allows. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "reference.h"

void bench_c_triad(void *const *memory)
{
    float *restrict a = memory[0];
    const float *restrict b = memory[1], *restrict c = memory[2];
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < TRIAD_N; i++)
        a[i] = b[i] + 3.0f * c[i];
}

void bench_c_reduction(void *const *memory)
{
    const float *restrict in = memory[0];
    float *restrict out = memory[1];
#pragma omp parallel for schedule(static)
    for (int g = 0; g < REDUCTION_N / REDUCTION_LOCAL; g++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < REDUCTION_LOCAL; i++)
            sum += in[g * REDUCTION_LOCAL + i];
        out[g] = sum;
    }
}

void bench_c_transcendentals(void *const *memory)
{
    const float *restrict in = memory[0];
    float *restrict out = memory[1];
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < TRANSCENDENTALS_N; i++) {
        float x = in[i];
        out[i] = sinf(x) * cosf(x) + expf(-x * x) + logf(x + 1.0f);
    }
}

void bench_c_spmv(void *const *memory)
{
    const uint32_t *restrict row_start = memory[0], *restrict column = memory[1];
    const float *restrict value = memory[2], *restrict x = memory[3];
    float *restrict y = memory[4];
#pragma omp parallel for schedule(static)
    for (int row = 0; row < SPMV_ROWS; row++) {
        float sum = 0;
        for (uint32_t k = row_start[row]; k < row_start[row + 1]; k++)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}

/* Four rows of 64 sums, which stay in registers. */
void bench_c_matmul(void *const *memory)
{
    const float *restrict a = memory[0], *restrict b = memory[1];
    float *restrict c = memory[2];
#pragma omp parallel for schedule(static)
    for (int y = 0; y < MATMUL_N; y += 4)
        for (int x0 = 0; x0 < MATMUL_N; x0 += 64) {
            float sum[4][64] = {{0}};
            for (int k = 0; k < MATMUL_N; k++)
                for (int r = 0; r < 4; r++) {
                    float f = a[(y + r) * MATMUL_N + k];
#pragma omp simd
                    for (int x = 0; x < 64; x++)
                        sum[r][x] += f * b[k * MATMUL_N + x0 + x];
                }
            for (int r = 0; r < 4; r++)
                memcpy(&c[(y + r) * MATMUL_N + x0], sum[r], sizeof sum[r]);
        }
}

void bench_c_mandelbrot(void *const *memory)
{
    enum { N = MANDELBROT_N, LANES = 32 };
    int *restrict out = memory[0];
#pragma omp parallel for schedule(dynamic, 4)
    for (int py = 0; py < N; py++)
        for (int p0 = 0; p0 < N; p0 += LANES) {
            float x[LANES] = {0}, y[LANES] = {0}, cx[LANES];
            int count[LANES] = {0};
            float cy = -1.25f + 2.5f * (float)py / N;
            for (int l = 0; l < LANES; l++)
                cx[l] = -2.0f + 2.5f * (float)(p0 + l) / N;
            for (int i = 0, any = 1; i < MANDELBROT_LIMIT && any; i++) {
                any = 0;
#pragma omp simd reduction(| : any)
                for (int l = 0; l < LANES; l++) {
                    int inside = x[l] * x[l] + y[l] * y[l] < 4.0f;
                    float t = x[l] * x[l] - y[l] * y[l] + cx[l];
                    y[l] = inside ? 2 * x[l] * y[l] + cy : y[l];
                    x[l] = inside ? t : x[l];
                    count[l] += inside;
                    any |= inside;
                }
            }
            memcpy(out + py * N + p0, count, sizeof count);
        }
}

void bench_c_stencil(void *const *memory)
{
    enum { N = STENCIL_N };
    const float *restrict in = memory[0];
    float *restrict out = memory[1];
#pragma omp parallel for schedule(static)
    for (int y = 1; y < N - 1; y++)
#pragma omp simd
        for (int x = 1; x < N - 1; x++) {
            int i = y * N + x;
            out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - N] + in[i + N]);
        }
}

void bench_c_stencil3d(void *const *memory)
{
    enum { NX = STENCIL3D_X, NY = STENCIL3D_Y, PLANE = NX * NY };
    const float *restrict in = memory[0];
    float *restrict out = memory[1];
#pragma omp parallel for schedule(static)
    for (int z = 1; z < STENCIL3D_Z - 1; z++)
        for (int y = 1; y < NY - 1; y++)
#pragma omp simd
            for (int x = 1; x < NX - 1; x++) {
                int i = (z * NY + y) * NX + x;
                out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - NX] + in[i + NX] +
                                                in[i - PLANE] + in[i + PLANE]);
            }
}

/* 64 results of a row at a time, which stay in registers. */
void bench_c_convolution(void *const *memory)
{
    enum { N = CONVOLUTION_N, SIDE = 2 * CONVOLUTION_RADIUS + 1, IN = N + SIDE - 1, BLOCK = 64 };
    const float *restrict in = memory[0], *restrict filter = memory[2];
    float *restrict out = memory[1];
#pragma omp parallel for schedule(static)
    for (int y = 0; y < N; y++)
        for (int x0 = 0; x0 < N; x0 += BLOCK) {
            float sum[BLOCK] = {0};
            for (int j = 0; j < SIDE; j++)
                for (int i = 0; i < SIDE; i++) {
                    float f = filter[j * SIDE + i];
#pragma omp simd
                    for (int x = 0; x < BLOCK; x++)
                        sum[x] += f * in[(y + j) * IN + x0 + i + x];
                }
            memcpy(out + y * N + x0, sum, sizeof sum);
        }
}

/* Bodies by coordinate, so that vectors load without shuffles. */
void bench_c_nbody(void *const *memory)
{
    static float px[NBODY_N], py[NBODY_N], pz[NBODY_N], m[NBODY_N];
    const float *restrict body = memory[0];
    float *restrict force = memory[1];
    for (int i = 0; i < NBODY_N; i++) {
        px[i] = body[4 * i];
        py[i] = body[4 * i + 1];
        pz[i] = body[4 * i + 2];
        m[i] = body[4 * i + 3];
    }
#pragma omp parallel for schedule(static)
    for (int i = 0; i < NBODY_N; i++) {
        float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (int j = 0; j < NBODY_N; j++) {
            float dx = px[j] - px[i], dy = py[j] - py[i], dz = pz[j] - pz[i];
            float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = m[j] * r * r * r;
            fx += dx * s;
            fy += dy * s;
            fz += dz * s;
        }
        force[4 * i] = fx;
        force[4 * i + 1] = fy;
        force[4 * i + 2] = fz;
        force[4 * i + 3] = 0;
    }
}

/* Radix 2 without bit reversal (Stockham), real and imaginary parts apart: from one array into the
 * other, runs of `run` elements side by side. The first stage takes them apart, the last puts them
 * together. */
static inline __attribute__((always_inline)) void
fft_stage(const float *restrict in_re, const float *restrict in_im, float *restrict out_re,
          float *restrict out_im, const float *restrict w_re, const float *restrict w_im, int run)
{
    enum { HALF = FFT_SIZE / 2 };
    for (int j = 0; j < HALF; j += run)
#pragma omp simd
        for (int k = 0; k < run; k++) {
            float a_re = in_re[j + k], a_im = in_im[j + k];
            float b_re = in_re[j + k + HALF], b_im = in_im[j + k + HALF];
            float d_re = a_re - b_re, d_im = a_im - b_im;
            out_re[2 * j + k] = a_re + b_re;
            out_im[2 * j + k] = a_im + b_im;
            out_re[2 * j + k + run] = d_re * w_re[j] - d_im * w_im[j];
            out_im[2 * j + k + run] = d_re * w_im[j] + d_im * w_re[j];
        }
}

void bench_c_fft(void *const *memory)
{
    const float *restrict in = memory[0], *restrict twiddle = memory[2];
    float *restrict out = memory[1];
    float w_re[FFT_SIZE / 2], w_im[FFT_SIZE / 2];
    for (int k = 0; k < FFT_SIZE / 2; k++) {
        w_re[k] = twiddle[2 * k];
        w_im[k] = twiddle[2 * k + 1];
    }
#pragma omp parallel for schedule(static)
    for (size_t t = 0; t < FFT_BATCH; t++) {
        float re[2][FFT_SIZE], im[2][FFT_SIZE];
        for (size_t k = 0; k < FFT_SIZE; k++) {
            re[0][k] = in[2 * (t * FFT_SIZE + k)];
            im[0][k] = in[2 * (t * FFT_SIZE + k) + 1];
        }
        fft_stage(re[0], im[0], re[1], im[1], w_re, w_im, 1);
        fft_stage(re[1], im[1], re[0], im[0], w_re, w_im, 2);
        fft_stage(re[0], im[0], re[1], im[1], w_re, w_im, 4);
        fft_stage(re[1], im[1], re[0], im[0], w_re, w_im, 8);
        fft_stage(re[0], im[0], re[1], im[1], w_re, w_im, 16);
        fft_stage(re[1], im[1], re[0], im[0], w_re, w_im, 32);
        fft_stage(re[0], im[0], re[1], im[1], w_re, w_im, 64);
        fft_stage(re[1], im[1], re[0], im[0], w_re, w_im, 128);
        fft_stage(re[0], im[0], re[1], im[1], w_re, w_im, 256);
        for (size_t k = 0; k < FFT_SIZE; k++) {
            out[2 * (t * FFT_SIZE + k)] = re[1][k];
            out[2 * (t * FFT_SIZE + k) + 1] = im[1][k];
        }
    }
}

static inline float normal_distribution(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float p = k * (0.31938153f + k * (-0.356563782f +
                                      k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * p;
    return d > 0 ? 1.0f - tail : tail;
}

void bench_c_black_scholes(void *const *memory)
{
    const float rate = BLACK_SCHOLES_RATE, volatility = BLACK_SCHOLES_VOLATILITY;
    const float *restrict price = memory[0], *restrict strike = memory[1],
                          *restrict years = memory[2];
    float *restrict call = memory[3], *restrict put = memory[4];
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < BLACK_SCHOLES_N; i++) {
        float s = price[i], x = strike[i], t = years[i], root = sqrtf(t);
        float d1 =
            (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal_distribution(d1), n2 = normal_distribution(d2);
        float discounted = x * expf(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}
