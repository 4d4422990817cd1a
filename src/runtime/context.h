/* The platform, its devices, and contexts. */
#ifndef SP_RUNTIME_CONTEXT_H
#define SP_RUNTIME_CONTEXT_H

#include <pthread.h>

#include <CL/cl.h>

#include "device/driver.h"
#include "runtime/callback.h"
#include "runtime/object.h"

/* Among the flags of a region (svm/heap.h): it is no SVM allocation, but a buffer, or the library's
 * own. cl_svm_mem_flags end far below. */
#define SP_REGION_IS_BUFFER (UINT64_C(1) << 63)

struct sp_arena;

struct _cl_platform_id {
    struct sp_object object;
    cl_device_id *devices; /* root devices; they live as long as the process */
    cl_uint num_devices;
};

struct _cl_device_id {
    struct sp_object object; /* root devices are never released */
    struct sp_device *device;
    cl_device_id parent;                     /* NULL: a root device. A reference is held */
    cl_device_partition_property *partition; /* as given, with its 0; NULL for a root device */
    size_t partition_count;                  /* words in it, the 0 included */
};

/* The device that works in the host's memory, listed or not: copies and fills can run there. After
 * sp_platform_get. */
struct sp_device *sp_host_device(void);

/* The one platform; its devices are found and the window reserved at the first call. NULL when that
 * failed for want of memory. Thread-safe. */
cl_platform_id sp_platform_get(void);

struct sp_destructor {
    struct sp_destructor *next;
    void(CL_CALLBACK *function)(void *object, void *user_data);
    void *user_data;
};

struct _cl_context {
    struct sp_object object;
    cl_uint num_devices;
    cl_device_id *devices;             /* each with a reference */
    cl_context_properties *properties; /* as given, with its 0; NULL when none were given */
    size_t properties_count;
    void(CL_CALLBACK *notify)(const char *message, const void *info, size_t size, void *user_data);
    void *user_data;
    pthread_mutex_t lock;              /* of destructors */
    struct sp_destructor *destructors; /* newest first: called in this order */
    struct sp_arena *arena;            /* where the context's SVM and buffers come from */
    bool is_distributed;               /* a device has memory of its own */
    bool is_shared;                    /* regions have directories: distributed, or checked */
    /* A shared context is told of what went wrong (listeners.c's). */
    uint64_t listener; /* its number, from 1 */
    cl_context next_listener;
    unsigned visits;               /* under way */
    struct sp_callback_job ending; /* a distributed context ends on the callback thread */
};

/* Arguments are checked by the caller; duplicates in `devices` were removed. CL_OUT_OF_HOST_MEMORY.
 */
cl_int sp_context_create(cl_uint num_devices, const cl_device_id *devices,
                         const cl_context_properties *properties, size_t properties_count,
                         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                         void *user_data, cl_context *context);

/* Whether `device` is one of the context's. */
bool sp_context_has(cl_context context, cl_device_id device);

/* Whether the levels (SP_SVM_ bits) hold on at least one, or on every, device of the context. */
uint32_t sp_context_svm_any(cl_context context);
uint32_t sp_context_svm_all(cl_context context);

/* Sub-devices of `parent`, `counts` compute units each (SP_PARTITION_UNITS), or one for each NUMA
 * node (SP_PARTITION_NUMA; counts NULL). partition: the property array with its 0, copied into
 * each. CL_OUT_OF_HOST_MEMORY, CL_DEVICE_PARTITION_FAILED. Nothing is left on failure. */
cl_int sp_sub_devices_create(cl_device_id parent, enum sp_partition_kind kind, cl_uint count,
                             const cl_uint *counts, const cl_device_partition_property *partition,
                             size_t partition_count, cl_device_id *devices);

/* Tells the context's error callback, if it has one. */
void sp_context_report(cl_context context, const char *message);

/* The same, or on standard error where it has none: of what nothing else tells. */
void sp_context_tell(cl_context context, const char *message);

#endif
