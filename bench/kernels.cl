/* The ten kernels of the benchmark: what people run, small. */

__kernel void triad(__global float *a, __global const float *b, __global const float *c, float s)
{
    size_t i = get_global_id(0);
    a[i] = b[i] + s * c[i];
}

__kernel void reduction(__global const float *in, __global float *out, __local float *scratch)
{
    uint lid = get_local_id(0), size = get_local_size(0);
    scratch[lid] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = size / 2; step > 0; step /= 2) {
        if (lid < step)
            scratch[lid] += scratch[lid + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0)
        out[get_group_id(0)] = scratch[0];
}

#define TILE 16

__kernel void matmul(__global const float *a, __global const float *b, __global float *c, uint n)
{
    __local float ta[TILE][TILE], tb[TILE][TILE];
    uint x = get_local_id(0), y = get_local_id(1);
    uint column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (uint t = 0; t < n; t += TILE) {
        ta[y][x] = a[row * n + t + x];
        tb[y][x] = b[(t + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < TILE; k++)
            sum += ta[y][k] * tb[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void nbody(__global const float4 *body, __global float4 *force, uint n)
{
    uint i = get_global_id(0);
    float4 p = body[i];
    float3 f = 0;
    for (uint j = 0; j < n; j++) {
        float4 q = body[j];
        float3 d = q.xyz - p.xyz;
        float r = rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + 0.01f);
        f += d * (q.w * r * r * r);
    }
    force[i] = (float4)(f, 0);
}

__kernel void mandelbrot(__global int *out, uint width, uint height, uint limit)
{
    uint px = get_global_id(0), py = get_global_id(1);
    float cx = -2.0f + 2.5f * px / width, cy = -1.25f + 2.5f * py / height;
    float x = 0, y = 0;
    uint i = 0;
    while (i < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        i++;
    }
    out[py * width + px] = i;
}

__kernel void transcendentals(__global const float *in, __global float *out)
{
    size_t i = get_global_id(0);
    float x = in[i];
    out[i] = sin(x) * cos(x) + exp(-x * x) + log(x + 1.0f);
}

__kernel void chase(__global const uint *next, __global uint *last, uint hops)
{
    uint i = get_global_id(0);
    for (uint k = 0; k < hops; k++)
        i = next[i];
    last[get_global_id(0)] = i;
}

__kernel void histogram(__global const uint *in, __global uint *bins, uint n)
{
    __local uint local_bins[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        local_bins[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&local_bins[in[i] & 255]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0))
        atomic_add(&bins[i], local_bins[i]);
}

__kernel void stencil(__global const float *in, __global float *out, uint width, uint height)
{
    uint x = get_global_id(0), y = get_global_id(1);
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1)
        return;
    uint i = y * width + x;
    out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

__kernel void tiny(__global uint *word)
{
    if (get_global_id(0) == 0)
        word[0] += 1;
}
