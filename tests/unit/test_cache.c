/* The disk cache on folders of its own. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/cache.h"

#define MIB (1u << 20)

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/samepage_cache_unit_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static struct sp_cache *open_cache(uint64_t max_bytes)
{
    struct sp_cache *cache = NULL;
    assert_int_equal(sp_cache_create(folder, max_bytes, &cache), 0);
    return cache;
}

static struct sp_digest key_of(unsigned number)
{
    return sp_digest(&number, sizeof number, 99);
}

static void entry_path(struct sp_digest key, char path[128])
{
    snprintf(path, 128, "%s/%016lx%016lx", folder, (unsigned long)key.high, (unsigned long)key.low);
}

static bool holds(struct sp_cache *cache, unsigned number, const void *expected, size_t size)
{
    void *bytes;
    size_t found;
    if (sp_cache_load(cache, key_of(number), &bytes, &found))
        return false;
    assert_int_equal(found, size);
    assert_memory_equal(bytes, expected, size);
    free(bytes);
    return true;
}

static void what_is_stored_is_found(void **state)
{
    (void)state;
    struct sp_cache *cache = open_cache(MIB);
    assert_false(holds(cache, 1, "", 0));
    sp_cache_store(cache, key_of(1), "hello", 5);
    sp_cache_store(cache, key_of(2), "", 0);
    assert_true(holds(cache, 1, "hello", 5));
    assert_true(holds(cache, 2, "", 0));
    sp_cache_store(cache, key_of(1), "other", 5);
    assert_true(holds(cache, 1, "other", 5));
    sp_cache_remove(cache, key_of(1));
    assert_false(holds(cache, 1, "", 0));
    sp_cache_destroy(cache);
    cache = open_cache(MIB);
    assert_true(holds(cache, 2, "", 0));
    sp_cache_destroy(cache);
    sp_cache_destroy(NULL);
}

static void keys_and_seeds_differ(void **state)
{
    (void)state;
    struct sp_digest a = sp_digest("abc", 3, 1), b = sp_digest("abc", 3, 2),
                     c = sp_digest("abd", 3, 1);
    assert_true(a.low != b.low && a.low != c.low && a.high != b.high);
    struct sp_digest none = sp_digest(NULL, 0, 1);
    assert_true(none.low != a.low);
}

static void damage_in_any_byte_is_seen(void **state)
{
    (void)state;
    struct sp_cache *cache = open_cache(MIB);
    char path[128];
    struct stat status;
    entry_path(key_of(7), path);
    sp_cache_store(cache, key_of(7), "sixteen bytes ok", 16);
    assert_int_equal(stat(path, &status), 0);
    for (off_t place = 0; place < status.st_size; place++) {
        sp_cache_store(cache, key_of(7), "sixteen bytes ok", 16);
        int fd = open(path, O_RDWR);
        char byte;
        assert_int_equal(pread(fd, &byte, 1, place), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, place), 1);
        close(fd);
        assert_false(holds(cache, 7, "", 0));
        assert_int_equal(access(path, F_OK), -1); /* and it is gone */
    }
    for (off_t size = 0; size < status.st_size; size++) {
        sp_cache_store(cache, key_of(7), "sixteen bytes ok", 16);
        assert_int_equal(truncate(path, size), 0);
        assert_false(holds(cache, 7, "", 0));
    }
    /* One entry in place of another is not taken for it. */
    char other[128];
    entry_path(key_of(8), other);
    sp_cache_store(cache, key_of(7), "sixteen bytes ok", 16);
    assert_int_equal(rename(path, other), 0);
    assert_false(holds(cache, 8, "", 0));
    sp_cache_destroy(cache);
}

static void odd_files_are_left_alone(void **state)
{
    (void)state;
    struct sp_cache *cache = open_cache(MIB);
    char path[128], note[128];
    snprintf(note, sizeof note, "%s/README", folder);
    close(open(note, O_CREAT | O_WRONLY, 0600));
    entry_path(key_of(3), path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(holds(cache, 3, "", 0));
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_false(holds(cache, 3, "", 0));
    sp_cache_store(cache, key_of(3), "x", 1);
    assert_true(holds(cache, 3, "x", 1));
    sp_cache_trim(cache);
    assert_int_equal(access(note, F_OK), 0);
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    sp_cache_destroy(cache);
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *directory = opendir(folder);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

static void the_oldest_go_when_it_is_full(void **state)
{
    (void)state;
    enum { SIZE = 40000, COUNT = 27 }; /* the last one is too much */
    struct sp_cache *cache = open_cache(MIB);
    static char content[SIZE];
    for (unsigned i = 0; i < COUNT; i++) {
        char path[128];
        struct timespec times[2] = {{.tv_sec = 1000000 + (long)i}, {.tv_sec = 1000000 + (long)i}};
        sp_cache_store(cache, key_of(i), content, SIZE);
        entry_path(key_of(i), path);
        utimensat(AT_FDCWD, path, times, 0);
    }
    /* Use brings an entry to the front. */
    assert_true(holds(cache, 0, content, SIZE));
    sp_cache_trim(cache);
    unsigned left = count_files();
    assert_in_range(left, 15, 19);
    assert_true(holds(cache, 0, content, SIZE));
    assert_false(holds(cache, 1, content, SIZE));
    assert_true(holds(cache, COUNT - 1, content, SIZE));
    /* Nothing to do below the limit. */
    sp_cache_trim(cache);
    assert_int_equal(count_files(), left);
    /* An entry of a size that would push all others out is not kept. */
    static char large[MIB / 2];
    sp_cache_store(cache, key_of(1000), large, sizeof large);
    assert_int_equal(count_files(), left);
    /* Storing alone keeps it about in bounds. */
    for (unsigned i = 0; i < 500; i++)
        sp_cache_store(cache, key_of(2000 + i), content, 1000);
    assert_true(count_files() < 1048 + 65);
    sp_cache_destroy(cache);
}

static void left_over_temporary_files_go(void **state)
{
    (void)state;
    struct sp_cache *cache = open_cache(MIB);
    char old[128], fresh[128];
    snprintf(old, sizeof old, "%s/tmp-1-1", folder);
    snprintf(fresh, sizeof fresh, "%s/tmp-1-2", folder);
    close(open(old, O_CREAT | O_WRONLY, 0600));
    close(open(fresh, O_CREAT | O_WRONLY, 0600));
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, old, times, 0), 0);
    sp_cache_trim(cache);
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(access(fresh, F_OK), 0);
    sp_cache_destroy(cache);
}

static void folders_of_others_are_refused(void **state)
{
    (void)state;
    struct sp_cache *cache = NULL;
    char path[128];
    assert_int_equal(chmod(folder, 0770), 0);
    assert_int_equal(sp_cache_create(folder, MIB, &cache), -EPERM);
    assert_int_equal(chmod(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_true(sp_cache_create(path, MIB, &cache) < 0);
    strcat(path, "/below");
    assert_true(sp_cache_create(path, MIB, &cache) < 0);
    assert_true(sp_cache_create("", MIB, &cache) < 0);
    assert_true(sp_cache_create("/proc/none/such", MIB, &cache) < 0);
    assert_null(cache);
    /* One that vanishes is no harm. */
    cache = open_cache(MIB);
    remove_folder(NULL);
    sp_cache_store(cache, key_of(1), "a", 1);
    assert_false(holds(cache, 1, "a", 1));
    sp_cache_trim(cache);
    sp_cache_destroy(cache);
}

static void a_file_size_limit_is_no_signal(void **state)
{
    (void)state;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        static char content[100000];
        struct rlimit limit = {.rlim_cur = 50000, .rlim_max = RLIM_INFINITY};
        struct sp_cache *cache = open_cache(MIB);
        setrlimit(RLIMIT_FSIZE, &limit);
        sp_cache_store(cache, key_of(1), content, sizeof content);
        _exit(holds(cache, 1, content, sizeof content));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void *store_and_load(void *argument)
{
    struct sp_cache *cache = argument;
    for (unsigned i = 0; i < 300; i++) {
        char text[32];
        snprintf(text, sizeof text, "entry %u", i % 10);
        sp_cache_store(cache, key_of(i % 10), text, strlen(text));
        if (!holds(cache, i % 10, text, strlen(text)))
            return argument;
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    struct sp_cache *cache = open_cache(MIB);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, store_and_load, cache), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(count_files(), 10);
    sp_cache_destroy(cache);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_stored_is_found),
        TEST(keys_and_seeds_differ),
        TEST(damage_in_any_byte_is_seen),
        TEST(odd_files_are_left_alone),
        TEST(the_oldest_go_when_it_is_full),
        TEST(left_over_temporary_files_go),
        TEST(folders_of_others_are_refused),
        TEST(a_file_size_limit_is_no_signal),
        TEST(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
