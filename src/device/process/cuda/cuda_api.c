/* See cuda_api.h. The library stays open until the process ends. */
#include "device/process/cuda/cuda_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of the library's interface, which does not change with its version. */
#define SP_CUDA_LIBRARY "libcuda.so.1"

struct sp_cuda sp_cuda;

static int find(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        return -ENOSYS;
    memcpy(place, &symbol, sizeof symbol); /* C has no other way from an object's to a function's */
    return 0;
}

int sp_cuda_load(void)
{
    const char *path = getenv("SAMEPAGE_CUDA_LIBRARY");
    void *library = dlopen(path && *path ? path : SP_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    int error = 0;
    if (!library)
        return -ENODEV;
#define FIND(member, symbol, arguments)                                                            \
    if (!error)                                                                                    \
        error = find(library, #symbol, &sp_cuda.member);
    SP_CUDA_FUNCTIONS(FIND)
    int needed = error;
    SP_CUDA_OPTIONAL_FUNCTIONS(FIND)
#undef FIND
    if (error)
        sp_cuda.GraphCreate = NULL; /* none of them is used without it */
    return needed;
}

const char *sp_cuda_error_text(CUresult error, char *text, size_t bytes)
{
    const char *words = NULL;
    if (!sp_cuda.GetErrorString || sp_cuda.GetErrorString(error, &words) || !words)
        words = "an error without a name";
    snprintf(text, bytes, "%s (CUDA error %d)", words, error);
    return text;
}
