/* The cuda backend: one GPU, all of it through the driver API. See cuda.h and docs/cuda-backend.md.
 *
 * reserve comes before anything else in the process, and lets CUDA take the window's addresses: a
 * range that another mapping reserved is not given to CUDA, while the host can still map over what
 * CUDA reserved (both measured).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/process/cuda/cuda.h"
#include "svm/heap.h"

struct sp_cuda_device sp_cuda_device;

/* What usually helps, by what the driver API's documentation says of the errors. */
static const struct {
    CUresult error;
    const char *advice;
} advices[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, "other programs may use all of its memory"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "another program may have it to itself: nvidia-smi shows the "
                                    "compute mode"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_VISIBLE_DEVICES, or the limits of a container or a job, may hide "
                           "it"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "NVIDIA's fabric manager may have to be started"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "after an update of the driver its kernel module must be "
                                        "loaded again, or the machine restarted"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "the library is one for forward compatibility, "
                                                "which this GPU has not"},
    {CUDA_ERROR_UNKNOWN, "nvidia-smi and the kernel's log may say more"},
};

/* "cuMemCreate: out of memory (CUDA error 2); other programs may use all of its memory". */
static void explain(const struct sp_cuda_failure *failure, char *text, size_t size)
{
    static const char prefix[] = "sp_cuda.";
    char name[64] = "", error[SP_FAULT_REASON_BYTES];
    const char *advice = NULL;
    if (failure->call && !strncmp(failure->call, prefix, strlen(prefix))) {
        const char *call = failure->call + strlen(prefix);
        snprintf(name, sizeof name, "cu%.*s: ", (int)strcspn(call, "("), call);
    }
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].error == failure->result)
            advice = advices[i].advice;
    snprintf(text, size, "%s%s%s%s", name, sp_cuda_error_text(failure->result, error, sizeof error),
             advice ? "; " : "", advice ? advice : "");
}

int sp_cuda_refuse(int error, const char *what, CUresult result)
{
    char text[SP_WORDS_BYTES];
    explain(&(struct sp_cuda_failure){.result = result}, text, sizeof text);
    return sp_process_refuse(error, "%s: %s", what, text);
}

static int reserve(uintptr_t start, size_t bytes)
{
    CUdeviceptr at = 0;
    int error = sp_cuda_load();
    if (error)
        return error;
    /* In the order of the machine, which does not change with what is in the slots. */
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    CUresult result = sp_cuda.Init(0);
    if (result)
        return sp_cuda_refuse(-ENODEV, "CUDA does not start", result);
    result = sp_cuda.MemAddressReserve(&at, bytes, SP_GRANULE_BYTES, start, 0);
    if (!result && at == start)
        return 0;
    if (result)
        return sp_cuda_refuse(-EADDRNOTAVAIL, "CUDA cannot have the window's addresses", result);
    sp_cuda.MemAddressFree(at, bytes);
    return -EADDRNOTAVAIL;
}

static int open_device(void)
{
    struct sp_cuda_device *device = &sp_cuda_device;
    device->ordinal = (int)device->setup.ordinal;
    CUresult result = sp_cuda.DeviceGetCount(&device->num_devices);
    if (!result && device->ordinal >= device->num_devices)
        return sp_process_refuse(
            -ENODEV,
            "CUDA shows %d GPU%s here, and this is number %d, counted from 0; "
            "CUDA_VISIBLE_DEVICES, or the limits of a container or a job, hide "
            "it",
            device->num_devices, device->num_devices == 1 ? "" : "s", device->ordinal);
    if (!result)
        result = sp_cuda.DeviceGet(&device->device, device->ordinal);
    if (result)
        return sp_cuda_refuse(-ENODEV, "CUDA does not find it", result);
    /* What takes long is waited for by stream.c, asleep; where the driver waits by itself (for a
     * copy of unregistered pages) it is for microseconds: with sleep it took 30, without 8. */
    result = sp_cuda.DevicePrimaryCtxSetFlags(device->device, CU_CTX_SCHED_SPIN);
    if (!result)
        result = sp_cuda.DevicePrimaryCtxRetain(&device->context, device->device);
    if (!result)
        result = sp_cuda.CtxSetCurrent(device->context);
    return result ? sp_cuda_refuse(-EIO, "CUDA cannot use it", result) : 0;
}

/* Streams, memory and kernels of the backend's own. */
static int set_up(struct sp_device_description *description)
{
    int error = sp_cuda_stream_init();
    if (!error)
        error = sp_cuda_memory_init();
    if (!error)
        error = sp_cuda_copy_init();
    if (!error)
        error = sp_cuda_print_init();
    if (!error)
        error = sp_cuda_unit_init(description);
    if (error && sp_cuda_last_failure.result) {
        char text[SP_WORDS_BYTES];
        explain(&sp_cuda_last_failure, text, sizeof text);
        sp_process_refuse(error, "CUDA cannot set it up: %s", text);
    }
    return error;
}

static int start(const struct sp_backend_setup *setup, int *memory_file,
                 struct sp_device_description *description)
{
    sp_cuda_device.setup = *setup;
    *memory_file = -1;
    int error = open_device();
    if (!error)
        error = sp_cuda_describe(description);
    if (!error && !setup->memory_bytes)
        sp_cuda_device.setup.memory_bytes = description->global_memory_bytes;
    return error ? error : set_up(description);
}

static int run_command(const struct sp_command *command, void *code)
{
    switch (command->kind) {
    case SP_COMMAND_KERNEL:
        return sp_cuda_launch(command, code);
    case SP_COMMAND_INIT_GLOBALS:
        return sp_cuda_init_globals(command, code);
    case SP_COMMAND_COPY:
        return sp_cuda_copy(command->copy.dst, command->copy.src, command->copy.bytes);
    case SP_COMMAND_RECT:
        return sp_cuda_copy_rect(command);
    case SP_COMMAND_FILL:
        return sp_cuda_fill(command);
    case SP_COMMAND_BIND_PRIVATE:
    case SP_COMMAND_BIND_HOME:
        return sp_cuda_memory_bind(command->range.start, command->range.bytes,
                                   command->kind == SP_COMMAND_BIND_HOME);
    case SP_COMMAND_BIND_PEER:
        return sp_cuda_memory_bind_peer(command);
    case SP_COMMAND_UNBIND:
        return sp_cuda_memory_unbind(command->range.start, command->range.bytes);
    case SP_COMMAND_TRANSFER:
        return sp_cuda_transfer(command);
    default:
        return -EINVAL;
    }
}

static const char *name_of(const struct sp_command *command)
{
    switch (command->kind) {
    case SP_COMMAND_KERNEL:
        return "running a kernel";
    case SP_COMMAND_INIT_GLOBALS:
        return "writing initial values of a program";
    case SP_COMMAND_COPY:
    case SP_COMMAND_RECT:
        return "copying";
    case SP_COMMAND_FILL:
        return "filling";
    case SP_COMMAND_TRANSFER:
        return "transferring";
    case SP_COMMAND_UNBIND:
        return "unbinding memory";
    default:
        return "binding memory";
    }
}

/* The command's error is a number where it is told; what CUDA said of it is for people. */
static void complain(const struct sp_command *command)
{
    char why[SP_WORDS_BYTES], text[SP_WORDS_BYTES];
    explain(&sp_cuda_last_failure, why, sizeof why);
    snprintf(text, sizeof text, "failed at %s: %.200s", name_of(command), why);
    sp_process_complain(text);
}

static int run_and_explain(const struct sp_command *command, void *code)
{
    sp_cuda_last_failure.result = CUDA_SUCCESS;
    int error = run_command(command, code);
    if (error && sp_cuda_last_failure.result)
        complain(command);
    return error;
}

static void submit(const struct sp_command *command, void *code)
{
    static bool is_current;
    if (!is_current) /* the loop thread's first command */
        is_current = !sp_cuda.CtxSetCurrent(sp_cuda_device.context);
    sp_cuda_stream_open(command);
    /* After open, which enqueues what was held back of others that this one comes after. */
    sp_cuda_stream_close(sp_process_is_stale(command) ? -ECANCELED
                                                      : run_and_explain(command, code));
}

const struct sp_backend sp_cuda_backend = {
    .name = "cuda",
    .reserve = reserve,
    .start = start,
    .load = sp_cuda_load_code,
    .unload = sp_cuda_unload,
    .peer = sp_cuda_peer,
    .peer_part = sp_cuda_peer_part,
    .peer_part_gone = sp_cuda_peer_part_gone,
    .submit = submit,
    .progress = sp_cuda_stream_progress,
    .rest = sp_cuda_stream_rest,
};
