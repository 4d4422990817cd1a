/* See listeners.h. Owns the list of contexts that share memory, and who is with one of them.
 *
 * Invariant: a context that is visited is in the list, or waits in sp_listeners_remove for the end
 * of the visit, or was ended by that visit itself, which then knows of it no more.
 *
 * Lock: of the list, the last of all; not held while the application is called.
 */
#include "runtime/listeners.h"

#include <pthread.h>

#include "runtime/context.h"
#include "util/thread.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left; /* a visit is over */
    cl_context first;
    uint64_t numbers; /* ever given */
} listeners = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

struct visit {
    struct visit *outer; /* of the same thread */
    cl_context context;  /* NULL: it has ended in this visit */
};

static SP_THREAD_LOCAL struct visit *visits;

void sp_listeners_add(cl_context context)
{
    pthread_mutex_lock(&listeners.lock);
    context->listener = ++listeners.numbers;
    context->next_listener = listeners.first;
    listeners.first = context;
    pthread_mutex_unlock(&listeners.lock);
}

void sp_listeners_remove(cl_context context)
{
    pthread_mutex_lock(&listeners.lock);
    cl_context *link = &listeners.first;
    while (*link && *link != context)
        link = &(*link)->next_listener;
    if (*link)
        *link = context->next_listener;
    for (struct visit *visit = visits; visit; visit = visit->outer)
        if (visit->context == context) {
            visit->context = NULL;
            context->visits--;
        }
    while (context->visits)
        pthread_cond_wait(&listeners.left, &listeners.lock);
    pthread_mutex_unlock(&listeners.lock);
}

uint64_t sp_listener_of(const struct sp_arena *arena)
{
    pthread_mutex_lock(&listeners.lock);
    cl_context context = listeners.first;
    while (context && context->arena != arena)
        context = context->next_listener;
    uint64_t number = context ? context->listener : 0;
    pthread_mutex_unlock(&listeners.lock);
    return number;
}

void sp_listeners_each(void (*each)(cl_context context, void *data), void *data)
{
    pthread_mutex_lock(&listeners.lock);
    for (cl_context context = listeners.first; context; context = context->next_listener)
        each(context, data);
    pthread_mutex_unlock(&listeners.lock);
}

void sp_listeners_visit(uint64_t number, void (*visit)(cl_context context, void *data), void *data)
{
    pthread_mutex_lock(&listeners.lock);
    cl_context context = listeners.first;
    while (context && context->listener != number)
        context = context->next_listener;
    if (context)
        context->visits++;
    pthread_mutex_unlock(&listeners.lock);
    if (!context)
        return;
    struct visit own = {.outer = visits, .context = context};
    visits = &own;
    visit(context, data);
    visits = own.outer;
    if (!own.context)
        return;
    pthread_mutex_lock(&listeners.lock);
    context->visits--;
    pthread_cond_broadcast(&listeners.left);
    pthread_mutex_unlock(&listeners.lock);
}
