/* Code and kernels: PTX, which the driver compiles for its GPU when it is loaded (and keeps on disk
 * by itself), and launches with the parameter block of compiler/gpu_abi.h.
 *
 * load and unload run on the control thread, with no lock: the driver has its own, and code is seen
 * by the loop thread only when it is whole and until no command names it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/gpu_abi.h"
#include "device/process/cuda/cuda.h"
#include "util/alloc.h"

/* A grid's limits (CUDA programming guide, "Technical Specifications per Compute Capability"); the
 * first dimension's is what num_groups can say at most. */
#define MAX_GRID_X 0x7fffffffu
#define MAX_GRID_YZ 65535u

/* Local memory that a kernel may use without being allowed to. */
#define PLAIN_LOCAL_BYTES (48u << 10)

/* Of each kind: what fits no longer the driver leaves out. */
#define LOG_BYTES 16384u

/* Two groups for each block (gpu_abi.h) from so many blocks for each multiprocessor on: with fewer
 * all fit at once or nearly so, and more of them share the work more evenly. */
#define PAIRED_BLOCKS_PER_UNIT 64u

/* From so many launches on a function has a graph of its own, which costs some 50 us and memory. */
#define LAUNCHES_BEFORE_GRAPH 8u

/* Graphs at a time; other functions are launched without. */
#define MAX_GRAPHS 1024u

/* A function, and what launches it. */
struct launchable {
    CUfunction function; /* NULL: there is none */
    CUgraph graph;       /* of this one kernel */
    CUgraphNode node;
    CUgraphExec exec;  /* NULL: it has none */
    unsigned launches; /* up to LAUNCHES_BEFORE_GRAPH */
};

struct cuda_kernel {
    struct launchable usual, pair;
    const struct sp_kernel_info *info;
    uint32_t static_local_bytes; /* as the driver says */
    bool is_allowed;             /* more than PLAIN_LOCAL_BYTES */
};

struct cuda_code {
    CUmodule module;
    CUfunction init_globals; /* NULL: they are all zero */
    uint32_t num_kernels;
    struct cuda_kernel kernels[];
};

static atomic_uint num_graphs; /* relaxed: a limit */

static struct {
    unsigned char *block; /* of the launch at hand */
    size_t bytes;
} parameters;

int sp_cuda_own_function(CUmodule module, const char *name, CUfunction *function)
{
    return sp_cuda_check(sp_cuda.ModuleGetFunction(function, module, name)) ? -ENOEXEC : 0;
}

static void end_graph(struct launchable *launchable)
{
    if (!launchable->graph)
        return;
    if (launchable->exec)
        sp_cuda.GraphExecDestroy(launchable->exec);
    sp_cuda.GraphDestroy(launchable->graph);
    launchable->exec = NULL;
    launchable->graph = NULL;
    atomic_fetch_sub_explicit(&num_graphs, 1, memory_order_relaxed);
}

void sp_cuda_unload(void *loaded)
{
    struct cuda_code *code = loaded;
    sp_cuda.CtxSetCurrent(sp_cuda_device.context);
    for (uint32_t i = 0; i < code->num_kernels; i++) {
        end_graph(&code->kernels[i].usual);
        end_graph(&code->kernels[i].pair);
    }
    if (code->module)
        sp_cuda.ModuleUnload(code->module);
    free(code);
}

/* 0; -ENOEXEC where there is none; -ENOMEM. Names have no limit. */
static int find_function(CUmodule module, const char *prefix, const char *name,
                         CUfunction *function)
{
    char *symbol = sp_format("%s%s", prefix, name);
    if (!symbol)
        return -ENOMEM;
    CUresult result = sp_cuda.ModuleGetFunction(function, module, symbol);
    free(symbol);
    if (result)
        *function = NULL;
    return result ? -ENOEXEC : 0;
}

static int find_kernels(struct cuda_code *code, const struct sp_program_info *info,
                        const struct sp_kernel_code *codes)
{
    for (uint32_t i = 0; i < code->num_kernels; i++) {
        struct cuda_kernel *kernel = &code->kernels[i];
        int bytes = 0;
        kernel->info = sp_program_info_find(info, codes[i].name);
        if (!kernel->info)
            return -ENOEXEC;
        int error = find_function(code->module, SP_GPU_KERNEL_SYMBOL_PREFIX, codes[i].name,
                                  &kernel->usual.function);
        if (error)
            return error;
        if (sp_cuda.FuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                     kernel->usual.function))
            return -ENOEXEC;
        error = find_function(code->module, SP_GPU_PAIR_SYMBOL_PREFIX, codes[i].name,
                              &kernel->pair.function);
        if (error == -ENOMEM)
            return error; /* else: most have none */
        kernel->static_local_bytes = (uint32_t)bytes;
    }
    return 0;
}

/* What the driver's compiler said, for people: of an error what it is, then its messages; NULL:
 * nothing. */
static char *write_log(CUresult result, const char *info, const char *error)
{
    char text[128];
    const char *name = result ? sp_cuda_error_text(result, text, sizeof text) : "";
    const char *after_name = result && (*info || *error) ? ":\n" : "";
    const char *between = *info && *error ? "\n" : "";
    return result || *info || *error
               ? sp_format("%s%s%s%s%s\n", name, after_name, info, between, error)
               : NULL;
}

int sp_cuda_load_code(const void *image, size_t bytes, const struct sp_program_info *info,
                      const struct sp_kernel_code *codes, uint32_t num_codes, char **log,
                      void **loaded)
{
    char said[LOG_BYTES] = "", wrong[LOG_BYTES] = "";
    int options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                     CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {said, (void *)(uintptr_t)sizeof said, wrong, (void *)(uintptr_t)sizeof wrong};
    if (!bytes || ((const char *)image)[bytes - 1]) /* text with its zero */
        return -ENOEXEC;
    sp_cuda.CtxSetCurrent(sp_cuda_device.context);
    struct cuda_code *code = sp_alloc(sizeof *code + num_codes * sizeof code->kernels[0]);
    if (!code)
        return -ENOMEM;
    code->num_kernels = num_codes;
    CUresult result = sp_cuda.ModuleLoadDataEx(&code->module, image, 4, options, values);
    said[sizeof said - 1] = wrong[sizeof wrong - 1] = 0;
    int error = result == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : result ? -ENOEXEC : 0;
    *log = write_log(result, said, wrong);
    if (!error)
        error = find_kernels(code, info, codes);
    if (!error) {
        result = sp_cuda.ModuleGetFunction(&code->init_globals, code->module,
                                           SP_GPU_GLOBALS_INIT_SYMBOL);
        if (result == CUDA_ERROR_NOT_FOUND)
            code->init_globals = NULL;
        else if (result)
            error = -ENOEXEC;
    }
    if (error) {
        sp_cuda_unload(code);
        return error;
    }
    *loaded = code;
    return 0;
}

/* --- Launching -----------------------------------------------------------------------------------
 */

int sp_cuda_launch_block(CUfunction function, const uint32_t grid[3], const uint32_t block[3],
                         uint32_t local_bytes, const void *given, size_t bytes, CUstream stream)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)given,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    return sp_cuda_check(sp_cuda.LaunchKernel(function, grid[0], grid[1], grid[2], block[0],
                                              block[1], block[2], local_bytes, stream, NULL,
                                              extra));
}

/* Makes the function's graph; without one it is launched as it is. */
static void make_graph(struct launchable *launchable, const CUDA_KERNEL_NODE_PARAMS *how)
{
    if (launchable->launches < LAUNCHES_BEFORE_GRAPH || !sp_cuda.GraphCreate)
        return;
    if (atomic_fetch_add_explicit(&num_graphs, 1, memory_order_relaxed) >= MAX_GRAPHS ||
        sp_cuda.GraphCreate(&launchable->graph, 0)) {
        launchable->graph = NULL;
        atomic_fetch_sub_explicit(&num_graphs, 1, memory_order_relaxed);
    } else if (sp_cuda.GraphAddKernelNode(&launchable->node, launchable->graph, NULL, 0, how) ||
               sp_cuda.GraphInstantiate(&launchable->exec, launchable->graph, 0)) {
        launchable->exec = NULL;
        end_graph(launchable);
    }
}

/* As sp_cuda_launch_block, on the main lane. A graph of one kernel that is changed for each launch
 * takes the driver 2.4 us where cuLaunchKernel takes 3 to 4 (docs/nvidia.md); what is enqueued
 * already keeps what it was enqueued with. */
static int launch(struct launchable *launchable, const uint32_t grid[3], const uint32_t block[3],
                  uint32_t local_bytes, const void *given, size_t bytes)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)given,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    const CUDA_KERNEL_NODE_PARAMS how = {
        .func = launchable->function,
        .gridDimX = grid[0],
        .gridDimY = grid[1],
        .gridDimZ = grid[2],
        .blockDimX = block[0],
        .blockDimY = block[1],
        .blockDimZ = block[2],
        .sharedMemBytes = local_bytes,
        .extra = extra,
    };
    if (launchable->exec) {
        CUresult result =
            sp_cuda.GraphExecKernelNodeSetParams(launchable->exec, launchable->node, &how);
        if (!result)
            result = sp_cuda.GraphLaunch(launchable->exec, sp_cuda_stream());
        if (!result)
            return 0;
        end_graph(launchable); /* what is wrong with the launch, if anything, the usual way says */
    } else if (launchable->launches < LAUNCHES_BEFORE_GRAPH) {
        launchable->launches++;
        make_graph(launchable, &how);
    }
    return sp_cuda_launch_block(launchable->function, grid, block, local_bytes, given, bytes,
                                sp_cuda_stream());
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* Turns the sizes of __local arguments into their places; *bytes: of dynamic local memory. */
static int place_locals(struct cuda_kernel *kernel, unsigned char *args, uint32_t *bytes)
{
    const struct sp_kernel_info *info = kernel->info;
    uint64_t end = sp_gpu_local_front(info->local_static_bytes);
    for (uint32_t i = 0; i < info->num_args; i++) {
        uint64_t size, place = align_up(end, SP_GPU_LOCAL_ALIGN);
        if (info->args[i].kind != SP_ARG_LOCAL)
            continue;
        memcpy(&size, args + info->args[i].offset, sizeof size);
        if (size > sp_cuda_device.max_local_bytes)
            return -ENOMEM;
        memcpy(args + info->args[i].offset, &place, sizeof place);
        end = place + size;
    }
    if (end + kernel->static_local_bytes > sp_cuda_device.max_local_bytes)
        return -ENOMEM;
    if (end + kernel->static_local_bytes > PLAIN_LOCAL_BYTES && !kernel->is_allowed) {
        int error = sp_cuda_check(sp_cuda.FuncSetAttribute(
            kernel->usual.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            (int)(sp_cuda_device.max_local_bytes - kernel->static_local_bytes)));
        if (error)
            return error;
        kernel->is_allowed = true;
    }
    *bytes = (uint32_t)end;
    return 0;
}

/* Zeroed room for a parameter block; NULL when out of memory. */
static unsigned char *take_block(size_t bytes)
{
    if (bytes > parameters.bytes) {
        unsigned char *block = sp_realloc(parameters.block, bytes);
        if (!block)
            return NULL;
        parameters.block = block;
        parameters.bytes = bytes;
    }
    return memset(parameters.block, 0, bytes);
}

static int set_range(const struct sp_command *command, struct sp_gpu_launch *launch)
{
    launch->work_dim = command->kernel.work_dim;
    for (unsigned d = 0; d < 3; d++) {
        uint64_t global = command->kernel.global_size[d], local = command->kernel.local_size[d];
        if (!local || local > UINT32_MAX)
            return -EINVAL;
        uint64_t groups = global / local + (global % local != 0);
        if (groups > UINT32_MAX)
            return -EINVAL;
        launch->global_offset[d] = command->kernel.global_offset[d];
        launch->global_size[d] = global;
        launch->local_size[d] = (uint32_t)local;
        launch->num_groups[d] = (uint32_t)groups;
        if (global % local)
            launch->flags |= SP_GPU_NON_UNIFORM;
    }
    return 0;
}

static uint32_t part(uint32_t groups, uint32_t first, uint32_t limit)
{
    return groups - first < limit ? groups - first : limit;
}

/* Whether the pair of a kernel serves an NDRange. */
static bool is_paired(const struct cuda_kernel *kernel, const struct sp_gpu_launch *launch)
{
    const uint32_t *groups = launch->num_groups;
    return kernel->pair.function && groups[0] % 2 == 0 && groups[0] <= MAX_GRID_X &&
           groups[1] <= MAX_GRID_YZ && groups[2] <= MAX_GRID_YZ &&
           (uint64_t)groups[0] * groups[1] * groups[2] / 2 >=
               (uint64_t)PAIRED_BLOCKS_PER_UNIT * sp_cuda_device.num_units;
}

static int launch_pairs(struct cuda_kernel *kernel, const struct sp_gpu_launch *range,
                        uint32_t local_bytes, const void *block, size_t bytes)
{
    const uint32_t grid[3] = {range->num_groups[0] / 2, range->num_groups[1], range->num_groups[2]};
    return launch(&kernel->pair, grid, range->local_size, local_bytes, block, bytes);
}

/* As many launches as the grid's limits ask for. */
static int launch_parts(struct launchable *launchable, struct sp_gpu_launch *range,
                        uint32_t local_bytes, const void *block, size_t bytes)
{
    const uint32_t *groups = range->num_groups;
    for (uint32_t z = 0; z < groups[2]; z += part(groups[2], z, MAX_GRID_YZ))
        for (uint32_t y = 0; y < groups[1]; y += part(groups[1], y, MAX_GRID_YZ))
            for (uint32_t x = 0; x < groups[0]; x += part(groups[0], x, MAX_GRID_X)) {
                const uint32_t grid[3] = {part(groups[0], x, MAX_GRID_X),
                                          part(groups[1], y, MAX_GRID_YZ),
                                          part(groups[2], z, MAX_GRID_YZ)};
                range->group_first[0] = x;
                range->group_first[1] = y;
                range->group_first[2] = z;
                int error = launch(launchable, grid, range->local_size, local_bytes, block, bytes);
                if (error)
                    return error;
            }
    return 0;
}

int sp_cuda_launch(const struct sp_command *command, void *loaded)
{
    struct cuda_code *code = loaded;
    uint32_t args_bytes = command->kernel.args_bytes, local_bytes;
    if (command->kernel.index >= code->num_kernels)
        return -EINVAL;
    struct cuda_kernel *kernel = &code->kernels[command->kernel.index];
    if (args_bytes != kernel->info->args_bytes)
        return -EINVAL;
    uint64_t offset = sp_gpu_launch_offset(args_bytes);
    size_t bytes = offset + sizeof(struct sp_gpu_launch);
    unsigned char *block = take_block(bytes);
    if (!block)
        return -ENOMEM;
    memcpy(block, command->kernel.args, args_bytes);
    int error = place_locals(kernel, block, &local_bytes);
    struct sp_gpu_launch *range = (struct sp_gpu_launch *)(block + offset);
    if (!error)
        error = set_range(command, range);
    if (error)
        return error;
    range->globals = command->kernel.globals;
    range->print_buffer = sp_cuda_print_buffer();
    if (command->flags & SP_COMMAND_ATOMICS)
        sp_cuda_unit_describe(range);
    if (is_paired(kernel, range))
        return launch_pairs(kernel, range, local_bytes, block, bytes);
    return launch_parts(&kernel->usual, range, local_bytes, block, bytes);
}

int sp_cuda_init_globals(const struct sp_command *command, void *loaded)
{
    const struct cuda_code *code = loaded;
    const uint32_t one[3] = {1, 1, 1};
    uint64_t globals = command->init_globals.globals;
    if (!sp_cuda_memory_is_bound(globals, 1, false))
        return -EFAULT;
    if (!code->init_globals)
        return 0;
    const struct sp_gpu_launch launch = {.work_dim = 1,
                                         .global_size = {1, 1, 1},
                                         .local_size = {1, 1, 1},
                                         .num_groups = {1, 1, 1},
                                         .globals = globals};
    return sp_cuda_launch_block(code->init_globals, one, one, 0, &launch, sizeof launch,
                                sp_cuda_stream());
}
