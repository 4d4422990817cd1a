/* The dispatch table: constant, one for all objects.
 *
 * A loader that knows version 2 of cl_khr_icd finds a tag in the slots of clGetPlatformIDs and
 * clUnloadCompiler, which no loader ever calls through an object, and then keeps a table of its own
 * (names.c). For one that knows only version 1 the rest of the table is all that it needs.
 */
#include "icd.h"

#include "entry_points.h"

/* "OPENCL31" in ASCII, or its last half (cl_khr_icd 2.0.0, CL_ICD2_TAG_KHR). */
#if INTPTR_MAX == INT32_MAX
#define ICD2_TAG ((intptr_t)0x434C3331)
#else
#define ICD2_TAG ((intptr_t)0x4F50454E434C3331)
#endif

#define SLOT(name) .name = name,

const struct _cl_icd_dispatch sp_icd_dispatch = {
    .clGetPlatformIDs = (cl_api_clGetPlatformIDs)ICD2_TAG,
    .clUnloadCompiler = (cl_api_clUnloadCompiler)ICD2_TAG,
    SP_DISPATCHED(SLOT)};
