/* Images, samplers and pipes are absent, and their entry points say so as the specification wants.
 */
#include "check.h"

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    CHECK_CL_NULL(clCreateImage(setup.context, 0, &format, &desc, NULL, &check_error),
                  CL_INVALID_OPERATION);
    CHECK_CL_NULL(
        clCreateImageWithProperties(setup.context, NULL, 0, &format, &desc, NULL, &check_error),
        CL_INVALID_OPERATION);
    CHECK_CL_NULL(clCreateImage2D(setup.context, 0, &format, 4, 4, 0, NULL, &check_error),
                  CL_INVALID_OPERATION);
    CHECK_CL_NULL(clCreateImage3D(setup.context, 0, &format, 4, 4, 4, 0, 0, NULL, &check_error),
                  CL_INVALID_OPERATION);
    CHECK_CL_NULL(
        clCreateSampler(setup.context, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &check_error),
        CL_INVALID_OPERATION);
    CHECK_CL_NULL(clCreateSamplerWithProperties(setup.context, NULL, &check_error),
                  CL_INVALID_OPERATION);
    CHECK_CL_NULL(clCreatePipe(setup.context, 0, 4, 4, NULL, &check_error), CL_INVALID_OPERATION);

    cl_uint count = 7;
    cl_image_format formats[1];
    CHECK_CL(clGetSupportedImageFormats(setup.context, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0,
                                        NULL, &count),
             CL_SUCCESS);
    CHECK(count == 0);
    CHECK_CL(clGetSupportedImageFormats(setup.context, 0, CL_MEM_OBJECT_BUFFER, 0, NULL, &count),
             CL_INVALID_VALUE);
    CHECK_CL(
        clGetSupportedImageFormats(setup.context, 0, CL_MEM_OBJECT_IMAGE2D, 0, formats, &count),
        CL_INVALID_VALUE);
    CHECK_CL(clGetSupportedImageFormats(setup.context, (cl_mem_flags)1 << 50, CL_MEM_OBJECT_IMAGE2D,
                                        0, NULL, &count),
             CL_INVALID_VALUE);

    cl_int error;
    cl_mem buffer = clCreateBuffer(setup.context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    const size_t origin[3] = {0}, region[3] = {1, 1, 1};
    char room[64];
    size_t pitch;
    CHECK_CL(clEnqueueReadImage(setup.queue, buffer, 1, origin, region, 0, 0, room, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clEnqueueWriteImage(setup.queue, buffer, 1, origin, region, 0, 0, room, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clEnqueueFillImage(setup.queue, buffer, room, origin, region, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clEnqueueCopyImage(setup.queue, buffer, buffer, origin, origin, region, 0, NULL, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(
        clEnqueueCopyImageToBuffer(setup.queue, buffer, buffer, origin, region, 0, 0, NULL, NULL),
        CL_INVALID_MEM_OBJECT);
    CHECK_CL(
        clEnqueueCopyBufferToImage(setup.queue, buffer, buffer, 0, origin, region, 0, NULL, NULL),
        CL_INVALID_MEM_OBJECT);
    CHECK_CL_NULL(clEnqueueMapImage(setup.queue, buffer, 1, CL_MAP_READ, origin, region, &pitch,
                                    NULL, 0, NULL, NULL, &check_error),
                  CL_INVALID_MEM_OBJECT);
    CHECK_CL(clGetImageInfo(buffer, CL_IMAGE_WIDTH, sizeof room, room, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clGetPipeInfo(buffer, CL_PIPE_PACKET_SIZE, sizeof room, room, NULL),
             CL_INVALID_MEM_OBJECT);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    check_finish(&setup);
    return check_result();
}
