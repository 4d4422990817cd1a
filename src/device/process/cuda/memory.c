/* The memory of the GPU: what is bound where in the window, and host pages registered for
 * transfers.
 *
 * CUDA reserved the window's addresses, before anything else could. A *private* binding is device
 * memory of one handle, mapped at the shared address for the GPU; on the host nothing is there. A
 * *home* binding is the host's memory file mapped at the shared address and registered, so that
 * host and GPU see the same pages through the same pointer. Copies between host and device name the
 * host's pages by the alias (setup.host) and the device's by the shared address: no address means
 * two memories in one copy.
 *
 * The GPU copies fast only from and to registered pages, and registering costs as much as a copy of
 * the same size over the bus. So the pages of a private binding's alias are registered piece by
 * piece, when first copied, and kept until it is unbound: no longer, since the host gives the pages
 * back then. To unregister is to wait for all that runs on the GPU (seen: 0.7 s), so it is put off
 * until nothing runs, or until the same pages are to be registered again.
 *
 * Invariant: `at` names, for each granule, the binding that covers it; bindings are whole, and
 * those that were unbound while commands before were under way are in `leaving` until those have
 * ended: only then is anything unmapped. A binding's memory comes back as a spare, for the next of
 * the same size.
 *
 * The loop thread alone comes here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/cuda/cuda.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* What is registered at a time. Registering 32 MiB takes 1.3 ms, copying them 0.6 ms: the first
 * copy of a large region is a pipeline of both, and a small part of it does not pay for all. */
#define PIECE_BYTES (UINT64_C(32) << 20)

/* Brief copies of a piece before it is registered. Copying 4 KiB takes 8 us either way; registering
 * a piece takes 60 us and more. */
#define BRIEF_COPIES 8u

/* Spare memory that is kept; creating it anew takes 25 us, and giving it back up to 500. */
#define MAX_SPARES 32u
#define MAX_SPARE_BYTES (UINT64_C(1) << 30)

/* Device memory, with the file that stands for it where other GPUs may want it; -1. */
struct memory {
    CUmemGenericAllocationHandle handle;
    int file;
};

struct binding {
    struct binding *next; /* of the leaving */
    uint64_t start, bytes;
    enum sp_cuda_place place;
    bool is_registered;         /* home: at the shared address */
    struct memory memory;       /* private */
    unsigned char *pieces;      /* private: brief copies so far, or REGISTERED */
    struct sp_cuda_point point; /* leaving: what must have ended */
};

#define REGISTERED 0xffu

/* A piece of the alias that is registered for nobody. */
struct stale {
    struct stale *next;
    unsigned char *start;
    uint64_t bytes;
};

struct spare {
    struct memory memory;
    uint64_t bytes;
};

static struct {
    struct binding **at; /* by granule; pages of it appear when used */
    uint64_t window, window_bytes;
    uint64_t used, limit; /* bytes of private bindings, the leaving ones included */
    struct binding *leaving;
    struct stale *stale;
    struct spare spares[MAX_SPARES];
    unsigned num_spares;
    uint64_t spare_bytes;
    CUmemAllocationProp properties;
    CUmemAccessDesc access;
} memory;

int sp_cuda_memory_init(void)
{
    const struct sp_backend_setup *setup = &sp_cuda_device.setup;
    memory.window = (uintptr_t)setup->window;
    memory.window_bytes = setup->window_bytes;
    memory.limit = setup->memory_bytes;
    memory.at = sp_alloc_array(setup->window_bytes / SP_GRANULE_BYTES, sizeof *memory.at);
    if (!memory.at)
        return -ENOMEM;
    memory.properties =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, sp_cuda_device.ordinal}};
    memory.access = (CUmemAccessDesc){.location = memory.properties.location,
                                      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return 0;
}

/* --- Where things are ----------------------------------------------------------------------------
 */

/* The granules of [address, address + bytes); false where that is not inside the window. */
static bool granules_of(uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    uint64_t offset = address - memory.window;
    if (offset > memory.window_bytes || bytes > memory.window_bytes - offset)
        return false;
    *first = offset / SP_GRANULE_BYTES;
    *end = (offset + bytes + SP_GRANULE_BYTES - 1) / SP_GRANULE_BYTES;
    return true;
}

static bool are_whole_granules(uint64_t start, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    return bytes && !(start % SP_GRANULE_BYTES) && !(bytes % SP_GRANULE_BYTES) &&
           granules_of(start, bytes, first, end);
}

/* The binding at an address of the window, or NULL. */
static struct binding *binding_at(uint64_t address)
{
    uint64_t offset = address - memory.window;
    return offset < memory.window_bytes ? memory.at[offset / SP_GRANULE_BYTES] : NULL;
}

enum sp_cuda_place sp_cuda_memory_place(uint64_t address, uint64_t bytes, uint64_t *count)
{
    const struct binding *binding = binding_at(address);
    if (!binding)
        return SP_CUDA_NOWHERE;
    uint64_t left = binding->start + binding->bytes - address;
    *count = bytes < left ? bytes : left;
    return binding->place;
}

bool sp_cuda_memory_is_bound(uint64_t address, uint64_t bytes, bool is_private)
{
    uint64_t count;
    for (; bytes; address += count, bytes -= count) {
        enum sp_cuda_place place = sp_cuda_memory_place(address, bytes, &count);
        if (is_private ? place != SP_CUDA_PRIVATE : place == SP_CUDA_NOWHERE)
            return false;
    }
    return true;
}

/* --- Device memory -------------------------------------------------------------------------------
 */

static void release(struct memory released)
{
    sp_cuda.MemRelease(released.handle);
    if (released.file >= 0)
        close(released.file);
}

static void release_spares(void)
{
    while (memory.num_spares)
        release(memory.spares[--memory.num_spares].memory);
    memory.spare_bytes = 0;
}

static void keep_spare(struct memory kept, uint64_t bytes)
{
    if (memory.num_spares == MAX_SPARES || bytes > MAX_SPARE_BYTES - memory.spare_bytes) {
        release(kept);
        return;
    }
    memory.spares[memory.num_spares++] = (struct spare){kept, bytes};
    memory.spare_bytes += bytes;
}

/* Other GPUs of the machine may be devices of the application as well. */
static void make_file(struct memory *made)
{
    if (sp_cuda_device.num_devices > 1 &&
        sp_cuda.MemExportToShareableHandle(&made->file, made->handle,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))
        made->file = -1; /* then they cannot reach it */
}

static int create_memory(uint64_t bytes, struct memory *created)
{
    for (unsigned i = memory.num_spares; i-- > 0;) {
        if (memory.spares[i].bytes != bytes)
            continue;
        *created = memory.spares[i].memory;
        memory.spares[i] = memory.spares[--memory.num_spares];
        memory.spare_bytes -= bytes;
        return 0;
    }
    created->file = -1;
    CUresult result = sp_cuda.MemCreate(&created->handle, bytes, &memory.properties, 0);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && (memory.num_spares || memory.leaving)) {
        if (memory.leaving)
            sp_cuda_stream_drain();
        sp_cuda_memory_reap();
        release_spares();
        result = sp_cuda.MemCreate(&created->handle, bytes, &memory.properties, 0);
    }
    if (!result)
        make_file(created);
    return sp_cuda_check(result);
}

static int bind_private(struct binding *binding)
{
    uint64_t pieces = (binding->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    binding->pieces = sp_alloc(pieces);
    if (!binding->pieces)
        return -ENOMEM;
    int error = create_memory(binding->bytes, &binding->memory);
    if (error)
        return error;
    error =
        sp_cuda_check(sp_cuda.MemMap(binding->start, binding->bytes, 0, binding->memory.handle, 0));
    if (error)
        goto err_memory;
    error = sp_cuda_check(sp_cuda.MemSetAccess(binding->start, binding->bytes, &memory.access, 1));
    if (!error) /* another context's data may lie there */
        error = sp_cuda_stream_zero(binding->start, binding->bytes);
    if (!error) {
        if (binding->memory.file >= 0)
            sp_process_export(binding->start, binding->bytes, binding->memory.file);
        return 0;
    }
    sp_cuda.MemUnmap(binding->start, binding->bytes);
err_memory:
    release(binding->memory);
    return error;
}

static uint64_t piece_bytes(const struct binding *binding, uint64_t piece)
{
    uint64_t left = binding->bytes - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static void unregister_later(const struct binding *binding, uint64_t piece)
{
    unsigned char *start =
        sp_cuda_device.setup.host + (binding->start - memory.window) + piece * PIECE_BYTES;
    struct stale *stale = sp_alloc(sizeof *stale);
    if (!stale) {
        sp_cuda.MemHostUnregister(start);
        return;
    }
    *stale = (struct stale){memory.stale, start, piece_bytes(binding, piece)};
    memory.stale = stale;
}

static void end_stale(struct stale **link)
{
    struct stale *stale = *link;
    *link = stale->next;
    sp_cuda_check(sp_cuda.MemHostUnregister(stale->start));
    free(stale);
}

bool sp_cuda_memory_is_untidy(void)
{
    return memory.stale != NULL;
}

void sp_cuda_memory_tidy(void)
{
    if (memory.stale)
        end_stale(&memory.stale);
}

/* Makes sure that nothing is registered there. */
static void free_range(const unsigned char *start, uint64_t bytes)
{
    for (struct stale **link = &memory.stale; *link;)
        if ((*link)->start < start + bytes && start < (*link)->start + (*link)->bytes)
            end_stale(link);
        else
            link = &(*link)->next;
}

static void end_private(struct binding *binding)
{
    for (uint64_t i = 0; i * PIECE_BYTES < binding->bytes; i++)
        if (binding->pieces[i] == REGISTERED)
            unregister_later(binding, i);
    sp_cuda_check(sp_cuda.MemUnmap(binding->start, binding->bytes));
    keep_spare(binding->memory, binding->bytes);
    memory.used -= binding->bytes;
}

/* --- Host memory ---------------------------------------------------------------------------------
 */

static int bind_home(struct binding *binding)
{
    void *at = (void *)(uintptr_t)binding->start;
    if (mmap(at, binding->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
             sp_cuda_device.setup.host_file, (off_t)(binding->start - memory.window)) == MAP_FAILED)
        return -ENOMEM;
    madvise(at, binding->bytes, MADV_HUGEPAGE); /* a wish */
    sp_cuda_populate(at, binding->bytes, 0);
    sp_cuda_populate_end();
    int error = sp_cuda_check(sp_cuda.MemHostRegister(
        at, binding->bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr device = 0;
    if (!error) {
        binding->is_registered = true;
        error = sp_cuda_check(sp_cuda.MemHostGetDevicePointer(&device, at, 0));
    }
    if (!error && device != binding->start)
        error = -ENOTSUP; /* the GPU would need another pointer */
    return error;
}

static void end_home(struct binding *binding)
{
    void *at = (void *)(uintptr_t)binding->start;
    if (binding->is_registered)
        sp_cuda.MemHostUnregister(at);
    /* As CUDA left it. Where that fails the pages stay, which nobody minds: a later binding maps
     * over them. */
    mmap(at, binding->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

/* How much of the pieces from `end` on a copy needs that goes on until `last`. */
static uint64_t bytes_behind(const struct binding *binding, uint64_t last, uint64_t end)
{
    if (last > binding->bytes)
        last = binding->bytes;
    if (last <= end)
        return 0;
    last = (last + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    return (last < binding->bytes ? last : binding->bytes) - end;
}

int sp_cuda_memory_host(uint64_t address, uint64_t bytes, bool is_brief, void **host,
                        uint64_t *count, bool *is_registered)
{
    struct binding *binding = binding_at(address);
    if (!binding || binding->place != SP_CUDA_PRIVATE)
        return -EFAULT;
    uint64_t offset = address - binding->start, piece = offset / PIECE_BYTES;
    uint64_t first = piece * PIECE_BYTES, end = first + piece_bytes(binding, piece);
    unsigned char *alias = sp_cuda_device.setup.host + (binding->start - memory.window);
    *host = alias + offset;
    *count = bytes < end - offset ? bytes : end - offset;
    unsigned char *state = &binding->pieces[piece];
    *is_registered = *state == REGISTERED;
    if (*is_registered)
        return 0;
    if (is_brief && *state < BRIEF_COPIES) {
        /* Other pages were there when what is stale was registered. */
        free_range(*host, *count);
        ++*state;
        return 0;
    }
    free_range(alias + first, end - first);
    sp_cuda_populate(alias + first, end - first, bytes_behind(binding, offset + bytes, end));
    /* Where the host has no memory to spare for it unregistered pages will do: the driver copies
     * them at once, which is right where nothing is under way. */
    if (sp_cuda_check(
            sp_cuda.MemHostRegister(alias + first, end - first,
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))) {
        sp_cuda_stream_drain();
        return 0;
    }
    *state = REGISTERED;
    *is_registered = true;
    return 0;
}

/* --- Binding -------------------------------------------------------------------------------------
 */

static void end_binding(struct binding *binding)
{
    if (binding->place == SP_CUDA_HOME)
        end_home(binding);
    else if (binding->place == SP_CUDA_PRIVATE)
        end_private(binding);
    else
        sp_cuda_check(sp_cuda.MemUnmap(binding->start, binding->bytes));
    free(binding->pieces);
    free(binding);
}

/* Lets go of all bindings in a range, which must hold each of them as a whole. */
static int take_off(uint64_t first, uint64_t end)
{
    uint64_t start = memory.window + first * SP_GRANULE_BYTES;
    uint64_t stop = memory.window + end * SP_GRANULE_BYTES;
    for (uint64_t i = first; i < end; i++) {
        const struct binding *binding = memory.at[i];
        if (binding && (binding->start < start || binding->start + binding->bytes > stop))
            return -EINVAL;
    }
    sp_process_unexport(start, stop - start);
    for (uint64_t i = first; i < end; i++) {
        struct binding *binding = memory.at[i];
        if (!binding)
            continue;
        memset(&memory.at[i], 0, binding->bytes / SP_GRANULE_BYTES * sizeof memory.at[0]);
        sp_cuda_point_set(&binding->point);
        binding->next = memory.leaving;
        memory.leaving = binding;
    }
    return 0;
}

void sp_cuda_memory_reap(void)
{
    struct binding **link = &memory.leaving;
    while (*link) {
        struct binding *binding = *link;
        if (sp_cuda_point_has_passed(&binding->point)) {
            *link = binding->next;
            end_binding(binding);
        } else {
            link = &binding->next;
        }
    }
}

static bool is_leaving(uint64_t start, uint64_t bytes)
{
    for (const struct binding *b = memory.leaving; b; b = b->next)
        if (b->start < start + bytes && start < b->start + b->bytes)
            return true;
    return false;
}

/* Binds whole granules: `command` is that of a peer binding. */
static int bind(uint64_t start, uint64_t bytes, enum sp_cuda_place place,
                const struct sp_command *command)
{
    uint64_t first, end;
    if (!are_whole_granules(start, bytes, &first, &end))
        return -EINVAL;
    int error = take_off(first, end);
    if (error)
        return error;
    uint64_t wanted = place == SP_CUDA_PRIVATE ? bytes : 0;
    if (memory.leaving && (is_leaving(start, bytes) || wanted > memory.limit - memory.used)) {
        sp_cuda_stream_drain();
        sp_cuda_memory_reap();
    }
    if (wanted > memory.limit - memory.used)
        return -ENOMEM;
    struct binding *binding = sp_alloc(sizeof *binding);
    if (!binding)
        return -ENOMEM;
    *binding = (struct binding){.start = start, .bytes = bytes, .place = place};
    error = place == SP_CUDA_HOME   ? bind_home(binding)
            : place == SP_CUDA_PEER ? sp_cuda_peers_map(command)
                                    : bind_private(binding);
    if (error) {
        if (place == SP_CUDA_HOME)
            end_home(binding);
        free(binding->pieces);
        free(binding);
        return error;
    }
    memory.used += wanted;
    for (uint64_t i = first; i < end; i++)
        memory.at[i] = binding;
    return 0;
}

int sp_cuda_memory_bind(uint64_t start, uint64_t bytes, bool is_home)
{
    return bind(start, bytes, is_home ? SP_CUDA_HOME : SP_CUDA_PRIVATE, NULL);
}

int sp_cuda_memory_bind_peer(const struct sp_command *command)
{
    return bind(command->range.start, command->range.bytes, SP_CUDA_PEER, command);
}

int sp_cuda_memory_unbind(uint64_t start, uint64_t bytes)
{
    uint64_t first, end;
    if (!are_whole_granules(start, bytes, &first, &end))
        return -EINVAL;
    return take_off(first, end);
}
