/* Destructor callbacks: registering one with an object. The object calls them, newest first, when
 * it ends (struct sp_destructor in runtime/context.h).
 */
#ifndef SP_API_DESTRUCTOR_H
#define SP_API_DESTRUCTOR_H

#include <pthread.h>

#include <CL/cl.h>

#include "runtime/context.h"
#include "util/alloc.h"

/* Puts a callback on top of *list, which `lock` guards. CL_OUT_OF_HOST_MEMORY. */
static inline cl_int sp_destructor_add(pthread_mutex_t *lock, struct sp_destructor **list,
                                       void(CL_CALLBACK *function)(void *, void *), void *user_data)
{
    struct sp_destructor *destructor = sp_alloc(sizeof *destructor);
    if (!destructor)
        return CL_OUT_OF_HOST_MEMORY;
    destructor->function = function;
    destructor->user_data = user_data;
    pthread_mutex_lock(lock);
    destructor->next = *list;
    *list = destructor;
    pthread_mutex_unlock(lock);
    return CL_SUCCESS;
}

#endif
