/* What event.c, command.c and its parts (depend.c, follow.c, retry.c) do for each other: an event's
 * end makes commands ready. For these alone. */
#ifndef SP_RUNTIME_COMMAND_INTERNAL_H
#define SP_RUNTIME_COMMAND_INTERNAL_H

#include "runtime/command.h"

/* Raises the status of an event that has not ended to CL_SUBMITTED or CL_RUNNING, and posts the
 * callbacks that this reaches. */
void sp_event_advance(cl_event event, cl_int status);

/* Ends an event: sets the final status, posts its callbacks, and returns its dependents for the
 * caller to settle. The gate is still shut. Once per event. */
struct sp_dependency *sp_event_end(cl_event event, cl_int status);

/* Tells the dependents of an event that it ended, and starts those that became ready. */
void sp_dependents_start(struct sp_dependency *dependents, cl_int status);

/* Where the command's work runs. Copies and fills run on the host where some of the memory is only
 * known there; so do functions of the host. */
struct sp_device *sp_command_device(const struct sp_command *command);

/* --- follow.c
 * --------------------------------------------------------------------------------------- */

/* Looks how the command can follow what it is to follow; what has ended is followed no more. False:
 * some (must_end) have to end first. */
bool sp_follows_take(struct sp_command *command);

/* It follows nobody any more. */
void sp_follows_drop(struct sp_command *command);

/* Before it begins: gives it a fence, where others can follow it and there is one. */
void sp_follow_offer(struct sp_command *command);

#endif
