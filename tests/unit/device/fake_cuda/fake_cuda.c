/* A stand-in for libcuda.so.1 in tests: device memory is host memory, and what is enqueued
 * happens on the host: at once, or, where something before it in its stream waits, when that is
 * over and anybody asks. It keeps the real one's rules as far as the cuda backend depends on them
 * (measured on hardware, docs/cuda-backend.md): mappings are whole handles inside reserved
 * addresses, a copy's host end lies in one registration or in none, registrations do not overlap,
 * an error of a kernel's stays.
 *
 * Two GPUs. Modules are text in which "entry NAME" names a function. Kernels that do something: the
 * backend's own, sp_globals_init, and sp_kernel_{add, fault, gate, local, print, hang, unit}. Where
 * FAKE_CUDA_LOSES is set the atomics of the last two are none. A gate kernel waits for a word to
 * change, and a copy to the device for its first word to be another than FAKE_WAITS.
 *
 * What it is can be chosen in the environment of the device's process:
 *   FAKE_CUDA_INIT_MILLISECONDS  how long it takes
 *   FAKE_CUDA_COUNT              GPUs
 *   FAKE_CUDA_MEMORY             bytes of each
 *   FAKE_CUDA_UUID               number of the first GPU's
 *   FAKE_CUDA_ATTRIBUTES         "75=6,1.76=1": attributes of all GPUs, and of GPU 1
 *   FAKE_CUDA_WITHOUT_PEERS      no GPU reaches another
 *   FAKE_CUDA_FAILS              "cuLaunchKernel=999": what a call returns (those with may_fail)
 *   FAKE_CUDA_CRASHES            the call of that name crashes (likewise)
 *   FAKE_CUDA_FAILS_NEXT         a file: "cuMemCreate 2" in it lets the next two such calls, of
 *                                those with may_fail, find no memory; it is counted down
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "compiler/gpu_abi.h"
#include "device/process/cuda/cuda_api.h"

#include "../host_warp.h"

#define EXPORT __attribute__((visibility("default")))
#define GRANULE ((size_t)2 << 20)
#define MAX_RANGES 4096

/* Larger pieces of memory are zero, for the time that it saves. */
#define DIRTY_BYTES ((size_t)64 << 20)

enum { ILLEGAL_ADDRESS = 700 };

/* test_cuda_lanes.c has the same. */
#define FAKE_WAITS UINT64_C(0x7374696177207469)

struct range {
    uint64_t start, bytes;
    int file;
};

struct CUctx_st {
    int unused;
};
struct CUmod_st {
    char *text;
};
struct CUfunc_st {
    char name[128];
    int dynamic_bytes;
};

/* Something enqueued that has not happened yet. */
struct operation {
    struct operation *next;
    bool (*run)(const void *data); /* false: it has to wait */
    max_align_t data[];
};

struct CUstream_st {
    struct operation *first, **last;
    CUstream next; /* all streams */
};
struct CUevent_st {
    double milliseconds;
    uint64_t asked, done; /* records */
};

static struct {
    pthread_mutex_t lock;
    struct range reserved[64], mapped[MAX_RANGES], registered[MAX_RANGES];
    unsigned num_reserved, num_mapped, num_registered;
    uint64_t used;
    _Atomic int error; /* sticky */
    CUstream streams;  /* with what is in them, under the lock */
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Order ---------------------------------------------------------------------------------------
 */

/* With the lock held: does what can be done now. */
static void go_on(void)
{
    bool is_any = true;
    while (is_any) {
        is_any = false;
        for (CUstream stream = fake.streams; stream; stream = stream->next)
            while (stream->first && stream->first->run(stream->first->data)) {
                struct operation *done = stream->first;
                stream->first = done->next;
                if (!stream->first)
                    stream->last = &stream->first;
                free(done);
                is_any = true;
            }
    }
}

static CUresult enqueue(CUstream stream, bool (*run)(const void *data), const void *data,
                        size_t bytes)
{
    struct operation *operation = malloc(sizeof *operation + bytes);
    if (!stream || !operation)
        return CUDA_ERROR_INVALID_VALUE;
    operation->next = NULL;
    operation->run = run;
    memcpy(operation->data, data, bytes);
    pthread_mutex_lock(&fake.lock);
    *stream->last = operation;
    stream->last = &operation->next;
    go_on();
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

static struct range *find(struct range *ranges, unsigned count, uint64_t start, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        if (start >= ranges[i].start && start + bytes <= ranges[i].start + ranges[i].bytes)
            return &ranges[i];
    return NULL;
}

static bool overlaps(struct range *ranges, unsigned count, uint64_t start, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        if (start < ranges[i].start + ranges[i].bytes && ranges[i].start < start + bytes)
            return true;
    return false;
}

#define ENTRY(name, ...)                                                                           \
    EXPORT CUresult name(__VA_ARGS__);                                                             \
    EXPORT CUresult name(__VA_ARGS__)

/* --- Devices -------------------------------------------------------------------------------------
 */

static uint64_t chosen(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : usual;
}

/* Whether it is one of the next that the file names. */
static bool is_next_to_fail(const char *call)
{
    const char *path = getenv("FAKE_CUDA_FAILS_NEXT");
    FILE *file = path ? fopen(path, "r+") : NULL;
    char name[64];
    unsigned count = 0;
    bool is = file && fscanf(file, "%63s %u", name, &count) == 2 && count && !strcmp(name, call);
    if (is) {
        rewind(file);
        fprintf(file, "%s %u ", call, count - 1);
    }
    if (file)
        fclose(file);
    return is;
}

/* What is chosen that the call returns; CUDA_SUCCESS: nothing. */
static CUresult may_fail(const char *call)
{
    if (is_next_to_fail(call))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const char *text = getenv("FAKE_CUDA_FAILS"), *crashes = getenv("FAKE_CUDA_CRASHES");
    if (crashes && !strcmp(crashes, call))
        abort();
    size_t length = strlen(call);
    return text && !strncmp(text, call, length) && text[length] == '=' ? atoi(text + length + 1)
                                                                       : CUDA_SUCCESS;
}

static bool chosen_attribute(CUdevice device, int attribute, int *value)
{
    const char *text = getenv("FAKE_CUDA_ATTRIBUTES");
    bool is_any = false;
    while (text && *text) {
        int of = device, which, number;
        if (sscanf(text, "%d.%d=%d", &of, &which, &number) == 3 ||
            (of = device, sscanf(text, "%d=%d", &which, &number) == 2))
            if (of == device && which == attribute) {
                *value = number;
                is_any = true;
            }
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return is_any;
}

static size_t memory_bytes(void)
{
    return chosen("FAKE_CUDA_MEMORY", (size_t)1 << 30);
}

ENTRY(cuInit, unsigned flags)
{
    usleep((useconds_t)chosen("FAKE_CUDA_INIT_MILLISECONDS", 0) * 1000);
    CUresult failure = may_fail("cuInit");
    return flags ? CUDA_ERROR_INVALID_VALUE : failure;
}

ENTRY(cuDriverGetVersion, int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

ENTRY(cuGetErrorName, CUresult error, const char **name)
{
    *name = "FAKE";
    return error < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuGetErrorString, CUresult error, const char **text)
{
    *text = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "a fake error";
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, int *count)
{
    *count = (int)chosen("FAKE_CUDA_COUNT", 2);
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGet, CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < (int)chosen("FAKE_CUDA_COUNT", 2) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

ENTRY(cuDeviceGetName, char *name, int bytes, CUdevice device)
{
    snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetUuid_v2, CUuuid *uuid, CUdevice device)
{
    memset(uuid->bytes, (int)chosen("FAKE_CUDA_UUID", 0x10) + device, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = memory_bytes();
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetAttribute, int *value, int attribute, CUdevice device)
{
    CUresult failure = may_fail("cuDeviceGetAttribute");
    if (failure || chosen_attribute(device, attribute, value))
        return failure;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 4;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = 0;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value = 6 + device;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 227 << 10;
        break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = 1980000;
        break;
    default: /* what is supported or not */
        *value = 1;
    }
    return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetP2PAttribute, int *value, int attribute, CUdevice from, CUdevice to)
{
    *value = attribute != 0 && from != to && !getenv("FAKE_CUDA_WITHOUT_PEERS");
    return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxSetFlags_v2, CUdevice device, unsigned flags)
{
    /* The real one takes scheduling flags alone. */
    return device > 1 || flags & ~7u ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
{
    static struct CUctx_st contexts[2];
    *context = &contexts[device];
    return may_fail("cuDevicePrimaryCtxRetain");
}

static _Thread_local CUcontext current;

ENTRY(cuCtxSetCurrent, CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

/* What every call that needs a context begins with. */
#define CHECK_CONTEXT()                                                                            \
    do {                                                                                           \
        if (!current)                                                                              \
            return 201;                                                                            \
        if (fake.error)                                                                            \
            return fake.error;                                                                     \
    } while (0)

/* --- Memory --------------------------------------------------------------------------------------
 */

ENTRY(cuMemGetInfo_v2, size_t *free_bytes, size_t *total)
{
    *free_bytes = memory_bytes() - fake.used;
    *total = memory_bytes();
    return CUDA_SUCCESS;
}

ENTRY(cuMemAddressReserve, CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint,
      unsigned long long flags)
{
    CUresult failure = may_fail("cuMemAddressReserve");
    if (failure)
        return failure;
    void *start = mmap((void *)(uintptr_t)hint, bytes + (hint ? 0 : alignment), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED || flags)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *at = ((uintptr_t)start + alignment - 1) & ~(uint64_t)(alignment - 1);
    fake.reserved[fake.num_reserved++] = (struct range){*at, bytes, -1};
    return CUDA_SUCCESS;
}

ENTRY(cuMemAddressFree, CUdeviceptr at, size_t bytes)
{
    munmap((void *)(uintptr_t)at, bytes);
    return CUDA_SUCCESS;
}

ENTRY(cuMemCreate, CUmemGenericAllocationHandle *handle, size_t bytes,
      const CUmemAllocationProp *properties, unsigned long long flags)
{
    CHECK_CONTEXT();
    if (bytes % GRANULE || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > memory_bytes() - fake.used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult failure = may_fail("cuMemCreate");
    if (failure)
        return failure;
    /* Sealed, as a file of pages must be to go to another process; the real one's is no file of
     * pages. */
    int file = memfd_create("fake-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || ftruncate(file, (off_t)bytes) ||
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Not zero: the backend must see to that. */
    if (bytes > DIRTY_BYTES) {
        fake.used += bytes;
        *handle = (unsigned)file;
        return CUDA_SUCCESS;
    }
    void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(all, 0xdb, bytes);
    munmap(all, bytes);
    fake.used += bytes;
    *handle = (unsigned)file;
    return CUDA_SUCCESS;
}

ENTRY(cuMemRelease, CUmemGenericAllocationHandle handle)
{
    struct stat status;
    if (fstat((int)handle, &status))
        return CUDA_ERROR_INVALID_VALUE;
    fake.used -= (uint64_t)status.st_size;
    close((int)handle);
    return CUDA_SUCCESS;
}

ENTRY(cuMemMap, CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
      unsigned long long flags)
{
    CHECK_CONTEXT();
    if (offset || flags || at % GRANULE || !find(fake.reserved, fake.num_reserved, at, bytes) ||
        overlaps(fake.mapped, fake.num_mapped, at, bytes) ||
        overlaps(fake.registered, fake.num_registered, at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult failure = may_fail("cuMemMap");
    if (failure)
        return failure;
    fake.mapped[fake.num_mapped++] = (struct range){at, bytes, (int)handle};
    return CUDA_SUCCESS;
}

ENTRY(cuMemUnmap, CUdeviceptr at, size_t bytes)
{
    struct range *range = find(fake.mapped, fake.num_mapped, at, bytes);
    if (!range || range->bytes != bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *range = fake.mapped[--fake.num_mapped];
    mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_SUCCESS;
}

ENTRY(cuMemSetAccess, CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    struct range *range = find(fake.mapped, fake.num_mapped, at, bytes);
    if (!range || count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult failure = may_fail("cuMemSetAccess");
    if (failure)
        return failure;
    return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                range->file, 0) == MAP_FAILED
               ? CUDA_ERROR_OUT_OF_MEMORY
               : CUDA_SUCCESS;
}

ENTRY(cuMemExportToShareableHandle, void *exported, CUmemGenericAllocationHandle handle, int type,
      unsigned long long flags)
{
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags)
        return CUDA_ERROR_INVALID_VALUE;
    int file = dup((int)handle);
    memcpy(exported, &file, sizeof file);
    return file < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *handle, void *exported,
      int type)
{
    struct stat status;
    char link[64], target[64] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", (int)(uintptr_t)exported);
    if (readlink(link, target, sizeof target - 1) < 0 || !strstr(target, "fake-cuda"))
        return CUDA_ERROR_INVALID_VALUE; /* no memory of a GPU's */
    int file = dup((int)(uintptr_t)exported);
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || file < 0 || fstat(file, &status))
        return CUDA_ERROR_INVALID_VALUE;
    fake.used += (uint64_t)status.st_size; /* which MemRelease takes back */
    *handle = (unsigned)file;
    return CUDA_SUCCESS;
}

ENTRY(cuMemHostRegister_v2, void *start, size_t bytes, unsigned flags)
{
    CHECK_CONTEXT();
    if (!flags || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (overlaps(fake.registered, fake.num_registered, (uintptr_t)start, bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    CUresult failure = may_fail("cuMemHostRegister");
    if (failure)
        return failure;
    fake.registered[fake.num_registered++] = (struct range){(uintptr_t)start, bytes, -1};
    return CUDA_SUCCESS;
}

ENTRY(cuMemHostUnregister, void *start)
{
    for (unsigned i = 0; i < fake.num_registered; i++)
        if (fake.registered[i].start == (uintptr_t)start) {
            fake.registered[i] = fake.registered[--fake.num_registered];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuMemHostGetDevicePointer_v2, CUdeviceptr *at, void *start, unsigned flags)
{
    *at = (uintptr_t)start;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuMemHostAlloc, void **start, size_t bytes, unsigned flags)
{
    CUresult failure = may_fail("cuMemHostAlloc");
    if (failure)
        return failure;
    *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*start == MAP_FAILED || !flags)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.registered[fake.num_registered++] = (struct range){(uintptr_t)*start, bytes, -1};
    return CUDA_SUCCESS;
}

ENTRY(cuMemAlloc_v2, CUdeviceptr *at, size_t bytes)
{
    *at = (uintptr_t)malloc(bytes);
    if (!*at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.mapped[fake.num_mapped++] = (struct range){*at, bytes, -1};
    return CUDA_SUCCESS;
}

ENTRY(cuMemFree_v2, CUdeviceptr at)
{
    struct range *range = find(fake.mapped, fake.num_mapped, at, 1);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    *range = fake.mapped[--fake.num_mapped];
    free((void *)(uintptr_t)at);
    return CUDA_SUCCESS;
}

/* --- What is enqueued ----------------------------------------------------------------------------
 */

/* A host range in one registration or in none. */
static bool is_host_range(uint64_t start, uint64_t bytes)
{
    return find(fake.registered, fake.num_registered, start, bytes) ||
           !overlaps(fake.registered, fake.num_registered, start, bytes);
}

static void copy(uint64_t dst, uint64_t src, size_t bytes)
{
    memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
}

struct copy {
    uint64_t dst, src, bytes;
    bool is_to_device;
};

static bool run_copy(const void *data)
{
    const struct copy *c = data;
    uint64_t first = 0;
    if (c->is_to_device && c->bytes >= sizeof first)
        memcpy(&first, (const void *)(uintptr_t)c->src, sizeof first);
    if (first == FAKE_WAITS)
        return false;
    copy(c->dst, c->src, c->bytes);
    return true;
}

static CUresult enqueue_copy(CUstream stream, uint64_t dst, uint64_t src, size_t bytes,
                             bool is_to_device)
{
    return enqueue(stream, run_copy, &(struct copy){dst, src, bytes, is_to_device},
                   sizeof(struct copy));
}

ENTRY(cuMemcpyHtoDAsync_v2, CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    CHECK_CONTEXT();
    if (!find(fake.mapped, fake.num_mapped, dst, bytes) || !is_host_range((uintptr_t)src, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult failure = may_fail("cuMemcpyHtoDAsync");
    return failure ? failure : enqueue_copy(stream, dst, (uintptr_t)src, bytes, true);
}

ENTRY(cuMemcpyDtoHAsync_v2, void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CUresult failure = may_fail("cuMemcpyDtoHAsync");
    if (failure)
        return failure;
    CHECK_CONTEXT();
    bool is_constant = !find(fake.mapped, fake.num_mapped, src, bytes); /* of a module */
    if ((is_constant && bytes > 1) || !is_host_range((uintptr_t)dst, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue_copy(stream, (uintptr_t)dst, src, bytes, false);
}

ENTRY(cuMemcpyDtoDAsync_v2, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CHECK_CONTEXT();
    if (!find(fake.mapped, fake.num_mapped, dst, bytes) ||
        !find(fake.mapped, fake.num_mapped, src, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue_copy(stream, dst, src, bytes, false);
}

ENTRY(cuMemcpyAsync, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    CHECK_CONTEXT();
    return enqueue_copy(stream, dst, src, bytes, false);
}

struct fill {
    uint64_t dst, size, count;
    unsigned char value[4];
};

static bool run_fill(const void *data)
{
    const struct fill *f = data;
    if (f->size == 1)
        memset((void *)(uintptr_t)f->dst, f->value[0], f->count);
    for (size_t i = 0; i < f->count && f->size > 1; i++)
        memcpy((char *)(uintptr_t)f->dst + i * f->size, f->value, f->size);
    return true;
}

static CUresult fill(uint64_t dst, const void *value, size_t size, size_t count, CUstream stream)
{
    struct fill f = {.dst = dst, .size = size, .count = count};
    memcpy(f.value, value, size);
    if (!find(fake.mapped, fake.num_mapped, dst, size * count) &&
        !find(fake.registered, fake.num_registered, dst, size * count))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, run_fill, &f, sizeof f);
}

ENTRY(cuMemsetD8Async, CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    CHECK_CONTEXT();
    CUresult failure = may_fail("cuMemsetD8Async");
    return failure ? failure : fill(dst, &value, sizeof value, count, stream);
}

ENTRY(cuMemsetD16Async, CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
    CHECK_CONTEXT();
    return fill(dst, &value, sizeof value, count, stream);
}

ENTRY(cuMemsetD32Async, CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    CHECK_CONTEXT();
    return fill(dst, &value, sizeof value, count, stream);
}

/* --- Streams and events --------------------------------------------------------------------------
 */

ENTRY(cuStreamCreateWithPriority, CUstream *stream, unsigned flags, int priority)
{
    *stream = calloc(1, sizeof **stream);
    if (!*stream || !flags || priority > 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    (*stream)->last = &(*stream)->first;
    (*stream)->next = fake.streams;
    fake.streams = *stream;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

ENTRY(cuStreamCreate, CUstream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

static bool has_happened(CUstream stream, CUevent event)
{
    pthread_mutex_lock(&fake.lock);
    go_on();
    bool has = stream ? !stream->first : event->done == event->asked;
    pthread_mutex_unlock(&fake.lock);
    return has;
}

ENTRY(cuStreamQuery, CUstream stream)
{
    CHECK_CONTEXT();
    return has_happened(stream, NULL) ? fake.error : CUDA_ERROR_NOT_READY;
}

ENTRY(cuStreamSynchronize, CUstream stream)
{
    CHECK_CONTEXT();
    while (!has_happened(stream, NULL))
        usleep(100);
    return fake.error;
}

struct wait {
    CUevent event;
    uint64_t record;
};

static bool run_wait(const void *data)
{
    const struct wait *wait = data;
    return wait->event->done >= wait->record;
}

ENTRY(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned flags)
{
    CHECK_CONTEXT();
    if (!event || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, run_wait, &(struct wait){event, event->asked}, sizeof(struct wait));
}

struct write {
    uint64_t at, value;
};

static bool run_write(const void *data)
{
    const struct write *w = data;
    __atomic_store_n((uint64_t *)(uintptr_t)w->at, w->value, __ATOMIC_RELEASE);
    return true;
}

ENTRY(cuStreamWriteValue64_v2, CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags)
{
    CHECK_CONTEXT();
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, run_write, &(struct write){at, value}, sizeof(struct write));
}

ENTRY(cuEventCreate, CUevent *event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    return *event && flags < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool run_record(const void *data)
{
    const struct wait *record = data;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record->event->milliseconds = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    record->event->done = record->record;
    return true;
}

ENTRY(cuEventRecord, CUevent event, CUstream stream)
{
    CHECK_CONTEXT();
    return enqueue(stream, run_record, &(struct wait){event, ++event->asked}, sizeof(struct wait));
}

ENTRY(cuEventQuery, CUevent event)
{
    CHECK_CONTEXT();
    return has_happened(NULL, event) ? fake.error : CUDA_ERROR_NOT_READY;
}

ENTRY(cuEventSynchronize, CUevent event)
{
    CHECK_CONTEXT();
    while (!has_happened(NULL, event))
        usleep(100);
    return fake.error;
}

ENTRY(cuEventElapsedTime, float *milliseconds, CUevent start, CUevent end)
{
    CHECK_CONTEXT();
    *milliseconds = (float)(end->milliseconds - start->milliseconds);
    return CUDA_SUCCESS;
}

/* --- Code ----------------------------------------------------------------------------------------
 */

ENTRY(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned count, int *options,
      void **values)
{
    CHECK_CONTEXT();
    const char *text = image;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER && strstr(text, "wrong"))
            strcpy(values[i], "fake: this is wrong");
        if (options[i] == CU_JIT_INFO_LOG_BUFFER && strstr(text, "advised"))
            strcpy(values[i], "fake: this could be\x1b better");
    }
    if (strstr(text, "wrong"))
        return CUDA_ERROR_INVALID_PTX;
    *module = malloc(sizeof **module);
    (*module)->text = strdup(text);
    return CUDA_SUCCESS;
}

ENTRY(cuModuleUnload, CUmodule module)
{
    free(module->text);
    free(module);
    return CUDA_SUCCESS;
}

ENTRY(cuModuleGetFunction, CUfunction *function, CUmodule module, const char *name)
{
    char entry[4096];
    CHECK_CONTEXT();
    snprintf(entry, sizeof entry, "entry %s", name);
    const char *found = strstr(module->text, entry);
    while (found && (found[strlen(entry)] == '_' || (found[strlen(entry)] | 32) >= 'a'))
        found = strstr(found + 1, entry);
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *function = calloc(1, sizeof **function);
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    (*function)->dynamic_bytes = 48 << 10;
    return CUDA_SUCCESS;
}

ENTRY(cuFuncGetAttribute, int *value, int attribute, CUfunction function)
{
    *value = attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? 0 : 1024;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuFuncSetAttribute, CUfunction function, int attribute, int value)
{
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_bytes = value;
    return CUDA_SUCCESS;
}

struct rows {
    uint64_t dst, src, width, height, rows, dst_row, dst_slice, src_row, src_slice;
};

static void copy_rows(const struct rows *r)
{
    for (uint64_t i = 0; i < r->rows; i++) {
        uint64_t slice = i / r->height, line = i % r->height;
        copy(r->dst + slice * r->dst_slice + line * r->dst_row,
             r->src + slice * r->src_slice + line * r->src_row, r->width);
    }
}

/* args: u64 address of an int, int value, int. */
static void add(const unsigned char *block, const struct sp_gpu_launch *launch)
{
    int *data, value;
    memcpy(&data, block, 8);
    memcpy(&value, block + 8, 4);
    for (unsigned i = 0; i < launch->local_size[0]; i++)
        for (unsigned g = 0; g < launch->num_groups[0]; g++)
            if (g * launch->local_size[0] + i < launch->global_size[0])
                data[launch->global_offset[0] + g * launch->local_size[0] + i] += value;
}

static void print(const struct sp_gpu_launch *launch)
{
    static const char format[] = "printed %d %s\n", word[] = "word";
    struct sp_gpu_print_buffer *buffer = (void *)(uintptr_t)launch->print_buffer;
    struct {
        struct sp_gpu_print_record record;
        uint64_t integer_header, integer, pointer_header, pointer;
    } all = {{sizeof all, (uintptr_t)format},
             0 | 1 << 8 | 4 << 16,
             42,
             2 | 1 << 8 | 8 << 16,
             (uintptr_t)word};
    memcpy(buffer->records + buffer->position, &all, sizeof all);
    buffer->position += sizeof all;
}

/* The self-test of the atomic unit (own_kernels.cl), as one request for each warp and round. */
static void unit_test(const unsigned char *block, uint32_t items)
{
    struct {
        uint64_t unit, narrow, wide, sum;
        uint32_t rounds;
    } p;
    memcpy(&p, block,
           offsetof(__typeof__(p), rounds) + sizeof p.rounds); /* what the launch has of it */
    bool loses = getenv("FAKE_CUDA_LOSES");
    for (uint32_t i = 0; i < items / HOST_LANES * p.rounds; i++) {
        if (!loses || i % 100)
            unit_perform(p.unit, UNIT_ADD, p.narrow, HOST_LANES / 4 * (0 + 1 + 2 + 3), 0);
        ulong old = unit_perform(p.unit, UNIT_ADD | UNIT_WIDE, p.wide, HOST_LANES, 0);
        *(uint64_t *)(uintptr_t)p.sum += old * HOST_LANES + HOST_LANES * (HOST_LANES - 1) / 2;
    }
}

/* A work-item of sp_kernel_unit. */
struct unit_item {
    pthread_t thread;
    const struct sp_gpu_launch *launch;
    uint64_t address, operand;
    uint32_t operation, count, mode;
};

enum { USUAL, DIES, WITHOUT_TEST }; /* of the address */

static void *run_item(void *argument)
{
    const struct unit_item *item = argument;
    const struct sp_gpu_launch *launch = item->launch;
    for (uint32_t i = 0; i < item->count; i++)
        if (item->mode == WITHOUT_TEST ||
            item->address - launch->atomic_first < launch->atomic_bytes)
            unit_perform(launch->atomic_unit, item->operation, item->address, item->operand, 0);
        else
            __atomic_fetch_add((uint64_t *)(uintptr_t)item->address, item->operand,
                               __ATOMIC_RELAXED);
    return NULL;
}

/* args: u64 address, u64 operand, u32 operation, u32 count, u32 mode; a thread for each
 * work-item. */
static void unit_kernel(const unsigned char *block, const struct sp_gpu_launch *launch)
{
    enum { MAX_ITEMS = 16 };
    struct unit_item items[MAX_ITEMS], item = {.launch = launch};
    memcpy(&item.address, block, 8);
    memcpy(&item.operand, block + 8, 8);
    memcpy(&item.operation, block + 16, 4);
    memcpy(&item.count, block + 20, 4);
    memcpy(&item.mode, block + 24, 4);
    for (unsigned i = 0; i < launch->global_size[0] && i < MAX_ITEMS; i++) {
        items[i] = item;
        pthread_create(&items[i].thread, NULL, run_item, &items[i]);
    }
    if (item.mode == DIES) {
        while (__atomic_load_n((uint32_t *)(uintptr_t)item.address, __ATOMIC_RELAXED) < 1000)
            sched_yield();
        _exit(1);
    }
    for (unsigned i = 0; i < launch->global_size[0] && i < MAX_ITEMS; i++)
        pthread_join(items[i].thread, NULL);
}

struct launch {
    CUfunction function;
    unsigned grid_x, block_x, shared_bytes;
    size_t bytes;
    max_align_t block[];
};

static bool run_launch(const void *data)
{
    const struct launch *l = data;
    const unsigned char *block = (const unsigned char *)l->block;
    const char *name = l->function->name;
    const struct sp_gpu_launch *launch = (const void *)(block + l->bytes - sizeof *launch);
    if (!strcmp(name, "sp_gather")) {
        const struct {
            uint64_t dst, src, bytes;
        } *list = *(void *const *)block;
        for (unsigned i = 0; i < l->grid_x; i++)
            copy(list[i].dst, list[i].src, list[i].bytes);
    } else if (!strcmp(name, "sp_copy_rows")) {
        copy_rows((const struct rows *)block);
    } else if (!strcmp(name, "sp_fill_wide") || !strcmp(name, "sp_fill")) {
        const uint64_t *numbers = (const uint64_t *)block;
        bool is_wide = !strcmp(name, "sp_fill_wide");
        uint64_t count = is_wide ? numbers[1] * 16 : numbers[1];
        uint64_t size = is_wide ? numbers[2] * 16 : numbers[2];
        const unsigned char *pattern = block + (is_wide ? 32 : 24);
        for (uint64_t i = 0; i < count; i++)
            ((unsigned char *)(uintptr_t)numbers[0])[i] = pattern[i % size];
    } else if (!strcmp(name, "sp_unit_test")) {
        unit_test(block, l->grid_x * l->block_x);
    } else if (!strcmp(name, "sp_kernel_unit")) {
        unit_kernel(block, launch);
    } else if (!strcmp(name, "sp_kernel_add")) {
        add(block, launch);
    } else if (!strcmp(
                   name,
                   "sp_kernel_gate")) { /* args: u64 address of a word: waits for 1, makes it 2 */
        uint64_t *word;
        memcpy(&word, block, 8);
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 1)
            return false;
        *word = 2;
    } else if (!strcmp(name, "sp_kernel_local")) { /* args: u64 address; local; local */
        uint64_t *to, places[3];
        memcpy(&to, block, 8);
        memcpy(places, block + 8, 16);
        places[2] = l->shared_bytes;
        memcpy(to, places, sizeof places);
    } else if (!strcmp(name, "sp_kernel_groups")) { /* args: u64 address: launches, first groups */
        uint64_t *to;
        memcpy(&to, block, 8);
        to[1 + to[0]++] = launch->group_first[0] + ((uint64_t)launch->group_first[1] << 32);
    } else if (!strcmp(name, "sp_pair_groups")) { /* the same; blocks in the place of groups */
        uint64_t *to;
        memcpy(&to, block, 8);
        to[1 + to[0]++] = l->grid_x;
    } else if (!strcmp(name, "sp_kernel_print")) {
        print(launch);
    } else if (!strcmp(name, "sp_globals_init")) {
        int first = 41;
        memcpy((void *)(uintptr_t)launch->globals, &first, sizeof first);
    } else if (!strcmp(name, "sp_kernel_fault")) {
        fake.error = ILLEGAL_ADDRESS;
    }
    return true;
}

static bool is_known(const char *name)
{
    static const char *const names[] = {"sp_gather",        "sp_copy_rows",   "sp_fill_wide",
                                        "sp_fill",          "sp_unit_test",   "sp_kernel_unit",
                                        "sp_kernel_add",    "sp_kernel_gate", "sp_kernel_local",
                                        "sp_kernel_groups", "sp_pair_groups", "sp_kernel_print",
                                        "sp_globals_init",  "sp_kernel_fault"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return getenv("FAKE_CUDA_LENIENT"); /* for measuring what is not the GPU's */
}

ENTRY(cuLaunchKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
      void **parameters, void **extra)
{
    CHECK_CONTEXT();
    size_t bytes = *(size_t *)extra[3];
    if (parameters || !grid_x || !grid_y || !grid_z || !block_x || grid_y > 65535 ||
        grid_z > 65535 || block_x * block_y * block_z > 1024 ||
        (int)shared_bytes > function->dynamic_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_known(function->name))
        return CUDA_ERROR_NOT_FOUND;
    CUresult failure = may_fail("cuLaunchKernel");
    if (failure)
        return failure;
    struct launch *launch = malloc(sizeof *launch + bytes);
    if (!launch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *launch = (struct launch){function, grid_x, block_x, shared_bytes, bytes};
    memcpy(launch->block, extra[1], bytes);
    CUresult result = enqueue(stream, run_launch, launch, sizeof *launch + bytes);
    free(launch);
    return result;
}

/* --- Graphs of one kernel ------------------------------------------------------------------------
 */

struct CUgraph_st {
    CUgraphNode node;
};
struct CUgraphNode_st {
    CUDA_KERNEL_NODE_PARAMS parameters;
};
struct CUgraphExec_st {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS parameters;
    size_t bytes;
    unsigned char block[4096];
};

ENTRY(cuGraphCreate, CUgraph *graph, unsigned flags)
{
    CHECK_CONTEXT();
    *graph = calloc(1, sizeof **graph);
    return *graph && !flags && !getenv("FAKE_CUDA_WITHOUT_GRAPHS") ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_parameters(CUgraphExec exec, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    exec->parameters = *parameters;
    exec->bytes = *(size_t *)parameters->extra[3];
    if (parameters->kernelParams || exec->bytes > sizeof exec->block)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(exec->block, parameters->extra[1], exec->bytes);
    return CUDA_SUCCESS;
}

ENTRY(cuGraphAddKernelNode_v2, CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
      size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CHECK_CONTEXT();
    if (dependencies || count || graph->node)
        return CUDA_ERROR_INVALID_VALUE;
    *node = graph->node = calloc(1, sizeof **node);
    graph->node->parameters = *parameters;
    return CUDA_SUCCESS;
}

/* The parameters of the node are read here, which is early enough for the backend. */
ENTRY(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CHECK_CONTEXT();
    *exec = calloc(1, sizeof **exec);
    (*exec)->node = graph->node;
    return flags ? CUDA_ERROR_INVALID_VALUE : set_parameters(*exec, &graph->node->parameters);
}

ENTRY(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
      const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    CHECK_CONTEXT();
    return node == exec->node ? set_parameters(exec, parameters) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGraphLaunch, CUgraphExec exec, CUstream stream)
{
    const CUDA_KERNEL_NODE_PARAMS *p = &exec->parameters;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, exec->block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &exec->bytes, CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(p->func, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                          p->blockDimY, p->blockDimZ, p->sharedMemBytes, stream, NULL, extra);
}

ENTRY(cuGraphExecDestroy, CUgraphExec exec)
{
    memset(exec, 0xdb, sizeof *exec);
    free(exec);
    return CUDA_SUCCESS;
}

ENTRY(cuGraphDestroy, CUgraph graph)
{
    free(graph->node);
    free(graph);
    return CUDA_SUCCESS;
}
