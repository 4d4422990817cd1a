/* The memory of a virtual device: a memory file as large as the window, of which only bound
 * granules have pages.
 *
 * It is mapped twice: granule by granule at the shared addresses, where kernels see it (bind), and
 * as a whole at an alias, through which transfers copy; so a transfer never touches the address
 * that may mean another memory elsewhere. Peers map the same file at aliases of their own.
 *
 * Invariant: a granule is UNBOUND (inaccessible, no page in the file), PRIVATE (the file's pages)
 * or HOME (the host's pages, none in the file); `used` counts the PRIVATE ones.
 *
 * Only the loop thread comes here, but for the table of peers, which the control thread fills under
 * a lock. A transfer from a memory that is newer than what the table has waits: its message was
 * sent before the command was, and the control thread is about to read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/virtual/virtual.h"
#include "device/selection.h"
#include "svm/heap.h"
#include "util/alloc.h"

enum { UNBOUND = 0, PRIVATE = 1, HOME = 2 };

struct peer {
    unsigned char *alias; /* NULL: cannot be reached */
    uint32_t generation;  /* 0: none yet */
    bool is_in_use;       /* the loop thread copies from it */
};

static struct {
    struct sp_backend_setup setup;
    int file;
    unsigned char *alias;
    unsigned char *states; /* of granules; pages of it appear when used */
    uint64_t used, limit;  /* granules */
    pthread_mutex_t lock;  /* of peers */
    pthread_cond_t moved;  /* a peer arrived, or is in use no more */
    struct peer peers[SP_MAX_CLIENT_DEVICES];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* Maps all of `file`, in place of `before` where that is not NULL. NULL: it cannot be mapped. */
static unsigned char *map_alias(int file, unsigned char *before)
{
    void *alias = mmap(before, memory.setup.window_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE | (before ? MAP_FIXED : 0), file, 0);
    if (alias == MAP_FAILED)
        return NULL;
    madvise(alias, memory.setup.window_bytes, MADV_HUGEPAGE); /* a wish */
    return alias;
}

int sp_virtual_memory_init(const struct sp_backend_setup *setup, int *memory_file)
{
    memory.setup = *setup;
    memory.limit = setup->memory_bytes / SP_GRANULE_BYTES;
    memory.states = sp_alloc(setup->window_bytes / SP_GRANULE_BYTES);
    if (!memory.states)
        return -ENOMEM;
    memory.file = memfd_create("samepage-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory.file < 0)
        return -errno;
    /* Sealed, so that a peer's mapping can never lose its end. */
    if (ftruncate(memory.file, (off_t)setup->window_bytes) ||
        fcntl(memory.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return -errno;
    memory.alias = map_alias(memory.file, NULL);
    if (!memory.alias)
        return -ENOMEM;
    *memory_file = memory.file;
    return 0;
}

void sp_virtual_memory_peer(uint32_t index, uint32_t generation, int file)
{
    if (file < 0)
        return;
    if (index < SP_MAX_CLIENT_DEVICES) {
        pthread_mutex_lock(&memory.lock);
        struct peer *peer = &memory.peers[index];
        /* The memory of a process that died stays whole as long as it is mapped: a copy from it
         * ends well. */
        while (peer->is_in_use)
            pthread_cond_wait(&memory.moved, &memory.lock);
        /* In the old one's place, so that restarts use up no addresses. */
        peer->alias = map_alias(file, peer->alias);
        peer->generation = generation;
        pthread_cond_broadcast(&memory.moved);
        pthread_mutex_unlock(&memory.lock);
    }
    close(file);
}

/* The granules of [address, address + bytes); false where that is not inside the window. */
static bool granules_of(uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    uint64_t offset = address - (uintptr_t)memory.setup.window;
    if (offset > memory.setup.window_bytes || bytes > memory.setup.window_bytes - offset)
        return false;
    *first = offset / SP_GRANULE_BYTES;
    *end = (offset + bytes + SP_GRANULE_BYTES - 1) / SP_GRANULE_BYTES;
    return true;
}

static bool are_all(uint64_t address, uint64_t bytes, bool may_be_home)
{
    uint64_t first, end;
    if (!bytes)
        return true;
    if (!granules_of(address, bytes, &first, &end))
        return false;
    for (uint64_t i = first; i < end; i++)
        if (memory.states[i] != PRIVATE && !(may_be_home && memory.states[i] == HOME))
            return false;
    return true;
}

bool sp_virtual_memory_is_bound(uint64_t address, uint64_t bytes)
{
    return are_all(address, bytes, true);
}

static bool are_whole_granules(uint64_t start, uint64_t bytes, uint64_t *first, uint64_t *end)
{
    return bytes && !(start % SP_GRANULE_BYTES) && !(bytes % SP_GRANULE_BYTES) &&
           granules_of(start, bytes, first, end);
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

int sp_virtual_memory_bind(uint64_t start, uint64_t bytes, bool is_home)
{
    uint64_t first, end;
    if (!are_whole_granules(start, bytes, &first, &end))
        return -EINVAL;
    uint64_t before = count_private(first, end);
    uint64_t wanted = is_home ? 0 : end - first;
    if (memory.used - before + wanted > memory.limit)
        return -ENOMEM;
    int error = before ? punch(first, end) : 0;
    if (error)
        return error;
    void *at = memory.setup.window + first * SP_GRANULE_BYTES;
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
             is_home ? memory.setup.host_file : memory.file,
             (off_t)(first * SP_GRANULE_BYTES)) == MAP_FAILED)
        return -ENOMEM;
    madvise(at, bytes, MADV_HUGEPAGE); /* a wish */
    memory.used += wanted - before;
    memset(memory.states + first, is_home ? HOME : PRIVATE, end - first);
    return 0;
}

int sp_virtual_memory_unbind(uint64_t start, uint64_t bytes)
{
    uint64_t first, end;
    if (!are_whole_granules(start, bytes, &first, &end))
        return -EINVAL;
    if (mmap(memory.setup.window + first * SP_GRANULE_BYTES, bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return -ENOMEM;
    uint64_t before = count_private(first, end);
    memory.used -= before;
    memset(memory.states + first, UNBOUND, end - first);
    return before ? punch(first, end) : 0;
}

/* Takes a peer's memory of exactly that generation into use. A newer one holds other data than what
 * was asked for: -EIO. */
static int use_peer(uint32_t index, uint32_t generation, unsigned char **alias)
{
    int error = 0;
    if (index >= SP_MAX_CLIENT_DEVICES || !generation)
        return -ENODEV;
    pthread_mutex_lock(&memory.lock);
    struct peer *peer = &memory.peers[index];
    while ((int32_t)(peer->generation - generation) < 0)
        pthread_cond_wait(&memory.moved, &memory.lock);
    if (peer->generation != generation)
        error = -EIO;
    else if (!peer->alias)
        error = -ENODEV;
    else
        peer->is_in_use = true;
    *alias = peer->alias;
    pthread_mutex_unlock(&memory.lock);
    return error;
}

void sp_virtual_memory_end_use(const struct sp_command *transfer)
{
    uint32_t index = transfer->range.source;
    if (index >= SP_MAX_CLIENT_DEVICES)
        return;
    pthread_mutex_lock(&memory.lock);
    memory.peers[index].is_in_use = false;
    pthread_cond_broadcast(&memory.moved);
    pthread_mutex_unlock(&memory.lock);
}

int sp_virtual_memory_ends(const struct sp_command *transfer, void **dst, const void **src)
{
    uint64_t first, end;
    uint64_t start = transfer->range.start, bytes = transfer->range.bytes;
    uint32_t source = transfer->range.source, destination = transfer->range.destination;
    if (!granules_of(start, bytes, &first, &end))
        return -EINVAL;
    if (!are_all(start, bytes, false))
        return -EFAULT;
    uint64_t offset = start - (uintptr_t)memory.setup.window;
    if (source == SP_PLACE_OWN && destination == SP_PLACE_HOST) {
        *src = memory.alias + offset;
        *dst = memory.setup.host + offset;
        return 0;
    }
    if (destination != SP_PLACE_OWN || source == SP_PLACE_OWN)
        return -EINVAL;
    unsigned char *from = memory.setup.host;
    if (source != SP_PLACE_HOST) {
        int error = use_peer(source, transfer->range.generation, &from);
        if (error)
            return error;
    }
    *src = from + offset;
    *dst = memory.alias + offset;
    return 0;
}
