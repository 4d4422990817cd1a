/* A stand-in for the libcuda.so.1 of an old driver: it lacks what the cuda backend needs. */
#include "device/process/cuda/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuInit(unsigned flags);
EXPORT CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version);
EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 10020;
    return CUDA_SUCCESS;
}
