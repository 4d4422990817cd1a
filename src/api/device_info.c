/* clGetDeviceInfo: every query of OpenCL 3.0, of the versions before it, and of the extensions that
 * Samepage has. What differs between devices comes from sp_device_info, which a driver fills in;
 * what is the same for all of them stands here. Images, pipes, sub-groups and on-device queues are
 * not supported, and each of their queries gives what the specification demands for that.
 * Sub-devices answer through their own sp_device_info. No state, no lock.
 */
#include <stdint.h>
#include <stdio.h>

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/device.h"
#include "api/extensions.h"
#include "api/info.h"
#include "device/selection.h"
#include "runtime/context.h"

/* Constant memory is global memory, and could be as large. But programs that fill what is reported
 * index it with an int, as the conformance suite's `constant` does. */
#define MAX_CONSTANT_BYTES (UINT64_C(1) << 31)

#define MAX_DIMENSIONS 3u

/* The specification's minimum, where a device takes any. */
#define MAX_PARAMETER_BYTES 1024u

/* Constant memory is ordinary memory; the specification's minimum is 8. */
#define MAX_CONSTANT_ARGS 64u

/* Program-scope variables are ordinary memory as well; the specification's minimum is 64 KiB. */
#define MAX_GLOBAL_VARIABLE_BYTES ((size_t)1 << 20)

/* The specification's minimum for the full profile. */
#define PRINTF_BUFFER_BYTES ((size_t)1 << 20)

/* clock_gettime gives nanoseconds (util/time.h). */
#define PROFILING_TIMER_RESOLUTION_NS 1u

/* The queries of AMD's cl_amd_copy_buffer_p2p, which no other extension has and the Khronos headers
 * do not have either. The extension's function is not here, so neither is its name among the
 * extensions. */
#ifndef CL_DEVICE_NUM_P2P_DEVICES_AMD
#define CL_DEVICE_NUM_P2P_DEVICES_AMD 0x4088
#define CL_DEVICE_P2P_DEVICES_AMD 0x4089
#endif

#define ATOMIC_MEMORY_CAPABILITIES                                                                 \
    (CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL |                             \
     CL_DEVICE_ATOMIC_ORDER_SEQ_CST | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP |                          \
     CL_DEVICE_ATOMIC_SCOPE_DEVICE | CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES)

/* The caller's side of a query. */
static cl_int reply_uint(const struct sp_query *query, cl_uint value)
{
    return sp_query_reply(query, &value, sizeof value);
}

static cl_int reply_ulong(const struct sp_query *query, cl_ulong value)
{
    return sp_query_reply(query, &value, sizeof value);
}

static cl_int reply_size(const struct sp_query *query, size_t value)
{
    return sp_query_reply(query, &value, sizeof value);
}

/* An array of name and version, one version for all names. */
static cl_int reply_names(const struct sp_query *query, const char *const *names, size_t count,
                          cl_version version)
{
    cl_name_version versions[16] = {{0}};
    for (size_t i = 0; i < count; i++) {
        versions[i].version = version;
        memcpy(versions[i].name, names[i], strlen(names[i]));
    }
    return sp_query_reply(query, versions, count * sizeof versions[0]);
}

/* OpenCL C 2.0 is not listed: there, pipes and device-side enqueue are not optional. */
static cl_int reply_c_versions(const struct sp_query *query)
{
    static const cl_name_version versions[] = {
        {CL_MAKE_VERSION(1, 0, 0), "OpenCL C"},
        {CL_MAKE_VERSION(1, 1, 0), "OpenCL C"},
        {CL_MAKE_VERSION(1, 2, 0), "OpenCL C"},
        {CL_MAKE_VERSION(3, 0, 0), "OpenCL C"},
    };
    return sp_query_reply(query, versions, sizeof versions);
}

static cl_int reply_c_features(const struct sp_query *query, const struct sp_device_info *info)
{
    static const char *const features[] = {
        "__opencl_c_atomic_order_acq_rel",
        "__opencl_c_atomic_order_seq_cst",
        "__opencl_c_atomic_scope_device",
        "__opencl_c_atomic_scope_all_devices",
        "__opencl_c_generic_address_space",
        "__opencl_c_int64",
        "__opencl_c_program_scope_global_variables",
        "__opencl_c_work_group_collective_functions",
        "__opencl_c_fp64", /* the last one: left out where there is no fp64 */
    };
    size_t count = sizeof features / sizeof features[0];
    return reply_names(query, features, info->fp64 ? count : count - 1, CL_MAKE_VERSION(3, 0, 0));
}

static cl_int reply_svm_capabilities(const struct sp_query *query,
                                     const struct sp_device_info *info)
{
    cl_device_svm_capabilities capabilities = 0;
    if (info->svm_levels & SP_SVM_COARSE)
        capabilities |= CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    if (info->svm_levels & SP_SVM_FINE)
        capabilities |= CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
    if (info->svm_levels & SP_SVM_SYSTEM)
        capabilities |= CL_DEVICE_SVM_FINE_GRAIN_SYSTEM;
    if (info->svm_levels & SP_SVM_ATOMICS)
        capabilities |= CL_DEVICE_SVM_ATOMICS;
    return reply_ulong(query, capabilities);
}

static cl_int reply_fp_config(const struct sp_query *query, cl_device_info param,
                              const struct sp_device_info *info)
{
    cl_device_fp_config config = CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN | CL_FP_DENORM;
    if (param == CL_DEVICE_SINGLE_FP_CONFIG)
        config |= CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT |
                  (info->is_gpu ? CL_FP_FMA : 0); /* not every processor has it */
    else
        /* The specification's least for double; the rounding modes are those of conversions. */
        config = info->fp64 ? config | CL_FP_FMA | CL_FP_ROUND_TO_ZERO | CL_FP_ROUND_TO_INF : 0;
    return reply_ulong(query, config);
}

/* The widths that the machine has. Kernels are vectorised across work-items, so none but scalars
 * are preferred. Half precision is storage only. */
static cl_int reply_vector_width(const struct sp_query *query, cl_device_info param,
                                 const struct sp_device_info *info)
{
    bool preferred = true;
    size_t bytes = 0;
    switch (param) {
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
        preferred = false; /* fall through */
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
        bytes = sizeof(cl_char);
        break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT:
        preferred = false; /* fall through */
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
        bytes = sizeof(cl_short);
        break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        preferred = false; /* fall through */
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
        bytes = sizeof(cl_int);
        break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG:
        preferred = false; /* fall through */
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
        bytes = sizeof(cl_long);
        break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
        preferred = false; /* fall through */
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
        bytes = info->fp64 ? sizeof(cl_double) : 0;
        break;
    default: /* half */
        break;
    }
    if (bytes == 0)
        return reply_uint(query, 0);
    cl_uint width = (cl_uint)(info->native_vector_bytes / bytes);
    return reply_uint(query, preferred || width == 0 ? 1 : width);
}

/* FNV-1a, 64 bits wide: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash(uint64_t state, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++)
        state = (state ^ byte[i]) * UINT64_C(0x100000001b3);
    return state;
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

static cl_int reply_pci(const struct sp_query *query, const struct sp_device_info *info)
{
    const cl_device_pci_bus_info_khr place = {.pci_domain = info->pci_domain,
                                              .pci_bus = info->pci_bus,
                                              .pci_device = info->pci_device,
                                              .pci_function = info->pci_function};
    return sp_query_reply(query, &place, sizeof place);
}

/* The hardware's own; or made from what stays the same between processes: driver, name and place
 * among the root devices. */
static cl_int reply_device_uuid(const struct sp_query *query, cl_device_id device)
{
    cl_platform_id platform = sp_platform_get();
    cl_uint place = 0;
    while (place < platform->num_devices &&
           platform->devices[place]->device != device->device->root)
        place++;
    const struct sp_device_info *info = &device->device->root->info;
    uint64_t halves[2];
    if (info->has_uuid)
        return sp_query_reply(query, info->uuid, sizeof info->uuid);
    halves[0] = hash(HASH_START, info->driver_name, strlen(info->driver_name) + 1);
    halves[0] = hash(halves[0], &place, sizeof place);
    halves[1] = hash(halves[0], info->name, strlen(info->name) + 1);
    _Static_assert(sizeof halves == CL_UUID_SIZE_KHR, "a UUID is 16 bytes");
    return sp_query_reply(query, halves, sizeof halves);
}

static cl_int reply_driver_uuid(const struct sp_query *query)
{
    static const char name[] = "Samepage " SP_VERSION;
    uint64_t halves[2];
    halves[0] = hash(HASH_START, name, sizeof name);
    halves[1] = hash(halves[0], name, sizeof name);
    return sp_query_reply(query, halves, sizeof halves);
}

static cl_int reply_partition_properties(const struct sp_query *query, cl_device_id device)
{
    cl_device_partition_property properties[3] = {0};
    size_t count = 0;
    if (sp_device_is_partitionable(device)) {
        properties[count++] = CL_DEVICE_PARTITION_EQUALLY;
        properties[count++] = CL_DEVICE_PARTITION_BY_COUNTS;
        if (device->device->info.numa_nodes > 1)
            properties[count++] = CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN;
    }
    return sp_query_reply(query, properties, (count ? count : 1) * sizeof properties[0]);
}

static cl_int reply_partition_type(const struct sp_query *query, cl_device_id device)
{
    static const cl_device_partition_property none = 0;
    if (!device->partition)
        return sp_query_reply(query, &none, sizeof none);
    return sp_query_reply(query, device->partition,
                          device->partition_count * sizeof device->partition[0]);
}

/* Ours, and that of the vendor's driver beneath. */
static cl_int reply_driver_version(const struct sp_query *query, const struct sp_device_info *info)
{
    char text[96];
    int length = info->vendor_version
                     ? snprintf(text, sizeof text, SP_VERSION " (%s)", info->vendor_version)
                     : snprintf(text, sizeof text, SP_VERSION);
    return sp_query_reply(query, text, (size_t)length + 1);
}

/* The devices to whose memory this one copies directly; how many. Waits until the device has said
 * it. */
static cl_uint find_peers(cl_device_id device, cl_device_id peers[SP_MAX_CLIENT_DEVICES])
{
    cl_platform_id platform = sp_platform_get();
    struct sp_device *own = device->device;
    cl_uint count = 0;
    for (cl_uint i = 0; i < platform->num_devices && count < SP_MAX_CLIENT_DEVICES; i++) {
        struct sp_device *other = platform->devices[i]->device;
        if (own->ops->sees && other != own && other->info.own_memory &&
            own->ops->sees(own, other->agent))
            peers[count++] = platform->devices[i];
    }
    return count;
}

static cl_int reply_num_peers(const struct sp_query *query, cl_device_id device)
{
    cl_device_id peers[SP_MAX_CLIENT_DEVICES];
    return reply_uint(query, find_peers(device, peers));
}

static cl_int reply_peers(const struct sp_query *query, cl_device_id device)
{
    cl_device_id peers[SP_MAX_CLIENT_DEVICES];
    cl_uint count = find_peers(device, peers);
    return sp_query_reply(query, peers, count * sizeof peers[0]);
}

/* The queries whose answers are strings. NULL: not one of them. */
static const char *string_of(cl_device_info param, const struct sp_device_info *info)
{
    switch (param) {
    case CL_DEVICE_NAME:
        return info->name;
    case CL_DEVICE_VENDOR:
        return info->vendor;
    case CL_DEVICE_PROFILE:
        return "FULL_PROFILE";
    case CL_DEVICE_VERSION:
        return "OpenCL 3.0 Samepage " SP_VERSION;
    case CL_DEVICE_OPENCL_C_VERSION:
        return "OpenCL C 1.2 Samepage " SP_VERSION;
    case CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED:
        /* None: the form demands a date, and no conformance release has this one. */
        return "v0000-01-01-00";
    case CL_DEVICE_IL_VERSION:
    case CL_DEVICE_BUILT_IN_KERNELS:
        return "";
    default:
        return NULL;
    }
}

/* What a device without images, pipes, sub-groups and on-device queues answers, and other queries
 * that are the same for all devices. CL_INVALID_VALUE: not one of them. */
static cl_int reply_constant(const struct sp_query *query, cl_device_info param)
{
    switch (param) {
    case CL_DEVICE_MAX_READ_IMAGE_ARGS:
    case CL_DEVICE_MAX_WRITE_IMAGE_ARGS:
    case CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS:
    case CL_DEVICE_MAX_SAMPLERS:
    case CL_DEVICE_IMAGE_PITCH_ALIGNMENT:
    case CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT:
    case CL_DEVICE_MAX_PIPE_ARGS:
    case CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS:
    case CL_DEVICE_PIPE_MAX_PACKET_SIZE:
    case CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE:
    case CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE:
    case CL_DEVICE_MAX_ON_DEVICE_QUEUES:
    case CL_DEVICE_MAX_ON_DEVICE_EVENTS:
    case CL_DEVICE_MAX_NUM_SUB_GROUPS:
        return reply_uint(query, 0);
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT:
    case CL_DEVICE_IMAGE3D_MAX_WIDTH:
    case CL_DEVICE_IMAGE3D_MAX_HEIGHT:
    case CL_DEVICE_IMAGE3D_MAX_DEPTH:
    case CL_DEVICE_IMAGE_MAX_BUFFER_SIZE:
    case CL_DEVICE_IMAGE_MAX_ARRAY_SIZE:
        return reply_size(query, 0);
    case CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES:
    case CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES:
        return reply_ulong(query, 0);
    case CL_DEVICE_IMAGE_SUPPORT:
    case CL_DEVICE_PIPE_SUPPORT:
    case CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS:
    case CL_DEVICE_LUID_VALID_KHR:
        return reply_uint(query, CL_FALSE);
    case CL_DEVICE_ENDIAN_LITTLE:
        return reply_uint(query, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_PREFERRED_INTEROP_USER_SYNC:
    case CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT:
    case CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT:
    case CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT:
        return reply_uint(query, CL_TRUE);
    case CL_DEVICE_ILS_WITH_VERSION:
    case CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION:
        return sp_query_reply(query, NULL, 0);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
        return reply_uint(query, MAX_DIMENSIONS);
    case CL_DEVICE_ADDRESS_BITS:
        return reply_uint(query, 8 * sizeof(void *));
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return reply_uint(query, 8 * SP_MEM_BASE_ALIGN_BYTES);
    case CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE:
        return reply_uint(query, sizeof(cl_long16));
    case CL_DEVICE_MAX_CONSTANT_ARGS:
        return reply_uint(query, MAX_CONSTANT_ARGS);
    case CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE:
    case CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE:
        return reply_size(query, MAX_GLOBAL_VARIABLE_BYTES);
    case CL_DEVICE_PRINTF_BUFFER_SIZE:
        return reply_size(query, PRINTF_BUFFER_BYTES);
    case CL_DEVICE_QUEUE_ON_HOST_PROPERTIES:
        return reply_ulong(query,
                           CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE);
    case CL_DEVICE_NUMERIC_VERSION:
        return reply_uint(query, CL_MAKE_VERSION(3, 0, 0));
    case CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR:
        return reply_uint(query, CL_MAKE_VERSION(1, 2, 0));
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS:
        return reply_c_versions(query);
    case CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES:
        return reply_ulong(query, ATOMIC_MEMORY_CAPABILITIES);
    case CL_DEVICE_ATOMIC_FENCE_CAPABILITIES:
        return reply_ulong(query, ATOMIC_MEMORY_CAPABILITIES | CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM);
    case CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT:
    case CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT:
    case CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT:
        return reply_uint(query, 0); /* each type's own */
    case CL_DRIVER_UUID_KHR:
        return reply_driver_uuid(query);
    case CL_DEVICE_LUID_KHR:
        return sp_query_reply(query, (const char[CL_LUID_SIZE_KHR]){0}, CL_LUID_SIZE_KHR);
    case CL_DEVICE_NODE_MASK_KHR:
        return reply_uint(query, 0);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                                   size_t param_value_size, void *param_value,
                                   size_t *param_value_size_ret)
{
    if (!sp_object_is(device, SP_OBJECT_DEVICE))
        return CL_INVALID_DEVICE;

    const struct sp_device_info *info = &device->device->info;
    const struct sp_query query = {param_value_size, param_value, param_value_size_ret};
    const char *string = string_of(param_name, info);
    if (string)
        return sp_query_reply_string(&query, string);

    switch (param_name) {
    case CL_DEVICE_TYPE:
        return reply_ulong(&query, sp_device_type(device));
    case CL_DEVICE_VENDOR_ID:
        return reply_uint(&query, info->vendor_id);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return reply_uint(&query, info->compute_units);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return reply_size(&query, info->max_work_group_size);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
        size_t sizes[MAX_DIMENSIONS];
        for (unsigned i = 0; i < MAX_DIMENSIONS; i++)
            sizes[i] = info->max_item_sizes[i];
        return sp_query_reply(&query, sizes, sizeof sizes);
    }
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_INT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF:
        return reply_vector_width(&query, param_name, info);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return reply_uint(&query, info->clock_mhz);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return reply_ulong(&query, info->max_alloc_bytes);
    case CL_DEVICE_SINGLE_FP_CONFIG:
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return reply_fp_config(&query, param_name, info);
    case CL_DEVICE_GLOBAL_MEM_CACHE_TYPE:
        return reply_uint(&query, info->cache_bytes ? CL_READ_WRITE_CACHE : CL_NONE);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE:
        return reply_uint(&query, info->cache_line_bytes);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
        return reply_ulong(&query, info->cache_bytes);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return reply_ulong(&query, info->global_memory_bytes);
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
        return reply_ulong(&query, info->max_alloc_bytes < MAX_CONSTANT_BYTES
                                       ? info->max_alloc_bytes
                                       : MAX_CONSTANT_BYTES);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        return reply_size(&query,
                          info->max_args_bytes ? info->max_args_bytes : MAX_PARAMETER_BYTES);
    case CL_DEVICE_LOCAL_MEM_TYPE:
        return reply_uint(&query, info->is_cpu ? CL_GLOBAL : CL_LOCAL);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return reply_ulong(&query, info->local_memory_bytes);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return reply_uint(&query, !info->own_memory);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
        return reply_ulong(&query, CL_EXEC_KERNEL | (info->own_memory ? 0 : CL_EXEC_NATIVE_KERNEL));
    case CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
        return reply_size(&query, info->preferred_multiple);
    case CL_DEVICE_PLATFORM: {
        cl_platform_id platform = sp_platform_get();
        return sp_query_reply(&query, &platform, sizeof platform);
    }
    case CL_DEVICE_EXTENSIONS:
        return sp_extensions_reply_names(&device, 1, false, param_value_size, param_value,
                                         param_value_size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return sp_extensions_reply_versions(&device, 1, false, param_value_size, param_value,
                                            param_value_size_ret);
    case CL_DEVICE_OPENCL_C_FEATURES:
        return reply_c_features(&query, info);
    case CL_DEVICE_SVM_CAPABILITIES:
        return reply_svm_capabilities(&query, info);
    case CL_DEVICE_PARENT_DEVICE:
        return sp_query_reply(&query, &device->parent, sizeof device->parent);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
        return reply_uint(&query, info->compute_units);
    case CL_DEVICE_PARTITION_PROPERTIES:
        return reply_partition_properties(&query, device);
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
        return reply_ulong(&query, info->numa_nodes > 1
                                       ? CL_DEVICE_AFFINITY_DOMAIN_NUMA |
                                             CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE
                                       : 0);
    case CL_DEVICE_PARTITION_TYPE:
        return reply_partition_type(&query, device);
    case CL_DEVICE_REFERENCE_COUNT:
        return reply_uint(&query, device->parent ? sp_object_handles(&device->object) : 1);
    case CL_DEVICE_UUID_KHR:
        return reply_device_uuid(&query, device);
    case CL_DRIVER_VERSION:
        return reply_driver_version(&query, info);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return reply_size(&query, info->timer_ns ? info->timer_ns : PROFILING_TIMER_RESOLUTION_NS);
    case CL_DEVICE_NUM_P2P_DEVICES_AMD:
        return reply_num_peers(&query, device);
    case CL_DEVICE_P2P_DEVICES_AMD:
        return reply_peers(&query, device);
    case CL_DEVICE_AVAILABLE:
        return reply_uint(&query, !device->device->root->is_given_up);
    case CL_DEVICE_ERROR_CORRECTION_SUPPORT:
        return reply_uint(&query, info->corrects_errors);
    case CL_DEVICE_PCI_BUS_INFO_KHR:
        return info->has_pci ? reply_pci(&query, info) : CL_INVALID_VALUE;
    default:
        return reply_constant(&query, param_name);
    }
}
