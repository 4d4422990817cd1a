/* See mem.h. Making, describing and ending buffers; the commands on them are in buffer_commands.c,
 * rect_commands.c and map_commands.c.
 */
#include "api/mem.h"

#include <stdlib.h>

#include "api/destructor.h"
#include "api/device.h"
#include "api/info.h"
#include "api/range.h"
#include "runtime/queue.h"
#include "svm/check.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "util/alloc.h"

#define ACCESS_FLAGS ((cl_mem_flags)(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY))
#define HOST_PTR_FLAGS                                                                             \
    ((cl_mem_flags)(CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
#define HOST_ACCESS_FLAGS                                                                          \
    ((cl_mem_flags)(CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))

cl_int sp_buffer_check(cl_context context, cl_mem buffer)
{
    if (!sp_object_is(buffer, SP_OBJECT_MEM))
        return CL_INVALID_MEM_OBJECT;
    return buffer->context == context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

cl_int sp_buffer_check_alignment(cl_device_id device, cl_mem buffer)
{
    (void)device; /* all devices have one alignment */
    return buffer->offset % SP_MEM_BASE_ALIGN_BYTES ? CL_MISALIGNED_SUB_BUFFER_OFFSET : CL_SUCCESS;
}

cl_int sp_buffer_copy_check(cl_command_queue queue, cl_mem src, cl_mem dst)
{
    if (!sp_object_is(queue, SP_OBJECT_QUEUE))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = sp_buffer_check(queue->context, src);
    if (!error)
        error = sp_buffer_check(queue->context, dst);
    if (!error)
        error = sp_buffer_check_alignment(queue->device, src);
    if (!error)
        error = sp_buffer_check_alignment(queue->device, dst);
    return error;
}

static bool at_most_one(cl_mem_flags flags)
{
    return (flags & (flags - 1)) == 0;
}

static bool flags_are_valid(cl_mem_flags flags)
{
    if (flags & ~(ACCESS_FLAGS | HOST_PTR_FLAGS | HOST_ACCESS_FLAGS))
        return false;
    if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
        return false;
    return at_most_one(flags & ACCESS_FLAGS) && at_most_one(flags & HOST_ACCESS_FLAGS);
}

static void destroy(struct sp_object *object)
{
    cl_mem buffer = (cl_mem)object;
    while (buffer->destructors) {
        struct sp_destructor *destructor = buffer->destructors;
        buffer->destructors = destructor->next;
        destructor->function(buffer, destructor->user_data);
        free(destructor);
    }
    while (buffer->mappings) {
        struct sp_mapping *mapping = buffer->mappings;
        buffer->mappings = mapping->next;
        free(mapping);
    }
    if (buffer->owns_address)
        sp_arena_free(buffer->context->arena, buffer->address);
    pthread_mutex_destroy(&buffer->lock);
    if (buffer->parent)
        sp_object_unreference(&buffer->parent->object);
    sp_object_unreference(&buffer->context->object);
    free(buffer->properties);
    free(buffer);
}

/* A buffer without bytes. NULL when out of memory. */
static cl_mem create_object(cl_context context, cl_mem_flags flags, size_t size)
{
    cl_mem buffer = sp_alloc(sizeof *buffer);
    if (!buffer)
        return NULL;
    sp_object_init(&buffer->object, SP_OBJECT_MEM, destroy);
    pthread_mutex_init(&buffer->lock, NULL);
    buffer->context = context;
    sp_object_reference(&context->object);
    buffer->flags = flags;
    buffer->size = size;
    return buffer;
}

static uint64_t largest_alloc_bytes(cl_context context)
{
    uint64_t largest = 0;
    for (cl_uint i = 0; i < context->num_devices; i++)
        if (context->devices[i]->device->info.max_alloc_bytes > largest)
            largest = context->devices[i]->device->info.max_alloc_bytes;
    return largest;
}

/* The SVM allocation that holds `pointer`: true, and how many bytes it has from there on. */
static bool find_svm(const void *pointer, size_t *bytes_left)
{
    struct sp_region_info region;
    if (!sp_region_find(pointer, &region) || region.flags & SP_REGION_IS_BUFFER)
        return false;
    *bytes_left = region.bytes - (size_t)((const char *)pointer - (const char *)region.start);
    return true;
}

static cl_int check_creation(cl_context context, const cl_mem_properties *properties,
                             cl_mem_flags flags, size_t size, void *host_ptr)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    if (properties && properties[0])
        return CL_INVALID_PROPERTY; /* there are none yet */
    if (!flags_are_valid(flags))
        return CL_INVALID_VALUE;
    if (size == 0 || size > largest_alloc_bytes(context))
        return CL_INVALID_BUFFER_SIZE;
    bool wants_host_ptr = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    if (wants_host_ptr != (host_ptr != NULL))
        return CL_INVALID_HOST_PTR;
    size_t bytes_left;
    if (wants_host_ptr && find_svm(host_ptr, &bytes_left) && size > bytes_left)
        return CL_INVALID_BUFFER_SIZE;
    return CL_SUCCESS;
}

/* Gives the new buffer its bytes. */
static cl_int attach_bytes(cl_mem buffer, void *host_ptr)
{
    if (buffer->flags & CL_MEM_USE_HOST_PTR) {
        size_t bytes_left;
        buffer->address = buffer->host_ptr = host_ptr;
        buffer->uses_svm = find_svm(host_ptr, &bytes_left);
        /* Devices with memory of their own reach only the window: there the buffer has bytes of its
         * own, and those behind the host pointer are brought up to date by mapping (the
         * specification lets an implementation cache them). */
        if (buffer->uses_svm || !buffer->context->is_distributed)
            return CL_SUCCESS;
    }
    buffer->address = sp_arena_alloc(buffer->context->arena, buffer->size, 0,
                                     buffer->flags | SP_REGION_IS_BUFFER, SP_PATH_PRIVATE);
    if (!buffer->address)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    buffer->owns_address = true;
    if (host_ptr) {
        if (sp_check_is_on)
            sp_check_allow(buffer->address);
        memcpy(buffer->address, host_ptr, buffer->size);
        if (sp_check_is_on)
            sp_check_disallow(buffer->address);
        sp_region_written(buffer->context->arena, buffer->address, buffer->size);
    }
    return CL_SUCCESS;
}

static cl_int create_buffer(cl_context context, const cl_mem_properties *properties,
                            cl_mem_flags flags, size_t size, void *host_ptr, cl_mem *buffer)
{
    cl_int error = check_creation(context, properties, flags, size, host_ptr);
    if (error)
        return error;
    cl_mem created = create_object(context, flags, size);
    if (!created)
        return CL_OUT_OF_HOST_MEMORY;
    if (properties) {
        error = CL_OUT_OF_HOST_MEMORY;
        created->properties = sp_alloc(sizeof created->properties[0]);
        if (!created->properties)
            goto err;
        created->properties_count = 1;
    }
    error = attach_bytes(created, host_ptr);
    if (error)
        goto err;
    *buffer = created;
    return CL_SUCCESS;

err:
    sp_object_release(&created->object);
    return error;
}

cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                  void *host_ptr, cl_int *errcode_ret)
{
    return clCreateBufferWithProperties(context, NULL, flags, size, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context,
                                                const cl_mem_properties *properties,
                                                cl_mem_flags flags, size_t size, void *host_ptr,
                                                cl_int *errcode_ret)
{
    cl_mem buffer = NULL;
    cl_int error = create_buffer(context, properties, flags, size, host_ptr, &buffer);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : buffer;
}

/* A sub-buffer may narrow what its parent allows, never widen it. */
static bool sub_flags_are_valid(cl_mem_flags parent, cl_mem_flags flags)
{
    if (!flags_are_valid(flags) || flags & HOST_PTR_FLAGS)
        return false;
    if (parent & CL_MEM_WRITE_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY))
        return false;
    if (parent & CL_MEM_READ_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY))
        return false;
    if (parent & CL_MEM_HOST_WRITE_ONLY && flags & CL_MEM_HOST_READ_ONLY)
        return false;
    if (parent & CL_MEM_HOST_READ_ONLY && flags & CL_MEM_HOST_WRITE_ONLY)
        return false;
    return !(parent & CL_MEM_HOST_NO_ACCESS &&
             flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY));
}

static cl_mem_flags inherit_flags(cl_mem_flags parent, cl_mem_flags flags)
{
    if (!(flags & ACCESS_FLAGS))
        flags |= parent & ACCESS_FLAGS;
    if (!(flags & HOST_ACCESS_FLAGS))
        flags |= parent & HOST_ACCESS_FLAGS;
    return flags | (parent & HOST_PTR_FLAGS);
}

static cl_int create_sub_buffer(cl_mem parent, cl_mem_flags flags, cl_buffer_create_type type,
                                const cl_buffer_region *region, cl_mem *buffer)
{
    if (!sp_object_is(parent, SP_OBJECT_MEM) || parent->parent)
        return CL_INVALID_MEM_OBJECT;
    if (!sub_flags_are_valid(parent->flags, flags) || type != CL_BUFFER_CREATE_TYPE_REGION ||
        !region || !sp_range_fits(region->origin, region->size, parent->size))
        return CL_INVALID_VALUE;
    if (region->size == 0)
        return CL_INVALID_BUFFER_SIZE;
    if (region->origin % SP_MEM_BASE_ALIGN_BYTES)
        return CL_MISALIGNED_SUB_BUFFER_OFFSET;

    cl_mem created =
        create_object(parent->context, inherit_flags(parent->flags, flags), region->size);
    if (!created)
        return CL_OUT_OF_HOST_MEMORY;
    created->parent = parent;
    sp_object_reference(&parent->object);
    created->offset = region->origin;
    created->address = (char *)parent->address + region->origin;
    created->host_ptr = parent->host_ptr ? (char *)parent->host_ptr + region->origin : NULL;
    created->uses_svm = parent->uses_svm;
    *buffer = created;
    return CL_SUCCESS;
}

cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                     cl_buffer_create_type buffer_create_type,
                                     const void *buffer_create_info, cl_int *errcode_ret)
{
    cl_mem created = NULL;
    cl_int error =
        create_sub_buffer(buffer, flags, buffer_create_type, buffer_create_info, &created);
    sp_error_reply(errcode_ret, error);
    return error ? NULL : created;
}

cl_int CL_API_CALL clRetainMemObject(cl_mem memobj)
{
    if (!sp_object_is(memobj, SP_OBJECT_MEM))
        return CL_INVALID_MEM_OBJECT;
    sp_object_retain(&memobj->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clReleaseMemObject(cl_mem memobj)
{
    if (!sp_object_is(memobj, SP_OBJECT_MEM))
        return CL_INVALID_MEM_OBJECT;
    sp_object_release(&memobj->object);
    return CL_SUCCESS;
}

cl_int CL_API_CALL clSetMemObjectDestructorCallback(
    cl_mem memobj, void(CL_CALLBACK *pfn_notify)(cl_mem memobj, void *user_data), void *user_data)
{
    if (!sp_object_is(memobj, SP_OBJECT_MEM))
        return CL_INVALID_MEM_OBJECT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    /* A handle is a pointer: both function types are called alike. */
    return sp_destructor_add(&memobj->lock, &memobj->destructors,
                             (void(CL_CALLBACK *)(void *, void *))pfn_notify, user_data);
}

static cl_uint count_mappings(cl_mem buffer)
{
    pthread_mutex_lock(&buffer->lock);
    cl_uint count = buffer->map_count;
    pthread_mutex_unlock(&buffer->lock);
    return count;
}

cl_int CL_API_CALL clGetMemObjectInfo(cl_mem memobj, cl_mem_info param_name,
                                      size_t param_value_size, void *param_value,
                                      size_t *param_value_size_ret)
{
    if (!sp_object_is(memobj, SP_OBJECT_MEM))
        return CL_INVALID_MEM_OBJECT;
    switch (param_name) {
    case CL_MEM_TYPE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
    case CL_MEM_FLAGS:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_mem_flags, memobj->flags);
    case CL_MEM_SIZE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, size_t,
                                   memobj->size);
    case CL_MEM_HOST_PTR:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret, &memobj->host_ptr,
                             sizeof memobj->host_ptr);
    case CL_MEM_MAP_COUNT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   count_mappings(memobj));
    case CL_MEM_REFERENCE_COUNT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_uint,
                                   sp_object_handles(&memobj->object));
    case CL_MEM_CONTEXT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_context,
                                   memobj->context);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_mem,
                                   memobj->parent);
    case CL_MEM_OFFSET:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, size_t,
                                   memobj->offset);
    case CL_MEM_USES_SVM_POINTER:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret, cl_bool,
                                   memobj->uses_svm);
    case CL_MEM_PROPERTIES:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret,
                             memobj->properties,
                             memobj->properties_count * sizeof memobj->properties[0]);
    default:
        return CL_INVALID_VALUE;
    }
}
