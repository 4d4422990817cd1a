/* Memory in GEM buffer objects of a DRM device.
 *
 * Each buffer is a dumb buffer: what every driver with a display makes in the same way, from memory
 * that the processor can map. It is exported as a dma-buf at once; that file is what is mapped,
 * here and by peers, so the buffer lives until the last mapping has gone, as a memory file does.
 *
 * Dumb buffers are pictures: width and height in pixels of 4 bytes. The kernel computes the size in
 * 32 bits, so that one is less than 4 GiB; and some drivers limit width and height, so that both
 * are kept small.
 *
 * Zeroes. Nothing in the interface promises them. vgem and virtio_gpu take pages of shared memory,
 * which the kernel hands out zeroed when they are first touched; tests/drm looks. With any other
 * driver the buffer is cleared here.
 *
 * Only the loop thread comes here, after sp_drm_choose.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>
#include <xf86drmMode.h>

#include "device/process/drm/drm.h"

#define PIXEL_BYTES 4u
#define ROW_PIXELS 4096u
#define ROW_BYTES ((uint64_t)PIXEL_BYTES * ROW_PIXELS)

/* 131,072 rows: below the kernel's 4 GiB, and in granules. */
#define MAX_BYTES (UINT64_C(2) << 30)

static struct {
    int node;
    const struct sp_drm_device *device;
    bool is_zeroed; /* by the driver */
    bool has_told;
} drm;

/* Once: what fails now fails again and again. */
static int tell_failure(const char *what, uint64_t bytes, int error)
{
    if (!drm.has_told)
        fprintf(stderr, "samepage-device: %s (%s) %s %llu MiB (%s).\n",
                drm.device->paths[SP_DRM_CARD], drm.device->driver, what,
                (unsigned long long)(bytes >> 20), strerror(-error));
    drm.has_told = true;
    return error;
}

static int clear(int file, uint64_t bytes)
{
    void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED)
        return -errno;
    memset(all, 0, bytes);
    munmap(all, bytes);
    return 0;
}

static int create(uint64_t bytes, uint32_t *buffer, int *file)
{
    uint32_t pitch;
    uint64_t size;
    if (bytes > MAX_BYTES || bytes % ROW_BYTES)
        return -EINVAL;
    int result = drmModeCreateDumbBuffer(drm.node, ROW_PIXELS, (uint32_t)(bytes / ROW_BYTES),
                                         8 * PIXEL_BYTES, 0, buffer, &pitch, &size);
    if (result)
        return tell_failure("gives no buffer of", bytes, result < 0 ? result : -ENOMEM);
    *file = -1;
    int error = size < bytes ? -ENOMEM : 0;
    if (!error && drmPrimeHandleToFD(drm.node, *buffer, DRM_CLOEXEC | DRM_RDWR, file))
        error = -errno;
    if (!error && !drm.is_zeroed)
        error = clear(*file, bytes);
    if (!error)
        return 0;
    if (*file >= 0)
        close(*file);
    drmModeDestroyDumbBuffer(drm.node, *buffer);
    return tell_failure("does not share a buffer of", bytes, error);
}

static void destroy(uint32_t buffer)
{
    drmModeDestroyDumbBuffer(drm.node, buffer);
}

static const struct sp_buffers buffers = {
    .create = create, .destroy = destroy, .max_bytes = MAX_BYTES};

static bool is_named(const struct sp_drm_device *device, const char *name)
{
    bool is_path = *name == '/';
    for (unsigned i = 0; is_path && i < SP_DRM_NODES; i++)
        if (!strcmp(device->paths[i], name))
            return true;
    return !is_path && !strcmp(device->driver, name);
}

/* Why a device that was named cannot be used, or NULL. */
static const char *refuse(const struct sp_drm_device *device, int *error)
{
    *error = device->error;
    if (*error)
        return strerror(-*error);
    *error = -ENODEV;
    if (!device->has_dumb)
        return "it has no dumb buffers";
    if (!device->can_export)
        return "it cannot share buffers";
    *error = 0;
    return NULL;
}

int sp_drm_choose(const char *name, const struct sp_buffers **chosen)
{
    static struct sp_drm_device devices[SP_DRM_MAX_DEVICES];
    unsigned count = sp_drm_find(devices, SP_DRM_MAX_DEVICES);
    int error = -ENODEV;
    const char *reason = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct sp_drm_device *device = &devices[i];
        if (!is_named(device, name))
            continue;
        reason = refuse(device, &error);
        if (reason)
            continue;
        drm.node = open(device->paths[SP_DRM_CARD], O_RDWR | O_CLOEXEC);
        if (drm.node < 0) {
            error = -errno;
            reason = strerror(errno);
            continue;
        }
        /* A master that nobody asked for would keep a display server from its screen. */
        if (drmIsMaster(drm.node))
            drmDropMaster(drm.node);
        drm.is_zeroed = !strcmp(device->driver, "vgem") || !strcmp(device->driver, "virtio_gpu");
        drm.device = device;
        *chosen = &buffers;
        return 0;
    }
    if (reason)
        fprintf(stderr, "samepage-device: drm=%s cannot be used: %s.\n", name, reason);
    else
        fprintf(
            stderr,
            "samepage-device: there is no DRM device for drm=%s; it takes the name of a driver or "
            "the path of a node, and 'samepage devices' lists those that are here.\n",
            name);
    return error;
}
