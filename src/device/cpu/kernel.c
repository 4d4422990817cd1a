/* Kernels on the CPU: loading samepage-cc's shared objects and running work-groups.
 *
 * A loaded object is private to one program: it comes from a memory file of its own, so that the
 * dynamic linker never takes two programs for one, and nothing on disk can change under running
 * code. A kernel remembers how long its work-groups take; a work that is too small to be worth a
 * second thread is run by one.
 *
 * No lock: what is shared is read-only but for that one figure, which is atomic.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "util/alloc.h"
#include "util/thread.h"
#include "util/time.h"

/* A work shorter than this is not worth waking a thread for: a wake-up takes 5 us (measured). */
#define HEAVY_MIN_NS 20000u

/* A chunk is at least this long, so that taking it (50 ns) costs little. */
#define CHUNK_MIN_NS 5000u

/* And there are at least about so many for each thread, smaller ones towards the end. */
#define CHUNKS_PER_THREAD 8u

/* Runs expected to be shorter are measured once in so many times: 50 ns for the clock are 1% of it.
 */
#define SHORT_RUN_NS 5000u
#define SHORT_RUNS_PER_MEASURE 8u

/* Local sizes that are chosen here: enough work-items for whole vectors and for little overhead
 * per group; more only makes private memory larger. */
#define SUGGESTED_ITEMS 256u
#define SUGGESTED_MIN_ITEMS 64u

struct sp_code_kernel {
    sp_cpu_kernel_fn *run;
    const char *name;
    uint32_t args_bytes;
    uint64_t local_static_bytes;
    uint64_t context_fixed_bytes, context_item_bytes;
    uint32_t num_locals;         /* __local pointer arguments */
    uint32_t *local_offsets;     /* where they stand in the argument block */
    _Atomic uint64_t group_ns16; /* mean time of one work-group in 1/16 ns; 0: never run */
};

struct sp_code {
    void *handle; /* of dlopen */
    void (*init_globals)(unsigned char *globals);
    uint32_t num_kernels;
    struct sp_code_kernel *kernels;
};

/* What a work-group's code gets, and what our print function gets back from it. */
struct launch {
    struct sp_cpu_launch shared; /* first */
    bool has_printed;
};

/* dlopen takes two paths for one object when the strings are equal, and the numbers of descriptors
 * come again: so each load spells its path differently, with the bits of a counter as "/" or "/./".
 * The process is named by its number, not as self: a debugger opens the same path. */
static void unique_path(char *path, size_t size, int descriptor)
{
    static _Atomic uint32_t counter;
    uint32_t number = atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
    size_t length = (size_t)snprintf(path, size, "/proc/%d", (int)getpid());
    for (; number; number >>= 1)
        length += (size_t)snprintf(path + length, size - length, number & 1 ? "/./" : "/");
    snprintf(path + length, size - length, "/fd/%d", descriptor);
}

static int open_image(const void *image, size_t bytes, char **log, void **handle)
{
    char path[160];
    int result = -ENOMEM;
    if (sp_alloc_may_fail())
        return -ENOMEM;
    int descriptor = memfd_create("samepage-code", MFD_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    for (size_t written = 0; written < bytes;) {
        ssize_t n = write(descriptor, (const char *)image + written, bytes - written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            goto out;
        written += (size_t)n;
    }
    unique_path(path, sizeof path, descriptor);
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    result = *handle ? 0 : -ENOEXEC;
    if (result)
        *log = sp_strdup(dlerror());
out:
    close(descriptor);
    return result;
}

static int set_up_kernel(struct sp_code *code, struct sp_code_kernel *kernel,
                         const struct sp_kernel_info *info, const struct sp_kernel_code *plan)
{
    char *symbol = sp_format("%s%s", SP_CPU_KERNEL_SYMBOL_PREFIX, info->name);
    if (!symbol)
        return -ENOMEM;
    kernel->run = (sp_cpu_kernel_fn *)dlsym(code->handle, symbol);
    free(symbol);
    if (!kernel->run)
        return -ENOEXEC;
    kernel->name = info->name;
    kernel->args_bytes = info->args_bytes;
    kernel->local_static_bytes = info->local_static_bytes;
    kernel->context_fixed_bytes = plan->context_fixed_bytes;
    kernel->context_item_bytes = plan->context_item_bytes;
    kernel->local_offsets = sp_alloc_array(info->num_args, sizeof *kernel->local_offsets);
    if (!kernel->local_offsets)
        return -ENOMEM;
    for (uint32_t i = 0; i < info->num_args; i++)
        if (info->args[i].kind == SP_ARG_LOCAL)
            kernel->local_offsets[kernel->num_locals++] = info->args[i].offset;
    return 0;
}

int sp_cpu_load(struct sp_device *device, const void *image, size_t bytes,
                const struct sp_program_info *info, const struct sp_kernel_code *codes,
                uint32_t num_codes, char **log, struct sp_code **code)
{
    (void)device;
    int error = -ENOMEM;
    *log = NULL;
    struct sp_code *loaded = sp_alloc(sizeof *loaded);
    if (!loaded)
        return -ENOMEM;
    loaded->kernels = sp_alloc_array(num_codes, sizeof *loaded->kernels);
    if (!loaded->kernels)
        goto err;
    error = open_image(image, bytes, log, &loaded->handle);
    if (error)
        goto err;
    for (uint32_t i = 0; i < num_codes; i++) {
        const struct sp_kernel_info *kernel = sp_program_info_find(info, codes[i].name);
        loaded->num_kernels = i + 1;
        error = kernel ? set_up_kernel(loaded, &loaded->kernels[i], kernel, &codes[i]) : -ENOEXEC;
        if (error)
            goto err;
    }
    loaded->init_globals =
        (void (*)(unsigned char *))dlsym(loaded->handle, SP_CPU_GLOBALS_INIT_SYMBOL);
    *code = loaded;
    return 0;

err:
    sp_cpu_unload(loaded);
    return error;
}

void sp_cpu_unload(struct sp_code *code)
{
    if (!code)
        return;
    for (uint32_t i = 0; i < code->num_kernels; i++)
        free(code->kernels[i].local_offsets);
    free(code->kernels);
    if (code->handle)
        dlclose(code->handle);
    free(code);
}

struct sp_code_kernel *sp_cpu_find(struct sp_code *code, const char *name)
{
    for (uint32_t i = 0; i < code->num_kernels; i++)
        if (!strcmp(code->kernels[i].name, name))
            return &code->kernels[i];
    return NULL;
}

void sp_cpu_init_globals(struct sp_code *code, unsigned char *globals)
{
    if (code->init_globals)
        code->init_globals(globals);
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static uint64_t num_groups(const struct sp_ndrange *range, unsigned d)
{
    return (range->global_size[d] - 1) / range->local_size[d] + 1;
}

bool sp_cpu_kernel_plan(struct sp_work *work, unsigned threads)
{
    const struct sp_ndrange *range = &work->kernel.range;
    uint64_t groups = num_groups(range, 0) * num_groups(range, 1) * num_groups(range, 2);
    uint64_t group_ns16 =
        atomic_load_explicit(&work->kernel.kernel->group_ns16, memory_order_relaxed);

    work->driver.parts = groups;
    /* A kernel that never ran is taken to be worth sharing. */
    bool is_known = group_ns16 > 0;
    if (threads == 1 || groups == 1 ||
        (is_known && groups < HEAVY_MIN_NS * UINT64_C(16) / group_ns16)) {
        work->driver.chunk = work->driver.least = groups;
        return false;
    }
    uint64_t chunk = groups / (threads * CHUNKS_PER_THREAD);
    chunk = chunk ? chunk : 1;
    uint64_t least = is_known ? CHUNK_MIN_NS * UINT64_C(16) / group_ns16 : chunk;
    least = least ? least : 1;
    work->driver.chunk = chunk > least ? chunk : least;
    work->driver.least = least;
    return true;
}

static int32_t print_from(const struct sp_cpu_launch *launch, const char *format,
                          const void *record, uint64_t record_bytes)
{
    ((struct launch *)launch)->has_printed = true;
    return sp_cpu_print(launch, format, record, record_bytes);
}

/* The bytes of local memory: the kernel's own variables, then the __local arguments, whose places
 * are written into the block `placed` (may be NULL) in place of their sizes. */
static uint64_t place_locals(const struct sp_code_kernel *kernel, const unsigned char *args,
                             unsigned char *placed)
{
    uint64_t end = align_up(kernel->local_static_bytes, SP_CPU_SCRATCH_ALIGN);
    for (uint32_t i = 0; i < kernel->num_locals; i++) {
        uint64_t bytes;
        memcpy(&bytes, args + kernel->local_offsets[i], sizeof bytes);
        if (placed)
            memcpy(placed + kernel->local_offsets[i], &end, sizeof end);
        end = align_up(end + bytes, SP_CPU_SCRATCH_ALIGN);
    }
    return end;
}

/* Folds the time of `groups` work-groups into the kernel's mean: an eighth of the new to seven of
 * the old. */
static void note_time(struct sp_code_kernel *kernel, uint64_t ns, uint64_t groups)
{
    uint64_t ns16 = ns * 16 / groups;
    uint64_t mean = atomic_load_explicit(&kernel->group_ns16, memory_order_relaxed);
    mean = mean ? (mean * 7 + ns16) / 8 : ns16;
    atomic_store_explicit(&kernel->group_ns16, mean ? mean : 1, memory_order_relaxed);
}

/* Reading the clock twice costs 50 ns, a tenth of the smallest launch: of short runs only some are
 * measured. */
static bool is_worth_measuring(struct sp_code_kernel *kernel, uint64_t groups)
{
    static SP_THREAD_LOCAL unsigned runs;
    uint64_t mean = atomic_load_explicit(&kernel->group_ns16, memory_order_relaxed);
    return !mean || mean * groups / 16 > SHORT_RUN_NS || runs++ % SHORT_RUNS_PER_MEASURE == 0;
}

int sp_cpu_kernel_run(struct sp_work *work, uint64_t first, uint64_t end)
{
    struct sp_code_kernel *kernel = work->kernel.kernel;
    const struct sp_ndrange *range = &work->kernel.range;
    struct launch launch = {
        .shared = {.work_dim = range->work_dim,
                   .globals = work->kernel.globals,
                   .print = print_from},
    };
    uint64_t items = 1;
    for (unsigned d = 0; d < 3; d++) {
        launch.shared.global_offset[d] = range->global_offset[d];
        launch.shared.global_size[d] = range->global_size[d];
        launch.shared.local_size[d] = range->local_size[d];
        launch.shared.num_groups[d] = num_groups(range, d);
        items *= range->local_size[d];
    }

    /* Every thread has local memory of its own, so with __local arguments also a block of its own.
     */
    uint64_t block = kernel->num_locals ? align_up(kernel->args_bytes, SP_CPU_SCRATCH_ALIGN) : 0;
    uint64_t context = kernel->context_fixed_bytes +
                       kernel->context_item_bytes * align_up(items, SP_CPU_CONTEXT_ROUND);
    uint64_t local_bytes = place_locals(kernel, work->kernel.args, NULL);
    unsigned char *scratch = sp_cpu_scratch(block + local_bytes + context);
    if (!scratch)
        return -ENOMEM;
    launch.shared.args = work->kernel.args;
    if (block) {
        memcpy(scratch, work->kernel.args, kernel->args_bytes);
        place_locals(kernel, work->kernel.args, scratch);
        launch.shared.args = scratch;
        scratch += block;
    }
    launch.shared.local_bytes = local_bytes;

    bool is_measured = is_worth_measuring(kernel, end - first);
    uint64_t start_ns = is_measured ? sp_time_ns() : 0;
    uint64_t nx = launch.shared.num_groups[0], ny = launch.shared.num_groups[1];
    uint64_t x = first % nx, y = first / nx % ny, z = first / nx / ny;
    for (uint64_t group = first; group < end; group++) {
        kernel->run(&launch.shared, x, y, z, scratch);
        if (++x == nx) {
            x = 0;
            if (++y == ny) {
                y = 0;
                z++;
            }
        }
    }
    if (is_measured)
        note_time(kernel, sp_time_ns() - start_ns, end - first);
    if (launch.has_printed)
        sp_cpu_print_flush();
    return 0;
}

/* The largest divisor of `size` up to `limit`. */
static uint64_t divisor_up_to(uint64_t size, uint64_t limit)
{
    if (size <= limit)
        return size;
    for (uint64_t d = limit; d > 1; d--)
        if (size % d == 0)
            return d;
    return 1;
}

void sp_cpu_suggest_local_size(struct sp_device *device, const struct sp_kernel_info *info,
                               const struct sp_ndrange *range, uint64_t local_size[3])
{
    local_size[0] = local_size[1] = local_size[2] = 1;
    if (info && info->reqd_local_size[0]) {
        for (unsigned d = 0; d < 3; d++)
            local_size[d] = info->reqd_local_size[d];
        return;
    }
    uint64_t total = range->global_size[0] * range->global_size[1] * range->global_size[2];
    uint64_t per_unit = total / device->info.compute_units;
    uint64_t items = SUGGESTED_ITEMS;
    while (items > SUGGESTED_MIN_ITEMS && items > per_unit)
        items /= 2;
    /* Every dimension must be divided evenly: a kernel may rely on it. */
    for (unsigned d = 0; d < range->work_dim && items > 1; d++) {
        local_size[d] = divisor_up_to(range->global_size[d], items);
        items /= local_size[d];
    }
}
