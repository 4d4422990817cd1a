/* The memory of a virtual device: one memory file as large as the window, of which only bound
 * granules have pages; or, where the process has buffers, one of those for each binding.
 *
 * The memory file is mapped twice: granule by granule at the shared addresses, where kernels see it
 * (bind), and as a whole at an alias, through which transfers copy. Peers map the same file at
 * aliases of their own. A buffer is mapped at its shared address only, and exported to peers.
 *
 * Invariant: a granule is UNBOUND (inaccessible, no memory), PRIVATE (memory of the device), HOME
 * (the host's pages) or PEER (another device's memory, at the address where that has it); `used`
 * counts the PRIVATE ones. A buffer is bound whole or not at all.
 *
 * Only the loop thread comes here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/virtual/virtual.h"
#include "svm/heap.h"
#include "util/alloc.h"

enum { UNBOUND = 0, PRIVATE = 1, HOME = 2, PEER = 3 };

static struct {
    struct sp_backend_setup setup;
    int file;              /* -1: the memory comes in buffers */
    unsigned char *alias;  /* of the file */
    uint32_t *buffers;     /* of granules: the buffer there, or 0 */
    unsigned char *states; /* of granules; pages of both appear when used */
    uint64_t used, limit;  /* granules */
} memory = {.file = -1};

int sp_virtual_memory_init(const struct sp_backend_setup *setup, int *memory_file)
{
    memory.setup = *setup;
    memory.limit = sp_virtual_fails_beyond(setup->memory_bytes / SP_GRANULE_BYTES);
    memory.states = sp_alloc(setup->window_bytes / SP_GRANULE_BYTES);
    if (!memory.states)
        return -ENOMEM;
    if (setup->buffers) {
        memory.buffers =
            sp_alloc_array(setup->window_bytes / SP_GRANULE_BYTES, sizeof *memory.buffers);
        return memory.buffers ? 0 : -ENOMEM;
    }
    memory.file = memfd_create("samepage-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory.file < 0)
        return -errno;
    /* Sealed, so that a peer's mapping can never lose its end. */
    if (ftruncate(memory.file, (off_t)setup->window_bytes) ||
        fcntl(memory.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -errno;
    void *alias = mmap(NULL, setup->window_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, memory.file, 0);
    if (alias == MAP_FAILED)
        return -ENOMEM;
    madvise(alias, setup->window_bytes, MADV_HUGEPAGE); /* a wish */
    memory.alias = alias;
    *memory_file = memory.file;
    return 0;
}

bool sp_virtual_granules(uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    uint64_t offset = address - (uintptr_t)memory.setup.window;
    if (offset > memory.setup.window_bytes || bytes > memory.setup.window_bytes - offset)
        return false;
    *first = offset / SP_GRANULE_BYTES;
    *end = (offset + bytes + SP_GRANULE_BYTES - 1) / SP_GRANULE_BYTES;
    return true;
}

/* Whether all of the range is bound, or, with is_own, is memory of the device. */
static bool are_all(uint64_t address, uint64_t bytes, bool is_own)
{
    uint64_t first, end;
    if (!bytes)
        return true;
    if (!sp_virtual_granules(address, bytes, &first, &end))
        return false;
    for (uint64_t i = first; i < end; i++)
        if (is_own ? memory.states[i] != PRIVATE : memory.states[i] == UNBOUND)
            return false;
    return true;
}

bool sp_virtual_memory_is_bound(uint64_t address, uint64_t bytes)
{
    return are_all(address, bytes, false);
}

bool sp_virtual_whole_granules(uint64_t start, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    return bytes && !(start % SP_GRANULE_BYTES) && !(bytes % SP_GRANULE_BYTES) &&
           sp_virtual_granules(start, bytes, first, end);
}

static uint64_t count_private(uint64_t first, uint64_t end)
{
    uint64_t count = 0;
    for (uint64_t i = first; i < end; i++)
        count += memory.states[i] == PRIVATE;
    return count;
}

/* Frees the pages of the file there: what is read from it next is zero. */
static int punch(uint64_t first, uint64_t end)
{
    return fallocate(memory.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     (off_t)(first * SP_GRANULE_BYTES), (off_t)((end - first) * SP_GRANULE_BYTES))
               ? -errno
               : 0;
}

/* Whether a buffer lies on both sides of the granule's start. */
static bool cuts_buffer(uint64_t granule)
{
    return granule && granule < memory.setup.window_bytes / SP_GRANULE_BYTES &&
           memory.buffers[granule] && memory.buffers[granule - 1] == memory.buffers[granule];
}

static void destroy_buffers(uint64_t first, uint64_t end)
{
    uint32_t last = 0;
    for (uint64_t i = first; i < end; i++) {
        if (memory.buffers[i] && memory.buffers[i] != last)
            memory.setup.buffers->destroy(memory.buffers[i]);
        last = memory.buffers[i];
        memory.buffers[i] = 0;
    }
}

/* One buffer at whole granules that are not bound. */
static int bind_buffer(uint64_t first, uint64_t end)
{
    unsigned char *at = memory.setup.window + first * SP_GRANULE_BYTES;
    uint64_t bytes = (end - first) * SP_GRANULE_BYTES;
    uint32_t buffer;
    int file;
    int error = memory.setup.buffers->create(bytes, &buffer, &file);
    if (error)
        return error;
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) ==
        MAP_FAILED) {
        memory.setup.buffers->destroy(buffer);
        error = -ENOMEM;
    } else {
        for (uint64_t i = first; i < end; i++)
            memory.buffers[i] = buffer;
        sp_process_export((uintptr_t)at, bytes, file);
    }
    close(file);
    return error;
}

/* Memory of the device at whole granules that are not bound. After an error some of it may be
 * there, but where the memory is a file. */
static int bind_private(uint64_t first, uint64_t end)
{
    int error = 0;
    if (memory.setup.buffers) {
        uint64_t most = memory.setup.buffers->max_bytes / SP_GRANULE_BYTES;
        for (uint64_t next; first < end && !error; first = next) {
            next = end - first > most ? first + most : end;
            error = bind_buffer(first, next);
        }
        return error;
    }
    off_t offset = (off_t)(first * SP_GRANULE_BYTES);
    if (mmap(memory.setup.window + offset, (end - first) * SP_GRANULE_BYTES, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | MAP_FIXED, memory.file, offset) == MAP_FAILED)
        return -ENOMEM;
    return 0;
}

/* Makes whole granules inaccessible, and gives up what memory of the device was there. */
static int take_away(uint64_t first, uint64_t end, bool was_private)
{
    uint64_t start = (uintptr_t)memory.setup.window + first * SP_GRANULE_BYTES;
    uint64_t bytes = (end - first) * SP_GRANULE_BYTES;
    if (mmap((void *)(uintptr_t)start, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return -ENOMEM;
    if (!was_private)
        return 0;
    if (!memory.buffers)
        return punch(first, end);
    sp_process_unexport(start, bytes);
    destroy_buffers(first, end);
    return 0;
}

int sp_virtual_memory_bind(uint64_t start, uint64_t bytes, bool is_home)
{
    uint64_t first, end;
    if (!sp_virtual_whole_granules(start, bytes, &first, &end))
        return -EINVAL;
    uint64_t before = count_private(first, end);
    uint64_t wanted = is_home ? 0 : end - first;
    if (memory.used - before + wanted > memory.limit)
        return -ENOMEM;
    int error = before ? sp_virtual_memory_unbind(start, bytes) : 0;
    if (error)
        return error;
    void *at = memory.setup.window + first * SP_GRANULE_BYTES;
    if (!is_home)
        error = bind_private(first, end);
    else if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                  memory.setup.host_file, (off_t)(first * SP_GRANULE_BYTES)) == MAP_FAILED)
        error = -ENOMEM;
    if (error) {
        take_away(first, end, !is_home);
        return error;
    }
    madvise(at, bytes, MADV_HUGEPAGE); /* a wish */
    sp_virtual_reach_bound(end);
    memory.used += wanted;
    memset(memory.states + first, is_home ? HOME : PRIVATE, end - first);
    return 0;
}

int sp_virtual_memory_bind_peer(const struct sp_command *command)
{
    uint64_t first, end;
    if (!sp_virtual_whole_granules(command->range.start, command->range.bytes, &first, &end))
        return -EINVAL;
    int error = count_private(first, end)
                    ? sp_virtual_memory_unbind(command->range.start, command->range.bytes)
                    : 0;
    if (!error)
        error = sp_virtual_peer_map(command);
    if (error) {
        sp_virtual_memory_unbind(command->range.start, command->range.bytes);
        return error;
    }
    sp_virtual_reach_bound(end);
    memset(memory.states + first, PEER, end - first);
    return 0;
}

int sp_virtual_memory_unbind(uint64_t start, uint64_t bytes)
{
    uint64_t first, end;
    if (!sp_virtual_whole_granules(start, bytes, &first, &end) ||
        (memory.buffers && (cuts_buffer(first) || cuts_buffer(end))))
        return -EINVAL;
    uint64_t before = count_private(first, end);
    memory.used -= before;
    memset(memory.states + first, UNBOUND, end - first);
    return take_away(first, end, before);
}

void sp_virtual_memory_end_use(const struct sp_command *transfer)
{
    if (transfer->range.source != SP_PLACE_HOST && transfer->range.source != SP_PLACE_OWN)
        sp_virtual_peer_end_use(transfer);
}

int sp_virtual_memory_ends(const struct sp_command *transfer, void **dst, const void **src)
{
    uint64_t first, end;
    uint64_t start = transfer->range.start, bytes = transfer->range.bytes;
    uint32_t source = transfer->range.source, destination = transfer->range.destination;
    if (!sp_virtual_granules(start, bytes, &first, &end))
        return -EINVAL;
    if (!are_all(start, bytes, true))
        return -EFAULT;
    uint64_t offset = start - (uintptr_t)memory.setup.window;
    /* A buffer has no alias: bound there, the address means this device's memory here. */
    unsigned char *own = memory.alias ? memory.alias + offset : memory.setup.window + offset;
    if (source == SP_PLACE_OWN && destination == SP_PLACE_HOST) {
        *src = own;
        *dst = memory.setup.host + offset;
        return 0;
    }
    if (destination != SP_PLACE_OWN || source == SP_PLACE_OWN)
        return -EINVAL;
    unsigned char *from = memory.setup.host;
    if (source != SP_PLACE_HOST) {
        int error = sp_virtual_peer_use(transfer, &from);
        if (error)
            return error;
    }
    *src = from + offset;
    *dst = own;
    return 0;
}
