/* See event.h. */
#include "runtime/event.h"

#include <stdlib.h>

#include "runtime/command_internal.h"
#include "runtime/context.h"
#include "util/alloc.h"

struct sp_event_callback {
    struct sp_event_callback *next;
    struct sp_callback_job job;
    cl_event event; /* a reference is held until the call is over */
    cl_int status;  /* asked for; from the posting on, what is reported */
    sp_event_notify notify;
    void *user_data;
};

/* A user event: the context is referenced, which an event of a command leaves to its queue. */
static void destroy_user_event(struct sp_object *object)
{
    cl_event event = (cl_event)object;
    pthread_mutex_destroy(&event->lock);
    sp_object_unreference(&event->context->object);
    free(event);
}

cl_int sp_user_event_create(cl_context context, cl_event *event)
{
    cl_event created = sp_alloc(sizeof *created);
    if (!created)
        return CL_OUT_OF_HOST_MEMORY;
    sp_object_init(&created->object, SP_OBJECT_EVENT, destroy_user_event);
    created->context = context;
    sp_object_reference(&context->object);
    created->type = CL_COMMAND_USER;
    atomic_init(&created->status, CL_SUBMITTED);
    sp_gate_init(&created->ended);
    pthread_mutex_init(&created->lock, NULL);
    created->is_shared = true;
    *event = created;
    return CL_SUCCESS;
}

static void call_callback(struct sp_callback_job *job)
{
    struct sp_event_callback *callback =
        (struct sp_event_callback *)((char *)job - offsetof(struct sp_event_callback, job));
    callback->notify(callback->event, callback->status, callback->user_data);
    sp_object_unreference(&callback->event->object);
    free(callback);
}

/* An error is reported as such; everything else as the status that was asked for. */
static void post_callback(struct sp_event_callback *callback, cl_int reached)
{
    if (reached < 0)
        callback->status = reached;
    callback->job.run = call_callback;
    sp_callback_post(&callback->job);
}

/* Sets the status under the lock and takes out the callbacks that it reaches, in the order in
 * which they were added. */
static struct sp_event_callback *reach(cl_event event, cl_int status)
{
    struct sp_event_callback *reached = NULL, **last = &reached;
    /* Release: who reads the status with acquire sees what the command did. */
    atomic_store_explicit(&event->status, status, memory_order_release);
    for (struct sp_event_callback **link = &event->callbacks; *link;) {
        struct sp_event_callback *callback = *link;
        if (callback->status < status) {
            link = &callback->next;
            continue;
        }
        *link = callback->next;
        callback->next = NULL;
        *last = callback;
        last = &callback->next;
    }
    return reached;
}

static void post_all(struct sp_event_callback *callbacks, cl_int status)
{
    while (callbacks) {
        struct sp_event_callback *callback = callbacks;
        callbacks = callback->next;
        post_callback(callback, status);
    }
}

void sp_event_advance(cl_event event, cl_int status)
{
    if (!event->is_shared) {
        /* Nobody can have added a callback, nor look. */
        atomic_store_explicit(&event->status, status, memory_order_relaxed);
        return;
    }
    pthread_mutex_lock(&event->lock);
    struct sp_event_callback *reached = NULL;
    if (sp_event_status(event) > status)
        reached = reach(event, status);
    pthread_mutex_unlock(&event->lock);
    post_all(reached, status);
}

struct sp_dependency *sp_event_end(cl_event event, cl_int status)
{
    pthread_mutex_lock(&event->lock);
    struct sp_event_callback *reached = reach(event, status);
    struct sp_dependency *dependents = event->dependents;
    event->dependents = NULL;
    pthread_mutex_unlock(&event->lock);
    post_all(reached, status);
    return dependents;
}

cl_int sp_user_event_end(cl_event event, cl_int status)
{
    pthread_mutex_lock(&event->lock);
    if (sp_event_status(event) <= CL_COMPLETE) {
        pthread_mutex_unlock(&event->lock);
        return CL_INVALID_OPERATION;
    }
    struct sp_event_callback *reached = reach(event, status);
    struct sp_dependency *dependents = event->dependents;
    event->dependents = NULL;
    pthread_mutex_unlock(&event->lock);

    post_all(reached, status);
    sp_gate_open(&event->ended);
    sp_dependents_start(dependents, status);
    return CL_SUCCESS;
}

cl_int sp_event_add_callback(cl_event event, cl_int status, sp_event_notify notify, void *user_data)
{
    if (sp_callback_start())
        return CL_OUT_OF_HOST_MEMORY;
    struct sp_event_callback *callback = sp_alloc(sizeof *callback);
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    callback->event = event;
    callback->status = status;
    callback->notify = notify;
    callback->user_data = user_data;
    sp_object_reference(&event->object);

    pthread_mutex_lock(&event->lock);
    cl_int now = sp_event_status(event);
    if (now > status) {
        struct sp_event_callback **link = &event->callbacks;
        while (*link)
            link = &(*link)->next;
        *link = callback;
        callback = NULL;
    }
    pthread_mutex_unlock(&event->lock);
    if (callback)
        post_callback(callback, now);
    return CL_SUCCESS;
}

cl_int sp_event_wait(cl_event event)
{
    if (!sp_gate_is_open(&event->ended)) {
        if (event->queue) {
            struct sp_device *device = event->queue->device->device;
            device->ops->wait(device, &event->ended, event->queue);
        } else {
            sp_gate_wait(&event->ended);
        }
    }
    return sp_event_status(event);
}
