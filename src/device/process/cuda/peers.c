/* The memory of other devices, which transfers copy from.
 *
 * What another GPU exports, its process exports in parts, each a handle of CUDA's in a file, which
 * is imported and mapped for this GPU at an address of CUDA's choice: the copy then goes directly
 * from GPU to GPU. A virtual device's memory, or parts of it, are files that the host can map.
 *
 * A part of a pooled region is mapped at the shared address instead. That mapping is a binding
 * (memory.c), and nothing else here keeps the memory from then on, so that its owner can have it
 * back when it is unbound.
 *
 * The control thread changes the table and the loop thread uses it, under one lock. A part is
 * imported when a transfer first needs it, since most are never asked for. What is gone is let go
 * by the loop thread, once the transfers that use it have ended: until then its memory stays,
 * whatever became of its owner.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/cuda/cuda.h"
#include "svm/heap.h"
#include "util/alloc.h"

struct part {
    struct part *next;
    uint64_t start, bytes;
    int file;        /* -1 once it is mapped */
    uint64_t device; /* where this GPU sees it; 0: nowhere */
    void *host;      /* where this process sees it; NULL: nowhere */
    CUmemGenericAllocationHandle handle;
    uint64_t mark; /* when the last transfer from it has ended */
};

static struct {
    pthread_mutex_t lock;
    uint32_t generations[SP_MAX_CLIENT_DEVICES];
    struct part *parts[SP_MAX_CLIENT_DEVICES];
    struct part *leaving;
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t window_start(void)
{
    return (uintptr_t)sp_cuda_device.setup.window;
}

/* With the lock held. */
static void let_go(struct part **link)
{
    struct part *part = *link;
    *link = part->next;
    part->next = peers.leaving;
    peers.leaving = part;
}

static void add(uint32_t index, uint64_t start, uint64_t bytes, int file)
{
    struct part *part = sp_alloc(sizeof *part);
    if (!part) {
        close(file);
        return; /* transfers from there fail */
    }
    *part = (struct part){.start = start, .bytes = bytes, .file = file};
    part->next = peers.parts[index];
    peers.parts[index] = part;
}

void sp_cuda_peer(uint32_t index, uint32_t generation, int file)
{
    if (index >= SP_MAX_CLIENT_DEVICES) {
        if (file >= 0)
            close(file);
        return;
    }
    pthread_mutex_lock(&peers.lock);
    while (peers.parts[index])
        let_go(&peers.parts[index]);
    peers.generations[index] = generation;
    if (file >= 0)
        add(index, window_start(), sp_cuda_device.setup.window_bytes, file);
    pthread_mutex_unlock(&peers.lock);
}

void sp_cuda_peer_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                       int file)
{
    pthread_mutex_lock(&peers.lock);
    if (index < SP_MAX_CLIENT_DEVICES && peers.generations[index] == generation)
        add(index, start, bytes, file);
    else
        close(file);
    pthread_mutex_unlock(&peers.lock);
}

void sp_cuda_peer_part_gone(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes)
{
    pthread_mutex_lock(&peers.lock);
    struct part **link = &peers.parts[index % SP_MAX_CLIENT_DEVICES];
    while (index < SP_MAX_CLIENT_DEVICES && peers.generations[index] == generation && *link) {
        if ((*link)->start >= start && (*link)->start + (*link)->bytes <= start + bytes)
            let_go(link);
        else
            link = &(*link)->next;
    }
    pthread_mutex_unlock(&peers.lock);
}

/* Maps memory for this GPU at reserved addresses. */
static int map(uint64_t at, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, sp_cuda_device.ordinal},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int error = sp_cuda_check(sp_cuda.MemMap(at, bytes, 0, handle, 0));
    if (error)
        return error;
    error = sp_cuda_check(sp_cuda.MemSetAccess(at, bytes, &access, 1));
    if (error)
        sp_cuda.MemUnmap(at, bytes);
    return error;
}

static int import(const struct part *part, CUmemGenericAllocationHandle *handle)
{
    return sp_cuda_check(sp_cuda.MemImportFromShareableHandle(
        handle, (void *)(uintptr_t)part->file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

/* Imports and maps the part at an address of CUDA's choice. */
static int map_alias(struct part *part)
{
    CUdeviceptr at;
    int error = import(part, &part->handle);
    if (error)
        return error;
    error = sp_cuda_check(sp_cuda.MemAddressReserve(&at, part->bytes, SP_GRANULE_BYTES, 0, 0));
    if (error)
        goto err_handle;
    error = map(at, part->bytes, part->handle);
    if (error)
        goto err_address;
    part->device = at;
    return 0;

err_address:
    sp_cuda.MemAddressFree(at, part->bytes);
err_handle:
    sp_cuda.MemRelease(part->handle);
    return error;
}

/* Makes the part reachable. A file that CUDA does not know is one of pages. */
static int open_part(struct part *part)
{
    if (part->file < 0)
        return part->host || part->device ? 0 : -ENODEV;
    int error = map_alias(part);
    void *host = error
                     ? mmap(NULL, part->bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, part->file, 0)
                     : NULL;
    if (host && host != MAP_FAILED) {
        part->host = host;
        error = 0;
    }
    close(part->file);
    part->file = -1;
    return error ? -ENODEV : 0;
}

static void close_part(struct part *part)
{
    if (part->device) {
        sp_cuda.MemUnmap(part->device, part->bytes);
        sp_cuda.MemAddressFree(part->device, part->bytes);
        sp_cuda.MemRelease(part->handle);
    }
    if (part->host)
        munmap(part->host, part->bytes);
    if (part->file >= 0)
        close(part->file);
    free(part);
}

void sp_cuda_peers_reap(void)
{
    struct part *ended = NULL;
    pthread_mutex_lock(&peers.lock);
    for (struct part **link = &peers.leaving; *link;) {
        struct part *part = *link;
        if (!sp_cuda_lane_has_passed(SP_CUDA_IN, part->mark)) {
            link = &part->next;
            continue;
        }
        *link = part->next;
        part->next = ended;
        ended = part;
    }
    pthread_mutex_unlock(&peers.lock);
    while (ended) {
        struct part *part = ended;
        ended = part->next;
        close_part(part);
    }
}

/* With the lock held: the part that holds `address`. */
static struct part *find(uint32_t index, uint64_t address)
{
    struct part *part = peers.parts[index];
    while (part && address - part->start >= part->bytes)
        part = part->next;
    return part;
}

/* With the lock held. */
static int copy_from(uint32_t index, uint64_t start, uint64_t bytes)
{
    while (bytes) {
        struct part *part = find(index, start);
        int error = part ? open_part(part) : -ENODEV;
        if (error)
            return error;
        uint64_t offset = start - part->start;
        uint64_t count = bytes < part->bytes - offset ? bytes : part->bytes - offset;
        CUstream stream = sp_cuda_lane(SP_CUDA_IN);
        error = sp_cuda_check(
            part->device
                ? sp_cuda.MemcpyDtoDAsync(start, part->device + offset, count, stream)
                : sp_cuda.MemcpyHtoDAsync(start, (const char *)part->host + offset, count, stream));
        part->mark = sp_cuda_lane_mark(SP_CUDA_IN);
        if (error)
            return error;
        start += count;
        bytes -= count;
    }
    return 0;
}

int sp_cuda_peers_copy(const struct sp_command *transfer)
{
    uint32_t index = transfer->range.source;
    int error = sp_process_await_peer(transfer);
    if (error)
        return error;
    sp_cuda_peers_reap();
    pthread_mutex_lock(&peers.lock);
    error = index >= SP_MAX_CLIENT_DEVICES ? -ENODEV
            : peers.generations[index] != transfer->range.generation
                ? -EIO /* a newer one holds other data than what was asked for */
                : copy_from(index, transfer->range.start, transfer->range.bytes);
    pthread_mutex_unlock(&peers.lock);
    return error;
}

/* With the lock held: maps the part, and lets go of it. */
static int map_part(struct part **link)
{
    struct part *part = *link;
    CUmemGenericAllocationHandle handle = part->handle;
    int error = part->device ? 0 : part->file < 0 ? -ENODEV : import(part, &handle);
    if (error)
        return error;
    error = map(part->start, part->bytes, handle);
    if (!part->device)
        sp_cuda.MemRelease(handle);
    let_go(link);
    return error;
}

int sp_cuda_peers_map(const struct sp_command *command)
{
    uint32_t index = command->range.source, generation = command->range.generation;
    uint64_t start = command->range.start, bytes = command->range.bytes;
    int error = sp_process_await_peer(command);
    if (error)
        return error;
    pthread_mutex_lock(&peers.lock);
    struct part **link = &peers.parts[index];
    while (*link && ((*link)->start != start || (*link)->bytes != bytes))
        link = &(*link)->next;
    error = peers.generations[index] != generation ? -EIO : *link ? map_part(link) : -ENODEV;
    pthread_mutex_unlock(&peers.lock);
    sp_process_forget_part(index, generation, start, bytes);
    sp_cuda_peers_reap();
    return error;
}
