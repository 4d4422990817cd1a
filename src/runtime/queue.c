/* See queue.h. */
#include "runtime/queue.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/command.h"
#include "runtime/context.h"
#include "svm/trace.h"
#include "util/alloc.h"

static void destroy_queue(struct sp_object *object)
{
    cl_command_queue queue = (cl_command_queue)object;
    pthread_mutex_destroy(&queue->lock);
    free(queue->properties_array);
    sp_object_unreference(&queue->device->object);
    sp_object_unreference(&queue->context->object);
    free(queue);
}

cl_int sp_queue_create(cl_context context, cl_device_id device,
                       cl_command_queue_properties properties,
                       const cl_queue_properties *properties_array, cl_command_queue *queue)
{
    cl_queue_properties *array = NULL;
    size_t count = 0;
    cl_command_queue created = sp_alloc(sizeof *created);
    if (!created)
        return CL_OUT_OF_HOST_MEMORY;
    if (properties_array) {
        while (properties_array[count])
            count += 2;
        count++;
        array = sp_alloc_array(count, sizeof *array);
        if (!array) {
            free(created);
            return CL_OUT_OF_HOST_MEMORY;
        }
        memcpy(array, properties_array, count * sizeof *array);
    }
    sp_object_init(&created->object, SP_OBJECT_QUEUE, destroy_queue);
    created->context = context;
    created->device = device;
    sp_object_reference(&context->object);
    sp_object_reference(&device->object);
    created->properties = properties;
    created->properties_array = array;
    created->properties_count = count;
    pthread_mutex_init(&created->lock, NULL);
    sp_trace_name_track((uint64_t)(uintptr_t)created, "queue %p on %s", (void *)created,
                        device->device->info.name);
    *queue = created;
    return CL_SUCCESS;
}

/* The command to wait for next, with a reference, among those enqueued before `limit`; or NULL. */
static struct sp_command *pending_before(cl_command_queue queue, uint64_t limit)
{
    pthread_mutex_lock(&queue->lock);
    struct sp_command *command = queue->last ? queue->last : queue->first_pending;
    if (command && command->sequence >= limit && !queue->last)
        command = NULL;
    if (command)
        sp_object_reference(&command->event.object);
    pthread_mutex_unlock(&queue->lock);
    return command;
}

cl_int sp_queue_finish(cl_command_queue queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t limit = queue->next_sequence;
    pthread_mutex_unlock(&queue->lock);

    bool is_in_order = !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (;;) {
        struct sp_command *command = pending_before(queue, limit);
        if (!command)
            return CL_SUCCESS;
        sp_event_wait(&command->event);
        sp_object_unreference(&command->event.object);
        if (is_in_order)
            return CL_SUCCESS; /* it was the newest, and all others came before it */
    }
}

bool sp_queue_is_idle(cl_command_queue queue)
{
    pthread_mutex_lock(&queue->lock);
    bool is_idle = !queue->last && !queue->first_pending;
    pthread_mutex_unlock(&queue->lock);
    return is_idle;
}

cl_int sp_queue_flush(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}
