/* Which devices reach each other's memory, in AMD's queries for it (cl_amd_copy_buffer_p2p), which
 * clinfo shows. */
#include "check.h"

enum { NUM_PEERS = 0x4088, PEERS = 0x4089, DEVICES = 4 };

static void expect(cl_device_id device, cl_uint count, const cl_device_id *expected)
{
    cl_device_id peers[DEVICES + 1];
    cl_uint number = 99;
    size_t bytes = 99;
    CHECK_CL(clGetDeviceInfo(device, NUM_PEERS, sizeof number, &number, NULL), CL_SUCCESS);
    CHECK(number == count);
    CHECK_CL(clGetDeviceInfo(device, PEERS, sizeof peers, peers, &bytes), CL_SUCCESS);
    CHECK(bytes == count * sizeof peers[0]);
    if (count) {
        CHECK(memcmp(peers, expected, count * sizeof peers[0]) == 0);
        CHECK_CL(clGetDeviceInfo(device, PEERS, bytes - 1, peers, NULL), CL_INVALID_VALUE);
    }
}

int main(void)
{
    cl_device_id devices[DEVICES];
    cl_uint count;
    setenv("SAMEPAGE_DEVICES", "cpu,virtual:3,mem=64M", 1);
    REQUIRE_CL(clGetDeviceIDs(check_platform(), CL_DEVICE_TYPE_ALL, DEVICES, devices, &count));
    REQUIRE(count == DEVICES);
    expect(devices[0], 0, NULL); /* its memory is the host's */
    expect(devices[1], 2, &devices[2]);
    expect(devices[2], 2, (cl_device_id[]){devices[1], devices[3]});
    expect(devices[3], 2, &devices[1]);
    return check_result();
}
