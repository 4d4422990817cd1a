/* The part of NVIDIA's driver API that the cuda backend uses, declared here so that neither
 * building nor running needs a toolkit: the library is opened in the device process, and nowhere
 * else.
 *
 * Names, types and values are those of the driver API's own documentation ("CUDA Driver API",
 * sections Types, Memory, Virtual Memory, Stream, Event, Execution); tests/gpu/check_cuda_api.sh
 * compares them with cuda.h where there is one. Members of struct sp_cuda leave out the prefix "cu"
 * and the suffix "_v2" of the symbol that they stand for. Filled in once by sp_cuda_load, read-only
 * afterwards; no lock.
 */
#ifndef SP_DEVICE_PROCESS_CUDA_API_H
#define SP_DEVICE_PROCESS_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_UNKNOWN = 999,
};

/* CUdevice_attribute */
enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
};

/* CUfunction_attribute */
enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

/* CUjit_option */
enum {
    CU_JIT_INFO_LOG_BUFFER = 3,
    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* CUdevice_P2PAttribute */
enum {
    CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
    CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
};

enum {
    CU_CTX_SCHED_SPIN = 1,
    CU_CTX_MAP_HOST = 8,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
};

/* The `extra` argument of cuLaunchKernel. */
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

typedef struct {
    int type; /* CU_MEM_LOCATION_TYPE_ */
    int id;   /* the device's ordinal */
} CUmemLocation;

typedef struct {
    int type;                 /* CU_MEM_ALLOCATION_TYPE_ */
    int requestedHandleTypes; /* CU_MEM_HANDLE_TYPE_ */
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags; /* CU_MEM_ACCESS_FLAGS_ */
} CUmemAccessDesc;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern; /* in place of func, where that is NULL */
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

/* X(member, symbol, arguments): every entry point that is needed. */
#define SP_CUDA_FUNCTIONS(X)                                                                       \
    X(Init, cuInit, (unsigned flags))                                                              \
    X(DriverGetVersion, cuDriverGetVersion, (int *version))                                        \
    X(GetErrorName, cuGetErrorName, (CUresult error, const char **name))                           \
    X(GetErrorString, cuGetErrorString, (CUresult error, const char **text))                       \
    X(DeviceGetCount, cuDeviceGetCount, (int *count))                                              \
    X(DeviceGet, cuDeviceGet, (CUdevice * device, int ordinal))                                    \
    X(DeviceGetName, cuDeviceGetName, (char *name, int bytes, CUdevice device))                    \
    X(DeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                         \
    X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                      \
    X(DeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))      \
    X(DeviceGetP2PAttribute, cuDeviceGetP2PAttribute,                                              \
      (int *value, int attribute, CUdevice from, CUdevice to))                                     \
    X(DevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))  \
    X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))    \
    X(CtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                         \
    X(MemGetInfo, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                          \
    X(MemAddressReserve, cuMemAddressReserve,                                                      \
      (CUdeviceptr * at, size_t bytes, size_t alignment, CUdeviceptr hint,                         \
       unsigned long long flags))                                                                  \
    X(MemAddressFree, cuMemAddressFree, (CUdeviceptr at, size_t bytes))                            \
    X(MemCreate, cuMemCreate,                                                                      \
      (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *properties, \
       unsigned long long flags))                                                                  \
    X(MemRelease, cuMemRelease, (CUmemGenericAllocationHandle handle))                             \
    X(MemMap, cuMemMap,                                                                            \
      (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,           \
       unsigned long long flags))                                                                  \
    X(MemUnmap, cuMemUnmap, (CUdeviceptr at, size_t bytes))                                        \
    X(MemSetAccess, cuMemSetAccess,                                                                \
      (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count))                 \
    X(MemExportToShareableHandle, cuMemExportToShareableHandle,                                    \
      (void *exported, CUmemGenericAllocationHandle handle, int type, unsigned long long flags))   \
    X(MemImportFromShareableHandle, cuMemImportFromShareableHandle,                                \
      (CUmemGenericAllocationHandle * handle, void *exported, int type))                           \
    X(MemHostRegister, cuMemHostRegister_v2, (void *start, size_t bytes, unsigned flags))          \
    X(MemHostUnregister, cuMemHostUnregister, (void *start))                                       \
    X(MemHostGetDevicePointer, cuMemHostGetDevicePointer_v2,                                       \
      (CUdeviceptr * at, void *start, unsigned flags))                                             \
    X(MemHostAlloc, cuMemHostAlloc, (void **start, size_t bytes, unsigned flags))                  \
    X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr * at, size_t bytes))                                   \
    X(MemFree, cuMemFree_v2, (CUdeviceptr at))                                                     \
    X(MemcpyAsync, cuMemcpyAsync,                                                                  \
      (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                           \
    X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                       \
      (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))                           \
    X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                       \
      (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))                                 \
    X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                       \
      (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                           \
    X(MemsetD8Async, cuMemsetD8Async,                                                              \
      (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))                       \
    X(MemsetD16Async, cuMemsetD16Async,                                                            \
      (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream))                      \
    X(MemsetD32Async, cuMemsetD32Async,                                                            \
      (CUdeviceptr dst, unsigned value, size_t count, CUstream stream))                            \
    X(StreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))                           \
    X(StreamCreateWithPriority, cuStreamCreateWithPriority,                                        \
      (CUstream * stream, unsigned flags, int priority))                                           \
    X(StreamQuery, cuStreamQuery, (CUstream stream))                                               \
    X(StreamSynchronize, cuStreamSynchronize, (CUstream stream))                                   \
    X(StreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))        \
    X(StreamWriteValue64, cuStreamWriteValue64_v2,                                                 \
      (CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags))                           \
    X(EventCreate, cuEventCreate, (CUevent * event, unsigned flags))                               \
    X(EventRecord, cuEventRecord, (CUevent event, CUstream stream))                                \
    X(EventQuery, cuEventQuery, (CUevent event))                                                   \
    X(EventSynchronize, cuEventSynchronize, (CUevent event))                                       \
    X(EventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))     \
    X(ModuleLoadDataEx, cuModuleLoadDataEx,                                                        \
      (CUmodule * module, const void *image, unsigned count, int *options, void **values))         \
    X(ModuleUnload, cuModuleUnload, (CUmodule module))                                             \
    X(ModuleGetFunction, cuModuleGetFunction,                                                      \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(FuncGetAttribute, cuFuncGetAttribute, (int *value, int attribute, CUfunction function))      \
    X(FuncSetAttribute, cuFuncSetAttribute, (CUfunction function, int attribute, int value))       \
    X(LaunchKernel, cuLaunchKernel,                                                                \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                 \
       void **parameters, void **extra))

/* Those that the backend does without where the driver has none: it is older than CUDA 12.0. Then
 * all of them are NULL. */
#define SP_CUDA_OPTIONAL_FUNCTIONS(X)                                                              \
    X(GraphCreate, cuGraphCreate, (CUgraph * graph, unsigned flags))                               \
    X(GraphAddKernelNode, cuGraphAddKernelNode_v2,                                                 \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,           \
       const CUDA_KERNEL_NODE_PARAMS *parameters))                                                 \
    X(GraphInstantiate, cuGraphInstantiateWithFlags,                                               \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
    X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,                             \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters))             \
    X(GraphLaunch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                             \
    X(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec))                                    \
    X(GraphDestroy, cuGraphDestroy, (CUgraph graph))

#define SP_CUDA_MEMBER(member, symbol, arguments) CUresult(*member) arguments;

struct sp_cuda {
    SP_CUDA_FUNCTIONS(SP_CUDA_MEMBER)
    SP_CUDA_OPTIONAL_FUNCTIONS(SP_CUDA_MEMBER)
};

extern struct sp_cuda sp_cuda;

/* Opens the library (SP_CUDA_LIBRARY, or the path in SAMEPAGE_CUDA_LIBRARY, which tests use) and
 * finds the entry points. 0; -ENODEV where there is no such library; -ENOSYS where it is too old;
 * refused (backend.h). */
int sp_cuda_load(void);

/* "an illegal memory access was encountered (CUDA error 700)", in `text`, which it returns. */
const char *sp_cuda_error_text(CUresult error, char *text, size_t bytes);

#endif
