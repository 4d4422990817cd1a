/* The virtual device: kernels, copies and fills run by the CPU driver, in this process.
 *
 * Commands are run one after another, each to its end. What the CPU driver takes for light is run
 * at once on the loop thread, without its pool: that is the common tiny kernel, whose launch then
 * costs no wake-up.
 *
 * The threads of the pool block all signals, as they must in an application. Here a crash should be
 * reported (fault.c), so each of them is made to run one work that unblocks what stands for a
 * crash.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/cpu/cpu.h"
#include "device/process/process.h"
#include "device/process/virtual/virtual.h"
#include "util/alloc.h"
#include "util/time.h"

/* How long the pool's threads may take to start before the device goes on without. */
#define THREADS_START_SECONDS 5

struct virtual_kernel {
    struct sp_code_kernel *kernel;
    uint32_t args_align;
};

struct virtual_code {
    struct sp_code *code;
    uint32_t num_kernels;
    struct virtual_kernel *kernels;
};

static struct {
    struct sp_device *cpu;
    unsigned char *block; /* an argument block, where the ring's place is not aligned enough */
    size_t block_bytes;
} virtual;

/* --- The pool's threads --------------------------------------------------------------------------
 */

struct rendezvous {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint32_t wanted, arrived, left;
    bool is_over;
};

/* On a thread of the pool: holds it until all others hold one of these too, so that each has
 * exactly one. */
static void prepare_thread(void *argument)
{
    struct rendezvous *all = argument;
    sp_fault_prepare_thread();
    pthread_mutex_lock(&all->lock);
    if (++all->arrived == all->wanted)
        all->is_over = true;
    pthread_cond_broadcast(&all->moved);
    while (!all->is_over)
        pthread_cond_wait(&all->moved, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static void thread_is_prepared(struct sp_work *work, int error)
{
    struct rendezvous *all = (struct rendezvous *)work->stream;
    (void)error;
    pthread_mutex_lock(&all->lock);
    all->left--;
    pthread_cond_broadcast(&all->moved);
    pthread_mutex_unlock(&all->lock);
}

static int prepare_threads(void)
{
    uint32_t count = virtual.cpu->info.compute_units;
    struct timespec limit;
    struct rendezvous all = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .moved = PTHREAD_COND_INITIALIZER,
                             .wanted = count,
                             .left = count};
    struct sp_work *works = sp_alloc_array(count, sizeof *works);
    if (!works)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        works[i].kind = SP_WORK_CALL;
        works[i].call.function = prepare_thread;
        works[i].call.argument = &all;
        works[i].stream = &all;
        works[i].finished = thread_is_prepared;
        virtual.cpu->ops->submit(virtual.cpu, &works[i]);
    }
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += THREADS_START_SECONDS;
    pthread_mutex_lock(&all.lock);
    while (!all.is_over && pthread_cond_timedwait(&all.moved, &all.lock, &limit) == 0)
        ;
    all.is_over = true; /* there are fewer threads than wanted: go on with those */
    pthread_cond_broadcast(&all.moved);
    while (all.left)
        pthread_cond_wait(&all.moved, &all.lock);
    pthread_mutex_unlock(&all.lock);
    free(works);
    return 0;
}

static int start(const struct sp_backend_setup *setup, int *memory_file,
                 struct sp_device_description *description)
{
    (void)description; /* it is like the CPU, which the application knows */
    struct sp_device **devices;
    unsigned count;
    sp_virtual_loose_init();
    sp_virtual_fails_init(setup->ordinal);
    sp_virtual_peers_init(setup);
    int error = sp_virtual_memory_init(setup, memory_file);
    if (!error)
        error = sp_virtual_reach_init(setup);
    if (!error)
        error = sp_cpu_driver.probe(&devices, &count);
    if (error)
        return error;
    virtual.cpu = devices[0];
    if (setup->threads) /* nobody else has seen the device yet */
        virtual.cpu->info.compute_units = setup->threads;
    return prepare_threads();
}

/* --- Code ----------------------------------------------------------------------------------------
 */

static void unload(void *loaded)
{
    struct virtual_code *code = loaded;
    virtual.cpu->ops->unload(code->code);
    free(code->kernels);
    free(code);
}

static int load(const void *image, size_t bytes, const struct sp_program_info *info,
                const struct sp_kernel_code *codes, uint32_t num_codes, char **log, void **loaded)
{
    int error = -ENOMEM;
    struct virtual_code *code = sp_alloc(sizeof *code);
    if (!code)
        return -ENOMEM;
    code->kernels = sp_alloc_array(num_codes, sizeof *code->kernels);
    if (!code->kernels)
        goto err;
    error = virtual.cpu->ops->load(virtual.cpu, image, bytes, info, codes, num_codes, log,
                                   &code->code);
    if (error)
        goto err;
    code->num_kernels = num_codes;
    for (uint32_t i = 0; i < num_codes; i++) {
        const struct sp_kernel_info *kernel = sp_program_info_find(info, codes[i].name);
        code->kernels[i].kernel = virtual.cpu->ops->find(code->code, codes[i].name);
        code->kernels[i].args_align = 1;
        for (uint32_t a = 0; a < kernel->num_args; a++)
            if (kernel->args[a].align > code->kernels[i].args_align)
                code->kernels[i].args_align = kernel->args[a].align;
    }
    *loaded = code;
    return 0;

err:
    free(code->kernels);
    free(code);
    return error;
}

/* --- Commands ------------------------------------------------------------------------------------
 */

static void open_gate(struct sp_work *work, int error)
{
    (void)error; /* it stands in the work */
    sp_gate_open((struct sp_gate *)work->stream);
}

/* Runs a work to its end: 0 or a negative errno. */
static int run(const struct sp_command *command, struct sp_work *work)
{
    uint32_t threads = virtual.cpu->info.compute_units;
    bool is_heavy = work->kind == SP_WORK_KERNEL ? sp_cpu_kernel_plan(work, threads)
                                                 : sp_cpu_copy_plan(work, threads);
    sp_process_began(command, !is_heavy);
    if (!is_heavy)
        return work->driver.parts ? sp_cpu_work_run(work, 0, work->driver.parts) : 0;
    struct sp_gate gate;
    sp_gate_init(&gate);
    work->stream = &gate;
    work->finished = open_gate;
    sp_cpu_pool_submit(virtual.cpu, work, true);
    sp_cpu_pool_wait(virtual.cpu, &gate, &gate);
    return atomic_load_explicit(&work->driver.error, memory_order_relaxed);
}

/* The argument block at a place that is aligned as the kernel's code expects; NULL when out of
 * memory. */
static unsigned char *place_args(const struct sp_command *command, uint32_t align)
{
    const unsigned char *args = command->kernel.args;
    if (((uintptr_t)args & (align - 1)) == 0)
        return (unsigned char *)args;
    size_t bytes =
        (command->kernel.args_bytes + SP_CPU_SCRATCH_ALIGN) & ~(size_t)(SP_CPU_SCRATCH_ALIGN - 1);
    if (bytes > virtual.block_bytes) {
        free(virtual.block);
        virtual.block = aligned_alloc(SP_CPU_SCRATCH_ALIGN, bytes);
        virtual.block_bytes = virtual.block ? bytes : 0;
        if (!virtual.block)
            return NULL;
    }
    return memcpy(virtual.block, args, command->kernel.args_bytes);
}

static int run_kernel(const struct sp_command *command, const struct virtual_code *code)
{
    if (command->kernel.index >= code->num_kernels)
        return -EINVAL;
    const struct virtual_kernel *kernel = &code->kernels[command->kernel.index];
    struct sp_work work = {.kind = SP_WORK_KERNEL};
    work.kernel.kernel = kernel->kernel;
    work.kernel.range.work_dim = command->kernel.work_dim;
    for (unsigned d = 0; d < 3; d++) {
        work.kernel.range.global_offset[d] = command->kernel.global_offset[d];
        work.kernel.range.global_size[d] = command->kernel.global_size[d];
        work.kernel.range.local_size[d] = command->kernel.local_size[d];
    }
    work.kernel.globals = (unsigned char *)(uintptr_t)command->kernel.globals;
    work.kernel.args = place_args(command, kernel->args_align);
    if (command->kernel.ticket)
        sp_virtual_reach_limit(command->kernel.ticket);
    int error = work.kernel.args ? run(command, &work) : -ENOMEM;
    if (command->kernel.ticket)
        sp_process_undeclared(sp_virtual_reach_unlimit(command->kernel.ticket));
    return error;
}

static int run_copy(const struct sp_command *command)
{
    struct sp_work work = {.kind = SP_WORK_COPY};
    work.copy.dst = (void *)(uintptr_t)command->copy.dst;
    work.copy.src = (const void *)(uintptr_t)command->copy.src;
    work.copy.bytes = command->copy.bytes;
    if (!sp_virtual_memory_is_bound(command->copy.dst, work.copy.bytes) ||
        !sp_virtual_memory_is_bound(command->copy.src, work.copy.bytes))
        return -EFAULT;
    return run(command, &work);
}

static uint64_t rect_bytes(const struct sp_rect *rect, size_t row_pitch, size_t slice_pitch)
{
    if (!rect->width || !rect->height || !rect->depth)
        return 0;
    return (rect->depth - 1) * slice_pitch + (rect->height - 1) * row_pitch + rect->width;
}

static int run_rect(const struct sp_command *command)
{
    const struct sp_rect *rect = &command->rect.rect;
    struct sp_work work = {.kind = SP_WORK_COPY_RECT};
    work.rect.dst = (void *)(uintptr_t)command->rect.dst;
    work.rect.src = (const void *)(uintptr_t)command->rect.src;
    work.rect.rect = *rect;
    uint64_t dst_bytes = rect_bytes(rect, rect->dst_row_pitch, rect->dst_slice_pitch);
    uint64_t src_bytes = rect_bytes(rect, rect->src_row_pitch, rect->src_slice_pitch);
    if (!sp_virtual_memory_is_bound(command->rect.dst, dst_bytes) ||
        !sp_virtual_memory_is_bound(command->rect.src, src_bytes))
        return -EFAULT;
    return dst_bytes ? run(command, &work) : 0;
}

static int run_fill(const struct sp_command *command)
{
    struct sp_work work = {.kind = SP_WORK_FILL};
    work.fill.dst = (void *)(uintptr_t)command->fill.dst;
    work.fill.bytes = command->fill.bytes;
    work.fill.pattern_bytes = command->fill.pattern_bytes;
    memcpy(work.fill.pattern, command->fill.pattern, command->fill.pattern_bytes);
    if (!sp_virtual_memory_is_bound(command->fill.dst, command->fill.bytes))
        return -EFAULT;
    return run(command, &work);
}

static int run_whole_transfer(const struct sp_command *command)
{
    struct sp_work work = {.kind = SP_WORK_COPY};
    work.copy.bytes = command->range.bytes;
    int error = sp_virtual_memory_ends(command, &work.copy.dst, &work.copy.src);
    if (error)
        return error;
    error = run(command, &work);
    sp_virtual_memory_end_use(command);
    return error;
}

static int run_transfer(const struct sp_command *command)
{
    if (!command->range.num_pieces)
        return run_whole_transfer(command);
    struct sp_command piece = *command;
    int error = 0;
    for (uint64_t i = 0; i < command->range.num_pieces && !error; i++) {
        piece.range.start = command->range.pieces[i].start;
        piece.range.bytes = command->range.pieces[i].bytes;
        error = run_whole_transfer(&piece);
        piece.flags = 0; /* it has begun */
    }
    return error;
}

static int run_init_globals(const struct sp_command *command, const struct virtual_code *code)
{
    if (!sp_virtual_memory_is_bound(command->init_globals.globals, 1))
        return -EFAULT;
    virtual.cpu->ops->init_globals(code->code,
                                   (unsigned char *)(uintptr_t)command->init_globals.globals);
    return 0;
}

static int run_command(const struct sp_command *command, const struct virtual_code *code)
{
    switch (command->kind) {
    case SP_COMMAND_KERNEL:
        return run_kernel(command, code);
    case SP_COMMAND_INIT_GLOBALS:
        return run_init_globals(command, code);
    case SP_COMMAND_COPY:
        return run_copy(command);
    case SP_COMMAND_RECT:
        return run_rect(command);
    case SP_COMMAND_FILL:
        return run_fill(command);
    case SP_COMMAND_BIND_PRIVATE:
    case SP_COMMAND_BIND_HOME:
        sp_process_began(command, true);
        return sp_virtual_memory_bind(command->range.start, command->range.bytes,
                                      command->kind == SP_COMMAND_BIND_HOME);
    case SP_COMMAND_BIND_PEER:
        sp_process_began(command, true);
        return sp_virtual_memory_bind_peer(command);
    case SP_COMMAND_UNBIND:
        sp_process_began(command, true);
        return sp_virtual_memory_unbind(command->range.start, command->range.bytes);
    case SP_COMMAND_DECLARE:
        sp_process_began(command, true);
        return sp_virtual_reach_declare(command->range.start, command->range.bytes,
                                        command->range.ticket);
    case SP_COMMAND_TRANSFER:
        return run_transfer(command);
    default:
        return -EINVAL;
    }
}

static int run_or_fail(const struct sp_command *command, const struct virtual_code *code)
{
    if (!sp_virtual_fails(command))
        return run_command(command, code);
    sp_process_began(command, true);
    return -ENOMEM;
}

void sp_virtual_run(const struct sp_command *command, void *code)
{
    bool is_timed = command->flags & SP_COMMAND_TIMED;
    uint64_t number = command->number;
    uint64_t start_ns = is_timed ? sp_time_ns() : 0;
    if (sp_process_is_stale(command)) {
        sp_process_cancel(command);
        return;
    }
    int error = run_or_fail(command, code);
    if (error && sp_command_is_relied_on(command))
        sp_process_failed(number);
    sp_process_ended(number, error, start_ns, is_timed ? sp_time_ns() : 0);
}

static void submit(const struct sp_command *command, void *code)
{
    if (!sp_virtual_loose_take(command, code))
        sp_virtual_run(command, code);
}

const struct sp_backend sp_virtual_backend = {
    .name = "virtual",
    .start = start,
    .load = load,
    .unload = unload,
    .peer = sp_virtual_peer,
    .peer_part = sp_virtual_peer_part,
    .peer_part_gone = sp_virtual_peer_part_gone,
    .submit = submit,
    .progress = sp_virtual_loose_progress,
    .rest = sp_virtual_loose_rest,
    .reveal = sp_virtual_reach_reveal,
};
