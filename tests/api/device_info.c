/* Every device query of OpenCL 3.0 answers with its size, and what the specification demands of a
 * device without images, pipes, sub-groups and on-device queues is so. */
#include "check.h"

static const struct query {
    cl_device_info param;
    size_t size; /* 0: any */
} queries[] = {
    {CL_DEVICE_TYPE, 8},
    {CL_DEVICE_VENDOR_ID, 4},
    {CL_DEVICE_MAX_COMPUTE_UNITS, 4},
    {CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 4},
    {CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)},
    {CL_DEVICE_MAX_WORK_ITEM_SIZES, 3 * sizeof(size_t)},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, 4},
    {CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, 4},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, 4},
    {CL_DEVICE_MAX_CLOCK_FREQUENCY, 4},
    {CL_DEVICE_ADDRESS_BITS, 4},
    {CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8},
    {CL_DEVICE_IMAGE_SUPPORT, 4},
    {CL_DEVICE_MAX_READ_IMAGE_ARGS, 4},
    {CL_DEVICE_MAX_WRITE_IMAGE_ARGS, 4},
    {CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, 4},
    {CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof(size_t)},
    {CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof(size_t)},
    {CL_DEVICE_IMAGE3D_MAX_WIDTH, sizeof(size_t)},
    {CL_DEVICE_IMAGE3D_MAX_HEIGHT, sizeof(size_t)},
    {CL_DEVICE_IMAGE3D_MAX_DEPTH, sizeof(size_t)},
    {CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, sizeof(size_t)},
    {CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, sizeof(size_t)},
    {CL_DEVICE_MAX_SAMPLERS, 4},
    {CL_DEVICE_IMAGE_PITCH_ALIGNMENT, 4},
    {CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, 4},
    {CL_DEVICE_MAX_PIPE_ARGS, 4},
    {CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, 4},
    {CL_DEVICE_PIPE_MAX_PACKET_SIZE, 4},
    {CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(size_t)},
    {CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4},
    {CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, 4},
    {CL_DEVICE_SINGLE_FP_CONFIG, 8},
    {CL_DEVICE_DOUBLE_FP_CONFIG, 8},
    {CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, 4},
    {CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 4},
    {CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 8},
    {CL_DEVICE_GLOBAL_MEM_SIZE, 8},
    {CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 8},
    {CL_DEVICE_MAX_CONSTANT_ARGS, 4},
    {CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, sizeof(size_t)},
    {CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, sizeof(size_t)},
    {CL_DEVICE_LOCAL_MEM_TYPE, 4},
    {CL_DEVICE_LOCAL_MEM_SIZE, 8},
    {CL_DEVICE_ERROR_CORRECTION_SUPPORT, 4},
    {CL_DEVICE_HOST_UNIFIED_MEMORY, 4},
    {CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof(size_t)},
    {CL_DEVICE_ENDIAN_LITTLE, 4},
    {CL_DEVICE_AVAILABLE, 4},
    {CL_DEVICE_COMPILER_AVAILABLE, 4},
    {CL_DEVICE_LINKER_AVAILABLE, 4},
    {CL_DEVICE_EXECUTION_CAPABILITIES, 8},
    {CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 8},
    {CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, 8},
    {CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, 4},
    {CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, 4},
    {CL_DEVICE_MAX_ON_DEVICE_QUEUES, 4},
    {CL_DEVICE_MAX_ON_DEVICE_EVENTS, 4},
    {CL_DEVICE_BUILT_IN_KERNELS, 1},
    {CL_DEVICE_PLATFORM, sizeof(cl_platform_id)},
    {CL_DEVICE_NAME, 0},
    {CL_DEVICE_VENDOR, 0},
    {CL_DRIVER_VERSION, 0},
    {CL_DEVICE_PROFILE, 0},
    {CL_DEVICE_VERSION, 0},
    {CL_DEVICE_NUMERIC_VERSION, 4},
    {CL_DEVICE_OPENCL_C_VERSION, 0},
    {CL_DEVICE_OPENCL_C_ALL_VERSIONS, 4 * sizeof(cl_name_version)},
    {CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR, 4},
    {CL_DEVICE_OPENCL_C_FEATURES, 0},
    {CL_DEVICE_EXTENSIONS, 0},
    {CL_DEVICE_EXTENSIONS_WITH_VERSION, 0},
    {CL_DEVICE_PRINTF_BUFFER_SIZE, sizeof(size_t)},
    {CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, 4},
    {CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id)},
    {CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 4},
    {CL_DEVICE_PARTITION_PROPERTIES, 0},
    {CL_DEVICE_PARTITION_AFFINITY_DOMAIN, 8},
    {CL_DEVICE_PARTITION_TYPE, sizeof(cl_device_partition_property)},
    {CL_DEVICE_REFERENCE_COUNT, 4},
    {CL_DEVICE_SVM_CAPABILITIES, 8},
    {CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, 4},
    {CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, 4},
    {CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, 4},
    {CL_DEVICE_MAX_NUM_SUB_GROUPS, 4},
    {CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, 4},
    {CL_DEVICE_IL_VERSION, 1},
    {CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, 8},
    {CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, 8},
    {CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, 4},
    {CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof(size_t)},
    {CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, 4},
    {CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, 4},
    {CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, 8},
    {CL_DEVICE_PIPE_SUPPORT, 4},
    {CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, 15},
    {CL_DEVICE_UUID_KHR, 16},
    {CL_DRIVER_UUID_KHR, 16},
    {CL_DEVICE_LUID_VALID_KHR, 4},
    {CL_DEVICE_LUID_KHR, 8},
    {CL_DEVICE_NODE_MASK_KHR, 4},
};

/* A number of up to 8 bytes, little endian. */
static uint64_t number(cl_device_id device, cl_device_info param)
{
    uint64_t value = 0;
    CHECK_CL(clGetDeviceInfo(device, param, sizeof value, &value, NULL), CL_SUCCESS);
    return value;
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    cl_device_id device = setup.device;
    static char value[65536];

    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        size_t size = 0, again = 0;
        cl_int error = clGetDeviceInfo(device, queries[i].param, 0, NULL, &size);
        if (error || (queries[i].size && size != queries[i].size)) {
            check_failed(__FILE__, __LINE__, "a query of the list");
            fprintf(stderr, "    0x%x gives %d, %zu bytes\n", queries[i].param, error, size);
            continue;
        }
        CHECK_CL(clGetDeviceInfo(device, queries[i].param, sizeof value, value, &again),
                 CL_SUCCESS);
        CHECK(again == size && size > 0);
        CHECK_CL(clGetDeviceInfo(device, queries[i].param, size - 1, value, NULL),
                 CL_INVALID_VALUE);
    }
    /* Empty arrays. */
    const cl_device_info empty[] = {CL_DEVICE_ILS_WITH_VERSION,
                                    CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION};
    for (size_t i = 0; i < 2; i++) {
        size_t size = 1;
        CHECK_CL(clGetDeviceInfo(device, empty[i], 0, value, &size), CL_SUCCESS);
        CHECK(size == 0);
    }

    const cl_device_info zero[] = {
        CL_DEVICE_IMAGE_SUPPORT,        CL_DEVICE_MAX_READ_IMAGE_ARGS,
        CL_DEVICE_MAX_WRITE_IMAGE_ARGS, CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS,
        CL_DEVICE_IMAGE2D_MAX_WIDTH,    CL_DEVICE_IMAGE3D_MAX_DEPTH,
        CL_DEVICE_MAX_SAMPLERS,         CL_DEVICE_IMAGE_PITCH_ALIGNMENT,
        CL_DEVICE_PIPE_SUPPORT,         CL_DEVICE_MAX_PIPE_ARGS,
        CL_DEVICE_PIPE_MAX_PACKET_SIZE, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES,
        CL_DEVICE_MAX_ON_DEVICE_QUEUES, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES,
        CL_DEVICE_MAX_NUM_SUB_GROUPS,   CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS,
        CL_DEVICE_PARENT_DEVICE,
    };
    for (size_t i = 0; i < sizeof zero / sizeof zero[0]; i++)
        CHECK(number(device, zero[i]) == 0);
    CHECK(number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) == 1024);
    CHECK(number(device, CL_DEVICE_MAX_COMPUTE_UNITS) >= 1);
    CHECK(number(device, CL_DEVICE_LOCAL_MEM_SIZE) >= 32768);
    CHECK(number(device, CL_DEVICE_REFERENCE_COUNT) == 1);
    CHECK(number(device, CL_DEVICE_SVM_CAPABILITIES) ==
          (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER |
           CL_DEVICE_SVM_FINE_GRAIN_SYSTEM | CL_DEVICE_SVM_ATOMICS));
    CHECK(number(device, CL_DEVICE_PLATFORM) == (uintptr_t)setup.platform);
    uint64_t memory = number(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    uint64_t quarter = memory / 4 < (1u << 30) ? memory / 4 : (1u << 30);
    CHECK(number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE) >= quarter);

    CHECK_CL(clGetDeviceInfo(device, 0x9999, sizeof value, value, NULL), CL_INVALID_VALUE);

    cl_uint count = 0;
    cl_device_id found = NULL;
    CHECK_CL(clGetDeviceIDs(setup.platform, CL_DEVICE_TYPE_DEFAULT, 1, &found, &count), CL_SUCCESS);
    CHECK(count == 1 && found == device);
    CHECK_CL(clGetDeviceIDs(setup.platform, CL_DEVICE_TYPE_CUSTOM, 1, &found, &count),
             CL_DEVICE_NOT_FOUND);
    CHECK_CL(clGetDeviceIDs(setup.platform, 0, 1, &found, &count), CL_INVALID_DEVICE_TYPE);
    CHECK_CL(clGetDeviceIDs(setup.platform, 1 << 20, 1, &found, &count), CL_INVALID_DEVICE_TYPE);
    CHECK_CL(clGetDeviceIDs(setup.platform, CL_DEVICE_TYPE_ALL, 0, &found, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetDeviceIDs(setup.platform, CL_DEVICE_TYPE_ALL, 0, NULL, NULL), CL_INVALID_VALUE);

    cl_ulong device_time = 0, host_time = 0, later = 0;
    CHECK_CL(clGetDeviceAndHostTimer(device, &device_time, &host_time), CL_SUCCESS);
    CHECK_CL(clGetHostTimer(device, &later), CL_SUCCESS);
    CHECK(device_time > 0 && later >= host_time);
    CHECK_CL(clGetDeviceAndHostTimer(device, NULL, &host_time), CL_INVALID_VALUE);
    CHECK_CL(clGetDeviceAndHostTimer(device, &device_time, NULL), CL_INVALID_VALUE);
    CHECK_CL(clGetHostTimer(device, NULL), CL_INVALID_VALUE);

    check_finish(&setup);
    return check_result();
}
