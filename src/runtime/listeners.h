/* Contexts that are told of what went wrong: of data that was lost with a device (loss_report.h),
 * and of what the checking mode found (check_report.h).
 *
 * Whoever has something to say notes the context's number and says it later, on a thread on which
 * the application may be called; the context may end meanwhile, and another one be where it was.
 */
#ifndef SP_RUNTIME_LISTENERS_H
#define SP_RUNTIME_LISTENERS_H

#include <stdint.h>

#include <CL/cl.h>

struct sp_arena;

/* Gives the context a number (context->listener), by which it is known from now on. */
void sp_listeners_add(cl_context context);

/* The context ends. Returns when nobody visits it, but for those visits that this is called from;
 * they do not touch it any more. Nothing for a context that was not added. */
void sp_listeners_remove(cl_context context);

/* The number of the context that has this arena; 0: none. Any lock may be held. */
uint64_t sp_listener_of(const struct sp_arena *arena);

/* Calls `each` with every context, with the list locked. Any other lock may be held. */
void sp_listeners_each(void (*each)(cl_context context, void *data), void *data);

/* Calls `visit`, which may call the application, with the context of that number; not where it has
 * ended. No lock is held, and the context does not end meanwhile, unless by `visit` itself. */
void sp_listeners_visit(uint64_t number, void (*visit)(cl_context context, void *data), void *data);

#endif
