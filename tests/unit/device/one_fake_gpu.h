/* For tests of the cuda backend: one GPU of the stand-in for CUDA (fake_cuda/), of which the kernel
 * driver tells nothing, so that nothing is remembered; and a program with its kernels "add", which
 * adds a value to ints, and "gate", which ends when a word is not 0 any more. */
#ifndef TEST_ONE_FAKE_GPU_H
#define TEST_ONE_FAKE_GPU_H

#include <stdlib.h>

#include "client_device.h"
#include "gpu_folder.h"
#include "unit/unit.h"

#define BESIDE_ALL (SP_BESIDE_WORKS | SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES)

static struct sp_device *device;
static struct sp_code *code;

static const char code_text[] = ".entry sp_kernel_add .entry sp_kernel_gate";
static struct sp_arg_info args_info[] = {
    {.kind = SP_ARG_GLOBAL, .size = 8, .align = 8, .offset = 0},
    {.kind = SP_ARG_VALUE, .size = 4, .align = 4, .offset = 8},
};
static struct sp_kernel_info kernels[] = {
    {.name = "add", .attributes = "", .num_args = 2, .args = args_info, .args_bytes = 12},
    {.name = "gate", .attributes = "", .num_args = 1, .args = args_info, .args_bytes = 8},
};
static struct sp_program_info program = {.num_kernels = 2, .kernels = kernels};
static struct sp_kernel_code codes[] = {{.name = "add"}, {.name = "gate"}};

struct kernel_args {
    void *at;
    int value;
};

/* Before the tests. */
static void make_gpu(void)
{
    make_folder();
    show_gpus(".", 1);
    use_machine(".");
}

static int set_up(void **state)
{
    (void)state;
    set_up_devices("cuda:0");
    device = devices[0];
    char *log;
    int error =
        device->ops->load(device, code_text, sizeof code_text, &program, codes, 2, &log, &code);
    free(log);
    return error;
}

static int tear_down(void **state)
{
    (void)state;
    device->ops->unload(code);
    return losses_of(device) != 0 || remove_folder();
}

#endif
