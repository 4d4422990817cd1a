/* The extension cl_samepage_svm_info (CL/cl_ext_samepage.h). No state, no lock. */
#include <CL/cl_ext_samepage.h>

#include "api/info.h"
#include "api/mem.h"
#include "svm/heap.h"

cl_int CL_API_CALL clGetSVMPointerInfoSAMEPAGE(cl_context context, const void *svm_pointer,
                                               cl_svm_pointer_info_samepage param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret)
{
    if (!sp_object_is(context, SP_OBJECT_CONTEXT))
        return CL_INVALID_CONTEXT;
    if (!svm_pointer)
        return CL_INVALID_VALUE;

    struct sp_region_info region;
    bool is_allocation = sp_region_find(svm_pointer, &region) && region.arena == context->arena &&
                         !(region.flags & SP_REGION_IS_BUFFER);
    if (!is_allocation && (param_name != CL_SVM_POINTER_PATH_SAMEPAGE ||
                           !(sp_context_svm_all(context) & SP_SVM_SYSTEM)))
        return CL_INVALID_VALUE;

    switch (param_name) {
    case CL_SVM_POINTER_BASE_SAMEPAGE:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret, &region.start,
                             sizeof region.start);
    case CL_SVM_POINTER_SIZE_SAMEPAGE:
        return sp_info_reply(param_value_size, param_value, param_value_size_ret, &region.bytes,
                             sizeof region.bytes);
    case CL_SVM_POINTER_FLAGS_SAMEPAGE:
        return SP_INFO_REPLY_VALUE(param_value_size, param_value, param_value_size_ret,
                                   cl_svm_mem_flags, region.flags);
    case CL_SVM_POINTER_PATH_SAMEPAGE:
        return SP_INFO_REPLY_VALUE(
            param_value_size, param_value, param_value_size_ret, cl_svm_path_samepage,
            is_allocation ? CL_SVM_PATH_HOME_SAMEPAGE : CL_SVM_PATH_SYSTEM_SAMEPAGE);
    default:
        return CL_INVALID_VALUE;
    }
}
