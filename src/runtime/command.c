/* See command.h. Commands begin and end here: the normal course of one.
 *
 * What a command waits for is counted (depend.c). Whoever takes the count to zero makes it start;
 * that is the enqueuing thread or the thread that ended the last dependency. Ending one command can
 * make many others ready, and those without work end at once: they go through a list in a loop
 * (struct sp_ending), never through recursion.
 *
 * A device with memory of its own runs works in the order in which it gets them. So a work of an
 * in-order queue there waits only for the submission of the work before it, and a stream of
 * launches has no gaps.
 *
 * With several such devices a command whose dependencies are works of other devices begins likewise
 * when those are submitted, and its device waits for their ends itself (docs/ahead.md). It
 * *follows* them (follow.c): it ends after they have, with an error where it should.
 *
 * A command whose work was not done, since something that it may rely on has failed, leaves this
 * course and is taken up anew, once: retry.c.
 *
 * Invariant: each stage of a command is run by one thread, which got the command from whoever ended
 * the stage before; a command ends exactly once.
 *
 * Locks: a queue's, then an event's; none is held when work is submitted, objects are dropped or
 * callbacks are posted.
 */
#include "runtime/command.h"

#include <assert.h>
#include <errno.h>

#include "runtime/context.h"
#include "runtime/retry.h"
#include "svm/check.h"
#include "svm/trace.h"
#include "util/block.h"
#include "util/symbol.h"
#include "util/thread.h"
#include "util/time.h"

/* long16 arguments in an argument block (OpenCL C 3.0, 6.3.5). */
#define EXTRA_ALIGN 128u

/* Beside its wait list a command waits for at most one earlier command, the queue's last or its
 * last barrier; and once more for the last where it was to follow that on the device and failed
 * before. */
#define QUEUE_DEPENDENCIES 2u

/* Room for a few waits, objects and arguments. A command that is no block of util/block.h costs
 * three times as much to launch. */
#define USUAL_EXTRA_BYTES 256u
_Static_assert(sizeof(struct sp_command) + USUAL_EXTRA_BYTES <= SP_BLOCK_BYTES,
               "a usual command is a block");

static void start_ready(struct sp_ending *ending);

static void destroy_command(struct sp_object *object)
{
    struct sp_command *command = (struct sp_command *)object;
    sp_depend_drop_before(command);
    sp_follows_drop(command);
    sp_coherence_end(&command->coherence, false);
    for (unsigned i = 0; i < command->num_uses; i++)
        sp_object_unreference(command->uses[i]);
    pthread_mutex_destroy(&command->event.lock);
    sp_object_unreference(&command->event.queue->object);
    sp_block_free(command, command->block_bytes);
}

struct sp_command *sp_command_create(cl_command_queue queue, cl_command_type type,
                                     cl_uint num_events, unsigned max_uses, size_t extra_bytes)
{
    size_t dependencies = (size_t)num_events + QUEUE_DEPENDENCIES;
    size_t bytes = sizeof(struct sp_command) + dependencies * sizeof(struct sp_dependency) +
                   max_uses * sizeof(struct sp_object *);
    if (extra_bytes > SIZE_MAX - bytes - EXTRA_ALIGN)
        return NULL;
    if (extra_bytes)
        bytes += extra_bytes + EXTRA_ALIGN;
    struct sp_command *command = sp_block_alloc(bytes);
    if (!command)
        return NULL;
    command->block_bytes = bytes;
    command->coherence.work = &command->work;

    sp_object_init(&command->event.object, SP_OBJECT_EVENT, destroy_command);
    atomic_init(&command->event.object.handles, 0);
    command->event.context = queue->context;
    command->event.queue = queue;
    sp_object_reference(&queue->object);
    command->event.type = type;
    atomic_init(&command->event.status, CL_QUEUED);
    sp_gate_init(&command->event.ended);
    pthread_mutex_init(&command->event.lock, NULL);
    atomic_init(&command->waiting_for, 1);
    command->dependencies = (struct sp_dependency *)(command + 1);
    command->max_dependencies = (unsigned)dependencies;
    command->uses = (struct sp_object **)(command->dependencies + dependencies);
    command->max_uses = max_uses;
    if (sp_check_is_on)
        command->site = sp_symbol_caller();
    if (extra_bytes) {
        uintptr_t end = (uintptr_t)(command->uses + max_uses);
        command->extra = (void *)((end + EXTRA_ALIGN - 1) & ~(uintptr_t)(EXTRA_ALIGN - 1));
    }
    return command;
}

void sp_command_use(struct sp_command *command, struct sp_object *object)
{
    assert(command->num_uses < command->max_uses);
    sp_object_reference(object);
    command->uses[command->num_uses++] = object;
}

void sp_command_touch(struct sp_command *command, const void *address, size_t bytes,
                      enum sp_access access)
{
    cl_context context = command->event.context;
    if (!context->is_shared)
        return;
    unsigned before = command->coherence.count;
    if (sp_coherence_touch(&command->coherence, context->arena, address, bytes, access))
        command->is_short_of_memory = true;
    else if (command->coherence.count == before)
        command->is_outside = true;
}

void sp_command_discard(struct sp_command *command)
{
    if (command)
        sp_object_unreference(&command->event.object);
}

cl_int sp_wait_list_check(cl_context context, cl_uint num_events, const cl_event *events)
{
    if ((num_events == 0) != (events == NULL))
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < num_events; i++) {
        if (!sp_object_is(events[i], SP_OBJECT_EVENT))
            return CL_INVALID_EVENT_WAIT_LIST;
        if (events[i]->context != context)
            return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

/* Puts the command at the end of its queue's order. Returns an object to drop once no lock is held,
 * or NULL. */
static struct sp_command *append_to_queue(struct sp_command *command)
{
    cl_command_queue queue = command->event.queue;
    struct sp_command *dropped = NULL;

    pthread_mutex_lock(&queue->lock);
    command->sequence = queue->next_sequence++;
    if (!(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
        if (queue->last)
            sp_depend_in_order(command, queue->last);
        dropped = queue->last;
        queue->last = command;
        sp_object_reference(&command->event.object);
    } else {
        if (command->waits_for_all && queue->first_pending) {
            command->waits_for_head = true;
            atomic_fetch_add_explicit(&command->waiting_for, 1, memory_order_relaxed);
        } else if (queue->barrier) {
            sp_depend(command, &queue->barrier->event, false);
        }
        command->previous_pending = queue->last_pending;
        if (queue->last_pending)
            queue->last_pending->next_pending = command;
        else
            queue->first_pending = command;
        queue->last_pending = command;
        if (command->is_barrier) {
            dropped = queue->barrier;
            queue->barrier = command;
            sp_object_reference(&command->event.object);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return dropped;
}

/* Takes an ended command out of its queue's order. Returns whether the queue held a reference to
 * it, which the caller drops. */
static bool remove_from_queue(struct sp_ending *ending, struct sp_command *command)
{
    cl_command_queue queue = command->event.queue;
    bool is_referenced = false;

    pthread_mutex_lock(&queue->lock);
    if (!(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
        is_referenced = queue->last == command;
        if (is_referenced)
            queue->last = NULL;
    } else {
        if (command->previous_pending)
            command->previous_pending->next_pending = command->next_pending;
        else
            queue->first_pending = command->next_pending;
        if (command->next_pending)
            command->next_pending->previous_pending = command->previous_pending;
        else
            queue->last_pending = command->previous_pending;
        is_referenced = queue->barrier == command;
        if (is_referenced)
            queue->barrier = NULL;
        struct sp_command *head = queue->first_pending;
        if (head && head->waits_for_head) {
            head->waits_for_head = false;
            sp_depend_settle(ending, head);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return is_referenced;
}

static void drop_uses(struct sp_command *command)
{
    for (unsigned i = 0; i < command->num_uses; i++)
        sp_object_unreference(command->uses[i]);
    command->num_uses = 0;
}

static const char *name_of(cl_command_type type)
{
    switch (type) {
    case CL_COMMAND_NDRANGE_KERNEL:
    case CL_COMMAND_TASK:
        return "kernel";
    case CL_COMMAND_NATIVE_KERNEL:
        return "native kernel";
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
        return "read";
    case CL_COMMAND_WRITE_BUFFER:
    case CL_COMMAND_WRITE_BUFFER_RECT:
        return "write";
    case CL_COMMAND_COPY_BUFFER:
    case CL_COMMAND_COPY_BUFFER_RECT:
    case CL_COMMAND_SVM_MEMCPY:
        return "copy";
    case CL_COMMAND_FILL_BUFFER:
    case CL_COMMAND_SVM_MEMFILL:
        return "fill";
    case CL_COMMAND_MAP_BUFFER:
    case CL_COMMAND_SVM_MAP:
        return "map";
    case CL_COMMAND_UNMAP_MEM_OBJECT:
    case CL_COMMAND_SVM_UNMAP:
        return "unmap";
    case CL_COMMAND_MIGRATE_MEM_OBJECTS:
    case CL_COMMAND_SVM_MIGRATE_MEM:
        return "migrate";
    case CL_COMMAND_SVM_FREE:
        return "free";
    case CL_COMMAND_BARRIER:
        return "barrier";
    default:
        return "marker";
    }
}

static void trace_command(const struct sp_command *command, cl_int status)
{
    uint64_t now = sp_time_ns();
    uint64_t start = command->work.start_ns ? command->work.start_ns : now;
    uint64_t end = command->work.end_ns ? command->work.end_ns : now;
    sp_trace_span((uint64_t)(uintptr_t)command->event.queue, "command",
                  name_of(command->event.type), start, end, "\"status\":%d,\"number\":%llu", status,
                  (unsigned long long)command->sequence);
}

static __attribute__((noinline, cold)) void end_check(struct sp_command *command, cl_int status)
{
    bool is_kernel = command->has_work && command->work.kind == SP_WORK_KERNEL;
    sp_check_end(command->check, &command->coherence,
                 is_kernel ? command->work.kernel.undeclared : 0,
                 command->is_in_place && status >= 0);
}

/* Ends a command whose `complete` was called. Its memory may be gone afterwards. */
static void end_command(struct sp_ending *ending, struct sp_command *command, cl_int status)
{
    bool is_queue_reference = false;

    if (sp_trace_is_on)
        trace_command(command, status);
    if (sp_check_is_on && command->check)
        end_check(command, status);
    sp_coherence_end(&command->coherence, status >= 0);
    drop_uses(command);
    sp_depend_drop_before(command);
    if (command->event.queue->properties & CL_QUEUE_PROFILING_ENABLE) {
        command->event.end_ns = command->work.end_ns ? command->work.end_ns : sp_time_ns();
        command->event.start_ns =
            command->work.start_ns ? command->work.start_ns : command->event.end_ns;
        if (!command->event.submit_ns)
            command->event.submit_ns = command->event.start_ns;
    }
    struct sp_dependency *dependents = sp_event_end(&command->event, status);
    sp_fences_drop(&command->work); /* nobody can follow it any more */
    is_queue_reference = remove_from_queue(ending, command);
    sp_dependents_settle(ending, dependents, status);
    sp_gate_open(&command->event.ended);
    if (is_queue_reference)
        sp_object_unreference(&command->event.object);
    sp_object_unreference(&command->event.object);
}

static void complete_on_callback_thread(struct sp_callback_job *job)
{
    struct sp_command *command =
        (struct sp_command *)((char *)job - offsetof(struct sp_command, job));
    struct sp_ending ending = {0};
    end_command(&ending, command, command->complete(command, command->job_status));
    start_ready(&ending);
}

/* After the work, or instead of it: the caller's `complete`, then the end. */
static void complete_command(struct sp_ending *ending, struct sp_command *command, cl_int status)
{
    if (!command->complete) {
        end_command(ending, command, status);
    } else if (command->on_callback_thread) {
        command->job.run = complete_on_callback_thread;
        command->job_status = status;
        sp_callback_post(&command->job);
    } else {
        end_command(ending, command, command->complete(command, status));
    }
}

static struct sp_command *command_of_work(struct sp_work *work)
{
    return (struct sp_command *)((char *)work - offsetof(struct sp_command, work));
}

static void work_started(struct sp_work *work)
{
    /* Of what it comes after, the ends may not be told yet. */
    if (!command_of_work(work)->is_ahead)
        sp_event_advance(&command_of_work(work)->event, CL_RUNNING);
}

static cl_int status_of_errno(int error)
{
    switch (error) {
    case 0:
        return CL_COMPLETE;
    case -ENOMEM:
        return CL_OUT_OF_HOST_MEMORY;
    case -ENOSPC:
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    default:
        return CL_OUT_OF_RESOURCES;
    }
}

static void end_work(struct sp_ending *ending, struct sp_command *command, int error)
{
    error = sp_coherence_outcome(&command->coherence, error);
    cl_int status = status_of_errno(error);
    if (atomic_load_explicit(&command->dependency_error, memory_order_relaxed))
        status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    complete_command(ending, command, status);
}

static void work_finished(struct sp_work *work, int error)
{
    struct sp_ending ending = {0};
    struct sp_command *command = command_of_work(work);
    bool has_follows = command->num_follows > 0;
    if (error == -ECANCELED || (error && has_follows)) {
        sp_retry_not_done(&ending, command, error);
    } else if (has_follows) {
        command->work_error = 0;
        sp_retry_leave(&ending, command);
    } else {
        end_work(&ending, command, error);
    }
    start_ready(&ending);
}

/* The device has got the command's work: what is to run right behind it may be sent after it. False
 * where it was cancelled by now. */
static bool release_streamed(struct sp_ending *ending, struct sp_command *command)
{
    struct sp_dependency *released = NULL;
    pthread_mutex_lock(&command->event.lock);
    command->is_submitted = !command->is_cancelled;
    for (struct sp_dependency **link = &command->event.dependents;
         command->is_submitted && *link;) {
        struct sp_dependency *dependency = *link;
        if (!dependency->is_until_submitted) {
            link = &dependency->next;
            continue;
        }
        *link = dependency->next;
        dependency->next = released;
        released = dependency;
    }
    bool is_submitted = command->is_submitted;
    pthread_mutex_unlock(&command->event.lock);
    sp_dependents_settle(ending, released, CL_COMPLETE);
    return is_submitted;
}

/* Ends a command that its device never got. In its queue the end of one command stands for the end
 * of all before it, and of all that those come after; so it waits for what it was to follow. */
static void fail_command(struct sp_ending *ending, struct sp_command *command, cl_int status)
{
    if (!command->before && !command->num_follows) {
        complete_command(ending, command, status);
        return;
    }
    sp_retry_undo(command, 0);
    command->failure = status;
    sp_depend_again(ending, command, SP_COMMAND_FAILED);
}

/* All that it waits for has ended, and what it uses is current. */
static void start_work(struct sp_ending *ending, struct sp_command *command)
{
    int error = atomic_load_explicit(&command->coherence.error, memory_order_relaxed);
    /* The second try makes room where there was none, and says so itself where there is no hope. */
    bool is_worth_again = error == -ECANCELED || error == -ENOSPC;
    if (is_worth_again && !command->is_again) {
        sp_retry_unsubmitted(ending, command);
        return;
    }
    if (error) {
        fail_command(ending, command, status_of_errno(error));
        return;
    }
    if (!command->has_work) {
        sp_event_advance(&command->event, CL_RUNNING);
        complete_command(ending, command, CL_COMPLETE);
        return;
    }
    struct sp_device *device = sp_command_device(command);
    command->work.timed =
        sp_trace_is_on || command->event.queue->properties & CL_QUEUE_PROFILING_ENABLE;
    command->work.stream = command->event.queue;
    command->work.started = command->event.is_shared ? work_started : NULL;
    command->work.finished = work_finished;
    if (!device->info.own_memory) {
        device->ops->submit(device, &command->work);
        return;
    }
    /* Acquire: where the initial values failed before the count of failures that the command knows,
     * this is seen. */
    if (command->values &&
        atomic_load_explicit(&command->values->life, memory_order_acquire) != command->work.life) {
        sp_retry_unsubmitted(ending, command); /* once; then this is its error */
        return;
    }
    command->work.failures_seen = sp_coherence_failures_seen(&command->coherence);
    command->work.beside = sp_coherence_beside(&command->coherence);
    atomic_store_explicit(&command->coherence.is_handed, true, memory_order_relaxed);
    if (sp_check_is_on && command->work.kind == SP_WORK_KERNEL)
        sp_check_declare(&command->coherence, device, &command->work);
    sp_object_reference(&command->event.object); /* it may have ended before submit returns */
    bool has_follows = command->num_follows > 0;
    device->ops->submit(device, &command->work);
    if (!release_streamed(ending, command) || has_follows)
        sp_retry_leave(ending, command);
    sp_object_unreference(&command->event.object);
}

/* Who finds the other's mark goes on: the thread that began, in its loop, or the one that ended the
 * last copy. */
enum { BEGIN_GOES_ON = 1, READY_GOES_ON = 2 };

static void ranges_ready(struct sp_coherence *coherence)
{
    struct sp_command *command =
        (struct sp_command *)((char *)coherence - offsetof(struct sp_command, coherence));
    /* Acquire and release: either side sees what the other did. */
    if (atomic_exchange_explicit(&command->begin_state, BEGIN_GOES_ON, memory_order_acq_rel) !=
        READY_GOES_ON)
        return;
    struct sp_ending ending = {0};
    command->stage = SP_COMMAND_CURRENT;
    sp_ready_push(&ending, command);
    start_ready(&ending);
}

static __attribute__((noinline, cold)) void begin_check(struct sp_command *command,
                                                        const struct sp_device *device)
{
    const struct sp_check_actor actor = {.what = name_of(command->event.type),
                                         .kernel = command->kernel_name,
                                         .device = device->info.name,
                                         .site = command->site};
    command->check = sp_check_begin(&command->coherence, device->agent, &actor, command->has_work);
}

/* Whether the command's ranges are current; if not yet, the command goes on when they are. */
static bool begin_ranges(struct sp_command *command)
{
    cl_context context = command->event.context;
    struct sp_device *device = sp_command_device(command);
    if (!context->is_shared ||
        (!command->coherence.count && !device->info.own_memory && !sp_check_is_on))
        return true;
    command->coherence.ready = ranges_ready;
    command->coherence.is_strict = !command->has_work || command->is_again;
    command->coherence.reaches_home = command->has_work && command->work.kind == SP_WORK_KERNEL;
    command->coherence.is_map =
        command->event.type == CL_COMMAND_SVM_MAP || command->event.type == CL_COMMAND_MAP_BUFFER;
    command->coherence.is_migration = command->event.type == CL_COMMAND_SVM_MIGRATE_MEM ||
                                      command->event.type == CL_COMMAND_MIGRATE_MEM_OBJECTS;
    if (sp_check_is_on && !command->check) /* also while it begins again */
        begin_check(command, device);
    sp_coherence_begin(&command->coherence, context->arena, device->agent);
    return atomic_exchange_explicit(&command->begin_state, READY_GOES_ON, memory_order_acq_rel) ==
           BEGIN_GOES_ON;
}

static void begin(struct sp_ending *ending, struct sp_command *command)
{
    sp_follow_offer(command);
    if (begin_ranges(command))
        start_work(ending, command);
}

static void values_given(struct sp_values_wait *wait, int error)
{
    struct sp_command *command =
        (struct sp_command *)((char *)wait - offsetof(struct sp_command, values_wait));
    struct sp_ending ending = {0};
    command->stage = error ? SP_COMMAND_FAILED : SP_COMMAND_GIVEN;
    command->failure = status_of_errno(error);
    sp_ready_push(&ending, command);
    start_ready(&ending);
}

/* Takes a command up where it is. */
static void go_on(struct sp_ending *ending, struct sp_command *command)
{
    if (command->stage == SP_COMMAND_FAILED) {
        complete_command(ending, command, command->failure);
        return;
    }
    if (command->stage == SP_COMMAND_GIVEN) {
        begin(ending, command);
        return;
    }
    if (command->stage == SP_COMMAND_CURRENT) {
        start_work(ending, command);
        return;
    }
    if (command->stage == SP_COMMAND_RUN) {
        if (sp_retry_take(command))
            sp_ready_push(ending, command);
        else
            end_work(ending, command, command->work_error);
        return;
    }
    if (command->num_follows && !sp_follows_take(command)) {
        sp_depend_again(ending, command, SP_COMMAND_READY);
        return;
    }
    if (atomic_load_explicit(&command->dependency_error, memory_order_relaxed)) {
        fail_command(ending, command, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        return;
    }
    if (command->event.queue->properties & CL_QUEUE_PROFILING_ENABLE)
        command->event.submit_ns = sp_time_ns();
    sp_event_advance(&command->event, CL_SUBMITTED);
    if (command->is_again && command->values) { /* before it holds anything */
        command->values_wait.given = values_given;
        command->values->give(command->values, &command->values_wait);
        return;
    }
    begin(ending, command);
}

/* Starts or ends all that became ready, and what becomes ready by that. What becomes ready beneath
 * a call of such a loop (the end of a command leaves room for another, whose end leaves room for a
 * third) is left to that loop. */
static void start_ready(struct sp_ending *ending)
{
    static SP_THREAD_LOCAL struct sp_ending *running;
    if (!ending->first)
        return;
    if (running) {
        *(running->last ? &running->last->next_ready : &running->first) = ending->first;
        running->last = ending->last;
        return;
    }
    running = ending;
    while (ending->first) {
        struct sp_command *command = ending->first;
        ending->first = command->next_ready;
        if (!ending->first)
            ending->last = NULL;
        go_on(ending, command);
    }
    running = NULL;
}

void sp_dependents_start(struct sp_dependency *dependents, cl_int status)
{
    struct sp_ending ending = {0};
    sp_dependents_settle(&ending, dependents, status);
    start_ready(&ending);
}

/* A command that has to wait lets what it reads come meanwhile. It cannot start before its enqueuer
 * has settled. Not in the checking mode, in which what the host writes unasked counts until the
 * start. */
static void prefetch(struct sp_command *command)
{
    struct sp_device *device = sp_command_device(command);
    if (!sp_check_is_on && command->has_work && command->coherence.count &&
        device->info.own_memory &&
        atomic_load_explicit(&command->waiting_for, memory_order_relaxed) > 1)
        sp_coherence_prefetch(&command->coherence, device->agent);
}

cl_int sp_command_enqueue(struct sp_command *command, cl_uint num_events, const cl_event *events,
                          bool blocking, cl_event *event)
{
    cl_event own = &command->event;
    if (command->is_short_of_memory) {
        sp_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    bool is_marker = own->type == CL_COMMAND_MARKER || own->type == CL_COMMAND_BARRIER;
    command->waits_for_all = is_marker && num_events == 0;
    if (own->queue->properties & CL_QUEUE_PROFILING_ENABLE)
        own->queued_ns = sp_time_ns();
    if (event) {
        own->is_shared = true;
        atomic_store_explicit(&own->object.handles, 1, memory_order_relaxed);
        sp_object_reference(&own->object);
        *event = own;
    }
    if (blocking)
        sp_object_reference(&own->object);

    /* Before it is seen what it can be sent behind. */
    sp_coherence_note_failures(&command->coherence, sp_command_device(command));
    for (cl_uint i = 0; i < num_events; i++)
        sp_depend_or_follow(command, events[i], true);
    struct sp_command *dropped = append_to_queue(command);
    if (dropped)
        sp_object_unreference(&dropped->event.object);

    prefetch(command);
    struct sp_ending ending = {0};
    sp_depend_settle(&ending, command);
    start_ready(&ending);

    cl_int result = CL_SUCCESS;
    if (blocking) {
        cl_int status = sp_event_wait(own);
        if (status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST || status >= 0)
            result = status;
        else
            result = CL_OUT_OF_RESOURCES;
        sp_object_unreference(&own->object);
    }
    return result;
}
