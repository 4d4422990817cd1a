/* See cache.h. Owns one open folder. An entry is a file named after its key: a header, then the
 * bytes.
 *
 * Invariant: what a file of the folder holds under a key's name is either whole and checked by its
 * header, or never handed out. Entries come into being by rename, so a reader sees all of one or
 * nothing; nothing is synced, the checksum finds what a power cut left behind.
 *
 * The folder must belong to this user and be writable by nobody else, since code from it is run.
 * Only files named like entries, or like temporary files of this module, are ever removed.
 *
 * No lock: the folder is read-only after creation, the counter is atomic, the file system does the
 * rest. An entry's modification time is the time of its last use, to the hour, for sp_cache_trim.
 */
#include "compiler/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/alloc.h"
#include "util/time.h"

#define ENTRY_MAGIC 0x48435053u /* "SPCH" */
#define ENTRY_VERSION 1u

/* 32 hexadecimal digits and a zero. */
#define NAME_BYTES 33u
#define TEMPORARY_PREFIX "tmp-"

/* An entry's last use is written down at most this often. */
#define TOUCH_SECONDS 3600

/* A temporary file of that age was left behind by a process that ended. */
#define STALE_SECONDS 3600

/* One store in so many looks at the whole folder: its cost is spread, and the limit is exceeded by
 * a few dozen entries at most. */
#define STORES_PER_TRIM 64u

/* Trimming goes down to this part of the limit, so that it has to be done rarely. */
#define TRIM_TO_PERCENT 75u

/* No single entry may take more than this part of the limit. */
#define ENTRY_PART 4u

/* The largest SAMEPAGE_CACHE_SIZE, in MiB. */
#define MAX_MIB (UINT64_C(1) << 24)

#define SEED_ENTRY 1u

struct sp_cache {
    int folder; /* an open directory */
    uint64_t max_bytes;
    atomic_uint counter; /* stores, and names of temporary files */
};

/* In the byte order of the machine: the folder is not shared between machines that differ, and if
 * it is, the magic differs. */
struct entry_header {
    uint32_t magic;
    uint32_t version;
    struct sp_digest key;
    uint64_t size;             /* bytes behind the header */
    struct sp_digest checksum; /* of them */
};

struct sp_digest sp_digest(const void *bytes, size_t size, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(size ? bytes : "", size, seed);
    return (struct sp_digest){hash.low64, hash.high64};
}

static bool digest_equal(struct sp_digest a, struct sp_digest b)
{
    return a.low == b.low && a.high == b.high;
}

static void entry_name(struct sp_digest key, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%016" PRIx64 "%016" PRIx64, key.high, key.low);
}

/* --- The folder ---------------------------------------------------------------------------- */

/* Makes `path` and what is missing above it, for this user only. 0 or an errno. */
static int make_folders(const char *path)
{
    char *copy = sp_strdup(path);
    if (!copy)
        return -ENOMEM;
    int error = 0;
    char *slash = copy;
    while (slash && !error) {
        slash = *slash ? strchr(slash + 1, '/') : NULL;
        if (slash)
            *slash = 0;
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            error = -errno;
        if (slash)
            *slash = '/';
    }
    free(copy);
    return error;
}

/* A directory descriptor of a folder that is ours alone, or an errno. */
static int open_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT) {
        int error = make_folders(path);
        if (error)
            return error;
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (folder < 0)
        return -errno;
    struct stat status;
    if (fstat(folder, &status) < 0 || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH))) {
        close(folder);
        return -EPERM;
    }
    return folder;
}

int sp_cache_create(const char *folder, uint64_t max_bytes, struct sp_cache **cache)
{
    struct sp_cache *created = sp_alloc(sizeof(*created));
    if (!created)
        return -ENOMEM;
    int fd = open_folder(folder);
    if (fd < 0) {
        free(created);
        return fd;
    }
    created->folder = fd;
    created->max_bytes = max_bytes;
    /* Each process trims at a point of its own, so that short-lived ones do it too. */
    atomic_init(&created->counter, (unsigned)(sp_time_ns() ^ (uint64_t)getpid()));
    *cache = created;
    return 0;
}

void sp_cache_destroy(struct sp_cache *cache)
{
    if (!cache)
        return;
    close(cache->folder);
    free(cache);
}

static uint64_t limit_from_environment(void)
{
    const char *text = getenv("SAMEPAGE_CACHE_SIZE");
    if (text && *text) {
        char *end;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        if (*text >= '0' && *text <= '9' && !*end && !errno && value <= MAX_MIB)
            return (uint64_t)value << 20;
        fprintf(stderr,
                "samepage: SAMEPAGE_CACHE_SIZE=%s is not a whole number of MiB from 0 to %" PRIu64
                "; %u is used instead.\n",
                text, (uint64_t)MAX_MIB, SP_CACHE_MIB_DEFAULT);
    }
    return (uint64_t)SP_CACHE_MIB_DEFAULT << 20;
}

/* A fresh path, or NULL where none is known. */
static char *folder_from_environment(void)
{
    const char *given = secure_getenv("SAMEPAGE_CACHE_DIR");
    if (given && *given)
        return sp_strdup(given);
    /* The specification of XDG_CACHE_HOME: a relative path is to be ignored. */
    const char *xdg = secure_getenv("XDG_CACHE_HOME");
    if (xdg && *xdg == '/')
        return sp_format("%s/samepage", xdg);
    const char *home = secure_getenv("HOME");
    return home && *home == '/' ? sp_format("%s/.cache/samepage", home) : NULL;
}

static pthread_once_t shared_once = PTHREAD_ONCE_INIT;
static struct sp_cache *shared;

static void open_shared(void)
{
    const char *wanted = getenv("SAMEPAGE_CACHE");
    if (wanted && strcmp(wanted, "0") == 0)
        return;
    uint64_t max_bytes = limit_from_environment();
    char *folder = max_bytes ? folder_from_environment() : NULL;
    if (folder && sp_cache_create(folder, max_bytes, &shared))
        shared = NULL;
    free(folder);
}

struct sp_cache *sp_cache_shared(void)
{
    pthread_once(&shared_once, open_shared);
    return shared;
}

/* --- Entries ------------------------------------------------------------------------------- */

static bool read_all(int fd, void *bytes, size_t size)
{
    unsigned char *next = bytes;
    while (size) {
        ssize_t got = read(fd, next, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        next += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t size)
{
    const unsigned char *next = bytes;
    while (size) {
        ssize_t put = write(fd, next, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        next += put;
        size -= (size_t)put;
    }
    return true;
}

static void touch(int fd, const struct stat *status)
{
    if (time(NULL) - status->st_mtim.tv_sec >= TOUCH_SECONDS)
        (void)futimens(fd, NULL);
}

/* The bytes of the open entry: 0; -EBADMSG for what is no whole entry of `key`; -ENOMEM. */
static int read_entry(struct sp_cache *cache, int fd, struct sp_digest key, void **bytes,
                      size_t *size)
{
    struct stat status;
    struct entry_header header;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return -EBADMSG;
    if (!read_all(fd, &header, sizeof(header)) || header.magic != ENTRY_MAGIC ||
        header.version != ENTRY_VERSION || !digest_equal(header.key, key) ||
        header.size > cache->max_bytes || (uint64_t)status.st_size != sizeof(header) + header.size)
        return -EBADMSG;
    unsigned char *content = sp_alloc(header.size + 1);
    if (!content)
        return -ENOMEM;
    if (!read_all(fd, content, header.size) ||
        !digest_equal(header.checksum, sp_digest(content, header.size, SEED_ENTRY))) {
        free(content);
        return -EBADMSG;
    }
    touch(fd, &status);
    *bytes = content;
    *size = header.size;
    return 0;
}

int sp_cache_load(struct sp_cache *cache, struct sp_digest key, void **bytes, size_t *size)
{
    char name[NAME_BYTES];
    entry_name(key, name);
    /* Not blocking and not following: a pipe or a link has no business here. */
    int fd = openat(cache->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -ENOENT;
    int error = read_entry(cache, fd, key, bytes, size);
    close(fd);
    if (error == -EBADMSG) {
        (void)unlinkat(cache->folder, name, 0);
        error = -ENOENT;
    }
    return error;
}

/* Whether a file of that size can be written without a signal (SIGXFSZ). */
static bool file_size_is_allowed(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

void sp_cache_store(struct sp_cache *cache, struct sp_digest key, const void *bytes, size_t size)
{
    if (size > cache->max_bytes / ENTRY_PART ||
        !file_size_is_allowed(size + sizeof(struct entry_header)))
        return;
    /* Relaxed: only distinct numbers matter. */
    unsigned number = atomic_fetch_add_explicit(&cache->counter, 1, memory_order_relaxed);
    if (number % STORES_PER_TRIM == 0)
        sp_cache_trim(cache);

    struct entry_header header = {
        .magic = ENTRY_MAGIC,
        .version = ENTRY_VERSION,
        .key = key,
        .size = size,
        .checksum = sp_digest(bytes, size, SEED_ENTRY),
    };
    char name[NAME_BYTES], temporary[64];
    entry_name(key, name);
    snprintf(temporary, sizeof(temporary), TEMPORARY_PREFIX "%ld-%u", (long)getpid(), number);
    int fd = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0)
        return;
    bool is_whole = write_all(fd, &header, sizeof(header)) && write_all(fd, bytes, size);
    if (close(fd) < 0)
        is_whole = false;
    if (!is_whole || renameat(cache->folder, temporary, cache->folder, name) < 0)
        (void)unlinkat(cache->folder, temporary, 0);
}

void sp_cache_remove(struct sp_cache *cache, struct sp_digest key)
{
    char name[NAME_BYTES];
    entry_name(key, name);
    (void)unlinkat(cache->folder, name, 0);
}

/* --- Trimming ------------------------------------------------------------------------------ */

struct trim_entry {
    char name[NAME_BYTES];
    time_t used;
    uint64_t size;
};

struct trim_list {
    struct trim_entry *entries;
    size_t count, capacity;
    uint64_t bytes;
};

static bool is_entry_name(const char *name)
{
    return strlen(name) == NAME_BYTES - 1 && strspn(name, "0123456789abcdef") == NAME_BYTES - 1;
}

static bool list_add(struct trim_list *list, const char *name, const struct stat *status)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 256;
        struct trim_entry *entries = sp_realloc(list->entries, capacity * sizeof(*entries));
        if (!entries)
            return false;
        list->entries = entries;
        list->capacity = capacity;
    }
    struct trim_entry *entry = &list->entries[list->count++];
    memcpy(entry->name, name, NAME_BYTES);
    entry->used = status->st_mtim.tv_sec;
    entry->size = (uint64_t)status->st_size;
    list->bytes += entry->size;
    return true;
}

/* Lists the entries, and removes temporary files that nobody will rename any more. */
static bool list_folder(struct sp_cache *cache, DIR *folder, struct trim_list *list)
{
    time_t now = time(NULL);
    struct dirent *file;
    while ((file = readdir(folder))) {
        bool is_temporary = strncmp(file->d_name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) == 0;
        struct stat status;
        if ((!is_temporary && !is_entry_name(file->d_name)) ||
            fstatat(cache->folder, file->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (!is_temporary) {
            if (!list_add(list, file->d_name, &status))
                return false;
        } else if (now - status.st_mtim.tv_sec > STALE_SECONDS) {
            (void)unlinkat(cache->folder, file->d_name, 0);
        }
    }
    return true;
}

static int compare_use(const void *a, const void *b)
{
    const struct trim_entry *first = a, *second = b;
    return (first->used > second->used) - (first->used < second->used);
}

void sp_cache_trim(struct sp_cache *cache)
{
    struct trim_list list = {0};
    /* A descriptor of its own: reading a directory moves its position. */
    int fd = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    bool is_listed = list_folder(cache, folder, &list);
    closedir(folder);
    if (is_listed && list.bytes > cache->max_bytes) {
        uint64_t goal = cache->max_bytes / 100 * TRIM_TO_PERCENT;
        qsort(list.entries, list.count, sizeof(*list.entries), compare_use);
        for (size_t i = 0; i < list.count && list.bytes > goal; i++) {
            if (unlinkat(cache->folder, list.entries[i].name, 0) == 0)
                list.bytes -= list.entries[i].size;
        }
    }
    free(list.entries);
}
