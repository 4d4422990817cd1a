/* Works for devices of the client driver, through driver.h, with no OpenCL: what its tests share.
 */
#ifndef SP_TESTS_UNIT_CLIENT_DEVICE_H
#define SP_TESTS_UNIT_CLIENT_DEVICE_H

#include <sched.h>
#include <sys/types.h>

#include "compiler/steps.h"
#include "device/driver.h"
#include "svm/heap.h"

#define GRANULE ((size_t)SP_GRANULE_BYTES)

/* A work with a gate that opens when it is finished. */
struct gated {
    struct sp_work work;
    struct sp_gate gate;
    int error;
    atomic_uint *left; /* counted down at the end; may be NULL */
};

/* The window, and the devices that `selection` names, with what SAMEPAGE_TEST_MEMORY adds for all;
 * or in their place those of SAMEPAGE_TEST_DEVICES. */
void set_up_devices(const char *selection);
extern struct sp_device **devices;
extern unsigned num_devices;

/* How often a device was lost, and the last reason. */
unsigned losses_of(struct sp_device *device);
const char *last_reason(void);

/* Host pages at granule `index` of the window, `count` granules, zeroed. */
unsigned char *host_pages(size_t index, size_t count);

void submit(struct sp_device *device, struct gated *gated);
int await(struct sp_device *device, struct gated *gated); /* its error */
int run_work(struct sp_device *device, struct gated *gated);

int bind(struct sp_device *device, void *start, size_t bytes, bool is_home);
int bind_peer(struct sp_device *device, void *start, size_t bytes, uint32_t source);
int unbind(struct sp_device *device, void *start, size_t bytes);
int transfer(struct sp_device *device, void *start, size_t bytes, uint32_t source,
             uint32_t destination);
int fill(struct sp_device *device, void *start, size_t bytes, unsigned char value);
int copy(struct sp_device *device, void *dst, const void *src, size_t bytes);

/* Whether all bytes are `value`. */
bool is_all(const unsigned char *bytes, size_t size, unsigned char value);

/* Memory that is bound on the device, whose agent is 1, is zero: the first time, bound again and
 * after an unbind. */
void check_bound_memory_is_zero(struct sp_device *device);

/* Each of two devices binds memory, and the other sees it: both write and copy across all of it,
 * and what is bound anew is seen anew. */
void check_peers_share_memory(struct sp_device *first, struct sp_device *second);

/* A program for `device`. */
struct test_code {
    struct sp_step_result program, object;
    struct sp_code *code;
};
void load_code(struct sp_device *device, const char *source, struct test_code *code);
void unload_code(struct sp_device *device, struct test_code *code);

/* One-dimensional launch, set up but not submitted. `args` stays the caller's. */
void set_kernel(struct sp_device *device, struct test_code *code, const char *name, size_t items,
                void *args, struct gated *gated);
int launch(struct sp_device *device, struct test_code *code, const char *name, size_t items,
           void *args);

/* The number of a device's process, which runs; 0 where there is none. */
pid_t process_of(struct sp_device *device);

/* Waits until a device was lost `count` times. */
void await_losses(struct sp_device *device, unsigned count);

/* Waits until works reach the process that follows a loss; one work is finished by it. */
void await_next_process(struct sp_device *device);

#endif
