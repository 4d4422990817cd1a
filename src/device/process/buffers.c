/* Memory files as the memory of a device that exports each binding alone, as GPUs do. Without a
 * GPU, everything about that can be tried with them (SAMEPAGE_DEVICES=virtual,parts). */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/process.h"
#include "util/alloc.h"

/* As low as the limits of GPUs are, so that bindings of several buffers are tried, too. */
#define MAX_BYTES (UINT64_C(2) << 30)

static uint32_t last_number;

static int create(uint64_t bytes, uint32_t *buffer, int *file)
{
    int made = memfd_create("samepage-part", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return -errno;
    /* Sealed, so that a peer's mapping can never lose its end. */
    if (ftruncate(made, (off_t)bytes) ||
        fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        int error = -errno;
        close(made);
        return error;
    }
    if (++last_number == 0)
        last_number = 1;
    *buffer = last_number;
    *file = made;
    return 0;
}

static void destroy(uint32_t buffer)
{
    (void)buffer; /* its pages go with the last mapping */
}

const struct sp_buffers sp_memory_file_buffers = {
    .create = create, .destroy = destroy, .max_bytes = MAX_BYTES};
