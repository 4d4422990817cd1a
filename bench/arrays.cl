/* Kernels over arrays: scan, sparse matrix, sort. */

#define SCAN_LOCAL 256

/* Inclusive scan of blocks of 1024, four for each work-item; sums[b] becomes the sum of block b. */
__kernel void scan_blocks(__global const uint4 *in, __global uint4 *out, __global uint *sums, uint n4)
{
    __local uint scratch[SCAN_LOCAL];
    uint lid = get_local_id(0), i = get_global_id(0);
    uint4 v = i < n4 ? in[i] : (uint4)(0);
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    scratch[lid] = v.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < SCAN_LOCAL; step *= 2) {
        uint left = lid >= step ? scratch[lid - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[lid] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n4)
        out[i] = v + (scratch[lid] - v.w);
    if (lid == SCAN_LOCAL - 1)
        sums[get_group_id(0)] = scratch[lid];
}

/* Adds to each block the scanned sum of the blocks before it. */
__kernel void scan_add(__global uint4 *out, __global const uint *sums, uint n4)
{
    uint i = get_global_id(0), block = get_group_id(0);
    if (block > 0 && i < n4)
        out[i] += sums[block - 1];
}

/* Compressed sparse rows times a vector, a row for each work-item. */
__kernel void spmv(__global const uint *row_start, __global const uint *column,
                   __global const float *value, __global const float *x, __global float *y, uint rows)
{
    uint row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0;
    for (uint k = row_start[row]; k < row_start[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}

/* Bitonic sort. Blocks of 512 are sorted in local memory, alternately up and down; then runs are merged, with
 * strides of 512 and more in global memory. */
#define SORT_LOCAL 256
#define SORT_BLOCK 512

void exchange(__local uint *v, uint i, uint stride, bool up)
{
    uint a = v[i], b = v[i + stride];
    v[i] = up ? min(a, b) : max(a, b);
    v[i + stride] = up ? max(a, b) : min(a, b);
}

__kernel void sort_blocks(__global const uint *in, __global uint *out)
{
    __local uint v[SORT_BLOCK];
    uint lid = get_local_id(0), base = get_group_id(0) * SORT_BLOCK;
    v[lid] = in[base + lid];
    v[lid + SORT_LOCAL] = in[base + lid + SORT_LOCAL];
    for (uint size = 2; size <= SORT_BLOCK; size *= 2)
        for (uint stride = size / 2; stride > 0; stride /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint i = 2 * lid - (lid & (stride - 1));
            exchange(v, i, stride, ((base + i) & size) == 0);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + lid] = v[lid];
    out[base + lid + SORT_LOCAL] = v[lid + SORT_LOCAL];
}

__kernel void sort_step(__global uint *v, uint size, uint stride)
{
    uint id = get_global_id(0);
    uint i = 2 * id - (id & (stride - 1));
    uint a = v[i], b = v[i + stride];
    if ((a > b) == ((i & size) == 0)) {
        v[i] = b;
        v[i + stride] = a;
    }
}

__kernel void sort_merge(__global uint *data, uint size)
{
    __local uint v[SORT_BLOCK];
    uint lid = get_local_id(0), base = get_group_id(0) * SORT_BLOCK;
    v[lid] = data[base + lid];
    v[lid + SORT_LOCAL] = data[base + lid + SORT_LOCAL];
    for (uint stride = SORT_BLOCK / 2; stride > 0; stride /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint i = 2 * lid - (lid & (stride - 1));
        exchange(v, i, stride, (base & size) == 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    data[base + lid] = v[lid];
    data[base + lid + SORT_LOCAL] = v[lid + SORT_LOCAL];
}
