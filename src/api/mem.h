/* Memory objects: buffers and sub-buffers.
 *
 * A buffer's bytes lie in the window, so that every device reaches them, or are the application's
 * own (CL_MEM_USE_HOST_PTR): those are used in place, SVM or not, so a buffer over SVM and the SVM
 * always agree. A sub-buffer has no bytes of its own; it keeps its parent alive.
 *
 * A buffer's lock guards its mappings and destructor callbacks. No other lock is taken and no
 * callback is called while it is held.
 */
#ifndef SP_API_MEM_H
#define SP_API_MEM_H

#include <pthread.h>

#include <CL/cl.h>

#include "runtime/context.h"
#include "runtime/object.h"

/* What forbids the host to read, and to write, a buffer. */
#define SP_NO_HOST_READ_FLAGS ((cl_mem_flags)(CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS))
#define SP_NO_HOST_WRITE_FLAGS ((cl_mem_flags)(CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))

/* One clEnqueueMapBuffer that was not unmapped. */
struct sp_mapping {
    struct sp_mapping *next;
    void *pointer; /* what the application was given */
    size_t size;   /* bytes */
    cl_map_flags flags;
};

struct _cl_mem {
    struct sp_object object;
    cl_context context; /* a reference is held */
    cl_mem_flags flags; /* as given; sub-buffers: with what they inherit */
    size_t size;        /* bytes */
    void *address;      /* where its bytes are: in the window, or the application's memory */
    bool owns_address;  /* address came from context->arena */
    bool uses_svm;      /* address is the application's, and SVM */
    void *host_ptr;     /* what CL_MEM_HOST_PTR reports; NULL without CL_MEM_USE_HOST_PTR */
    cl_mem parent;      /* sub-buffers: a reference is held */
    size_t offset;      /* within parent */
    cl_mem_properties *properties; /* as given, with its 0; NULL when none were given */
    size_t properties_count;       /* words in it, the 0 included */
    pthread_mutex_t lock;          /* of mappings, map_count and destructors */
    struct sp_mapping *mappings;
    cl_uint map_count;
    struct sp_destructor *destructors; /* newest first: called in this order */
};

/* Whether `buffer` can be used with objects of `context`: CL_INVALID_MEM_OBJECT,
 * CL_INVALID_CONTEXT. */
cl_int sp_buffer_check(cl_context context, cl_mem buffer);

/* Whether a sub-buffer's offset suits `device`: CL_MISALIGNED_SUB_BUFFER_OFFSET. */
cl_int sp_buffer_check_alignment(cl_device_id device, cl_mem buffer);

/* What every copy from buffer to buffer checks first: the queue, then both buffers and their
 * alignment, in the specification's order. */
cl_int sp_buffer_copy_check(cl_command_queue queue, cl_mem src, cl_mem dst);

/* Whether both are one buffer, or parts of one. */
static inline bool sp_buffers_share_bytes(cl_mem a, cl_mem b)
{
    return (a->parent ? a->parent : a) == (b->parent ? b->parent : b);
}

#endif
