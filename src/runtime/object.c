/* See object.h. The dispatch table and the loader's data are the same for all objects: there is
 * one platform. They are set before any object is made, so they need no lock. */
#include "runtime/object.h"

#include <assert.h>

static const void *object_dispatch;
static void *object_loader_data;

void sp_object_set_dispatch(const void *dispatch)
{
    object_dispatch = dispatch;
}

void sp_object_set_loader_data(void *loader_data)
{
    object_loader_data = loader_data;
}

void sp_object_init(struct sp_object *object, enum sp_object_kind kind,
                    void (*destroy)(struct sp_object *object))
{
    object->dispatch = object_dispatch;
    object->loader_data = object_loader_data;
    object->kind = kind;
    object->destroy = destroy;
    atomic_init(&object->handles, 1);
    atomic_init(&object->references, 1);
}

/* Counting up needs no order: whoever counts up holds a reference already. */
void sp_object_retain(struct sp_object *object)
{
    atomic_fetch_add_explicit(&object->handles, 1, memory_order_relaxed);
}

void sp_object_release(struct sp_object *object)
{
    /* Release: what this thread did with the object comes before its end. The acquire is in
     * sp_object_unreference. */
    if (atomic_fetch_sub_explicit(&object->handles, 1, memory_order_release) == 1)
        sp_object_unreference(object);
}

unsigned sp_object_handles(const struct sp_object *object)
{
    return atomic_load_explicit(&object->handles, memory_order_relaxed);
}

void sp_object_reference(struct sp_object *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

void sp_object_unreference(struct sp_object *object)
{
    /* Acquire and release: the destroyer sees all that the others did before they let go. */
    unsigned before = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) {
        object->kind = 0;
        object->destroy(object);
    }
}
