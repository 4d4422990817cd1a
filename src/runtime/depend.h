/* What commands wait for, and who is ready when that has ended. For command.c and retry.c. */
#ifndef SP_RUNTIME_DEPEND_H
#define SP_RUNTIME_DEPEND_H

#include "runtime/command_internal.h"

/* Commands that became ready and are not started yet, in order; linked by next_ready. Zeroed: none.
 * A local of the thread that is going to start them (command.c). */
struct sp_ending {
    struct sp_command *first, *last;
};

/* Puts a command that waits for nothing at the end of `ending`. No lock is needed. */
static inline void sp_ready_push(struct sp_ending *ending, struct sp_command *command)
{
    command->next_ready = NULL;
    if (ending->last)
        ending->last->next_ready = command;
    else
        ending->first = command;
    ending->last = command;
}

/* One thing less that the command waits for; with the last one it is pushed. Any thread, with any
 * lock held; the command may be over when this returns. */
static inline void sp_depend_settle(struct sp_ending *ending, struct sp_command *command)
{
    /* Acquire and release: what was done before every dependency's end is visible to whoever starts
     * the command. */
    if (atomic_fetch_sub_explicit(&command->waiting_for, 1, memory_order_acq_rel) == 1)
        sp_ready_push(ending, command);
}

/* Tells the dependents of an event that ended with that status, taken out of its list; those that
 * became ready are pushed. */
void sp_dependents_settle(struct sp_ending *ending, struct sp_dependency *dependents,
                          cl_int status);

/* Lets `command`, which is not started yet, wait for the end of `event`, unless that has ended.
 * is_explicit: the event is in its wait list, so an error is its error. Takes the event's lock;
 * with that of the command's queue held or none. At most max_dependencies at a time. */
void sp_depend(struct sp_command *command, cl_event event, bool is_explicit);

/* As sp_depend, for what may also be followed (docs/ahead.md): then only its submission is waited
 * for, and its end does not matter until the command's own. */
void sp_depend_or_follow(struct sp_command *command, cl_event event, bool is_explicit);

/* As sp_depend, for the command in front of it in its queue, in order: where their device keeps
 * that order the submission is enough, and `before` is set. */
void sp_depend_in_order(struct sp_command *command, struct sp_command *before);

/* Comes back, at that stage, when all that it comes after has ended, of what it follows at
 * SP_COMMAND_READY only what must end. Nobody else has the command, and all that it waited for is
 * settled. No lock is held. */
void sp_depend_again(struct sp_ending *ending, struct sp_command *command,
                     enum sp_command_stage stage);

/* It is streamed behind nobody any more. No lock is held. */
static inline void sp_depend_drop_before(struct sp_command *command)
{
    if (command->before)
        sp_object_unreference(&command->before->event.object);
    command->before = NULL;
}

#endif
