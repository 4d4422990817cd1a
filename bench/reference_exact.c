/* Hand-written C whose arithmetic is that of C: integers, and comparisons that must come out alike.
 */
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "reference.h"

void bench_c_chase(void *const *memory)
{
    const uint32_t *next = memory[0];
    uint32_t *last = memory[1], i = 0;
    for (int k = 0; k < CHASE_HOPS; k++)
        i = next[i];
    last[0] = i;
}

/* Four sets of bins for each thread: equal neighbours do not wait for each other. */
void bench_c_histogram(void *const *memory)
{
    const uint32_t *restrict in = memory[0];
    uint32_t *restrict bins = memory[1];
    memset(bins, 0, HISTOGRAM_BINS * sizeof *bins);
#pragma omp parallel
    {
        uint32_t own[4][HISTOGRAM_BINS] = {{0}};
#pragma omp for schedule(static) nowait
        for (int i = 0; i < HISTOGRAM_N; i += 4)
            for (int k = 0; k < 4; k++)
                own[k][in[i + k] % HISTOGRAM_BINS]++;
#pragma omp critical
        for (int i = 0; i < HISTOGRAM_BINS; i++)
            bins[i] += own[0][i] + own[1][i] + own[2][i] + own[3][i];
    }
}

/* Each thread sums its part, then scans it from the sum of the parts before. */
void bench_c_scan(void *const *memory)
{
    enum { MAX_THREADS = 1024 };
    const uint32_t *restrict in = memory[0];
    uint32_t *restrict out = memory[1];
    uint32_t sums[MAX_THREADS] = {0};
#pragma omp parallel num_threads(omp_get_max_threads() < MAX_THREADS ? omp_get_max_threads()       \
                                                                     : MAX_THREADS)
    {
        int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        int first = (int)((long)SCAN_N * thread / threads);
        int end = (int)((long)SCAN_N * (thread + 1) / threads);
        uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = first; i < end; i++)
            sum += in[i];
        sums[thread] = sum;
#pragma omp barrier
        sum = 0;
        for (int t = 0; t < thread; t++)
            sum += sums[t];
        for (int i = first; i < end; i++)
            out[i] = sum += in[i];
    }
}

static inline void exchange(uint32_t *restrict v, size_t i, size_t stride, int up)
{
    uint32_t a = v[i], b = v[i + stride], least = a < b ? a : b, most = a < b ? b : a;
    v[i] = up ? least : most;
    v[i + stride] = up ? most : least;
}

/* All exchanges of one stride below `stride` in 2 * stride elements each; a constant stride becomes
 * shuffles. */
static inline __attribute__((always_inline)) void sort_pass(uint32_t *restrict v, size_t count,
                                                            size_t stride, int up)
{
    for (size_t i = 0; i < count; i += 2 * stride)
#pragma omp simd
        for (size_t k = 0; k < stride; k++)
            exchange(v + i, k, stride, up);
}

/* Strides from `stride` down to 1 within `count` elements of one direction. */
static void sort_merge(uint32_t *restrict v, size_t count, size_t stride, int up)
{
    for (; stride >= 16; stride /= 2)
        sort_pass(v, count, stride, up);
    if (stride >= 8)
        sort_pass(v, count, 8, up);
    if (stride >= 4)
        sort_pass(v, count, 4, up);
    if (stride >= 2)
        sort_pass(v, count, 2, up);
    sort_pass(v, count, 1, up);
}

/* Blocks that fit the first cache are merged down to stride 1 while they are there. */
void bench_c_sort(void *const *memory)
{
    enum { BLOCK = 4096 };
    const uint32_t *restrict in = memory[0];
    uint32_t *restrict out = memory[1];
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (size_t b = 0; b < SORT_N; b += BLOCK) {
            memcpy(out + b, in + b, BLOCK * sizeof *out);
            for (size_t size = 2; size <= BLOCK; size *= 2)
                for (size_t i = 0; i < BLOCK; i += size)
                    sort_merge(out + b + i, size, size / 2, ((b + i) & size) == 0);
        }
        for (size_t size = 2 * BLOCK; size <= SORT_N; size *= 2) {
            for (size_t stride = size / 2; stride >= BLOCK; stride /= 2)
#pragma omp for schedule(static)
                for (size_t part = 0; part < SORT_N / 2; part += BLOCK / 2) {
                    size_t i = 2 * part - (part & (stride - 1));
#pragma omp simd
                    for (size_t k = 0; k < BLOCK / 2; k++)
                        exchange(out + i, k, stride, (i & size) == 0);
                }
#pragma omp for schedule(static)
            for (size_t b = 0; b < SORT_N; b += BLOCK)
                sort_merge(out + b, BLOCK, BLOCK / 2, (b & size) == 0);
        }
    }
}

/* Blocks of one cache line each way. */
void bench_c_transpose(void *const *memory)
{
    enum { BLOCK = 16 };
    const float *restrict in = memory[0];
    float *restrict out = memory[1];
#pragma omp parallel for schedule(static)
    for (size_t x0 = 0; x0 < TRANSPOSE_N; x0 += BLOCK)
        for (size_t y0 = 0; y0 < TRANSPOSE_N; y0 += BLOCK)
            for (size_t x = x0; x < x0 + BLOCK; x++)
#pragma omp simd
                for (size_t y = y0; y < y0 + BLOCK; y++)
                    out[x * TRANSPOSE_N + y] = in[y * TRANSPOSE_N + x];
}

/* Sixteen messages side by side. */
typedef uint32_t lanes __attribute__((vector_size(64)));

static const uint32_t sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTATE(value, bits) ((value) >> (bits) | (value) << (32 - (bits)))

static inline void sha_block(lanes state[8], lanes w[16])
{
    lanes a = state[0], b = state[1], c = state[2], d = state[3];
    lanes e = state[4], f = state[5], g = state[6], h = state[7];
#pragma GCC unroll 64
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            lanes w2 = w[(i + 14) & 15], w15 = w[(i + 1) & 15];
            w[i & 15] += (ROTATE(w15, 7) ^ ROTATE(w15, 18) ^ w15 >> 3) + w[(i + 9) & 15] +
                         (ROTATE(w2, 17) ^ ROTATE(w2, 19) ^ w2 >> 10);
        }
        lanes t1 = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g)) +
                   sha_k[i] + w[i & 15];
        lanes t2 = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void bench_c_sha256(void *const *memory)
{
    enum { LANES = 16 };
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint32_t *restrict messages = memory[0];
    uint32_t *restrict digests = memory[1];
#pragma omp parallel for schedule(static)
    for (int m = 0; m < SHA_N; m += LANES) {
        lanes w[16], state[8], zero = {0};
        for (int i = 0; i < 16; i++)
            for (int l = 0; l < LANES; l++)
                w[i][l] = __builtin_bswap32(messages[(m + l) * 16 + i]);
        for (int i = 0; i < 8; i++)
            state[i] = zero + initial[i];
        sha_block(state, w);
        for (int i = 0; i < 16; i++)
            w[i] = zero;
        w[0] = zero + 0x80000000u;
        w[15] = zero + 512u;
        sha_block(state, w);
        for (int l = 0; l < LANES; l++)
            for (int i = 0; i < 8; i++)
                digests[(m + l) * 8 + i] = __builtin_bswap32(state[i][l]);
    }
}

/* Points in blocks that stay in registers over the centres. */
void bench_c_kmeans(void *const *memory)
{
    enum { BLOCK = 64, D = KMEANS_COORDINATES, SUMS = KMEANS_CENTERS * D };
    const float *restrict points = memory[0], *restrict centers = memory[1];
    uint32_t *restrict nearest = memory[2];
    int32_t *restrict sums = memory[3], *restrict counts = memory[4];
    memset(sums, 0, SUMS * sizeof *sums);
    memset(counts, 0, KMEANS_CENTERS * sizeof *counts);
#pragma omp parallel
    {
        int32_t own_sums[SUMS] = {0}, own_counts[KMEANS_CENTERS] = {0};
#pragma omp for schedule(static) nowait
        for (int i0 = 0; i0 < KMEANS_N; i0 += BLOCK) {
            float least[BLOCK];
            uint32_t best[BLOCK] = {0};
            for (int i = 0; i < BLOCK; i++)
                least[i] = __FLT_MAX__;
            for (int c = 0; c < KMEANS_CENTERS; c++)
#pragma omp simd
                for (int i = 0; i < BLOCK; i++) {
                    float distance = 0;
#pragma GCC unroll 8
                    for (int d = 0; d < D; d++) {
                        float difference = points[d * KMEANS_N + i0 + i] - centers[c * D + d];
                        distance += difference * difference;
                    }
                    best[i] = distance < least[i] ? (uint32_t)c : best[i];
                    least[i] = distance < least[i] ? distance : least[i];
                }
            memcpy(nearest + i0, best, sizeof best);
            for (int i = 0; i < BLOCK; i++) {
                own_counts[best[i]]++;
                for (int d = 0; d < D; d++)
                    own_sums[best[i] * D + (uint32_t)d] +=
                        (int32_t)(points[d * KMEANS_N + i0 + i] * 1024.0f);
            }
        }
#pragma omp critical
        {
            for (int i = 0; i < SUMS; i++)
                sums[i] += own_sums[i];
            for (int i = 0; i < KMEANS_CENTERS; i++)
                counts[i] += own_counts[i];
        }
    }
}

/* 64 generators side by side: the steps of one wait for each other, those of four vectors do not.
 */
void bench_c_monte_carlo(void *const *memory)
{
    enum { LANES = 64 };
    uint32_t *restrict hits = memory[0];
#pragma omp parallel for schedule(static)
    for (uint32_t id = 0; id < MONTE_CARLO_ITEMS; id += LANES) {
        uint32_t state[LANES], count[LANES] = {0};
        for (uint32_t l = 0; l < LANES; l++)
            state[l] = (id + l) * 747796405u + 2891336453u;
        for (int i = 0; i < MONTE_CARLO_SAMPLES; i++)
#pragma omp simd
            for (int l = 0; l < LANES; l++) {
                uint32_t s = state[l];
                s ^= s << 13;
                s ^= s >> 17;
                s ^= s << 5;
                state[l] = s;
                float x = (float)(int32_t)(s >> 16) * (1.0f / 65536);
                float y = (float)(int32_t)(s & 0xffff) * (1.0f / 65536);
                count[l] += x * x + y * y < 1.0f;
            }
        memcpy(hits + id, count, sizeof count);
    }
}
