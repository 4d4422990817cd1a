/* The instructions behind unit.h (PTX ISA: activemask, match, shfl, vote, bar.warp, fence,
 * nanosleep; "Memory Consistency Model"). For sm_70 and later.
 *
 * Each is one piece of assembly that memory accesses do not move across, and convergent, which all
 * assembly of OpenCL C is: work-items that came together stay so.
 */
#ifndef SP_KERNELS_NVPTX_UNIT_DEVICE_H
#define SP_KERNELS_NVPTX_UNIT_DEVICE_H

static uint warp_active(void)
{
    uint mask;
    __asm__ volatile("activemask.b32 %0;" : "=r"(mask) : : "memory");
    return mask;
}

static uint warp_lane(void)
{
    uint lane;
    __asm__ volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* Those of `warp` that have the same key. */
static uint warp_match(uint warp, ulong key)
{
    uint mask;
    __asm__ volatile("match.any.sync.b64 %0, %1, %2;"
                     : "=r"(mask)
                     : "l"(key), "r"(warp)
                     : "memory");
    return mask;
}

static uint warp_vote(uint group, bool is_in)
{
    uint mask, in = is_in;
    __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
                     : "=r"(mask)
                     : "r"(in), "r"(group)
                     : "memory");
    return mask;
}

/* The value that work-item `lane` of the group has. */
static ulong warp_take(uint group, ulong value, uint lane)
{
    ulong taken;
    __asm__ volatile("{ .reg .b32 l, h; mov.b64 {l, h}, %1;\n"
                     "shfl.sync.idx.b32 l, l, %2, 31, %3;\n"
                     "shfl.sync.idx.b32 h, h, %2, 31, %3;\n"
                     "mov.b64 %0, {l, h}; }"
                     : "=l"(taken)
                     : "l"(value), "r"(lane), "r"(group)
                     : "memory");
    return taken;
}

static void warp_sync(uint group)
{
    __asm__ volatile("bar.warp.sync %0;" : : "r"(group) : "memory");
}

static void warp_pause(uint nanoseconds)
{
    __asm__ volatile("nanosleep.u32 %0;" : : "r"(nanoseconds) : "memory");
}

static void system_fence(void)
{
    __asm__ volatile("fence.acq_rel.sys;" : : : "memory");
}

/* In the GPU's memory. A turn is acquired from who had the slot before, and released. */
static ulong device_add(ulong address, ulong value)
{
    ulong old;
    __asm__ volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                     : "=l"(old)
                     : "l"(address), "l"(value)
                     : "memory");
    return old;
}

static uint device_load(ulong address)
{
    uint value;
    __asm__ volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

static void device_store(ulong address, uint value)
{
    __asm__ volatile("st.release.gpu.global.b32 [%0], %1;" : : "l"(address), "r"(value) : "memory");
}

static ulong device_constant(ulong address)
{
    return *(const __global ulong *)address;
}

/* In the host's memory; 16 bytes together only for the sake of the bus: each word tells whose it
 * is. */
static void host_store_pair(ulong address, ulong first, ulong second)
{
    __asm__ volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};"
                     :
                     : "l"(address), "l"(first), "l"(second)
                     : "memory");
}

static void host_load_pair(ulong address, ulong *first, ulong *second)
{
    ulong a, b;
    __asm__ volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(a), "=l"(b)
                     : "l"(address)
                     : "memory");
    *first = a;
    *second = b;
}

#endif
