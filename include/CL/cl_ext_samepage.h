/* Extensions of Samepage.
 *
 * cl_samepage_svm_info: what the library knows of a pointer.
 *
 * A program that follows raw pointers between host and devices has one question that OpenCL
 * does not answer: where does this pointer point? clGetSVMPointerInfoSAMEPAGE tells for any
 * address, also one in the middle of an allocation, in which clSVMAlloc allocation it lies, how
 * that was allocated, and on which path it is kept coherent.
 *
 * The function is not exported: get its address from
 *     clGetExtensionFunctionAddressForPlatform(platform, "clGetSVMPointerInfoSAMEPAGE")
 * where CL_PLATFORM_EXTENSIONS lists cl_samepage_svm_info.
 */
#ifndef CL_EXT_SAMEPAGE_H
#define CL_EXT_SAMEPAGE_H

#include <CL/cl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define cl_samepage_svm_info 1
#define CL_SAMEPAGE_SVM_INFO_EXTENSION_NAME "cl_samepage_svm_info"

/* What can be asked. The values are not registered with Khronos. */
typedef cl_uint cl_svm_pointer_info_samepage;

/* void *: where the allocation that holds the pointer starts. */
#define CL_SVM_POINTER_BASE_SAMEPAGE 0x5350
/* size_t: the allocation's size in bytes, as given to clSVMAlloc. */
#define CL_SVM_POINTER_SIZE_SAMEPAGE 0x5351
/* cl_svm_mem_flags: the allocation's flags, as given to clSVMAlloc. */
#define CL_SVM_POINTER_FLAGS_SAMEPAGE 0x5352
/* cl_svm_path_samepage: how the memory is kept coherent. */
#define CL_SVM_POINTER_PATH_SAMEPAGE 0x5353

typedef cl_uint cl_svm_path_samepage;

/* One backing that the host and all devices of the context see. */
#define CL_SVM_PATH_HOME_SAMEPAGE 1
/* The process's own memory, not from clSVMAlloc of this context, which all devices of the context
 * reach as it is. */
#define CL_SVM_PATH_SYSTEM_SAMEPAGE 2

/* Answers one question about `svm_pointer`. The value is written to param_value, which has room for
 * param_value_size bytes, and its size to *param_value_size_ret; either may be NULL. The answer is
 * about the moment of the call: memory that another thread frees meanwhile may be reported.
 *
 * CL_SUCCESS, or
 * CL_INVALID_CONTEXT  if context is not a valid context;
 * CL_INVALID_VALUE    if svm_pointer is NULL;
 *                     if param_name is none of the above;
 *                     if svm_pointer lies in no clSVMAlloc allocation of context and param_name is
 * not CL_SVM_POINTER_PATH_SAMEPAGE; if it lies in none, and some device of context does not reach
 * system memory; if param_value is not NULL and param_value_size is too small. */
typedef cl_int(CL_API_CALL *clGetSVMPointerInfoSAMEPAGE_fn)(
    cl_context context, const void *svm_pointer, cl_svm_pointer_info_samepage param_name,
    size_t param_value_size, void *param_value, size_t *param_value_size_ret);

extern CL_API_ENTRY cl_int CL_API_CALL clGetSVMPointerInfoSAMEPAGE(
    cl_context context, const void *svm_pointer, cl_svm_pointer_info_samepage param_name,
    size_t param_value_size, void *param_value, size_t *param_value_size_ret);

#ifdef __cplusplus
}
#endif

#endif
