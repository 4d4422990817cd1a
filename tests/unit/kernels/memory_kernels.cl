/* The OpenCL C side of test_memory.c: loads, stores, conversions from and to half, shuffles and
 * atomics. */

#define WIDTHS(M, ...)                                                                             \
    M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)
#define ALL_TYPES(M)                                                                               \
    M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong) M(float) M(double)

/* Copies element by element offset, through each address space on the way: from global to a vector,
 * from there to private memory, back, and out through a generic pointer. */
#define COPY(n, T)                                                                                 \
    void copy_##T##n(__global const T *x, __global T *r, ulong count)                              \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++) {                                                    \
            T own[2 * n];                                                                          \
            vstore##n(vload##n(i, x), 1, own);                                                     \
            const T *anywhere = own;                                                               \
            vstore##n(vload##n(1, anywhere), i, (__generic T *)r);                                 \
        }                                                                                          \
    }                                                                                              \
    void copy_local_##T##n(__local T *x, __constant T *y, __local T *r, ulong count)               \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(vload##n(i, x) + vload##n(i, y), i, r);                                      \
    }
#define COPIES(T) WIDTHS(COPY, T)
ALL_TYPES(COPIES)

#define TO_HALF(T, suffix)                                                                         \
    void half_##T##suffix(__global const T *x, __global half *r, ulong count)                      \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            vstore_half##suffix(x[i], i, r);                                                       \
    }                                                                                              \
    WIDTHS(TO_HALVES, T, suffix)
/* Three elements in the aligned form take the place of four. */
#define TO_HALVES(n, T, suffix)                                                                    \
    void half_##T##suffix##n(__global const T *x, __global half *r, ulong count)                   \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore_half##n##suffix(vload##n(i, x), i, r);                                          \
    }                                                                                              \
    void aligned_half_##T##suffix##n(__global const T *x, __local half *r, ulong count)            \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstorea_half##n##suffix(vload##n(i, x), i, r);                                         \
    }
#define TO_HALF_TYPES(suffix) TO_HALF(float, suffix) TO_HALF(double, suffix)
TO_HALF_TYPES()
TO_HALF_TYPES(_rte)
TO_HALF_TYPES(_rtz)
TO_HALF_TYPES(_rtp)
TO_HALF_TYPES(_rtn)

void from_half(__global const half *x, __global float *r, ulong count)
{
    for (ulong i = 0; i < count; i++)
        r[i] = vload_half(i, x);
}
#define FROM_HALVES(n, unused)                                                                     \
    void from_half##n(__global const half *x, __global float *r, ulong count)                      \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(vload_half##n(i, x), i, r);                                                  \
    }                                                                                              \
    void from_aligned_half##n(__constant half *x, __global float *r, ulong count)                  \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(vloada_half##n(i, x), i, r);                                                 \
    }
WIDTHS(FROM_HALVES, )

/* shuffle to n of m elements. x holds 2 m elements, mask n. */
#define SHUFFLE(n, m, T, U)                                                                        \
    void shuffle_##T##_##m##_##n(__global const T *x, __global const U *mask, __global T *r)       \
    {                                                                                              \
        vstore##n(shuffle(vload##m(0, x), vload##n(0, mask)), 0, r);                               \
        vstore##n(shuffle2(vload##m(0, x), vload##m(1, x), vload##n(0, mask)), 1, r);              \
    }
#define SHUFFLES_FROM(m, T, U)                                                                     \
    SHUFFLE(2, m, T, U) SHUFFLE(4, m, T, U) SHUFFLE(8, m, T, U) SHUFFLE(16, m, T, U)
#define SHUFFLES(T, U)                                                                             \
    SHUFFLES_FROM(2, T, U) SHUFFLES_FROM(4, T, U) SHUFFLES_FROM(8, T, U) SHUFFLES_FROM(16, T, U)
SHUFFLES(char, uchar)
SHUFFLES(uchar, uchar)
SHUFFLES(short, ushort)
SHUFFLES(ushort, ushort)
SHUFFLES(int, uint)
SHUFFLES(uint, uint)
SHUFFLES(long, ulong)
SHUFFLES(ulong, ulong)
SHUFFLES(float, uint)
SHUFFLES(double, ulong)

/* Each operation once, on one object: r gets what it returned and what it left, in pairs. */
#define NOTE(call)                                                                                 \
    *object = x;                                                                                   \
    r[at++] = call;                                                                                \
    r[at++] = *object;
#define LEGACY(prefix, AS, T, name)                                                                \
    void name##_##T(AS T *object, T x, T y, __global T *r)                                         \
    {                                                                                              \
        int at = 0;                                                                                \
        NOTE(prefix##add(object, y))                                                               \
        NOTE(prefix##sub(object, y))                                                               \
        NOTE(prefix##xchg(object, y))                                                              \
        NOTE(prefix##inc(object))                                                                  \
        NOTE(prefix##dec(object))                                                                  \
        NOTE(prefix##min(object, y))                                                               \
        NOTE(prefix##max(object, y))                                                               \
        NOTE(prefix## and (object, y))                                                             \
        NOTE(prefix## or (object, y))                                                              \
        NOTE(prefix## xor (object, y))                                                             \
        NOTE(prefix##cmpxchg(object, x, y))                                                        \
        NOTE(prefix##cmpxchg(object, (T)(x + 1), y))                                               \
    }
LEGACY(atomic_, __global, int, atomic_global)
LEGACY(atomic_, __local, uint, atomic_local)
LEGACY(atom_, __global, uint, atom_global)
LEGACY(atom_, __local, long, atom_local)
LEGACY(atom_, __global, ulong, atom_global)

#define DEVICE memory_order_acq_rel, memory_scope_device
#define FETCH(operation)                                                                           \
    NOTE(atomic_##operation(a, y))                                                                 \
    NOTE(atomic_##operation##_explicit(a, y, memory_order_relaxed))                                \
    NOTE(atomic_##operation##_explicit(a, y, order, memory_scope_work_group))
#define C11(T, BITS)                                                                               \
    void c11_##T(__global T *object, T x, T y, __global T *r, int order)                           \
    {                                                                                              \
        int at = 0;                                                                                \
        volatile atomic_##T *a = (volatile atomic_##T *)object;                                    \
        T expected;                                                                                \
        FETCH(fetch_add)                                                                           \
        FETCH(fetch_sub)                                                                           \
        FETCH(fetch_min)                                                                           \
        FETCH(fetch_max)                                                                           \
        FETCH(exchange)                                                                            \
        NOTE((atomic_store(a, y), atomic_load(a)))                                                 \
        NOTE((atomic_store_explicit(a, y, memory_order_release),                                   \
              atomic_load_explicit(a, memory_order_acquire)))                                      \
        NOTE((atomic_store_explicit(a, y, memory_order_relaxed, memory_scope_device),              \
              atomic_load_explicit(a, memory_order_relaxed, memory_scope_all_svm_devices)))        \
        NOTE((atomic_init(a, y), y))                                                               \
        expected = x;                                                                              \
        NOTE((atomic_compare_exchange_strong(a, &expected, y)))                                    \
        expected = y;                                                                              \
        NOTE((atomic_compare_exchange_strong_explicit(a, &expected, y, memory_order_seq_cst,       \
                                                      memory_order_relaxed)                        \
                  ? -1                                                                             \
                  : expected))                                                                     \
        expected = x;                                                                              \
        NOTE((atomic_compare_exchange_strong_explicit(a, &expected, y, order,                      \
                                                      memory_order_relaxed, memory_scope_device))) \
        BITS                                                                                       \
    }
C11(int, FETCH(fetch_and) FETCH(fetch_or) FETCH(fetch_xor))
C11(uint, FETCH(fetch_and) FETCH(fetch_or) FETCH(fetch_xor))
C11(long, FETCH(fetch_and) FETCH(fetch_or) FETCH(fetch_xor))
C11(ulong, FETCH(fetch_and) FETCH(fetch_or) FETCH(fetch_xor))
C11(float, )
C11(double, )

int flags(__global int *object)
{
    volatile atomic_flag *flag = (volatile atomic_flag *)object;
    int bits = atomic_flag_test_and_set(flag);
    bits |= atomic_flag_test_and_set_explicit(flag, memory_order_acquire) << 1;
    atomic_flag_clear(flag);
    bits |= atomic_flag_test_and_set_explicit(flag, memory_order_acq_rel, memory_scope_device) << 2;
    atomic_flag_clear_explicit(flag, memory_order_release);
    return bits | *object << 3;
}

/* Called by several threads at once. */
void count_up(__global int *object, __global float *sum, ulong times)
{
    for (ulong i = 0; i < times; i++) {
        atomic_inc(object);
        atomic_fetch_add((volatile __global atomic_float *)sum, 1.0f);
    }
}
