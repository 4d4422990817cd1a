/* See cuda_api.h. The library stays open until the process ends. */
#include "device/process/cuda/cuda_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/process/backend.h"

/* The name of the library's interface, which does not change with its version. */
#define SP_CUDA_LIBRARY "libcuda.so.1"

struct sp_cuda sp_cuda;

/* What all of SP_CUDA_FUNCTIONS came with (the newest are those ending in Uuid_v2, of CUDA 11.4,
 * and StreamWriteValue64_v2, of 11.7: cudaTypedefs.h), and the driver of that. */
#define NEEDED "CUDA 11.7 (driver 515)"

/* False: the library has none. */
static bool find(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    if (symbol)
        memcpy(place, &symbol, sizeof symbol); /* C has no other way from an object's to a
                                                  function's */
    return symbol;
}

static int refuse_old(const char *missing)
{
    int version = 0;
    if (!sp_cuda.DriverGetVersion || sp_cuda.DriverGetVersion(&version))
        version = 0;
    return sp_process_refuse(
        -ENOSYS,
        "NVIDIA's driver is too old: its library, of CUDA %d.%d, has no %s; " NEEDED
        " or newer is needed",
        version / 1000, version % 1000 / 10, missing);
}

int sp_cuda_load(void)
{
    const char *path = getenv("SAMEPAGE_CUDA_LIBRARY"), *missing = NULL;
    void *library = dlopen(path && *path ? path : SP_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sp_process_refuse(
            -ENODEV, "NVIDIA's library, which comes with the driver, cannot be loaded (%s)",
            dlerror());
#define FIND(member, symbol, arguments)                                                            \
    if (!find(library, #symbol, &sp_cuda.member))                                                  \
        missing = missing ? missing : #symbol;
    SP_CUDA_FUNCTIONS(FIND)
    if (missing)
        return refuse_old(missing);
    SP_CUDA_OPTIONAL_FUNCTIONS(FIND)
#undef FIND
    if (missing)
        sp_cuda.GraphCreate = NULL; /* none of them is used without it */
    return 0;
}

const char *sp_cuda_error_text(CUresult error, char *text, size_t bytes)
{
    const char *words = NULL;
    if (!sp_cuda.GetErrorString || sp_cuda.GetErrorString(error, &words) || !words)
        words = "an error without a name";
    snprintf(text, bytes, "%s (CUDA error %d)", words, error);
    return text;
}
