/* See depend.h. What a command waits for.
 *
 * A command counts what it waits for (waiting_for), plus one while it is being enqueued. Whoever
 * takes the count to zero has made it ready, and puts it into a list of its own (struct sp_ending)
 * from which command.c starts it: nothing is started here, so any lock may be held.
 *
 * What is waited for is an edge in the event's list, under that event's lock: its end takes the
 * whole list, its submission those edges for which that is enough.
 *
 * Locks: a queue's may be held; an event's is taken.
 */
#include "runtime/depend.h"

#include <assert.h>

#include "runtime/context.h"

void sp_dependents_settle(struct sp_ending *ending, struct sp_dependency *dependents, cl_int status)
{
    while (dependents) {
        struct sp_dependency *dependency = dependents;
        dependents = dependency->next; /* the command may be gone once it is settled */
        if (status < 0 && dependency->is_explicit)
            atomic_store_explicit(&dependency->waiter->dependency_error, status,
                                  memory_order_relaxed);
        sp_depend_settle(ending, dependency->waiter);
    }
}

/* Whether a device runs `command` behind the one before it in its queue, in order, if it gets both.
 */
static bool is_streamed_behind(const struct sp_command *command, const struct sp_command *before)
{
    /* What completes a command apart from its work is not in the device's order. */
    return before->has_work && command->has_work && !before->complete &&
           sp_command_device(command)->info.own_memory &&
           sp_command_device(before)->info.own_memory;
}

/* Lets `command` wait for `event`, unless that has ended; `before` is its command where the
 * submission of that is enough. */
static void depend(struct sp_command *command, cl_event event, struct sp_command *before,
                   bool is_explicit)
{
    pthread_mutex_lock(&event->lock);
    cl_int status = sp_event_status(event);
    if (status > CL_COMPLETE && before && before->is_submitted) {
        pthread_mutex_unlock(&event->lock);
        return;
    }
    if (status > CL_COMPLETE) {
        assert(command->num_dependencies < command->max_dependencies);
        struct sp_dependency *dependency = &command->dependencies[command->num_dependencies++];
        dependency->waiter = command;
        dependency->is_explicit = is_explicit;
        dependency->is_until_submitted = before != NULL;
        dependency->next = event->dependents;
        event->dependents = dependency;
        /* Relaxed: the command is not started before its enqueuer settles its own count. */
        atomic_fetch_add_explicit(&command->waiting_for, 1, memory_order_relaxed);
    } else if (status < 0 && is_explicit) {
        atomic_store_explicit(&command->dependency_error, status, memory_order_relaxed);
    }
    pthread_mutex_unlock(&event->lock);
}

void sp_depend(struct sp_command *command, cl_event event, bool is_explicit)
{
    depend(command, event, NULL, is_explicit);
}

void sp_depend_or_follow(struct sp_command *command, cl_event event, bool is_explicit)
{
    struct sp_command *before = (struct sp_command *)event;
    if (!event->queue || !command->event.context->is_shared || !sp_coherence_is_ahead_on() ||
        command->num_follows == SP_MAX_FOLLOWED || !is_streamed_behind(command, before) ||
        sp_event_status(event) <= CL_COMPLETE) {
        depend(command, event, NULL, is_explicit);
        return;
    }
    sp_object_reference(&event->object);
    command->follows[command->num_follows++] =
        (struct sp_follow){.command = before, .is_explicit = is_explicit};
    depend(command, event, before, is_explicit);
}

void sp_depend_in_order(struct sp_command *command, struct sp_command *before)
{
    if (command->event.context->is_shared && sp_coherence_is_ahead_on()) {
        sp_depend_or_follow(command, &before->event, false);
        return;
    }
    if (is_streamed_behind(command, before)) {
        command->before = before;
        sp_object_reference(&before->event.object);
    }
    depend(command, &before->event, command->before, false);
}

void sp_depend_again(struct sp_ending *ending, struct sp_command *command,
                     enum sp_command_stage stage)
{
    command->stage = stage;
    atomic_store_explicit(&command->waiting_for, 1, memory_order_relaxed);
    command->num_dependencies = 0; /* all are settled */
    if (command->before)
        depend(command, &command->before->event, NULL, false);
    for (unsigned i = 0; i < command->num_follows; i++)
        if (stage != SP_COMMAND_READY || command->follows[i].must_end)
            depend(command, &command->follows[i].command->event, NULL,
                   command->follows[i].is_explicit);
    sp_depend_settle(ending, command);
}
