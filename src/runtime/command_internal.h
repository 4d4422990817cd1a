/* What event.c and command.c do for each other: an event's end makes commands ready. Nobody else
 * includes this. */
#ifndef SP_RUNTIME_COMMAND_INTERNAL_H
#define SP_RUNTIME_COMMAND_INTERNAL_H

#include "runtime/command.h"

struct ending;

/* Raises the status of an event that has not ended to CL_SUBMITTED or CL_RUNNING, and posts the
 * callbacks that this reaches. */
void sp_event_advance(cl_event event, cl_int status);

/* Ends an event: sets the final status, posts its callbacks, and returns its dependents for the
 * caller to settle. The gate is still shut. Once per event. */
struct sp_dependency *sp_event_end(cl_event event, cl_int status);

/* Tells the dependents of an event that it ended; those that became ready are collected. */
void sp_dependents_settle(struct ending *ending, struct sp_dependency *dependents, cl_int status);

/* The same, and starts those that became ready. */
void sp_dependents_start(struct sp_dependency *dependents, cl_int status);

#endif
