/* Command queues.
 *
 * An in-order queue keeps its last command, on which the next one depends. An out-of-order
 * queue keeps its last barrier and the list of commands that have not ended. A command that waits
 * for all earlier ones is ready when it is the first of that list. clFinish waits for what was
 * enqueued before it.
 *
 * The queue's lock guards last, barrier and the list; it is taken before any event's lock.
 */
#ifndef SP_RUNTIME_QUEUE_H
#define SP_RUNTIME_QUEUE_H

#include <pthread.h>

#include <CL/cl.h>

#include "runtime/object.h"

struct sp_command;

struct _cl_command_queue {
    struct sp_object object;
    cl_context context;  /* a reference is held */
    cl_device_id device; /* likewise */
    cl_command_queue_properties properties;
    cl_queue_properties *properties_array; /* as given, with its 0; NULL when none was given */
    size_t properties_count;               /* words in it, the 0 included; 0 when none was given */
    pthread_mutex_t lock;
    struct sp_command *last;    /* in-order: the newest command, with a reference; or NULL */
    struct sp_command *barrier; /* out-of-order: the newest barrier, with a reference; or NULL */
    struct sp_command *first_pending, *last_pending; /* out-of-order: not ended, in order */
    uint64_t next_sequence;                          /* of the next command */
};

/* Arguments are checked by the caller. References to context and device are taken.
 * CL_OUT_OF_HOST_MEMORY. */
cl_int sp_queue_create(cl_context context, cl_device_id device,
                       cl_command_queue_properties properties,
                       const cl_queue_properties *properties_array, cl_command_queue *queue);

/* Waits for every command enqueued so far. */
cl_int sp_queue_finish(cl_command_queue queue);

/* Whether all that was enqueued has ended; then what it wrote is visible to the caller. */
bool sp_queue_is_idle(cl_command_queue queue);

/* Commands start on their own; this makes sure of it. */
cl_int sp_queue_flush(cl_command_queue queue);

#endif
