/* Which DRM nodes there are, and what they can do: asked of the kernel through libdrm, and printed
 * for `samepage devices` (samepage-device --drm-nodes), since the application's process loads no
 * such library. Nothing is kept. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>
#include <xf86drmMode.h>

#include "device/process/drm/drm.h"

static uint64_t capability(int node, uint64_t which)
{
    uint64_t value = 0;
    return drmGetCap(node, which, &value) ? 0 : value;
}

/* Tried, since the kernel answers DRM_CAP_DUMB_BUFFER only for drivers with a display: not for
 * vgem. */
static bool makes_dumb_buffers(int card)
{
    uint32_t buffer, pitch;
    uint64_t size;
    if (drmModeCreateDumbBuffer(card, 16, 16, 32, 0, &buffer, &pitch, &size))
        return false;
    drmModeDestroyDumbBuffer(card, buffer);
    return true;
}

static void describe(const drmDevice *found, struct sp_drm_device *device)
{
    static const int kinds[SP_DRM_NODES] = {DRM_NODE_PRIMARY, DRM_NODE_RENDER};
    *device = (struct sp_drm_device){.error = -ENODEV};
    int node = -1;
    for (unsigned i = 0; i < SP_DRM_NODES; i++) {
        if (!(found->available_nodes & 1 << kinds[i]))
            continue;
        snprintf(device->paths[i], sizeof device->paths[i], "%s", found->nodes[kinds[i]]);
        if (node < 0) {
            node = open(device->paths[i], O_RDWR | O_CLOEXEC);
            device->error = node < 0 ? -errno : 0;
        }
    }
    if (node < 0)
        return;
    drmVersion *version = drmGetVersion(node);
    if (version) {
        snprintf(device->driver, sizeof device->driver, "%.*s", version->name_len, version->name);
        device->version[0] = version->version_major;
        device->version[1] = version->version_minor;
        device->version[2] = version->version_patchlevel;
        drmFreeVersion(version);
    }
    uint64_t prime = capability(node, DRM_CAP_PRIME);
    device->has_dumb = device->paths[SP_DRM_CARD][0] && makes_dumb_buffers(node);
    device->can_import = prime & DRM_PRIME_CAP_IMPORT;
    device->can_export = prime & DRM_PRIME_CAP_EXPORT;
    device->has_syncobj = capability(node, DRM_CAP_SYNCOBJ);
    close(node);
}

unsigned sp_drm_find(struct sp_drm_device *devices, unsigned max)
{
    drmDevicePtr found[SP_DRM_MAX_DEVICES];
    int count = drmGetDevices2(0, found, SP_DRM_MAX_DEVICES);
    unsigned described = 0;
    if (count <= 0)
        return 0;
    for (; described < (unsigned)count && described < max; described++)
        describe(found[described], &devices[described]);
    drmFreeDevices(found, count);
    return described;
}

int sp_drm_print_nodes(void)
{
    static struct sp_drm_device devices[SP_DRM_MAX_DEVICES];
    unsigned count = sp_drm_find(devices, SP_DRM_MAX_DEVICES);
    if (!count)
        printf("DRM             no nodes\n");
    for (unsigned i = 0; i < count; i++) {
        const struct sp_drm_device *device = &devices[i];
        printf("DRM             %s%s%s", device->paths[SP_DRM_CARD],
               device->paths[SP_DRM_CARD][0] && device->paths[SP_DRM_RENDER][0] ? ", " : "",
               device->paths[SP_DRM_RENDER]);
        if (device->error)
            printf(": %s\n", strerror(-device->error));
        else
            printf(": %s %d.%d.%d, %s dumb buffers, prime %s, %s syncobj\n", device->driver,
                   device->version[0], device->version[1], device->version[2],
                   device->has_dumb ? "with" : "no",
                   device->can_import && device->can_export ? "import and export"
                   : device->can_export                     ? "export"
                   : device->can_import                     ? "import"
                                                            : "none",
                   device->has_syncobj ? "with" : "no");
    }
    return fflush(stdout) ? 1 : 0;
}
