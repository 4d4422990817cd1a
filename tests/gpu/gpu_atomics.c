/* Atomics of all devices: threads of the host and kernels on every device that has them, on the
 * same words at the same time. Counting with its rate, every operation in 32 and 64 bits, messages
 * both ways, a lock that host and devices share, sequential consistency, what a narrower scope
 * costs or saves, and progress of work-items that wait for each other.
 *
 *     gpu_atomics [all]     all: every device, GPUs or not, and few rounds
 *
 * Skipped (exit 77) where no device is to be tried. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../api/check.h"

enum { MAX_DEVICES = 16, HOST_THREADS = 2, LINES = 16, NUM_OPS = 13 };

/* A word on a line of its own: uint n of the narrow ones, ulong n of the wide ones. */
#define NARROW(n) ((n)*16)
#define WIDE(n) ((n)*8)

static const char source[] =
    "#define ALL memory_scope_all_svm_devices\n"
    "kernel void count(global atomic_uint *w, uint rounds) {\n"
    "  for (uint i = 0; i < rounds; i++)\n"
    "    atomic_fetch_add_explicit(w, 1u, memory_order_relaxed, ALL); }\n"
    "kernel void count_wide(global atomic_ulong *w, uint rounds) {\n"
    "  for (uint i = 0; i < rounds; i++)\n"
    "    atomic_fetch_add_explicit(w, 1ul, memory_order_relaxed, ALL); }\n"
    /* Nobody shares a word. */
    "kernel void count_apart(global atomic_uint *w, uint rounds) {\n"
    "  for (uint i = 0; i < rounds; i++)\n"
    "    atomic_fetch_add_explicit(w + get_global_id(0), 1u, memory_order_relaxed, ALL); }\n"
    /* Each takes what another left, so that nothing can be combined; the sum is kept. */
    "#define SWAP(name, scope)\\\n"
    "kernel void name(global atomic_uint *w, uint rounds, global uint *left) {\\\n"
    "  uint mine = (uint)get_global_id(0);\\\n"
    "  for (uint i = 0; i < rounds; i++)\\\n"
    "    mine = atomic_exchange_explicit(w, mine, memory_order_relaxed, scope);\\\n"
    "  left[get_global_id(0)] = mine; }\n"
    "SWAP(swap_device, memory_scope_device)\n"
    "SWAP(swap_all, ALL)\n"
    "#define OPS(name, T, S, LINE, SPREAD)\\\n"
    "kernel void name(global atomic_##T *w, global atomic_##S *s, uint first, global T *seen) {\\\n"
    "  uint u = first + (uint)get_global_id(0); T b = (T)1 << (u % (8 * sizeof(T)));\\\n"
    "  T v = (T)(u * 2654435761u) * SPREAD, e;\\\n"
    "  atomic_fetch_add_explicit(w, (T)(u & 7) * SPREAD, memory_order_relaxed, ALL);\\\n"
    "  atomic_fetch_sub_explicit(w + LINE, (T)(u & 3) * SPREAD, memory_order_seq_cst, ALL);\\\n"
    "  atomic_fetch_or_explicit(w + 2 * LINE, b, memory_order_acq_rel, ALL);\\\n"
    "  atomic_fetch_and_explicit(w + 3 * LINE, ~b, memory_order_release, ALL);\\\n"
    "  atomic_fetch_xor_explicit(w + 4 * LINE, b, memory_order_acquire, ALL);\\\n"
    "  atomic_fetch_min_explicit(s + 5 * LINE, (S)v, memory_order_relaxed, ALL);\\\n"
    "  atomic_fetch_max_explicit(s + 6 * LINE, (S)v, memory_order_seq_cst, ALL);\\\n"
    "  atomic_fetch_min_explicit(w + 7 * LINE, v, memory_order_relaxed, ALL);\\\n"
    "  atomic_fetch_max_explicit(w + 8 * LINE, v, memory_order_relaxed, ALL);\\\n"
    "  seen[2 * u] = atomic_exchange_explicit(w + 9 * LINE, (T)(u + 1) * SPREAD,\\\n"
    "    memory_order_acq_rel, ALL);\\\n"
    "  e = atomic_load_explicit(w + 10 * LINE, memory_order_relaxed, ALL);\\\n"
    "  while (!atomic_compare_exchange_strong_explicit(w + 10 * LINE, &e, e + SPREAD,\\\n"
    "    memory_order_acq_rel, memory_order_acquire, ALL));\\\n"
    "  e = 0;\\\n"
    "  while (!atomic_compare_exchange_weak_explicit(w + 11 * LINE, &e, e + SPREAD,\\\n"
    "    memory_order_seq_cst, memory_order_relaxed, ALL));\\\n"
    "  seen[2 * u + 1] = atomic_fetch_add_explicit(w + 12 * LINE, (T)SPREAD,\\\n"
    "    memory_order_relaxed, ALL); }\n"
    "OPS(ops_narrow, uint, int, 16, 1u)\n"
    "OPS(ops_wide, ulong, long, 8, 0x100000001ul)\n"
    /* Data, then a flag; back again with a read-modify-write. */
    "kernel void echo(global uint *data, global atomic_uint *flag, global uint *answer,\n"
    "                 global atomic_uint *answered, uint rounds) {\n"
    "  for (uint i = 1; i <= rounds; i++) {\n"
    "    while (atomic_load_explicit(flag, memory_order_acquire, ALL) != i);\n"
    "    for (uint k = 0; k < 8; k++) answer[16 * k] = data[16 * k] + 1;\n"
    "    if (i & 1) atomic_fetch_add_explicit(answered, 1u, memory_order_release, ALL);\n"
    "    else atomic_store_explicit(answered, i, memory_order_release, ALL); } }\n"
    /* Numbers behind a lock; work-items of one warp want it, too. */
    "kernel void lock_all(global atomic_uint *lock, global uint *numbers, uint rounds) {\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    uint e = 0;\n"
    "    while (!atomic_compare_exchange_strong_explicit(lock, &e, 1u, memory_order_acquire,\n"
    "      memory_order_relaxed, ALL)) e = 0;\n"
    "    for (uint k = 0; k < 4; k++) numbers[16 * k] = numbers[16 * k] + 1;\n"
    "    atomic_store_explicit(lock, 0u, memory_order_release, ALL); } }\n"
    "kernel void flag_all(global atomic_flag *lock, global uint *numbers, uint rounds) {\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire, ALL));\n"
    "    for (uint k = 0; k < 4; k++) numbers[16 * k] = numbers[16 * k] + 1;\n"
    "    atomic_flag_clear_explicit(lock, memory_order_release, ALL); } }\n"
    /* One of a warp waits for another of it. */
    "kernel void relay(global atomic_uint *w, uint rounds) {\n"
    "  uint l = (uint)get_local_id(0);\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    if (l == 0) { atomic_fetch_add_explicit(w, 1u, memory_order_release, ALL);\n"
    "      while (atomic_load_explicit(w + 16, memory_order_acquire, ALL) != i + 1); }\n"
    "    if (l == 31) { while (atomic_load_explicit(w, memory_order_acquire, ALL) != i + 1);\n"
    "      atomic_store_explicit(w + 16, i + 1, memory_order_release, ALL); } } }\n"
    /* A word of one's own: each access sees the one before it, whoever carries it out. */
    "kernel void alone(global uint *plain, uint rounds, global uint *wrong) {\n"
    "  global uint *p = plain + 2 * get_global_id(0);\n"
    "  volatile global atomic_uint *w = (volatile global atomic_uint *)p; uint bad = 0;\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    p[0] = 10 * i; bad += atomic_fetch_add_explicit(w, 1u, memory_order_relaxed, ALL) != 10 * "
    "i;\n"
    "    bad += p[0] != 10 * i + 1;\n"
    "    atomic_store_explicit(w, 10 * i + 2, memory_order_relaxed, ALL);\n"
    "    bad += atomic_exchange_explicit(w, 10 * i + 3, memory_order_relaxed, ALL) != 10 * i + 2;\n"
    "    bad += atomic_load_explicit(w, memory_order_relaxed, ALL) != 10 * i + 3;\n"
    "    uint e = 10 * i + 3;\n"
    "    bad += !atomic_compare_exchange_strong_explicit(w, &e, 10 * i + 4, memory_order_relaxed,\n"
    "      memory_order_relaxed, ALL); bad += p[0] != 10 * i + 4; }\n"
    "  if (bad) atomic_fetch_add_explicit((volatile global atomic_uint *)wrong, bad,\n"
    "    memory_order_relaxed, ALL); }\n"
    "kernel void count_at(ulong address) {\n"
    "  atomic_fetch_add_explicit((volatile global atomic_uint *)address, 1u, "
    "memory_order_relaxed,\n"
    "    ALL); }\n"
    /* Store mine, look at the other's: one of the two sees the other. */
    "kernel void dekker(global atomic_uint *mine, global atomic_uint *other,\n"
    "                   global atomic_uint *turn, global uint *seen, uint rounds, int exchanges) "
    "{\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    while (atomic_load_explicit(turn, memory_order_relaxed, ALL) < i);\n"
    "    if (exchanges) atomic_exchange_explicit(mine + i, 1u, memory_order_seq_cst, ALL);\n"
    "    else atomic_store_explicit(mine + i, 1u, memory_order_seq_cst, ALL);\n"
    "    seen[i] = atomic_load_explicit(other + i, memory_order_seq_cst, ALL);\n"
    "    atomic_store_explicit(turn + 16, i + 1, memory_order_release, ALL); } }\n";

static cl_context context;
static cl_program program;
static unsigned num_devices;
static bool is_small;
static struct {
    cl_device_id id;
    cl_command_queue queue;
    bool is_gpu;
    char name[64];
} devices[MAX_DEVICES];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static cl_kernel kernel_named(const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    REQUIRE_CL(error);
    return kernel;
}

static void run(unsigned device, cl_kernel kernel, size_t global, size_t local)
{
    CHECK_CL(clEnqueueNDRangeKernel(devices[device].queue, kernel, 1, NULL, &global, &local, 0,
                                    NULL, NULL),
             CL_SUCCESS);
    CHECK_CL(clFlush(devices[device].queue), CL_SUCCESS);
}

static void finish_all(void)
{
    for (unsigned d = 0; d < num_devices; d++)
        CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
}

static void set_pointer(cl_kernel kernel, cl_uint index, void *pointer)
{
    CHECK_CL(clSetKernelArgSVMPointer(kernel, index, pointer), CL_SUCCESS);
}

static void set_number(cl_kernel kernel, cl_uint index, cl_uint number)
{
    CHECK_CL(clSetKernelArg(kernel, index, sizeof number, &number), CL_SUCCESS);
}

/* Zeroed. */
static void *shared(size_t bytes)
{
    void *memory = clSVMAlloc(
        context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, bytes, 0);
    REQUIRE(memory);
    return memset(memory, 0, bytes);
}

/* --- Counting ------------------------------------------------------------------------------------
 */

struct counter {
    pthread_t thread;
    void *word;
    bool is_wide;
    atomic_bool *is_over;
    uint64_t added;
};

static void *count_on_host(void *argument)
{
    struct counter *counter = argument;
    while (!atomic_load_explicit(counter->is_over, memory_order_relaxed))
        for (int i = 0; i < 64; i++, counter->added++) {
            if (counter->is_wide)
                __atomic_fetch_add((uint64_t *)counter->word, 1, __ATOMIC_RELAXED);
            else
                __atomic_fetch_add((uint32_t *)counter->word, 1, __ATOMIC_RELAXED);
        }
    return NULL;
}

/* Devices `first` to `end` with `threads` of the host, in one word: exact? With its rate. */
static void count(unsigned first, unsigned end, unsigned threads, bool is_wide, const char *who)
{
    const size_t items = is_small ? 64 : 65536;
    const cl_uint rounds = is_small ? 200 : 64;
    cl_kernel kernel = kernel_named(is_wide ? "count_wide" : "count");
    uint64_t *word = shared(64);
    struct counter counters[HOST_THREADS];
    atomic_bool is_over = false;
    set_pointer(kernel, 0, word);
    set_number(kernel, 1, 1);
    for (unsigned d = first; d < end; d++) /* the first launch takes longer */
        run(d, kernel, 32, 32);
    finish_all();
    *word = 0;
    set_number(kernel, 1, rounds);
    for (unsigned i = 0; i < threads; i++) {
        counters[i] = (struct counter){.word = word, .is_wide = is_wide, .is_over = &is_over};
        REQUIRE(!pthread_create(&counters[i].thread, NULL, count_on_host, &counters[i]));
    }
    double start = now();
    for (unsigned d = first; d < end; d++)
        run(d, kernel, items, is_small ? 32 : 256);
    finish_all();
    double seconds = now() - start;
    uint64_t by_host = 0, by_devices = (uint64_t)(end - first) * items * rounds;
    is_over = true;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(counters[i].thread, NULL);
        by_host += counters[i].added;
    }
    uint64_t found = is_wide ? *word : (uint32_t)*word;
    uint64_t expected = by_host + by_devices;
    CHECK(found == (is_wide ? expected : (uint32_t)expected));
    printf("  %-44s %s: %llu of devices, %llu of the host; %.1f M/s of devices\n", who,
           found == (is_wide ? expected : (uint32_t)expected) ? "exact" : "WRONG",
           (unsigned long long)by_devices, (unsigned long long)by_host,
           (double)by_devices / seconds * 1e-6);
    fflush(stdout);
    clSVMFree(context, word);
    clReleaseKernel(kernel);
}

static void counting(void)
{
    char who[128];
    for (unsigned d = 0; d < num_devices; d++) {
        snprintf(who, sizeof who, "%.40s", devices[d].name);
        count(d, d + 1, 0, false, who);
        snprintf(who, sizeof who, "host and %.32s", devices[d].name);
        count(d, d + 1, HOST_THREADS, false, who);
    }
    count(0, num_devices, HOST_THREADS, false, "host and all devices");
    count(0, num_devices, HOST_THREADS, true, "host and all devices, 64 bits");
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return numbers[count / 2];
}

/* What one operation takes, and how many go through where none can be combined. */
static void single_operations(void)
{
    enum { RUNS = 7 };
    for (unsigned d = 0; d < num_devices; d++) {
        const cl_uint rounds = is_small ? 50 : 500;
        const size_t items = is_small ? 64 : 16384;
        cl_kernel one = kernel_named("count"), apart = kernel_named("count_apart");
        uint32_t *words = shared(items * sizeof *words);
        set_pointer(one, 0, words);
        set_number(one, 1, rounds);
        /* Medians: on GPUs one launch now and then took 20 ms more, perhaps while code for its
         * local size was loaded. */
        double each[RUNS], rates[RUNS];
        for (int i = 0; i < RUNS; i++) {
            double start = now();
            run(d, one, 1, 1);
            finish_all();
            each[i] = (now() - start) / rounds;
        }
        CHECK(words[0] == RUNS * rounds);
        words[0] = 0;
        set_pointer(apart, 0, words);
        set_number(apart, 1, 4);
        for (int i = 0; i < RUNS; i++) {
            double start = now();
            run(d, apart, items, is_small ? 32 : 256);
            finish_all();
            rates[i] = (double)items * 4 / (now() - start);
        }
        unsigned wrong = 0;
        for (size_t i = 0; i < items; i++)
            wrong += words[i] != 4 * RUNS;
        CHECK(wrong == 0);
        printf("  %-44s one alone %.2f us, on words of their own %.2f M/s\n", devices[d].name,
               median(each, RUNS) * 1e6, median(rates, RUNS) * 1e-6);
        clSVMFree(context, words);
        clReleaseKernel(one);
        clReleaseKernel(apart);
    }
}

/* Work-items of one device that hand their numbers on through one word, by its own atomics and by
 * those of all devices. */
static void scopes(void)
{
    static const char *const names[] = {"swap_device", "swap_all"};
    for (unsigned d = 0; d < num_devices; d++) {
        const cl_uint rounds = is_small ? 4 : 16;
        const size_t items = is_small ? 64 : 1024;
        double rates[2];
        uint32_t *words = shared((items + NARROW(1)) * sizeof *words);
        for (int n = 0; n < 2; n++) {
            cl_kernel kernel = kernel_named(names[n]);
            words[0] = (uint32_t)items;
            set_pointer(kernel, 0, words);
            set_number(kernel, 1, rounds);
            set_pointer(kernel, 2, words + NARROW(1));
            run(d, kernel, items, is_small ? 32 : 256); /* loads its code */
            finish_all();
            double start = now();
            words[0] = (uint32_t)items;
            run(d, kernel, items, is_small ? 32 : 256);
            finish_all();
            rates[n] = (double)items * rounds / (now() - start);
            uint64_t sum = words[0];
            for (size_t i = 0; i < items; i++)
                sum += words[NARROW(1) + i];
            CHECK(sum == (uint64_t)items * (items + 1) / 2);
            clReleaseKernel(kernel);
        }
        printf("  %-44s exchanges on one word: %.2f M/s of device scope, %.2f of all devices\n",
               devices[d].name, rates[0] * 1e-6, rates[1] * 1e-6);
        clSVMFree(context, words);
    }
}

/* --- Every operation -----------------------------------------------------------------------------
 */

#define WIDE_SPREAD 0x100000001ull

/* What work-item `u` of OPS does, on the host. */
#define DEFINE_OPS(name, T, S, LINE, SPREAD)                                                       \
    static void name##_on_host(T *w, uint32_t u, T *seen)                                          \
    {                                                                                              \
        T b = (T)1 << (u % (8 * sizeof(T))), v = (T)(u * 2654435761u) * (T)SPREAD, e;              \
        S s;                                                                                       \
        __atomic_fetch_add(w, (T)(u & 7) * (T)SPREAD, __ATOMIC_SEQ_CST);                           \
        __atomic_fetch_sub(w + LINE, (T)(u & 3) * (T)SPREAD, __ATOMIC_SEQ_CST);                    \
        __atomic_fetch_or(w + 2 * LINE, b, __ATOMIC_SEQ_CST);                                      \
        __atomic_fetch_and(w + 3 * LINE, ~b, __ATOMIC_SEQ_CST);                                    \
        __atomic_fetch_xor(w + 4 * LINE, b, __ATOMIC_SEQ_CST);                                     \
        s = (S)w[5 * LINE];                                                                        \
        while ((S)v < s && !__atomic_compare_exchange_n((S *)&w[5 * LINE], &s, (S)v, false, 5, 5)) \
            ;                                                                                      \
        s = (S)w[6 * LINE];                                                                        \
        while ((S)v > s && !__atomic_compare_exchange_n((S *)&w[6 * LINE], &s, (S)v, false, 5, 5)) \
            ;                                                                                      \
        e = w[7 * LINE];                                                                           \
        while (v < e && !__atomic_compare_exchange_n(&w[7 * LINE], &e, v, false, 5, 5))            \
            ;                                                                                      \
        e = w[8 * LINE];                                                                           \
        while (v > e && !__atomic_compare_exchange_n(&w[8 * LINE], &e, v, false, 5, 5))            \
            ;                                                                                      \
        seen[2 * u] = __atomic_exchange_n(w + 9 * LINE, (T)(u + 1) * (T)SPREAD, 5);                \
        e = 0;                                                                                     \
        while (!__atomic_compare_exchange_n(w + 10 * LINE, &e, e + (T)SPREAD, false, 5, 5))        \
            ;                                                                                      \
        __atomic_fetch_add(w + 11 * LINE, (T)SPREAD, __ATOMIC_SEQ_CST);                            \
        seen[2 * u + 1] = __atomic_fetch_add(w + 12 * LINE, (T)SPREAD, __ATOMIC_SEQ_CST);          \
    }                                                                                              \
                                                                                                   \
    struct name##_worker {                                                                         \
        pthread_t thread;                                                                          \
        T *words, *seen;                                                                           \
        uint32_t first, count;                                                                     \
    };                                                                                             \
                                                                                                   \
    static void *name##_thread(void *argument)                                                     \
    {                                                                                              \
        struct name##_worker *worker = argument;                                                   \
        for (uint32_t i = 0; i < worker->count; i++)                                               \
            name##_on_host(worker->words, worker->first + i, worker->seen);                        \
        return NULL;                                                                               \
    }                                                                                              \
                                                                                                   \
    /* Each of 0, SPREAD, ..., total * SPREAD once, but for one that is `left`. */                 \
    static bool name##_are_all(const T *seen, uint32_t offset, uint32_t total, T left)             \
    {                                                                                              \
        unsigned char *found = calloc(total + 1, 1);                                               \
        bool is_right = true;                                                                      \
        REQUIRE(found);                                                                            \
        for (uint32_t i = 0; i <= total; i++) {                                                    \
            T value = i < total ? seen[2 * i + offset] : left;                                     \
            T number = value / (T)SPREAD;                                                          \
            is_right =                                                                             \
                is_right && number <= total && number * (T)SPREAD == value && !found[number]++;    \
        }                                                                                          \
        free(found);                                                                               \
        return is_right;                                                                           \
    }                                                                                              \
                                                                                                   \
    static void name(void)                                                                         \
    {                                                                                              \
        const uint32_t items = is_small ? 256 : 8192;                                              \
        const uint32_t total = items * (num_devices + HOST_THREADS);                               \
        struct name##_worker workers[HOST_THREADS];                                                \
        cl_kernel kernel = kernel_named(#name);                                                    \
        T *words = shared(LINES * 64), *seen = shared(2 * total * sizeof(T)), expected[NUM_OPS];   \
        words[3 * LINE] = words[7 * LINE] = ~(T)0;                                                 \
        set_pointer(kernel, 0, words);                                                             \
        set_pointer(kernel, 1, words);                                                             \
        set_pointer(kernel, 3, seen);                                                              \
        for (uint32_t i = 0; i < HOST_THREADS; i++) {                                              \
            workers[i] = (struct name##_worker){                                                   \
                .words = words, .seen = seen, .first = i * items, .count = items};                 \
        }                                                                                          \
        for (unsigned d = 0; d < num_devices; d++) {                                               \
            set_number(kernel, 2, (HOST_THREADS + d) * items);                                     \
            run(d, kernel, items, 64);                                                             \
        }                                                                                          \
        for (uint32_t i = 0; i < HOST_THREADS; i++)                                                \
            REQUIRE(!pthread_create(&workers[i].thread, NULL, name##_thread, &workers[i]));        \
        for (uint32_t i = 0; i < HOST_THREADS; i++)                                                \
            pthread_join(workers[i].thread, NULL);                                                 \
        finish_all();                                                                              \
        memset(expected, 0, sizeof expected);                                                      \
        expected[3] = expected[7] = ~(T)0;                                                         \
        for (uint32_t u = 0; u < total; u++) {                                                     \
            T b = (T)1 << (u % (8 * sizeof(T))), v = (T)(u * 2654435761u) * (T)SPREAD;             \
            expected[0] += (T)(u & 7) * (T)SPREAD;                                                 \
            expected[1] -= (T)(u & 3) * (T)SPREAD;                                                 \
            expected[2] |= b;                                                                      \
            expected[3] &= ~b;                                                                     \
            expected[4] ^= b;                                                                      \
            expected[5] = (S)v < (S)expected[5] ? v : expected[5];                                 \
            expected[6] = (S)v > (S)expected[6] ? v : expected[6];                                 \
            expected[7] = v < expected[7] ? v : expected[7];                                       \
            expected[8] = v > expected[8] ? v : expected[8];                                       \
        }                                                                                          \
        expected[9] = words[9 * LINE];                                                             \
        expected[10] = expected[11] = expected[12] = (T)total * (T)SPREAD;                         \
        for (int i = 0; i < NUM_OPS; i++)                                                          \
            if (words[i * LINE] != expected[i]) {                                                  \
                check_failed(__FILE__, __LINE__, #name);                                           \
                fprintf(stderr, "    word %d is %llx, expected %llx\n", i,                         \
                        (unsigned long long)words[i * LINE], (unsigned long long)expected[i]);     \
            }                                                                                      \
        CHECK(name##_are_all(seen, 0, total, words[9 * LINE]));                                    \
        CHECK(name##_are_all(seen, 1, total, (T)total *(T)SPREAD));                                \
        clSVMFree(context, words);                                                                 \
        clSVMFree(context, seen);                                                                  \
        clReleaseKernel(kernel);                                                                   \
    }

DEFINE_OPS(ops_narrow, uint32_t, int32_t, 16, 1)
DEFINE_OPS(ops_wide, uint64_t, int64_t, 8, WIDE_SPREAD)

/* --- Order ---------------------------------------------------------------------------------------
 */

/* The host writes data, then a flag; the device answers the same way. */
static void messages(void)
{
    const cl_uint rounds = is_small ? 100 : 2000;
    for (unsigned d = 0; d < num_devices; d++) {
        cl_kernel kernel = kernel_named("echo");
        uint32_t *words = shared(20 * 64), wrong = 0;
        uint32_t *flag = words + NARROW(16), *answered = words + NARROW(17);
        for (cl_uint i = 0; i < 5; i++)
            if (i < 4)
                set_pointer(kernel, i, words + NARROW(i == 0 ? 0 : i == 1 ? 16 : i == 2 ? 8 : 17));
            else
                set_number(kernel, i, rounds);
        run(d, kernel, 1, 1);
        double start = now();
        for (uint32_t i = 1; i <= rounds; i++) {
            for (uint32_t k = 0; k < 8; k++)
                words[NARROW(k)] = 100 * i + k;
            __atomic_store_n(flag, i, __ATOMIC_RELEASE);
            while (__atomic_load_n(answered, __ATOMIC_ACQUIRE) != i)
                ;
            for (uint32_t k = 0; k < 8; k++)
                wrong += words[NARROW(8 + k)] != 100 * i + k + 1;
        }
        double seconds = now() - start;
        CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
        CHECK(wrong == 0);
        printf("  %-44s there and back %.2f us\n", devices[d].name, seconds / rounds * 1e6);
        clSVMFree(context, words);
        clReleaseKernel(kernel);
    }
}

struct locker {
    pthread_t thread;
    uint32_t *lock, *numbers, rounds;
};

static void *lock_on_host(void *argument)
{
    struct locker *locker = argument;
    for (uint32_t i = 0; i < locker->rounds; i++) {
        uint32_t e = 0;
        while (!__atomic_compare_exchange_n(locker->lock, &e, 1, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
            e = 0;
        for (uint32_t k = 0; k < 4; k++)
            locker->numbers[NARROW(k)]++;
        __atomic_store_n(locker->lock, 0, __ATOMIC_RELEASE);
        sched_yield(); /* the bus is slower than a cache */
    }
    return NULL;
}

static void locks(void)
{
    static const char *const names[] = {"lock_all", "flag_all"};
    const cl_uint rounds = 10;
    for (int n = 0; n < 2; n++) {
        cl_kernel kernel = kernel_named(names[n]);
        uint32_t *words = shared(16 * 64);
        struct locker locker = {.lock = words, .numbers = words + NARROW(1), .rounds = 2000};
        set_pointer(kernel, 0, words);
        set_pointer(kernel, 1, words + NARROW(1));
        set_number(kernel, 2, rounds);
        uint32_t expected = locker.rounds;
        for (unsigned d = 0; d < num_devices; d++) {
            /* Elsewhere work-items of a group do not run independently. */
            size_t items = devices[d].is_gpu ? 64 : 1;
            expected += (uint32_t)items * rounds;
            run(d, kernel, items, items);
        }
        double start = now();
        REQUIRE(!pthread_create(&locker.thread, NULL, lock_on_host, &locker));
        pthread_join(locker.thread, NULL);
        finish_all();
        for (uint32_t k = 0; k < 4; k++)
            CHECK(words[NARROW(1 + k)] == expected);
        printf("  %-44s %u turns in %.1f ms\n", names[n], expected, (now() - start) * 1e3);
        clSVMFree(context, words);
        clReleaseKernel(kernel);
    }
}

static void progress(void)
{
    const cl_uint rounds = is_small ? 20 : 500;
    cl_kernel kernel = kernel_named("relay");
    for (unsigned d = 0; d < num_devices; d++) {
        if (!devices[d].is_gpu) /* there work-items of a group run one after the other */
            continue;
        uint32_t *words = shared(2 * 64);
        set_pointer(kernel, 0, words);
        set_number(kernel, 1, rounds);
        run(d, kernel, 32, 32);
        CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
        CHECK(words[0] == rounds && words[16] == rounds);
        clSVMFree(context, words);
    }
    clReleaseKernel(kernel);
}

static void sequential_consistency(void)
{
    const cl_uint rounds = is_small ? 200 : 5000;
    for (unsigned d = 0; d < num_devices; d++)
        for (cl_int exchanges = 0; exchanges < 2; exchanges++) {
            cl_kernel kernel = kernel_named("dekker");
            uint32_t *device = shared(rounds * 4), *host = shared(rounds * 4);
            uint32_t *seen = shared(rounds * 4), *turn = shared(2 * 64), both_blind = 0, both = 0;
            uint32_t *found = calloc(rounds, sizeof *found);
            REQUIRE(found);
            set_pointer(kernel, 0, device);
            set_pointer(kernel, 1, host);
            set_pointer(kernel, 2, turn);
            set_pointer(kernel, 3, seen);
            set_number(kernel, 4, rounds);
            set_number(kernel, 5, (cl_uint)exchanges);
            run(d, kernel, 1, 1);
            for (uint32_t i = 0; i < rounds; i++) {
                __atomic_store_n(turn, i, __ATOMIC_RELEASE);
                for (uint32_t wait = 0; wait < i % 64 * 256; wait++) /* another meeting each time */
                    __asm__ volatile("" ::: "memory");
                __atomic_store_n(&host[i], 1, __ATOMIC_SEQ_CST);
                found[i] = __atomic_load_n(&device[i], __ATOMIC_SEQ_CST);
                while (__atomic_load_n(&turn[16], __ATOMIC_ACQUIRE) < i + 1)
                    ;
            }
            CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
            for (uint32_t i = 0; i < rounds; i++) {
                both_blind += !found[i] && !seen[i];
                both += found[i] && seen[i];
            }
            CHECK(both_blind == 0);
            printf("  %-44s %s: %u of %u saw each other\n", devices[d].name,
                   exchanges ? "exchange" : "store", both, rounds);
            clSVMFree(context, device);
            clSVMFree(context, host);
            clSVMFree(context, seen);
            clSVMFree(context, turn);
            free(found);
            clReleaseKernel(kernel);
        }
}

static void coherence(void)
{
    const size_t items = 2048;
    for (unsigned d = 0; d < num_devices; d++) {
        cl_kernel kernel = kernel_named("alone");
        uint32_t *words = shared(items * 8), *wrong = shared(4);
        set_pointer(kernel, 0, words);
        set_number(kernel, 1, is_small ? 10 : 100);
        set_pointer(kernel, 2, wrong);
        run(d, kernel, items, 64);
        CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
        CHECK(*wrong == 0);
        clSVMFree(context, words);
        clSVMFree(context, wrong);
        clReleaseKernel(kernel);
    }
}

/* --- What it costs, and what goes wrong ----------------------------------------------------------
 */

static double processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A kernel that may ask for something, and does not, for a while; and none. */
static void quiet(void)
{
    const struct timespec while_running = {.tv_nsec = 300000000}, then = {.tv_nsec = 100000000};
    for (unsigned d = 0; d < num_devices; d++) {
        if (!devices[d].is_gpu) /* others spend the application's processors on their kernels */
            continue;
        cl_kernel kernel = kernel_named("echo");
        uint32_t *words = shared(20 * 64);
        set_pointer(kernel, 0, words);
        set_pointer(kernel, 1, words + NARROW(16));
        set_pointer(kernel, 2, words + NARROW(8));
        set_pointer(kernel, 3, words + NARROW(17));
        set_number(kernel, 4, 1);
        run(d, kernel, 1, 1);
        double start = now(), used = processor_time();
        nanosleep(&while_running, NULL);
        double share = (processor_time() - used) / (now() - start);
        __atomic_store_n(&words[NARROW(16)], 1, __ATOMIC_RELEASE);
        CHECK_CL(clFinish(devices[d].queue), CL_SUCCESS);
        nanosleep(&then, NULL); /* until the last spin is over */
        start = now();
        used = processor_time();
        nanosleep(&then, NULL);
        double after = (processor_time() - used) / (now() - start);
        CHECK(share < 0.2 && after < 0.02);
        printf("  %-44s %.1f%% of a processor while nothing is asked for, %.1f%% afterwards\n",
               devices[d].name, share * 100, after * 100);
        clSVMFree(context, words);
        clReleaseKernel(kernel);
    }
}

/* An address where a region was: the device's process ends, and the next one works. */
static void freed_regions(void)
{
    enum { LARGE = 16 << 20 };
    for (unsigned d = 0; d < num_devices; d++) {
        if (!devices[d].is_gpu)
            continue;
        cl_kernel kernel = kernel_named("count_at");
        uint32_t *other = shared(4), *region = shared(LARGE);
        cl_int status = 0;
        cl_event event;
        for (int i = 0; i < 3; i++) { /* there; gone; another one, there */
            uint32_t *word = i == 2 ? other : region;
            cl_ulong address = (uintptr_t)word;
            const size_t one = 1;
            CHECK_CL(clSetKernelArg(kernel, 0, sizeof address, &address), CL_SUCCESS);
            CHECK_CL(clEnqueueNDRangeKernel(devices[d].queue, kernel, 1, NULL, &one, &one, 0, NULL,
                                            &event),
                     CL_SUCCESS);
            cl_int waited = clWaitForEvents(1, &event);
            CHECK_CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                    &status, NULL),
                     CL_SUCCESS);
            clReleaseEvent(event);
            CHECK(i == 1 ? waited && status < 0 : !waited && !status && *word == 1);
            if (i == 0)
                clSVMFree(context, region);
        }
        clSVMFree(context, other);
        clReleaseKernel(kernel);
    }
}

static void CL_CALLBACK told(const char *text, const void *info, size_t bytes, void *data)
{
    (void)info, (void)bytes, (void)data;
    printf("  told: %s\n", text);
}

/* --- Devices -------------------------------------------------------------------------------------
 */

static void choose_devices(bool has_all)
{
    cl_device_id found[MAX_DEVICES];
    cl_uint count = 0;
    clGetDeviceIDs(check_platform(), has_all ? CL_DEVICE_TYPE_ALL : CL_DEVICE_TYPE_GPU, MAX_DEVICES,
                   found, &count);
    for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
        cl_device_svm_capabilities svm = 0;
        cl_device_type type = 0;
        cl_uint number = num_devices;
        CHECK_CL(clGetDeviceInfo(found[i], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL),
                 CL_SUCCESS);
        CHECK_CL(clGetDeviceInfo(found[i], CL_DEVICE_TYPE, sizeof type, &type, NULL), CL_SUCCESS);
        CHECK_CL(clGetDeviceInfo(found[i], CL_DEVICE_NAME, sizeof devices[number].name,
                                 devices[number].name, NULL),
                 CL_SUCCESS);
        if (!(svm & CL_DEVICE_SVM_ATOMICS)) {
            printf("%s has no atomics of all devices\n", devices[number].name);
            continue;
        }
        devices[number].id = found[i];
        devices[number].is_gpu = type & CL_DEVICE_TYPE_GPU;
        num_devices++;
    }
}

static void set_up(void)
{
    cl_device_id ids[MAX_DEVICES];
    cl_int error;
    for (unsigned d = 0; d < num_devices; d++)
        ids[d] = devices[d].id;
    context = clCreateContext(NULL, num_devices, ids, told, NULL, &error);
    REQUIRE_CL(error);
    for (unsigned d = 0; d < num_devices; d++) {
        devices[d].queue = clCreateCommandQueueWithProperties(context, ids[d], NULL, &error);
        REQUIRE_CL(error);
    }
    const char *text = source;
    program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    REQUIRE_CL(error);
    error = clBuildProgram(program, 0, NULL, "-cl-std=CL3.0", NULL, NULL);
    if (error) {
        char log[8192] = "";
        clGetProgramBuildInfo(program, ids[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "build: %d\n%s\n", error, log);
    }
    REQUIRE_CL(error);
}

int main(int argc, char **argv)
{
    is_small = argc > 1 && !strcmp(argv[1], "all");
    choose_devices(is_small);
    if (!num_devices) {
        puts("skipped: there is no GPU with atomics of all devices");
        return 77;
    }
    set_up();
    const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"counting", counting},
                 {"single operations", single_operations},
                 {"scopes", scopes},
                 {"all operations, 32 bits", ops_narrow},
                 {"all operations, 64 bits", ops_wide},
                 {"messages", messages},
                 {"locks", locks},
                 {"progress", progress},
                 {"sequential consistency", sequential_consistency},
                 {"coherence of one word", coherence},
                 {"quiet", quiet},
                 {"freed regions", freed_regions}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int before = check_failures;
        double start = now();
        parts[i].run();
        printf("%-30s %s (%.2f s)\n", parts[i].name, check_failures == before ? "right" : "WRONG",
               now() - start);
        fflush(stdout);
    }
    clReleaseProgram(program);
    for (unsigned d = 0; d < num_devices; d++)
        clReleaseCommandQueue(devices[d].queue);
    clReleaseContext(context);
    return check_result();
}
