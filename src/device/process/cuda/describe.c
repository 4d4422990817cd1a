/* What the GPU is, as clGetDeviceInfo and clinfo will say it. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "device/process/cuda/cuda.h"
#include "svm/heap.h"

#define NVIDIA_VENDOR_ID 0x10deu

/* A line of the L2 cache and of the L1 (CUDA programming guide, "Device Memory Accesses"). */
#define CACHE_LINE_BYTES 128u

/* What of the memory is not for regions: the context, modules, stacks of kernels, and what the
 * driver keeps for itself (0.5 GiB of an H200's 140; 0.3 of small ones). */
#define RESERVED_BYTES (UINT64_C(384) << 20)
#define RESERVED_SHARE 128u

/* The oldest that own_kernels.cl is compiled for, and that a barrier with ended threads works on.
 */
#define MIN_CAPABILITY 7

/* The first failure of a question that needs an answer. */
static struct {
    CUresult result;
    int attribute;
} failure;

static CUresult ask(int which, int *value)
{
    *value = 0;
    CUresult result = sp_cuda.DeviceGetAttribute(value, which, sp_cuda_device.device);
    if (result)
        *value = 0;
    return result;
}

/* What nothing depends on; 0 where it is not known. */
static int attribute(int which)
{
    int value;
    ask(which, &value);
    return value;
}

/* 0 where the driver does not know it, being older. */
static int needed_attribute(int which)
{
    int value;
    CUresult result = ask(which, &value);
    if (result && result != CUDA_ERROR_INVALID_VALUE && !failure.result) {
        failure.result = result;
        failure.attribute = which;
    }
    return value;
}

static void describe_place(struct sp_device_description *description)
{
    CUuuid uuid;
    description->has_pci = 1;
    description->pci_domain = (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    description->pci_bus = (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    description->pci_device = (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    if (sp_cuda.DeviceGetUuid(&uuid, sp_cuda_device.device) == CUDA_SUCCESS) {
        description->has_uuid = 1;
        memcpy(description->uuid, uuid.bytes, sizeof description->uuid);
    }
}

static uint32_t peers(void)
{
    uint32_t mask = 0;
    for (int i = 0; i < sp_cuda_device.num_devices && i < 32; i++) {
        CUdevice other;
        int can_access = 0;
        if (i != sp_cuda_device.ordinal && !sp_cuda.DeviceGet(&other, i) &&
            !sp_cuda.DeviceGetP2PAttribute(&can_access, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                                           sp_cuda_device.device, other) &&
            can_access)
            mask |= 1u << i;
    }
    return mask;
}

static int refuse_failure(void)
{
    char what[48];
    snprintf(what, sizeof what, "CUDA does not tell its attribute %d", failure.attribute);
    return sp_cuda_refuse(-EIO, what, failure.result);
}

/* Whether the GPU has what the backend needs: 0 or a negative errno. */
static int check(int major, int minor)
{
    static const struct {
        int attribute;
        const char *words;
    } needed[] = {
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
         "it has no virtual memory management (cuMemMap), as some virtual GPUs have none"},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
         "its memory cannot be exported as files"},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
         "its streams cannot write words of 64 bits (cuStreamWriteValue64)"},
    };
    if (failure.result)
        return refuse_failure();
    if (major < MIN_CAPABILITY)
        return sp_process_refuse(-ENOTSUP,
                                 "its compute capability is %d.%d, and %d.0 or newer is needed",
                                 major, minor, MIN_CAPABILITY);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        bool is_there = needed_attribute(needed[i].attribute) != 0;
        if (failure.result)
            return refuse_failure();
        if (!is_there)
            return sp_process_refuse(-ENOTSUP, "%s, which is needed", needed[i].words);
    }
    return 0;
}

int sp_cuda_describe(struct sp_device_description *description)
{
    int major = needed_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    int minor = needed_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    int version = 0;
    size_t memory_bytes = 0;
    int error = check(major, minor);
    if (error)
        return error;
    CUresult result = sp_cuda.DeviceTotalMem(&memory_bytes, sp_cuda_device.device);
    if (!result)
        result = sp_cuda.DeviceGetName(description->name, sizeof description->name,
                                       sp_cuda_device.device);
    if (!result)
        result = sp_cuda.DriverGetVersion(&version);
    if (result)
        return sp_cuda_refuse(-EIO, "CUDA does not tell what it is", result);
    uint64_t reserved = RESERVED_BYTES + memory_bytes / RESERVED_SHARE;
    if (memory_bytes < 2 * reserved)
        return sp_process_refuse(-ENOTSUP,
                                 "it has %zu MiB of memory, of which %" PRIu64
                                 " MiB are for the driver; at least twice that is needed",
                                 memory_bytes >> 20, reserved >> 20);
    sp_cuda_device.max_local_bytes =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    snprintf(description->vendor, sizeof description->vendor, "NVIDIA Corporation");
    snprintf(description->driver_version, sizeof description->driver_version, "CUDA %d.%d",
             version / 1000, version % 1000 / 10);
    snprintf(description->code_target, sizeof description->code_target, "nvptx64:sm_%d%d", major,
             minor);
    description->vendor_id = NVIDIA_VENDOR_ID;
    description->compute_units =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    sp_cuda_device.num_units = description->compute_units;
    description->clock_mhz = (uint32_t)attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000;
    description->max_work_group_size =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    description->max_item_sizes[0] =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    description->max_item_sizes[1] =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    description->max_item_sizes[2] =
        (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    description->preferred_multiple = (uint32_t)needed_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    description->cache_line_bytes = CACHE_LINE_BYTES;
    description->cache_bytes = (uint64_t)attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    description->global_memory_bytes = (memory_bytes - reserved) & ~(SP_GRANULE_BYTES - 1);
    description->max_alloc_bytes = description->global_memory_bytes;
    description->local_memory_bytes = sp_cuda_device.max_local_bytes;
    description->has_fp64 = 1;
    description->has_error_correction = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0;
    /* Atomics at all-devices scope: unit.c. */
    description->svm_levels = SP_SVM_COARSE;
    if (needed_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM))
        description->svm_levels |= SP_SVM_FINE;
    describe_place(description);
    description->peers = peers();
    return failure.result ? refuse_failure() : 0;
}
