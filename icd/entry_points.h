/* Every entry point that the library has, in one list: the dispatch table and the search by name
 * are made from it.
 *
 * SP_DISPATCHED lists what has its slot in struct _cl_icd_dispatch (CL/cl_icd.h, as Debian 12 has
 * it) and is called through it. Two functions have a slot that holds a tag instead (dispatch.c).
 * SP_EXTENSIONS lists extension functions. Slots of graphics interoperation stay empty.
 */
#ifndef SP_ICD_ENTRY_POINTS_H
#define SP_ICD_ENTRY_POINTS_H

#define SP_DISPATCHED(X)                                                                           \
    /* OpenCL 1.0 */                                                                               \
    X(clGetPlatformInfo)                                                                           \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clCreateContextFromType)                                                                     \
    X(clRetainContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clGetContextInfo)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clRetainCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clGetCommandQueueInfo)                                                                       \
    X(clSetCommandQueueProperty)                                                                   \
    X(clCreateBuffer)                                                                              \
    X(clCreateImage2D)                                                                             \
    X(clCreateImage3D)                                                                             \
    X(clRetainMemObject)                                                                           \
    X(clReleaseMemObject)                                                                          \
    X(clGetSupportedImageFormats)                                                                  \
    X(clGetMemObjectInfo)                                                                          \
    X(clGetImageInfo)                                                                              \
    X(clCreateSampler)                                                                             \
    X(clRetainSampler)                                                                             \
    X(clReleaseSampler)                                                                            \
    X(clGetSamplerInfo)                                                                            \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateProgramWithBinary)                                                                   \
    X(clRetainProgram)                                                                             \
    X(clReleaseProgram)                                                                            \
    X(clBuildProgram)                                                                              \
    X(clGetProgramInfo)                                                                            \
    X(clGetProgramBuildInfo)                                                                       \
    X(clCreateKernel)                                                                              \
    X(clCreateKernelsInProgram)                                                                    \
    X(clRetainKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clGetKernelInfo)                                                                             \
    X(clGetKernelWorkGroupInfo)                                                                    \
    X(clWaitForEvents)                                                                             \
    X(clGetEventInfo)                                                                              \
    X(clRetainEvent)                                                                               \
    X(clReleaseEvent)                                                                              \
    X(clGetEventProfilingInfo)                                                                     \
    X(clFlush)                                                                                     \
    X(clFinish)                                                                                    \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueCopyBuffer)                                                                         \
    X(clEnqueueReadImage)                                                                          \
    X(clEnqueueWriteImage)                                                                         \
    X(clEnqueueCopyImage)                                                                          \
    X(clEnqueueCopyImageToBuffer)                                                                  \
    X(clEnqueueCopyBufferToImage)                                                                  \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueMapImage)                                                                           \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueTask)                                                                               \
    X(clEnqueueNativeKernel)                                                                       \
    X(clEnqueueMarker)                                                                             \
    X(clEnqueueWaitForEvents)                                                                      \
    X(clEnqueueBarrier)                                                                            \
    X(clGetExtensionFunctionAddress)                                                               \
    /* OpenCL 1.1 */                                                                               \
    X(clSetEventCallback)                                                                          \
    X(clCreateSubBuffer)                                                                           \
    X(clSetMemObjectDestructorCallback)                                                            \
    X(clCreateUserEvent)                                                                           \
    X(clSetUserEventStatus)                                                                        \
    X(clEnqueueReadBufferRect)                                                                     \
    X(clEnqueueWriteBufferRect)                                                                    \
    X(clEnqueueCopyBufferRect)                                                                     \
    /* OpenCL 1.2 */                                                                               \
    X(clCreateSubDevices)                                                                          \
    X(clRetainDevice)                                                                              \
    X(clReleaseDevice)                                                                             \
    X(clCreateImage)                                                                               \
    X(clCreateProgramWithBuiltInKernels)                                                           \
    X(clCompileProgram)                                                                            \
    X(clLinkProgram)                                                                               \
    X(clUnloadPlatformCompiler)                                                                    \
    X(clGetKernelArgInfo)                                                                          \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueFillImage)                                                                          \
    X(clEnqueueMigrateMemObjects)                                                                  \
    X(clEnqueueMarkerWithWaitList)                                                                 \
    X(clEnqueueBarrierWithWaitList)                                                                \
    X(clGetExtensionFunctionAddressForPlatform)                                                    \
    /* OpenCL 2.0 */                                                                               \
    X(clCreateCommandQueueWithProperties)                                                          \
    X(clCreatePipe)                                                                                \
    X(clGetPipeInfo)                                                                               \
    X(clSVMAlloc)                                                                                  \
    X(clSVMFree)                                                                                   \
    X(clEnqueueSVMFree)                                                                            \
    X(clEnqueueSVMMemcpy)                                                                          \
    X(clEnqueueSVMMemFill)                                                                         \
    X(clEnqueueSVMMap)                                                                             \
    X(clEnqueueSVMUnmap)                                                                           \
    X(clCreateSamplerWithProperties)                                                               \
    X(clSetKernelArgSVMPointer)                                                                    \
    X(clSetKernelExecInfo)                                                                         \
    /* OpenCL 2.1 */                                                                               \
    X(clCloneKernel)                                                                               \
    X(clCreateProgramWithIL)                                                                       \
    X(clEnqueueSVMMigrateMem)                                                                      \
    X(clGetDeviceAndHostTimer)                                                                     \
    X(clGetHostTimer)                                                                              \
    X(clGetKernelSubGroupInfo)                                                                     \
    X(clSetDefaultDeviceCommandQueue)                                                              \
    /* OpenCL 2.2 */                                                                               \
    X(clSetProgramReleaseCallback)                                                                 \
    X(clSetProgramSpecializationConstant)                                                          \
    /* OpenCL 3.0 */                                                                               \
    X(clCreateBufferWithProperties)                                                                \
    X(clCreateImageWithProperties)                                                                 \
    X(clSetContextDestructorCallback)

#define SP_TAGGED(X)                                                                               \
    X(clGetPlatformIDs)                                                                            \
    X(clUnloadCompiler)

#define SP_EXTENSIONS(X)                                                                           \
    X(clIcdGetPlatformIDsKHR)                                                                      \
    X(clIcdGetFunctionAddressForPlatformKHR)                                                       \
    X(clIcdSetPlatformDispatchDataKHR)                                                             \
    X(clGetKernelSuggestedLocalWorkSizeKHR)                                                        \
    X(clGetSVMPointerInfoSAMEPAGE)

#endif
