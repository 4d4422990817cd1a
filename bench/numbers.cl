/* Kernels that compute more than they load. */

/* 512-point transforms, one for each work-group. twiddle[k] = exp(-2 pi i k / 512). */
#define FFT_LOG 9
#define FFT_SIZE (1 << FFT_LOG)

uint bit_reverse(uint v)
{
    uint r = 0;
    for (uint b = 0; b < FFT_LOG; b++)
        r |= ((v >> b) & 1) << (FFT_LOG - 1 - b);
    return r;
}

__kernel void fft(__global const float2 *in, __global float2 *out, __global const float2 *twiddle)
{
    __local float2 v[FFT_SIZE];
    uint lid = get_local_id(0), base = get_group_id(0) * FFT_SIZE;
    v[bit_reverse(lid)] = in[base + lid];
    v[bit_reverse(lid + FFT_SIZE / 2)] = in[base + lid + FFT_SIZE / 2];
    for (uint half_size = 1; half_size < FFT_SIZE; half_size *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint place = lid & (half_size - 1), i = 2 * lid - place;
        float2 w = twiddle[place * (FFT_SIZE / 2 / half_size)];
        float2 a = v[i], b = v[i + half_size];
        float2 t = (float2)(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
        v[i] = a + t;
        v[i + half_size] = a - t;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + lid] = v[lid];
    out[base + lid + FFT_SIZE / 2] = v[lid + FFT_SIZE / 2];
}

float normal_distribution(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
    float p = k * (0.31938153f +
                   k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * exp(-0.5f * d * d) * p;
    return d > 0 ? 1.0f - tail : tail;
}

__kernel void black_scholes(__global const float *price, __global const float *strike,
                            __global const float *years, __global float *call, __global float *put,
                            float rate, float volatility)
{
    uint i = get_global_id(0);
    float s = price[i], x = strike[i], t = years[i], root = sqrt(t);
    float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
    float d2 = d1 - volatility * root;
    float n1 = normal_distribution(d1), n2 = normal_distribution(d2);
    float discounted = x * exp(-rate * t);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}

/* SHA-256 of messages of 64 bytes, one for each work-item. */
__constant uint sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint swap_bytes(uint v)
{
    return (rotate(v, 24u) & 0xff00ff00) | (rotate(v, 8u) & 0x00ff00ff);
}

void sha_block(uint *state, uint *w)
{
    uint a = state[0], b = state[1], c = state[2], d = state[3];
    uint e = state[4], f = state[5], g = state[6], h = state[7];
    for (uint i = 0; i < 64; i++) {
        if (i >= 16) {
            uint w2 = w[(i + 14) & 15], w15 = w[(i + 1) & 15];
            uint s0 = rotate(w15, 25u) ^ rotate(w15, 14u) ^ (w15 >> 3);
            uint s1 = rotate(w2, 15u) ^ rotate(w2, 13u) ^ (w2 >> 10);
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        uint t1 = h + (rotate(e, 26u) ^ rotate(e, 21u) ^ rotate(e, 7u)) + bitselect(g, f, e) + sha_k[i] +
                  w[i & 15];
        uint t2 = (rotate(a, 30u) ^ rotate(a, 19u) ^ rotate(a, 10u)) + ((a & b) ^ (a & c) ^ (b & c));
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

__kernel void sha256(__global const uint *messages, __global uint *digests)
{
    uint id = get_global_id(0), w[16];
    uint state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (uint i = 0; i < 16; i++)
        w[i] = swap_bytes(messages[id * 16 + i]);
    sha_block(state, w);
    for (uint i = 1; i < 15; i++)
        w[i] = 0;
    w[0] = 0x80000000;
    w[15] = 512;
    sha_block(state, w);
    for (uint i = 0; i < 8; i++)
        digests[id * 8 + i] = swap_bytes(state[i]);
}

/* One step of k-means: the nearest centre of each point, and for each centre the count and the sum of its
 * points, in 1024ths. Points are stored coordinate by coordinate. */
#define CENTERS 16
#define COORDINATES 8

__kernel void kmeans(__global const float *points, __global const float *centers,
                     __global uint *nearest, __global int *sums, __global int *counts, uint n)
{
    __local int local_sums[CENTERS * COORDINATES], local_counts[CENTERS];
    uint lid = get_local_id(0), i = get_global_id(0);
    for (uint k = lid; k < CENTERS * COORDINATES; k += get_local_size(0))
        local_sums[k] = 0;
    if (lid < CENTERS)
        local_counts[lid] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint best = 0;
    float best_distance = FLT_MAX;
    for (uint c = 0; c < CENTERS; c++) {
        float distance = 0;
        for (uint d = 0; d < COORDINATES; d++) {
            float difference = points[d * n + i] - centers[c * COORDINATES + d];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = c;
        }
    }
    nearest[i] = best;
    for (uint d = 0; d < COORDINATES; d++)
        atomic_add(&local_sums[best * COORDINATES + d], (int)(points[d * n + i] * 1024.0f));
    atomic_inc(&local_counts[best]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = lid; k < CENTERS * COORDINATES; k += get_local_size(0))
        atomic_add(&sums[k], local_sums[k]);
    if (lid < CENTERS)
        atomic_add(&counts[lid], local_counts[lid]);
}

/* Points of the unit square that lie in the circle, out of `samples` for each work-item. */
__kernel void monte_carlo(__global uint *hits, uint samples)
{
    uint id = get_global_id(0), state = id * 747796405u + 2891336453u, count = 0;
    for (uint i = 0; i < samples; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        float x = (float)(state >> 16) * (1.0f / 65536);
        float y = (float)(state & 0xffff) * (1.0f / 65536);
        count += x * x + y * y < 1.0f;
    }
    hits[id] = count;
}
