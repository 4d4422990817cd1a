/* The DRM part's own seam: the kernel's graphics devices as a source of memory (docs/drm.md).
 *
 * nodes.c     which nodes there are, and what they can do
 * buffers.c   memory for a device in GEM buffer objects of one of them
 */
#ifndef SP_DEVICE_PROCESS_DRM_H
#define SP_DEVICE_PROCESS_DRM_H

#include "device/process/process.h"

/* nodes.c */

enum { SP_DRM_CARD, SP_DRM_RENDER, SP_DRM_NODES };

#define SP_DRM_NAME_BYTES 64u

/* One DRM device of the machine. */
struct sp_drm_device {
    char paths[SP_DRM_NODES][SP_DRM_NAME_BYTES]; /* "": there is no such node */
    int error; /* 0, or why it could not be opened: no more is known */
    char driver[SP_DRM_NAME_BYTES];
    int version[3];
    bool has_dumb; /* buffers that any driver makes alike, for its card node */
    bool can_import, can_export;
    bool has_syncobj;
};

/* All of them, in the system's order: how many, at most `max`. */
unsigned sp_drm_find(struct sp_drm_device *devices, unsigned max);

#define SP_DRM_MAX_DEVICES 64u

#endif
