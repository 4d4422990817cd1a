/* Events: the state of one command, who waits for it, and who is told.
 *
 * A command is an event with work behind it (command.h); a user event is one without. The status
 * only goes down, from CL_QUEUED to CL_COMPLETE or to an error. Whoever brings it to its end does
 * so once, under the event's lock, takes the dependents and the callbacks away, and serves them
 * with no lock held. Dependents that have no work of their own are completed in a loop, not by
 * recursion, so that a chain of any length is safe.
 *
 * Lock order: queue, then event. Two events' locks are never held together.
 */
#ifndef SP_RUNTIME_EVENT_H
#define SP_RUNTIME_EVENT_H

#include <pthread.h>

#include <CL/cl.h>

#include "runtime/object.h"
#include "util/gate.h"

struct sp_command;
struct sp_dependency;
struct sp_event_callback;

/* Who is told when a status is reached. Called on the library's callback thread, no lock held. */
typedef void(CL_CALLBACK *sp_event_notify)(cl_event event, cl_int status, void *user_data);

struct _cl_event {
    struct sp_object object;
    cl_context context;
    cl_command_queue queue; /* NULL: a user event. A reference is held */
    cl_command_type type;
    atomic_int status;    /* CL_QUEUED .. CL_COMPLETE, or an error below 0 */
    struct sp_gate ended; /* opened after the end, when nothing more will be done for it */
    pthread_mutex_t lock; /* of the two lists */
    struct sp_dependency *dependents;
    struct sp_event_callback *callbacks;
    bool is_shared;                                  /* the application has, or may get, a handle */
    uint64_t queued_ns, submit_ns, start_ns, end_ns; /* sp_time_ns; with profiling only */
};

/* A user event of `context`, status CL_SUBMITTED. */
cl_int sp_user_event_create(cl_context context, cl_event *event);

/* Ends a user event: CL_COMPLETE or an error. CL_INVALID_OPERATION when it was ended before. */
cl_int sp_user_event_end(cl_event event, cl_int status);

/* Calls `notify` once the event reaches `status` (CL_SUBMITTED, CL_RUNNING, CL_COMPLETE; an error
 * reaches all of them), at once (still on the callback thread) where it already has.
 * CL_OUT_OF_HOST_MEMORY. */
cl_int sp_event_add_callback(cl_event event, cl_int status, sp_event_notify notify,
                             void *user_data);

/* Waits for the end; flushes what it depends on by itself. Returns the final status. */
cl_int sp_event_wait(cl_event event);

/* The status now. Acquire: what a command wrote is visible to a thread that read CL_COMPLETE. */
static inline cl_int sp_event_status(cl_event event)
{
    return atomic_load_explicit(&event->status, memory_order_acquire);
}

#endif
