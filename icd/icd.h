/* What the files of icd/ share. Nobody else includes this. */
#ifndef SP_ICD_ICD_H
#define SP_ICD_ICD_H

#define CL_USE_DEPRECATED_OPENCL_1_0_APIS /* clSetCommandQueueProperty has a slot */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

/* The few symbols that the library exports (samepage.map). */
#define SP_EXPORT __attribute__((visibility("default")))

/* The dispatch table that every object begins with. */
extern const struct _cl_icd_dispatch sp_icd_dispatch;

/* cl_khr_icd 2.0.0; Debian 12's headers do not declare them yet. */
void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform,
                                                        const char *func_name);
cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform, void *dispatch_data);

#endif
