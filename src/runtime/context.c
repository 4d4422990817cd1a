/* See context.h. The platform is made once, by whoever asks first, and stays. */
#include "runtime/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/selection.h"
#include "runtime/check_report.h"
#include "runtime/listeners.h"
#include "runtime/loss_report.h"
#include "svm/check.h"
#include "svm/coherence.h"
#include "svm/heap.h"
#include "svm/trace.h"
#include "util/alloc.h"

/* In the order in which their devices are listed. */
static const struct sp_driver *const drivers[] = {&sp_cpu_driver, &sp_client_driver};

#define NUM_DRIVERS (sizeof drivers / sizeof drivers[0])

static struct sp_device *host_device; /* set with the platform */

static struct {
    pthread_mutex_t lock;
    struct _cl_platform_id *_Atomic platform; /* set last: acquire sees all of it */
} platforms = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Root devices and the platform stay until the process ends. */
static void keep(struct sp_object *object)
{
    (void)object;
}

static void destroy_device(struct sp_object *object)
{
    cl_device_id device = (cl_device_id)object;
    device->device->ops->destroy(device->device);
    sp_object_unreference(&device->parent->object);
    free(device->partition);
    free(device);
}

static void add_agent(struct sp_device *device)
{
    sp_coherence_add_agent(device);
    sp_check_add_agent(device);
    device->noticed = sp_loss_report_notice;
}

/* Adds devices of one driver to the platform. */
static int add_devices(struct _cl_platform_id *platform, struct sp_device **found, unsigned count)
{
    cl_device_id *devices =
        sp_realloc(platform->devices, (platform->num_devices + count) * sizeof *devices);
    if (!devices)
        return -ENOMEM;
    platform->devices = devices;
    for (unsigned i = 0; i < count; i++) {
        cl_device_id device = sp_alloc(sizeof *device);
        if (!device)
            return -ENOMEM;
        sp_object_init(&device->object, SP_OBJECT_DEVICE, keep);
        device->device = found[i];
        if (found[i]->info.own_memory)
            add_agent(found[i]);
        platform->devices[platform->num_devices++] = device;
    }
    return 0;
}

/* Asks one driver for its devices; a driver without devices adds none. The CPU is there for copies
 * and fills even where it is not listed. */
static int probe_driver(struct _cl_platform_id *platform, const struct sp_driver *driver)
{
    struct sp_device **found = NULL;
    unsigned count = 0;
    int error = driver->probe(&found, &count);
    if (error)
        return error == -ENODEV ? 0 : error;
    if (driver == &sp_cpu_driver) {
        host_device = found[0];
        sp_coherence_set_host_bytes(found[0]->info.global_memory_bytes);
        if (!sp_selection()->has_cpu)
            return 0;
    }
    return add_devices(platform, found, count);
}

static struct _cl_platform_id *create_platform(void)
{
    struct _cl_platform_id *platform = sp_alloc(sizeof *platform);
    if (!platform)
        return NULL;
    sp_trace_init();
    int error = sp_window_init();
    if (!error)
        sp_check_init();
    for (size_t i = 0; !error && i < NUM_DRIVERS; i++)
        error = probe_driver(platform, drivers[i]);
    sp_check_report_start();
    sp_coherence_set_loss_reports(&sp_loss_report);
    if (error) {
        for (cl_uint i = 0; i < platform->num_devices; i++)
            free(platform->devices[i]);
        free(platform->devices);
        free(platform);
        return NULL;
    }
    sp_object_init(&platform->object, SP_OBJECT_PLATFORM, keep);
    return platform;
}

struct sp_device *sp_host_device(void)
{
    return host_device;
}

cl_platform_id sp_platform_get(void)
{
    struct _cl_platform_id *platform =
        atomic_load_explicit(&platforms.platform, memory_order_acquire);
    if (platform)
        return platform;
    pthread_mutex_lock(&platforms.lock);
    platform = atomic_load_explicit(&platforms.platform, memory_order_relaxed);
    if (!platform) {
        platform = create_platform();
        atomic_store_explicit(&platforms.platform, platform, memory_order_release);
    }
    pthread_mutex_unlock(&platforms.lock);
    return platform;
}

static void end_context(cl_context context)
{
    sp_listeners_remove(context);
    while (context->destructors) {
        struct sp_destructor *destructor = context->destructors;
        context->destructors = destructor->next;
        destructor->function(context, destructor->user_data);
        free(destructor);
    }
    sp_arena_destroy(context->arena);
    for (cl_uint i = 0; i < context->num_devices; i++)
        sp_object_unreference(&context->devices[i]->object);
    pthread_mutex_destroy(&context->lock);
    free(context->devices);
    free(context->properties);
    free(context);
}

static void end_on_callback_thread(struct sp_callback_job *job)
{
    end_context((cl_context)((char *)job - offsetof(struct _cl_context, ending)));
}

/* The arena of a context with several memories waits for copies that are under way; the thread of a
 * device, which may have dropped the last reference, is the one that ends them, so it must not be
 * the one that waits. */
static void destroy_context(struct sp_object *object)
{
    cl_context context = (cl_context)object;
    if (!context->is_distributed) {
        end_context(context);
        return;
    }
    context->ending.run = end_on_callback_thread;
    sp_callback_post(&context->ending);
}

cl_int sp_context_create(cl_uint num_devices, const cl_device_id *devices,
                         const cl_context_properties *properties, size_t properties_count,
                         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                         void *user_data, cl_context *context)
{
    cl_context created = sp_alloc(sizeof *created);
    if (!created)
        return CL_OUT_OF_HOST_MEMORY;
    created->devices = sp_alloc_array(num_devices, sizeof *devices);
    if (!created->devices)
        goto err;
    if (properties) {
        created->properties = sp_alloc_array(properties_count, sizeof *properties);
        if (!created->properties)
            goto err;
        memcpy(created->properties, properties, properties_count * sizeof *properties);
        created->properties_count = properties_count;
    }
    for (cl_uint i = 0; i < num_devices; i++)
        created->is_distributed |= devices[i]->device->info.own_memory;
    created->is_shared = created->is_distributed || sp_check_is_on;
    if (sp_arena_create(created->is_shared, &created->arena))
        goto err;

    sp_object_init(&created->object, SP_OBJECT_CONTEXT, destroy_context);
    pthread_mutex_init(&created->lock, NULL);
    created->notify = notify;
    created->user_data = user_data;
    created->num_devices = num_devices;
    for (cl_uint i = 0; i < num_devices; i++) {
        created->devices[i] = devices[i];
        sp_object_reference(&devices[i]->object);
    }
    /* What devices lose is told on the callback thread. */
    if (created->is_distributed && sp_callback_start()) {
        sp_object_unreference(&created->object);
        return CL_OUT_OF_HOST_MEMORY;
    }
    if (created->is_shared)
        sp_listeners_add(created);
    if (created->is_distributed)
        sp_loss_report_greet(created);
    *context = created;
    return CL_SUCCESS;

err:
    free(created->properties);
    free(created->devices);
    free(created);
    return CL_OUT_OF_HOST_MEMORY;
}

bool sp_context_has(cl_context context, cl_device_id device)
{
    for (cl_uint i = 0; i < context->num_devices; i++)
        if (context->devices[i] == device)
            return true;
    return false;
}

uint32_t sp_context_svm_any(cl_context context)
{
    uint32_t levels = 0;
    for (cl_uint i = 0; i < context->num_devices; i++)
        levels |= context->devices[i]->device->info.svm_levels;
    return levels;
}

uint32_t sp_context_svm_all(cl_context context)
{
    uint32_t levels = ~0u;
    for (cl_uint i = 0; i < context->num_devices; i++)
        levels &= context->devices[i]->device->info.svm_levels;
    return levels;
}

/* One sub-device object over a part of the driver's device. */
static cl_int create_sub_device(cl_device_id parent, enum sp_partition_kind kind, cl_uint first,
                                cl_uint count, const cl_device_partition_property *partition,
                                size_t partition_count, cl_device_id *device)
{
    struct sp_device *part = NULL;
    cl_device_id created = sp_alloc(sizeof *created);
    cl_device_partition_property *copy = sp_alloc_array(partition_count, sizeof *copy);
    int error = created && copy ? 0 : -ENOMEM;
    if (!error)
        error = parent->device->ops->partition(parent->device, kind, first, count, &part);
    if (error) {
        free(copy);
        free(created);
        return error == -ENOMEM ? CL_OUT_OF_HOST_MEMORY : CL_DEVICE_PARTITION_FAILED;
    }
    memcpy(copy, partition, partition_count * sizeof *copy);
    sp_object_init(&created->object, SP_OBJECT_DEVICE, destroy_device);
    created->device = part;
    created->parent = parent;
    sp_object_reference(&parent->object);
    created->partition = copy;
    created->partition_count = partition_count;
    *device = created;
    return CL_SUCCESS;
}

cl_int sp_sub_devices_create(cl_device_id parent, enum sp_partition_kind kind, cl_uint count,
                             const cl_uint *counts, const cl_device_partition_property *partition,
                             size_t partition_count, cl_device_id *devices)
{
    cl_uint first = 0;
    for (cl_uint i = 0; i < count; i++) {
        cl_uint units = counts ? counts[i] : 0;
        cl_int result = create_sub_device(parent, kind, kind == SP_PARTITION_NUMA ? i : first,
                                          units, partition, partition_count, &devices[i]);
        if (result != CL_SUCCESS) {
            while (i > 0)
                sp_object_release(&devices[--i]->object);
            return result;
        }
        first += units;
    }
    return CL_SUCCESS;
}

void sp_context_report(cl_context context, const char *message)
{
    if (context->notify)
        context->notify(message, NULL, 0, context->user_data);
}

void sp_context_tell(cl_context context, const char *message)
{
    if (context->notify)
        sp_context_report(context, message);
    else
        fprintf(stderr, "samepage: %s\n", message);
}
