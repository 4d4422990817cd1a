/* Runs kernels on the first device of the Samepage platform, in two builds. */
#ifndef SP_TESTS_KERNELGEN_DEVICE_H
#define SP_TESTS_KERNELGEN_DEVICE_H

#include "kernel.h"

enum build { BUILD_VECTOR, BUILD_SCALAR, NUM_BUILDS };

struct device; /* opaque */

/* Ends the program where there is no such platform. */
struct device *device_create(void);
void device_destroy(struct device *device);

/* Builds the source twice, without and with -cl-opt-disable. False, with the log on standard
 * error, where that fails. */
bool device_build(struct device *device, const char *source);

/* Runs the kernel named k<seed>; false, with a sentence, where OpenCL gives an error. */
bool device_run(struct device *device, enum build build, uint64_t seed, const struct shape *shape,
                struct results *results);

#endif
