/* The checking mode with less than a full userfaultfd: one for user mode only, with which system
 * calls that are given memory that is not mapped fail, and all else is as ever; and none, which is
 * said once, and kernels are still checked. A filter of system calls takes the privileges away. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "check_run.h"

enum { BYTES = 20000 };

static struct run_setup setup;

static const char source[] = "kernel void follow(global ulong *p) { *(global uint *)p[0] += 1; }\n";

/* Refuses every userfaultfd, or with `user_mode` those that serve system calls. */
static void forbid(bool user_mode)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)USERFAULTFD_IOC_NEW, 5, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, user_mode ? UFFD_USER_MODE_ONLY : 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void follow(void)
{
    size_t one = 1;
    cl_ulong *list = clSVMAlloc(setup.context, 0, sizeof *list, 0);
    cl_uint *value = clSVMAlloc(setup.context, 0, sizeof *value, 0);
    cl_uint zero = 0;
    cl_kernel kernel = run_kernel(&setup, source, "follow");
    cl_command_queue queue = setup.queues[1];
    REQUIRE(list && value);
    run_map(&setup, CL_MAP_WRITE, list, sizeof *list);
    *list = (cl_ulong)(uintptr_t)value;
    run_unmap(&setup, list);
    CHECK_CL(clEnqueueSVMMemFill(queue, value, &zero, 4, 4, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clSetKernelArgSVMPointer(kernel, 0, list), CL_SUCCESS);
    CHECK_CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL), CL_SUCCESS);
    CHECK_CL(clFinish(queue), CL_SUCCESS);
    CHECK_CL(clReleaseKernel(kernel), CL_SUCCESS);
    clSVMFree(setup.context, list);
    clSVMFree(setup.context, value);
}

static void scenario(const char *name)
{
    bool has_user_mode = strcmp(name, "none") != 0;
    forbid(has_user_mode);
    run_setup_with(&setup, NULL);
    volatile unsigned char *p = clSVMAlloc(setup.context, 0, BYTES, 0);
    REQUIRE(p);
    int zero = open("/dev/zero", O_RDONLY);
    if (has_user_mode) {
        CHECK(read(zero, (void *)p, BYTES) == -1 && errno == EFAULT);
        p[1000] = 1;
        /* What is mapped is open for system calls as well. */
        run_map(&setup, CL_MAP_WRITE, (void *)p, BYTES);
        CHECK(read(zero, (void *)p, BYTES) == BYTES);
        run_unmap(&setup, (void *)p);
        run_map(&setup, CL_MAP_READ, (void *)p, BYTES);
        int null = open("/dev/null", O_WRONLY);
        CHECK(write(null, (void *)p, BYTES) == BYTES);
        close(null);
        run_unmap(&setup, (void *)p);
    } else {
        p[1000] = 1;
        follow();
    }
    close(zero);
    clSVMFree(setup.context, (void *)p);
    run_finish(&setup);
}

int main(int argc, char **argv)
{
    struct run run;
    if (argc > 1) {
        scenario(argv[1]);
        return check_result();
    }
    run_require_watch();
    run_self(&run, "1", CPU_ONLY, "user");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run, "the host wrote to memory that is not mapped, in scenario (");

    run_self(&run, "1", ALL_DEVICES, "none");
    CHECK_RUN_REPORTS(run, 1);
    CHECK_SAYS(run,
               "samepage: the host's accesses are not checked, since this system lets the process "
               "have no userfaultfd");
    CHECK_SAYS(run, "kernel 'follow' on Virtual device 0");
    return check_result();
}
