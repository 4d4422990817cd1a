/* The OpenCL C side of test_group.c: work-item functions, collectives, async copies, fences. */

/* For dimensions 0 to 4: nine values each. */
void work_item(__global ulong *r)
{
    for (uint d = 0; d < 5; d++) {
        r[9 * d] = get_global_id(d);
        r[9 * d + 1] = get_global_size(d);
        r[9 * d + 2] = get_global_offset(d);
        r[9 * d + 3] = get_local_id(d);
        r[9 * d + 4] = get_local_size(d);
        r[9 * d + 5] = get_enqueued_local_size(d);
        r[9 * d + 6] = get_group_id(d);
        r[9 * d + 7] = get_num_groups(d);
        r[9 * d + 8] = d;
    }
    r[45] = get_work_dim();
    r[46] = get_global_linear_id();
    r[47] = get_local_linear_id();
}

#define COLLECTIVES(T)                                                                             \
    void collectives_##T(__global const T *x, __global T *r)                                       \
    {                                                                                              \
        ulong id = get_local_linear_id();                                                          \
        r += 13 * id;                                                                              \
        T v = x[id];                                                                               \
        r[0] = work_group_reduce_add(v);                                                           \
        r[1] = work_group_reduce_min(v);                                                           \
        r[2] = work_group_reduce_max(v);                                                           \
        r[3] = work_group_scan_inclusive_add(v);                                                   \
        r[4] = work_group_scan_inclusive_min(v);                                                   \
        r[5] = work_group_scan_inclusive_max(v);                                                   \
        r[6] = work_group_scan_exclusive_add(v);                                                   \
        r[7] = work_group_scan_exclusive_min(v);                                                   \
        r[8] = work_group_scan_exclusive_max(v);                                                   \
        r[9] = work_group_broadcast(v, 2, 1, 0);                                                   \
        r[10] = work_group_all((int)(v > 3));                                                      \
        r[11] = work_group_any((int)(v > 3));                                                      \
        r[12] = work_group_all((int)(id < 1000)) + work_group_any((int)(id > 1000));               \
    }
COLLECTIVES(int)
COLLECTIVES(uint)
COLLECTIVES(long)
COLLECTIVES(ulong)
COLLECTIVES(float)
COLLECTIVES(double)

/* In and out of local memory; the last part in strides. */
void async(__global const int *x, __global int *r, __local int *own)
{
    event_t event = async_work_group_copy(own, x, 100, 0);
    event = async_work_group_strided_copy(own + 100, x, 20, 5, event);
    wait_group_events(1, &event);
    int got = own[(get_local_linear_id() + 1) % 100]; /* what another work-item may have copied */
    barrier(CLK_LOCAL_MEM_FENCE);
    own[120 + get_local_linear_id()] = got;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t events[2];
    events[0] = async_work_group_copy(r, (const __local int *)own, 120 + get_local_size(0), 0);
    events[1] = async_work_group_strided_copy(r + 200, (const __local int *)own, 10, 3, 0);
    wait_group_events(2, events);
}

void async3(__global const float3 *x, __global float3 *r, __local float3 *own)
{
    event_t event = async_work_group_copy(own, x, 10, 0);
    wait_group_events(1, &event);
    event = async_work_group_copy(r, (const __local float3 *)own, 10, 0);
    wait_group_events(1, &event);
}

/* Everything that orders memory runs; what it orders cannot be seen from here. */
void fences(void)
{
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    read_mem_fence(CLK_LOCAL_MEM_FENCE);
    write_mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst,
                           memory_scope_all_svm_devices);
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_relaxed, memory_scope_work_group);
    work_group_barrier(CLK_GLOBAL_MEM_FENCE);
    work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_device);
    prefetch((const __global int *)0, 4);
}

/* 1 global, 2 local, 4 private by to_*, then get_fence in the next bits. */
int address_space(void *p)
{
    return (to_global(p) == p) | (to_local(p) == p) << 1 | (to_private(p) == p) << 2 |
           (int)get_fence(p) << 4;
}
