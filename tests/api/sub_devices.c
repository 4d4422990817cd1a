/* Dividing a device: each scheme, what a sub-device reports, its reference count, work on it, and
 * every error. */
#include "check.h"

static cl_device_id root;
static cl_uint units;

static cl_uint units_of(cl_device_id device)
{
    cl_uint value = 0;
    CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof value, &value, NULL),
             CL_SUCCESS);
    return value;
}

static cl_uint references_of(cl_device_id device)
{
    cl_uint value = 0;
    CHECK_CL(clGetDeviceInfo(device, CL_DEVICE_REFERENCE_COUNT, sizeof value, &value, NULL),
             CL_SUCCESS);
    return value;
}

static cl_int divide(cl_device_partition_property a, cl_device_partition_property b,
                     cl_device_partition_property c, cl_device_partition_property d)
{
    const cl_device_partition_property list[] = {a, b, c, d, 0, 0};
    cl_uint count;
    return clCreateSubDevices(root, list, 0, NULL, &count);
}

static void check_errors(void)
{
    cl_device_id out[1];
    cl_uint count;
    CHECK_CL(clCreateSubDevices(root, NULL, 1, out, &count), CL_INVALID_VALUE);
    CHECK_CL(divide(0, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(divide(0x7777, 1, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(divide(CL_DEVICE_PARTITION_EQUALLY, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(divide(CL_DEVICE_PARTITION_EQUALLY, 1, CL_DEVICE_PARTITION_EQUALLY, 1),
             CL_INVALID_VALUE);
    CHECK_CL(divide(CL_DEVICE_PARTITION_EQUALLY, (cl_device_partition_property)units + 1, 0, 0),
             CL_INVALID_DEVICE_PARTITION_COUNT);
    CHECK_CL(divide(CL_DEVICE_PARTITION_EQUALLY, units, 0, 0), CL_DEVICE_PARTITION_FAILED);
    CHECK_CL(divide(CL_DEVICE_PARTITION_BY_COUNTS, 0, 0, 0), CL_INVALID_VALUE);
    CHECK_CL(divide(CL_DEVICE_PARTITION_BY_COUNTS, (cl_device_partition_property)units + 1, 0, 0),
             CL_INVALID_DEVICE_PARTITION_COUNT);
    CHECK_CL(divide(CL_DEVICE_PARTITION_BY_COUNTS, units, 1, 0), CL_INVALID_DEVICE_PARTITION_COUNT);
    CHECK_CL(divide(CL_DEVICE_PARTITION_BY_COUNTS, -1, 0, 0), CL_INVALID_DEVICE_PARTITION_COUNT);
    CHECK_CL(
        divide(CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE, 0, 0),
        CL_INVALID_VALUE);
    CHECK_CL(divide(CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, 0x4000, 0, 0), CL_INVALID_VALUE);
}

static void check_numa(void)
{
    cl_device_affinity_domain domains = 0;
    CHECK_CL(
        clGetDeviceInfo(root, CL_DEVICE_PARTITION_AFFINITY_DOMAIN, sizeof domains, &domains, NULL),
        CL_SUCCESS);
    const cl_device_partition_property list[] = {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                 CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0};
    cl_device_id nodes[64];
    cl_uint count = 0;
    cl_int error = clCreateSubDevices(root, list, 64, nodes, &count);
    if (!(domains & CL_DEVICE_AFFINITY_DOMAIN_NUMA)) {
        CHECK_CL(error, CL_INVALID_VALUE);
        return;
    }
    CHECK_CL(error, CL_SUCCESS);
    cl_uint total = 0;
    for (cl_uint i = 0; i < count; i++) {
        cl_device_partition_property type[3] = {0};
        CHECK_CL(clGetDeviceInfo(nodes[i], CL_DEVICE_PARTITION_TYPE, sizeof type, type, NULL),
                 CL_SUCCESS);
        CHECK(type[1] == CL_DEVICE_AFFINITY_DOMAIN_NUMA);
        total += units_of(nodes[i]);
        CHECK_CL(clReleaseDevice(nodes[i]), CL_SUCCESS);
    }
    CHECK(total == units);
}

static void check_division(void)
{
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_id *parts = calloc(units, sizeof *parts);
    cl_uint count = 0;
    CHECK_CL(clCreateSubDevices(root, equally, 0, NULL, &count), CL_SUCCESS);
    CHECK(count == units);
    CHECK_CL(clCreateSubDevices(root, equally, units - 1, parts, &count), CL_INVALID_VALUE);
    REQUIRE_CL(clCreateSubDevices(root, equally, units, parts, NULL));

    cl_device_id parent = NULL;
    CHECK_CL(clGetDeviceInfo(parts[0], CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL),
             CL_SUCCESS);
    CHECK(parent == root && units_of(parts[0]) == 1);
    cl_device_partition_property type[3] = {0};
    size_t size = 0;
    CHECK_CL(clGetDeviceInfo(parts[0], CL_DEVICE_PARTITION_TYPE, sizeof type, type, &size),
             CL_SUCCESS);
    CHECK(size == sizeof equally && memcmp(type, equally, size) == 0);
    CHECK_CL(clCreateSubDevices(parts[0], equally, 0, NULL, &count), CL_DEVICE_PARTITION_FAILED);

    CHECK(references_of(parts[0]) == 1);
    CHECK_CL(clRetainDevice(parts[0]), CL_SUCCESS);
    CHECK(references_of(parts[0]) == 2);
    CHECK_CL(clReleaseDevice(parts[0]), CL_SUCCESS);
    CHECK_CL(clRetainDevice(root), CL_SUCCESS);
    CHECK(references_of(root) == 1);
    CHECK_CL(clReleaseDevice(root), CL_SUCCESS);

    /* Work on a part; the part outlives its handle while a queue uses it. */
    cl_int error;
    cl_context context = clCreateContext(NULL, 1, &parts[0], NULL, NULL, &error);
    REQUIRE_CL(error);
    CHECK_CL_NULL(clCreateCommandQueue(context, root, 0, &check_error), CL_INVALID_DEVICE);
    cl_command_queue queue = clCreateCommandQueue(context, parts[0], 0, &error);
    REQUIRE_CL(error);
    for (cl_uint i = 0; i < units; i++)
        CHECK_CL(clReleaseDevice(parts[i]), CL_SUCCESS);
    cl_mem buffer = clCreateBuffer(context, 0, 4096, NULL, &error);
    REQUIRE_CL(error);
    cl_uint pattern = 0x01020304, value = 0;
    CHECK_CL(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, 4096, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4092, 4, &value, 0, NULL, NULL),
             CL_SUCCESS);
    CHECK(value == pattern);
    CHECK_CL(clReleaseMemObject(buffer), CL_SUCCESS);
    CHECK_CL(clReleaseCommandQueue(queue), CL_SUCCESS);
    CHECK_CL(clReleaseContext(context), CL_SUCCESS);

    const cl_device_partition_property counts[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    REQUIRE_CL(clCreateSubDevices(root, counts, units, parts, &count));
    CHECK(count == 2);
    CHECK_CL(clReleaseDevice(parts[0]), CL_SUCCESS);
    CHECK_CL(clReleaseDevice(parts[1]), CL_SUCCESS);
    free(parts);
}

int main(void)
{
    struct check_setup setup;
    check_setup(&setup);
    root = setup.device;
    units = units_of(root);
    if (units < 2) {
        CHECK_CL(divide(CL_DEVICE_PARTITION_EQUALLY, 1, 0, 0), CL_DEVICE_PARTITION_FAILED);
    } else {
        check_errors();
        check_numa();
        check_division();
    }
    check_finish(&setup);
    return check_result();
}
