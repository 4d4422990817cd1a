/* See cuda.h. The kernel driver lists its GPUs under /proc; in the order of their PCI addresses, as
 * the device processes number them too. The list is read at each call: none is frequent.
 *
 * What a GPU said of itself is kept in the disk cache, under a key made of what usually changes it:
 * the kernel driver's version, the GPU's own lines under /proc (with its UUID), and what the
 * environment hides from CUDA. So what is found is what its process is about to say, but for what
 * depends on the other GPUs, which is not kept; and where it is not, description.c sees to that.
 */
#include "device/client/cuda.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cache.h"
#include "device/selection.h"

/* Tests name another one in SAMEPAGE_CUDA_FOLDER. */
#define KERNEL_DRIVER_FOLDER "/proc/driver/nvidia"

/* "0000:c1:00.0" */
#define MAX_ADDRESS 32u
#define MAX_PATH 512u

/* UUIDs of all GPUs that there can be, with a prefix and a comma. */
#define MAX_VISIBLE 1024u

/* Uses of digests: cache.h. */
#define SEED_DESCRIPTION 0x43554441u

/* On the H200 triad reaches 3342 GB/s with 256, 1257 with 64 and 2892 with 1024 (measured). */
#define GOOD_ITEMS 256u

/* In planes and volumes groups are blocks of rows: neighbours share what they read, and the rows of
 * a warp end at about the same time. Smaller groups, which suit a Mandelbrot set (36 us with 32 x
 * 4, 37 with 32 x 8 and with 256 x 1), are too many for a stencil: an H200 starts 1.6 of them in a
 * nanosecond (measured). */
#define GOOD_ROWS 8u

struct addresses {
    char text[SP_MAX_CLIENT_DEVICES][MAX_ADDRESS];
    unsigned count;
};

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* From the environment, at the first call, which is made on the application's own thread: later the
 * environment may change under our feet. */
static struct {
    pthread_once_t once;
    char folder[MAX_PATH];
    bool has_visible; /* CUDA_VISIBLE_DEVICES is set: */
    char visible[MAX_VISIBLE];
} settings = {.once = PTHREAD_ONCE_INIT};

static void read_settings(void)
{
    const char *folder = getenv("SAMEPAGE_CUDA_FOLDER");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(settings.folder, sizeof settings.folder, "%s",
             folder && *folder ? folder : KERNEL_DRIVER_FOLDER);
    settings.has_visible = visible;
    snprintf(settings.visible, sizeof settings.visible, "%s", visible ? visible : "");
}

/* Where a container hides /proc: the device nodes, without addresses. */
static void list_nodes(struct addresses *addresses)
{
    for (unsigned i = 0; i < SP_MAX_CLIENT_DEVICES; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%u", i);
        if (access(path, F_OK) == 0)
            addresses->text[addresses->count++][0] = 0;
    }
}

static void list(struct addresses *addresses)
{
    char path[MAX_PATH + 8];
    pthread_once(&settings.once, read_settings);
    snprintf(path, sizeof path, "%s/gpus", settings.folder);
    addresses->count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        if (!strcmp(settings.folder, KERNEL_DRIVER_FOLDER))
            list_nodes(addresses);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && addresses->count < SP_MAX_CLIENT_DEVICES)
            snprintf(addresses->text[addresses->count++], MAX_ADDRESS, "%.*s", (int)MAX_ADDRESS - 1,
                     entry->d_name);
    closedir(folder);
    qsort(addresses->text, addresses->count, sizeof addresses->text[0], compare);
}

/* How many of `listed` GPUs CUDA_VISIBLE_DEVICES leaves at most: it has numbers and UUIDs, and what
 * is neither ends it ("CUDA C Programming Guide", environment variables). */
static unsigned count_visible(unsigned listed)
{
    unsigned count = 0;
    const char *entry = settings.visible;
    while (entry) {
        entry += strspn(entry, " ");
        bool is_number = *entry >= '0' && *entry <= '9';
        bool is_uuid = !strncmp(entry, "GPU-", 4) || !strncmp(entry, "MIG-", 4);
        if (is_number ? strtoul(entry, NULL, 10) >= listed : !is_uuid)
            break;
        count++;
        entry = strchr(entry, ',');
        entry = entry ? entry + 1 : NULL;
    }
    return count < listed ? count : listed;
}

unsigned sp_cuda_count(void)
{
    struct addresses addresses;
    list(&addresses);
    return settings.has_visible ? count_visible(addresses.count) : addresses.count;
}

/* Appends a file's text to `text`; false where it cannot be read. */
static bool append_file(const char *path, char *text, size_t size)
{
    size_t length = strlen(text);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t got = fread(text + length, 1, size - length - 1, file);
    text[length + got] = 0;
    fclose(file);
    return got > 0;
}

/* Interrupts are numbered anew at each start of the machine. */
static void remove_line(char *text, const char *start)
{
    char *line = strstr(text, start);
    char *end = line ? strchr(line, '\n') : NULL;
    if (end)
        memmove(line, end, strlen(end) + 1);
}

static bool key_of(uint32_t ordinal, struct sp_digest *key)
{
    struct addresses addresses;
    char gpu[MAX_PATH + 64], version[MAX_PATH + 16], text[4096];
    list(&addresses);
    if (ordinal >= addresses.count || !addresses.text[ordinal][0])
        return false;
    snprintf(text, sizeof text, "%u %u %s\n", SP_DEVICE_VERSION, ordinal, settings.visible);
    snprintf(gpu, sizeof gpu, "%s/gpus/%s/information", settings.folder, addresses.text[ordinal]);
    snprintf(version, sizeof version, "%s/version", settings.folder);
    if (!append_file(gpu, text, sizeof text) || !append_file(version, text, sizeof text))
        return false;
    remove_line(text, "IRQ:");
    *key = sp_digest(text, strlen(text), SEED_DESCRIPTION);
    return true;
}

/* Kept in place of a description. */
static const char refusal[] = "cannot be used";

enum sp_cuda_memory sp_cuda_recall(uint32_t ordinal, struct sp_device_description *description)
{
    struct sp_cache *cache = sp_cache_shared();
    struct sp_digest key;
    void *bytes;
    size_t size;
    enum sp_cuda_memory result = SP_CUDA_UNKNOWN;
    if (!cache || !key_of(ordinal, &key) || sp_cache_load(cache, key, &bytes, &size))
        return result;
    if (size == sizeof *description) {
        memcpy(description, bytes, size);
        result = SP_CUDA_KNOWN;
    } else if (size == sizeof refusal && !memcmp(bytes, refusal, size)) {
        result = SP_CUDA_REFUSES;
    }
    free(bytes);
    return result;
}

void sp_cuda_remember(uint32_t ordinal, const struct sp_device_description *description)
{
    struct sp_cache *cache = sp_cache_shared();
    struct sp_digest key;
    struct sp_device_description kept = *description;
    kept.peers = 0; /* which are those of this program's GPUs; the key knows one of them */
    if (cache && key_of(ordinal, &key))
        sp_cache_store(cache, key, &kept, sizeof kept);
}

void sp_cuda_remember_refusal(uint32_t ordinal)
{
    struct sp_cache *cache = sp_cache_shared();
    struct sp_digest key;
    if (cache && key_of(ordinal, &key))
        sp_cache_store(cache, key, refusal, sizeof refusal);
}

void sp_cuda_forget(uint32_t ordinal)
{
    struct sp_cache *cache = sp_cache_shared();
    struct sp_digest key;
    if (cache && key_of(ordinal, &key))
        sp_cache_remove(cache, key);
}

/* The largest divisor of `size` up to `limit`; of those that are multiples of `multiple` if there
 * is one. */
static uint64_t good_divisor(uint64_t size, uint64_t limit, uint64_t multiple)
{
    uint64_t best = 1;
    for (uint64_t d = limit < size ? limit : size; d > 1; d--) {
        if (size % d)
            continue;
        if (d % multiple == 0)
            return d;
        if (best == 1)
            best = d;
    }
    return best;
}

void sp_cuda_suggest_local_size(const struct sp_device *device, const struct sp_kernel_info *info,
                                const struct sp_ndrange *range, uint64_t local_size[3])
{
    bool is_plane = range->work_dim > 1 && range->global_size[1] > 1;
    uint64_t left = GOOD_ITEMS;
    uint64_t row = is_plane ? left / good_divisor(range->global_size[1], GOOD_ROWS, 1) : left;
    local_size[0] = local_size[1] = local_size[2] = 1;
    if (info && info->reqd_local_size[0]) {
        for (unsigned d = 0; d < 3; d++)
            local_size[d] = info->reqd_local_size[d];
        return;
    }
    /* Every dimension must be divided evenly: a kernel may rely on it. */
    for (unsigned d = 0; d < range->work_dim && left > 1; d++) {
        uint64_t most = d == 0 ? row : left;
        uint64_t limit =
            most < device->info.max_item_sizes[d] ? most : device->info.max_item_sizes[d];
        uint64_t multiple = d == 0 ? device->info.preferred_multiple : 1;
        local_size[d] = good_divisor(range->global_size[d], limit, multiple);
        left /= local_size[d];
    }
}
