/* What every OpenCL handle begins with: the loader's words, what kind of object it is, and its
 * two counts.
 *
 * `handles` is what the application sees as the reference count. `references` keeps the memory: all
 * handles together hold one reference, and so does each object or command that uses this one. An
 * object is destroyed by whoever drops its last reference, which may be a thread of a device.
 *
 * Called by src/api and src/runtime. No lock: both counts are atomic.
 */
#ifndef SP_RUNTIME_OBJECT_H
#define SP_RUNTIME_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Distinct words, so that a handle of another kind, or of another platform, is recognised. */
enum sp_object_kind {
    SP_OBJECT_PLATFORM = 0x53500001,
    SP_OBJECT_DEVICE,
    SP_OBJECT_CONTEXT,
    SP_OBJECT_QUEUE,
    SP_OBJECT_MEM,
    SP_OBJECT_PROGRAM,
    SP_OBJECT_KERNEL,
    SP_OBJECT_EVENT,
};

struct sp_object {
    const void *dispatch; /* cl_khr_icd: the loader reads this word of every handle */
    void *loader_data;    /* cl_khr_icd 2: and this one */
    uint32_t kind;        /* enum sp_object_kind; 0 once destroyed */
    atomic_uint handles;
    atomic_uint references;
    void (*destroy)(struct sp_object *object);
};

/* The dispatch table that objects made from now on carry. Called once, by icd/, before any object
 * is made. */
void sp_object_set_dispatch(const void *dispatch);

/* What objects made from now on carry for a loader with cl_khr_icd 2. */
void sp_object_set_loader_data(void *loader_data);

/* One handle, one reference. `destroy` is called when the last reference goes; it frees the memory.
 */
void sp_object_init(struct sp_object *object, enum sp_object_kind kind,
                    void (*destroy)(struct sp_object *object));

/* Whether `handle` is a live object of that kind; false for NULL. */
static inline bool sp_object_is(const void *handle, enum sp_object_kind kind)
{
    return handle && ((const struct sp_object *)handle)->kind == (uint32_t)kind;
}

/* The application's counts: clRetain..., clRelease... */
void sp_object_retain(struct sp_object *object);
void sp_object_release(struct sp_object *object);
unsigned sp_object_handles(const struct sp_object *object);

/* The library's own. */
void sp_object_reference(struct sp_object *object);
void sp_object_unreference(struct sp_object *object);

#endif
