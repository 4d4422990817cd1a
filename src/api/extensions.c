/* See extensions.h. The names and versions are those of the OpenCL extension specification;
 * the last one is our own (CL/cl_ext_samepage.h). */
#include "api/extensions.h"

#include "api/info.h"
#include "runtime/context.h"

enum extension_scope { SCOPE_PLATFORM, SCOPE_DEVICE, SCOPE_FP64_DEVICE, SCOPE_PCI_DEVICE };

static const struct extension {
    const char *name;
    cl_version version;
    enum extension_scope scope;
} extensions[] = {
    {"cl_khr_icd", CL_MAKE_VERSION(2, 0, 0), SCOPE_PLATFORM},
    {"cl_khr_extended_versioning", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_byte_addressable_store", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_global_int32_base_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_global_int32_extended_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_local_int32_base_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_local_int32_extended_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_int64_base_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_int64_extended_atomics", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_extended_bit_ops", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_fp64", CL_MAKE_VERSION(1, 0, 0), SCOPE_FP64_DEVICE},
    {"cl_khr_device_uuid", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_khr_pci_bus_info", CL_MAKE_VERSION(1, 0, 0), SCOPE_PCI_DEVICE},
    {"cl_khr_suggested_local_work_size", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
    {"cl_samepage_svm_info", CL_MAKE_VERSION(1, 0, 0), SCOPE_DEVICE},
};

#define NUM_EXTENSIONS (sizeof extensions / sizeof extensions[0])

static bool applies(const struct extension *extension, const cl_device_id *devices,
                    cl_uint num_devices, bool with_platform)
{
    if (extension->scope == SCOPE_PLATFORM)
        return with_platform;
    for (cl_uint i = 0; i < num_devices; i++) {
        const struct sp_device_info *info = &devices[i]->device->info;
        if ((extension->scope == SCOPE_FP64_DEVICE && !info->fp64) ||
            (extension->scope == SCOPE_PCI_DEVICE && !info->has_pci))
            return false;
    }
    return true;
}

cl_int sp_extensions_reply_names(const cl_device_id *devices, cl_uint num_devices,
                                 bool with_platform, size_t room, void *out, size_t *bytes_ret)
{
    char names[NUM_EXTENSIONS * (CL_NAME_VERSION_MAX_NAME_SIZE + 1)] = "";
    size_t length = 0;
    for (size_t i = 0; i < NUM_EXTENSIONS; i++) {
        if (!applies(&extensions[i], devices, num_devices, with_platform))
            continue;
        if (length)
            names[length++] = ' ';
        size_t bytes = strlen(extensions[i].name);
        memcpy(names + length, extensions[i].name, bytes);
        length += bytes;
    }
    names[length] = 0;
    return sp_info_reply(room, out, bytes_ret, names, length + 1);
}

cl_int sp_extensions_reply_versions(const cl_device_id *devices, cl_uint num_devices,
                                    bool with_platform, size_t room, void *out, size_t *bytes_ret)
{
    cl_name_version versions[NUM_EXTENSIONS];
    memset(versions, 0, sizeof versions);
    size_t count = 0;
    for (size_t i = 0; i < NUM_EXTENSIONS; i++) {
        if (!applies(&extensions[i], devices, num_devices, with_platform))
            continue;
        versions[count].version = extensions[i].version;
        memcpy(versions[count].name, extensions[i].name, strlen(extensions[i].name));
        count++;
    }
    return sp_info_reply(room, out, bytes_ret, versions, count * sizeof versions[0]);
}
