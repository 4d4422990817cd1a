/* The window and the heap: where every shared address comes from.
 *
 * The window is one range of addresses, reserved once. The heap hands out regions of it: small ones
 * from size classes in slabs, large ones on granules of their own. An arena is the heap's face
 * towards one context: a slab belongs to one arena, and memory that goes from one arena to
 * another is zero when it arrives, so that no context sees another's freed data.
 *
 * Knows no OpenCL and no driver. All functions are thread-safe. Locks: an arena's, then the
 * window's.
 */
#ifndef SP_SVM_HEAP_H
#define SP_SVM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_arena;

/* A granule is the unit of the window's map and of large regions' alignment: one huge page of
 * x86-64. */
#define SP_GRANULE_BYTES (UINT64_C(2) << 20)

/* The largest alignment that a region can be asked for. */
#define SP_MAX_ALIGNMENT SP_GRANULE_BYTES

/* The smallest alignment that a region has: long16 (OpenCL C 3.0, 6.3.5). */
#define SP_MIN_ALIGNMENT 128u

/* Reserves the window: the first candidate range that is free, halving the size where the process's
 * address space is limited. Called once, before anything else here. -ENOMEM. */
int sp_window_init(void);

/* Its start and length in bytes. */
void sp_window_range(uintptr_t *start, size_t *bytes);

/* The memory file behind host pages that devices with own memory must reach: byte n of it is byte n
 * of the window. Made at the first call; -1 when that fails. It stays open and is the window's. */
int sp_window_file(void);

static inline bool sp_window_holds_range(uintptr_t window, size_t window_bytes, uintptr_t address)
{
    return address - window < window_bytes;
}

/* How a region is kept coherent where devices have memory of their own. Where none has, it makes no
 * difference. */
enum sp_path {
    SP_PATH_PRIVATE, /* a backing for each agent, kept by the directory */
    SP_PATH_HOME,    /* one backing in the host's memory, which all agents see */
    SP_PATH_ATOMIC, /* likewise, in the part of the window for atomics of all agents (atomic_part.h)
                     */
};

static inline bool sp_path_is_home(enum sp_path path)
{
    return path != SP_PATH_PRIVATE;
}

struct sp_region;

/* What is known of one region. */
struct sp_region_info {
    void *start;
    size_t bytes;   /* as asked for */
    uint64_t flags; /* as given to sp_arena_alloc */
    struct sp_arena *arena;
    struct sp_region *region; /* for coherence.h; NULL in an arena that is not shared */
};

/* is_shared: devices with memory of their own use the arena, so its pages are those of the window's
 * file, and its regions have directories. -ENOMEM. */
int sp_arena_create(bool is_shared, struct sp_arena **arena);

bool sp_arena_is_shared(const struct sp_arena *arena);

/* Gives all its regions back. Takes NULL. */
void sp_arena_destroy(struct sp_arena *arena);

/* A region of `bytes` bytes (more than 0) at a multiple of `alignment` (a power of two, at most
 * SP_MAX_ALIGNMENT; 0: SP_MIN_ALIGNMENT), readable and writable. `flags` are the caller's and are
 * given back by sp_region_find. Content is undefined, but never another arena's. NULL when there is
 * no room. */
void *sp_arena_alloc(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags,
                     enum sp_path path);

struct sp_pool;

/* The same of a shared arena, of the private path, with its parts where `pool` says (svm/pool.h),
 * which the region takes over unless NULL is returned. */
void *sp_arena_alloc_pooled(struct sp_arena *arena, size_t bytes, size_t alignment, uint64_t flags,
                            struct sp_pool *pool);

/* Ends the region that starts at `start`: 0, or -EINVAL where none of this arena starts there. In a
 * shared arena a region that commands still use is found no more, and ends with the last use. */
int sp_arena_free(struct sp_arena *arena, void *start);

/* The live region of a shared arena that holds `address`, with one more use that keeps it; or NULL.
 */
struct sp_region *sp_arena_use(struct sp_arena *arena, const void *address);
void sp_arena_end_use(struct sp_region *region);

/* Calls `function` for every region of every shared arena, with a use held and no lock. */
void sp_arena_for_each_region(void (*function)(struct sp_region *region, void *data), void *data);

/* Calls `function` with the start of every region of the private path that a shared arena has now,
 * with no lock held; it may be gone by then. -ENOMEM. */
int sp_arena_for_each_address(struct sp_arena *arena,
                              void (*function)(const void *start, void *data), void *data);

/* The live region that holds `address`: true and *info, or false. */
bool sp_region_find(const void *address, struct sp_region_info *info);

#endif
