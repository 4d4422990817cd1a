/* The backend's own kernels: copies and fills that the driver's entry points have no good form for. Compiled
 * to PTX at build time, for the oldest GPU that the backend takes, and loaded with the driver's JIT.
 *
 * Each thread moves 16 bytes at a time where both ends allow it, which is what a memory-bound kernel
 * needs to be at the memory's speed; what is left over goes byte by byte.
 */
#include "kernels/nvptx/unit_device.h"

#include "kernels/nvptx/unit.h"

typedef __global uchar *bytes_at;

#define THREAD ((ulong)__nvvm_read_ptx_sreg_tid_x())
#define THREADS ((ulong)__nvvm_read_ptx_sreg_ntid_x())
#define BLOCK ((ulong)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCKS ((ulong)__nvvm_read_ptx_sreg_nctaid_x())

static void copy(bytes_at dst, const __global uchar *src, ulong bytes, ulong first, ulong step)
{
    ulong done = 0;
    if ((((ulong)dst | (ulong)src) & 15) == 0) {
        for (ulong i = first; i < bytes / 16; i += step)
            ((__global uint4 *)dst)[i] = ((const __global uint4 *)src)[i];
        done = bytes & ~15UL;
    } else if ((((ulong)dst | (ulong)src) & 3) == 0) {
        for (ulong i = first; i < bytes / 4; i += step)
            ((__global uint *)dst)[i] = ((const __global uint *)src)[i];
        done = bytes & ~3UL;
    }
    for (ulong i = done + first; i < bytes; i += step)
        dst[i] = src[i];
}

/* struct sp_cuda_range: many small copies, a block for each. */
struct range {
    ulong dst, src, bytes;
};

__kernel void sp_gather(__global const struct range *ranges)
{
    __global const struct range *range = &ranges[BLOCK];
    copy((bytes_at)range->dst, (const __global uchar *)range->src, range->bytes, THREAD, THREADS);
}

/* A pattern of `pattern_bytes` (a power of two, at most 128) again and again; both aligned to it. */
struct pattern {
    uchar bytes[128];
};

__kernel void sp_fill(ulong dst, ulong bytes, ulong pattern_bytes, struct pattern pattern)
{
    ulong step = BLOCKS * THREADS;
    for (ulong i = BLOCK * THREADS + THREAD; i < bytes; i += step)
        ((bytes_at)dst)[i] = pattern.bytes[i & (pattern_bytes - 1)];
}

/* Patterns of 16 bytes and multiples of it, or smaller ones repeated to fill 16. */
struct wide_pattern {
    uint4 parts[8];
};

__kernel void sp_fill_wide(ulong dst, ulong count, ulong parts, struct wide_pattern pattern)
{
    ulong step = BLOCKS * THREADS;
    for (ulong i = BLOCK * THREADS + THREAD; i < count; i += step)
        ((__global uint4 *)dst)[i] = pattern.parts[i & (parts - 1)];
}

/* Rows of `width` bytes, `height` to a slice, `rows` in all: a block for each row and turn. */
__kernel void sp_copy_rows(ulong dst, ulong src, ulong width, ulong height, ulong rows,
                           ulong dst_row, ulong dst_slice, ulong src_row, ulong src_slice)
{
    for (ulong row = BLOCK; row < rows; row += BLOCKS) {
        ulong slice = row / height, line = row % height;
        copy((bytes_at)(dst + slice * dst_slice + line * dst_row),
             (const __global uchar *)(src + slice * src_slice + line * src_row), width, THREAD,
             THREADS);
    }
}

/* The self-test of the atomic unit (unit.c): all threads add to a word of 32 bits, different numbers,
 * and to one of 64 bits, one at a time, whose old values are summed up in `sum`, in device memory. */
__kernel void sp_unit_test(ulong unit, ulong narrow, ulong wide, ulong sum, uint rounds)
{
    ulong olds = 0;
    for (uint i = 0; i < rounds; i++) {
        unit_perform(unit, UNIT_ADD, narrow, THREAD & 3, 0);
        olds += unit_perform(unit, UNIT_ADD | UNIT_WIDE, wide, 1, 0);
    }
    device_add(sum, olds);
}
