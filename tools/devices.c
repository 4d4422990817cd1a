/* samepage devices: what a program would find on this machine, with this environment. */
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/driver.h"
#include "device/selection.h"
#include "runtime/context.h"
#include "svm/check.h"
#include "svm/heap.h"
#include "svm/hostwatch.h"
#include "tool.h"

/* "15.6 GiB", in the largest unit that keeps the number at 1 or more. */
static const char *size_text(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1024 && unit < sizeof units / sizeof units[0] - 1) {
        value /= 1024;
        unit++;
    }
    snprintf(text, size, value == (double)(uint64_t)value ? "%.0f %s" : "%.1f %s", value,
             units[unit]);
    return text;
}

static void print_levels(uint32_t levels)
{
    static const struct {
        uint32_t level;
        const char *name;
    } names[] = {{SP_SVM_COARSE, "coarse grain"},
                 {SP_SVM_FINE, "fine grain"},
                 {SP_SVM_SYSTEM, "system"},
                 {SP_SVM_ATOMICS, "atomics"}};
    const char *separator = "";
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (levels & names[i].level) {
            printf("%s%s", separator, names[i].name);
            separator = ", ";
        }
    printf("%s\n", *separator ? "" : "none");
}

/* The library finds its parts beside itself, and this program lies elsewhere: in the build tree,
 * and where it is installed. */
static void find_device_program(void)
{
    static const char *const folders[] = {"../lib", SP_TOOL_TO_PARTS};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return;
    self[length] = 0;
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%.*s/%s/samepage-device", (int)(slash - self), self,
                 folders[i]);
        if (access(path, X_OK) == 0) {
            setenv("SAMEPAGE_DEVICE_PROGRAM", path, 0);
            return;
        }
    }
}

/* What the kernel's graphics devices are: asked of samepage-device, since this process, as an
 * application's, loads no library for that. */
static void print_drm_nodes(void)
{
    char *program = getenv("SAMEPAGE_DEVICE_PROGRAM");
    char *arguments[] = {program, "--drm-nodes", NULL};
    pid_t process;
    int status = 1;
    fflush(stdout);
    if (!program || posix_spawn(&process, program, NULL, NULL, arguments, environ) ||
        waitpid(process, &status, 0) != process || status != 0)
        printf("DRM             not known: samepage-device cannot be run\n");
}

static bool sees(const struct sp_device *device, const struct sp_device *other)
{
    return other != device && other->info.own_memory && device->ops->sees &&
           device->ops->sees((struct sp_device *)device, other->agent);
}

/* The devices with which it can hold regions that are larger than its own memory. */
static void print_pool(cl_platform_id platform, const struct sp_device *device)
{
    const char *before = "   pools with     ";
    for (cl_uint i = 0; i < platform->num_devices; i++) {
        const struct sp_device *other = platform->devices[i]->device;
        if (!device->info.own_memory || !sees(device, other) || !sees(other, device))
            continue;
        printf("%s%u", before, i);
        before = ", ";
    }
    if (before[0] == ',')
        puts("");
}

/* Each has a process that starts meanwhile, or cannot. */
static void print_usability(struct sp_device *device)
{
    const char *why = device->ops->await_ready ? device->ops->await_ready(device) : NULL;
    const char *notice = device->ops->notice ? device->ops->notice(device) : NULL;
    if (why)
        printf("   usable         no: %s.\n", why);
    if (notice)
        printf("   notice         it %s.\n", notice);
}

/* GPUs that are not among the devices; how many. */
static unsigned print_missing(void)
{
    unsigned count = 0;
    for (struct sp_device *device; (device = sp_client_driver.missing(count)); count++)
        printf("%s%s cannot be used: %s.\n", count ? "" : "\n", device->info.name,
               device->ops->await_ready(device));
    return count;
}

int tool_devices(int argc, char **argv)
{
    char text[32];
    if (argc > 1) {
        fprintf(stderr, "samepage devices: takes no arguments, and got '%s'\n", argv[1]);
        return 2;
    }
    find_device_program();
    cl_platform_id platform = sp_platform_get();
    if (!platform) {
        fputs("samepage devices: there is not enough memory to open the platform\n", stderr);
        return 1;
    }
    uintptr_t start;
    size_t bytes;
    unsigned num_gpus = 0;
    sp_window_range(&start, &bytes);
    for (cl_uint i = 0; i < platform->num_devices; i++) {
        struct sp_device *device = platform->devices[i]->device;
        const struct sp_device_info *info = &device->info;
        num_gpus += !strcmp(info->driver_name, "cuda");
        printf("%u  %s\n", i, info->name);
        printf("   driver         %s%s%s%s\n", info->driver_name, info->vendor_version ? ", " : "",
               info->vendor_version ? info->vendor_version : "",
               info->own_memory ? ", in a process of its own" : ", in the application's process");
        print_usability(device);
        printf("   compute units  %u\n", info->compute_units);
        printf("   memory         %s%s\n", size_text(info->global_memory_bytes, text, sizeof text),
               info->own_memory ? " of its own" : ", the host's");
        printf("   shared memory  ");
        print_levels(info->svm_levels);
        print_pool(platform, device);
        if (info->has_failed_atomics)
            puts("   atomics        not of all devices: the self-test of the atomic unit failed");
    }
    if (!print_missing() && !num_gpus && (sp_selection()->has_all_cuda || sp_selection()->num_cuda))
        puts("\nThere is no NVIDIA GPU.");
    printf("\nwindow          0x%" PRIxPTR " to 0x%" PRIxPTR " (%s)\n", start, start + bytes,
           size_text(bytes, text, sizeof text));
    printf("host watching   %s\n", sp_hostwatch_name(sp_hostwatch_init()));
    printf("checking mode   %s\n", sp_check_ability());
    print_drm_nodes();
    return 0;
}
