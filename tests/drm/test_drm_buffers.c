/* Memory in buffer objects of the kernel's DRM devices, against the real kernel: each device that
 * is here and can do it. Skipped where there is none; `./run test-drm` has two. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/drm/drm.h"
#include "unit/unit.h"

#define EXIT_SKIPPED 77 /* SKIP_RETURN_CODE in CMakeLists.txt */
#define MIB ((uint64_t)1 << 20)

static struct sp_drm_device found[SP_DRM_MAX_DEVICES];
static unsigned num_found;
static uint64_t shared_at_start;

static bool is_usable(const struct sp_drm_device *device)
{
    return !device->error && device->has_dumb && device->can_export;
}

/* The next device, chosen; false: there is none. */
static bool choose_next(unsigned *next, const struct sp_buffers **buffers)
{
    while (*next < num_found && !is_usable(&found[*next]))
        ++*next;
    if (*next == num_found)
        return false;
    const struct sp_drm_device *device = &found[(*next)++];
    printf("%s (%s)\n", device->paths[SP_DRM_CARD], device->driver);
    assert_int_equal(sp_drm_choose(device->paths[SP_DRM_CARD], buffers), 0);
    return true;
}

static unsigned char *map(int file, uint64_t bytes, int protection)
{
    unsigned char *at = mmap(NULL, bytes, protection, MAP_SHARED, file, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

static bool is_all(const unsigned char *at, uint64_t bytes, unsigned char value)
{
    return at[0] == value && memcmp(at, at + 1, bytes - 1) == 0;
}

static void devices_are_described(void **state)
{
    (void)state;
    for (unsigned i = 0; i < num_found; i++) {
        assert_true(found[i].paths[SP_DRM_CARD][0] || found[i].paths[SP_DRM_RENDER][0]);
        assert_true(found[i].error || found[i].driver[0]);
    }
}

/* Both drivers that are not cleared by us, too: memory that was dirty comes back as zeroes. */
static void buffers_are_zeroed(void **state)
{
    const struct sp_buffers *buffers;
    (void)state;
    for (unsigned next = 0; choose_next(&next, &buffers);)
        for (unsigned round = 0; round < 4; round++) {
            uint64_t bytes = (2 + 14 * (round % 2)) * MIB;
            uint32_t buffer;
            int file;
            assert_int_equal(buffers->create(bytes, &buffer, &file), 0);
            assert_int_not_equal(buffer, 0);
            unsigned char *at = map(file, bytes, PROT_READ | PROT_WRITE);
            assert_true(is_all(at, bytes, 0));
            memset(at, 0xa5, bytes);
            munmap(at, bytes);
            close(file);
            buffers->destroy(buffer);
        }
}

/* As a device process and its peers use it: over a reservation, seen by a second mapping, and whole
 * until the last one goes. */
static void mappings_share_and_outlive_a_buffer(void **state)
{
    const struct sp_buffers *buffers;
    const uint64_t bytes = 4 * MIB;
    (void)state;
    for (unsigned next = 0; choose_next(&next, &buffers);) {
        uint32_t buffer;
        int file;
        unsigned char *reserved =
            mmap(NULL, 3 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_int_equal(buffers->create(bytes, &buffer, &file), 0);
        unsigned char *at = mmap(reserved + bytes, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
        assert_ptr_equal(at, reserved + bytes);
        const unsigned char *peer = map(file, bytes, PROT_READ);
        close(file);
        memset(at, 3, bytes);
        assert_true(is_all(peer, bytes, 3));
        buffers->destroy(buffer);
        at[bytes - 1] = 4;
        assert_int_equal(peer[bytes - 1], 4);
        munmap(at, bytes);
        assert_int_equal(peer[0], 3);
        munmap((void *)peer, bytes);
        munmap(reserved, 3 * bytes);
    }
}

/* The kernel computes the size of a dumb buffer in 32 bits; ours never come near. */
static void sizes_have_limits(void **state)
{
    const struct sp_buffers *buffers;
    (void)state;
    for (unsigned next = 0; choose_next(&next, &buffers);) {
        uint32_t buffer;
        int file;
        assert_true(buffers->max_bytes % (2 * MIB) == 0 && buffers->max_bytes < 4096 * MIB);
        assert_int_equal(buffers->create(buffers->max_bytes + 2 * MIB, &buffer, &file), -EINVAL);
        assert_int_equal(buffers->create(4096, &buffer, &file), -EINVAL);
        assert_int_equal(buffers->create(34 * MIB, &buffer, &file), 0);
        assert_true(lseek(file, 0, SEEK_END) == (off_t)(34 * MIB));
        close(file);
        buffers->destroy(buffer);
    }
}

/* What of the machine's memory is shared memory, which the buffers of vgem and virtio_gpu are. */
static uint64_t shared_memory(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "Shmem: %llu kB", &kib) != 1)
        continue;
    if (file)
        fclose(file);
    return kib << 10;
}

/* All of them at a time are seen in the machine's memory, and after their end none is: within some
 * seconds, since virtio_gpu asks its device first. */
static void freed_buffers_are_gone(void **state)
{
    enum { BUFFERS = 4, LOOKS = 500 };
    const struct sp_buffers *buffers;
    const uint64_t bytes = 32 * MIB;
    (void)state;
    for (unsigned next = 0; choose_next(&next, &buffers);) {
        const char *driver = found[next - 1].driver;
        uint32_t list[BUFFERS];
        unsigned looks = 0;
        if (strcmp(driver, "vgem") && strcmp(driver, "virtio_gpu"))
            continue;
        for (unsigned i = 0; i < BUFFERS; i++) {
            int file;
            assert_int_equal(buffers->create(bytes, &list[i], &file), 0);
            unsigned char *at = map(file, bytes, PROT_READ | PROT_WRITE);
            at[0] = 1;
            munmap(at, bytes);
            close(file);
        }
        assert_true(shared_memory() > shared_at_start + (BUFFERS - 1) * bytes);
        for (unsigned i = 0; i < BUFFERS; i++)
            buffers->destroy(list[i]);
        while (shared_memory() > shared_at_start + bytes / 2 && ++looks < LOOKS)
            usleep(10000);
        assert_true(looks < LOOKS);
    }
}

static void wrong_names_are_refused(void **state)
{
    const struct sp_buffers *buffers;
    (void)state;
    assert_int_equal(sp_drm_choose("no_such_driver", &buffers), -ENODEV);
    assert_int_equal(sp_drm_choose("/dev/null", &buffers), -ENODEV);
    assert_int_equal(sp_drm_choose("/dev/dri/card99", &buffers), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(buffers_are_zeroed),
        cmocka_unit_test(mappings_share_and_outlive_a_buffer),
        cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(freed_buffers_are_gone),
        cmocka_unit_test(wrong_names_are_refused),
    };
    unsigned usable = 0;
    shared_at_start = shared_memory();
    num_found = sp_drm_find(found, SP_DRM_MAX_DEVICES);
    for (unsigned i = 0; i < num_found; i++)
        usable += is_usable(&found[i]);
    if (!usable && !getenv("SAMEPAGE_TEST_MUST_FIND"))
        return EXIT_SKIPPED;
    return usable ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
