/* NVIDIA GPUs as the application sees them: which there are, without CUDA in this process, and what
 * was known of them the last time. What they are is said by their processes. */
#ifndef SP_DEVICE_CLIENT_CUDA_H
#define SP_DEVICE_CLIENT_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "device/driver.h"
#include "device/process/protocol.h"

/* How many the system lists, but for those that CUDA_VISIBLE_DEVICES hides; 0 without NVIDIA's
 * kernel driver. */
unsigned sp_cuda_count(void);

enum sp_cuda_memory {
    SP_CUDA_UNKNOWN,
    SP_CUDA_KNOWN,
    SP_CUDA_REFUSES, /* it could not be used */
};

/* What GPU `ordinal` said of itself under this very kernel driver, but for its peers; *description
 * is filled in where that is KNOWN. */
enum sp_cuda_memory sp_cuda_recall(uint32_t ordinal, struct sp_device_description *description);

/* Keeps it for the next program, if it can. */
void sp_cuda_remember(uint32_t ordinal, const struct sp_device_description *description);

/* Keeps that the GPU cannot be used, which is its own nature: so nobody waits for its answer. */
void sp_cuda_remember_refusal(uint32_t ordinal);

/* What was kept is used no more. */
void sp_cuda_forget(uint32_t ordinal);

/* A good local size: see driver.h. */
void sp_cuda_suggest_local_size(const struct sp_device *device, const struct sp_kernel_info *info,
                                const struct sp_ndrange *range, uint64_t local_size[3]);

#endif
