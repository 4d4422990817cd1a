/* Memory objects: buffers and sub-buffers. */
#ifndef SP_API_MEM_H
#define SP_API_MEM_H

#include <pthread.h>

#include <CL/cl.h>

#include "runtime/context.h"
#include "runtime/object.h"

/* One clEnqueueMapBuffer that was not unmapped. */
struct sp_mapping {
    struct sp_mapping *next;
    void *pointer;
    cl_map_flags flags;
};

struct _cl_mem {
    struct sp_object object;
    cl_context context;        /* a reference is held */
    cl_mem_flags flags;
    size_t size;               /* bytes */
    void *address;             /* where its bytes are: in the window, or the application's memory */
    bool owns_address;         /* address came from context->arena */
    void *host_ptr;            /* what CL_MEM_HOST_PTR reports; NULL without CL_MEM_USE_HOST_PTR */
    cl_mem parent;             /* sub-buffers: a reference is held */
    size_t offset;             /* within parent */
    cl_mem_properties *properties; /* as given, with its 0; NULL when none were given */
    size_t properties_count;
    pthread_mutex_t lock;      /* of mappings, map_count and destructors */
    struct sp_mapping *mappings;
    cl_uint map_count;
    struct sp_destructor *destructors;
};

#endif
