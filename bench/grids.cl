/* Kernels over planes and volumes. */

__kernel void stencil3d(__global const float *in, __global float *out, uint nx, uint ny, uint nz)
{
    uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1)
        return;
    uint i = (z * ny + y) * nx + x;
    out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] +
                                    in[i - nx * ny] + in[i + nx * ny]);
}

#define RADIUS 2
#define SIDE (2 * RADIUS + 1)
#define TILE 16
#define PADDED (TILE + 2 * RADIUS)

/* `in` has RADIUS more on every side than `out`. */
__kernel void convolution(__global const float *in, __global float *out, __constant float *filter,
                          uint width)
{
    __local float tile[PADDED][PADDED];
    uint lx = get_local_id(0), ly = get_local_id(1);
    uint x0 = get_group_id(0) * TILE, y0 = get_group_id(1) * TILE;
    uint in_width = width + 2 * RADIUS;
    for (uint y = ly; y < PADDED; y += TILE)
        for (uint x = lx; x < PADDED; x += TILE)
            tile[y][x] = in[(y0 + y) * in_width + x0 + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (uint j = 0; j < SIDE; j++)
        for (uint i = 0; i < SIDE; i++)
            sum += filter[j * SIDE + i] * tile[ly + j][lx + i];
    out[(y0 + ly) * width + x0 + lx] = sum;
}

__kernel void transpose(__global const float *in, __global float *out, uint width, uint height)
{
    __local float tile[TILE][TILE + 1];
    uint lx = get_local_id(0), ly = get_local_id(1);
    uint x = get_group_id(0) * TILE, y = get_group_id(1) * TILE;
    tile[ly][lx] = in[(y + ly) * width + x + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(x + ly) * height + y + lx] = tile[lx][ly];
}
