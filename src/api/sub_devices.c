/* clCreateSubDevices: reading and checking a partition list. Making the devices is the runtime's
 * (sp_sub_devices_create). No state, no lock.
 */
#include <stdlib.h>

#include "api/device.h"
#include "util/alloc.h"

/* A partition list that was read: `count` sub-devices. */
struct plan {
    enum sp_partition_kind kind;
    cl_uint count;
    cl_uint *counts;                          /* compute units of each; NULL for NUMA. Owned */
    cl_device_partition_property affinity[3]; /* the list that NUMA sub-devices report */
    const cl_device_partition_property *reported;
    size_t reported_count; /* words, the 0 included */
};

/* Two compute units are the least that can be divided, and only the CPU's drivers divide. */
bool sp_device_is_partitionable(cl_device_id device)
{
    return device->device->info.compute_units > 1 && !device->device->info.own_memory;
}

static cl_int plan_equally(cl_device_id device, const cl_device_partition_property *properties,
                           struct plan *plan)
{
    cl_uint units = device->device->info.compute_units;
    cl_device_partition_property each = properties[1];
    if (each <= 0 || properties[2] != 0)
        return CL_INVALID_VALUE;
    if (each > (cl_device_partition_property)units)
        return CL_INVALID_DEVICE_PARTITION_COUNT;
    if (each == (cl_device_partition_property)units)
        return CL_DEVICE_PARTITION_FAILED; /* one part is no partition */

    plan->kind = SP_PARTITION_UNITS;
    plan->count = units / (cl_uint)each;
    plan->counts = sp_alloc_array(plan->count, sizeof plan->counts[0]);
    if (!plan->counts)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < plan->count; i++)
        plan->counts[i] = (cl_uint)each;
    plan->reported = properties;
    plan->reported_count = 3;
    return CL_SUCCESS;
}

static cl_int plan_by_counts(cl_device_id device, const cl_device_partition_property *properties,
                             struct plan *plan)
{
    cl_device_partition_property units = device->device->info.compute_units;
    const cl_device_partition_property *list = properties + 1;
    cl_device_partition_property total = 0;
    cl_uint count = 0;
    for (; list[count] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; count++) {
        if (list[count] < 0 || list[count] > units - total)
            return CL_INVALID_DEVICE_PARTITION_COUNT;
        total += list[count];
    }
    if (count == 0 || list[count + 1] != 0)
        return CL_INVALID_VALUE;
    if (!sp_device_is_partitionable(device))
        return CL_DEVICE_PARTITION_FAILED;

    plan->kind = SP_PARTITION_UNITS;
    plan->count = count;
    plan->counts = sp_alloc_array(count, sizeof plan->counts[0]);
    if (!plan->counts)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < count; i++)
        plan->counts[i] = (cl_uint)list[i];
    plan->reported = properties;
    plan->reported_count = (size_t)count + 3;
    return CL_SUCCESS;
}

/* Caches are not known apart from NUMA nodes, so NUMA is also the next partitionable domain. */
static cl_int plan_by_affinity(cl_device_id device, const cl_device_partition_property *properties,
                               struct plan *plan)
{
    if ((properties[1] != CL_DEVICE_AFFINITY_DOMAIN_NUMA &&
         properties[1] != CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE) ||
        properties[2] != 0)
        return CL_INVALID_VALUE;
    /* One node alone is not reported as a domain, so the scheme is not supported. */
    if (device->device->info.numa_nodes < 2)
        return CL_INVALID_VALUE;

    plan->kind = SP_PARTITION_NUMA;
    plan->count = device->device->info.numa_nodes;
    plan->affinity[0] = CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN;
    plan->affinity[1] = CL_DEVICE_AFFINITY_DOMAIN_NUMA;
    plan->reported = plan->affinity;
    plan->reported_count = 3;
    return CL_SUCCESS;
}

static cl_int plan_read(cl_device_id device, const cl_device_partition_property *properties,
                        struct plan *plan)
{
    if (!properties)
        return CL_INVALID_VALUE;
    switch (properties[0]) {
    case CL_DEVICE_PARTITION_EQUALLY:
        return plan_equally(device, properties, plan);
    case CL_DEVICE_PARTITION_BY_COUNTS:
        return plan_by_counts(device, properties, plan);
    case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN:
        return plan_by_affinity(device, properties, plan);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL clCreateSubDevices(cl_device_id in_device,
                                      const cl_device_partition_property *properties,
                                      cl_uint num_devices, cl_device_id *out_devices,
                                      cl_uint *num_devices_ret)
{
    if (!sp_object_is(in_device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;

    struct plan plan = {0};
    cl_int error = plan_read(in_device, properties, &plan);
    if (!error && out_devices) {
        if (num_devices < plan.count)
            error = CL_INVALID_VALUE;
        else
            error = sp_sub_devices_create(in_device, plan.kind, plan.count, plan.counts,
                                          plan.reported, plan.reported_count, out_devices);
    }
    if (!error && num_devices_ret)
        *num_devices_ret = plan.count;
    free(plan.counts);
    return error;
}
