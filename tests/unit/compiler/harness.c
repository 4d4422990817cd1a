/* See harness.h. */
#include "harness.h"

#include "compiler/cc/code.h"
#include "compiler/cc/describe.h"
#include "compiler/cc/front.h"
#include "compiler/cc/ir.h"
#include "compiler/cc/link.h"
#include "compiler/cc/module.h"
#include "compiler/cc/target.h"
#include "compiler/cc/tools.h"
#include "compiler/cpu_abi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#define MAX_ITEMS 1024
#define STACK_BYTES 16384
#define LOCAL_BYTES 65536 /* for all __local arguments of a kernel */
#define GUARD_BYTES 4096
#define GUARD_BYTE 0xA5

struct sp_cc_text printed;

char *read_text(const char *path)
{
    struct sp_cc_text text = {0};
    assert_int_equal(sp_cc_read_file(path, &text), 0);
    return text.bytes;
}

static void setup(void)
{
    setenv("SAMEPAGE_BUILTINS", SP_TEST_BUILTINS, 0);
    sp_cc_target_warm_up();
}

static enum sp_cc_status build(struct program *program, const char *source,
                               const char *const *options, struct sp_cc_text *log)
{
    struct sp_cc_source input = {.text = source, .size = strlen(source)};
    struct sp_cc_text bitcode = {0};
    struct sp_cc_strings dependencies = {0};
    setup();
    for (; options && *options; options++)
        sp_cc_strings_add(&input.options, *options);
    enum sp_cc_status status = sp_cc_compile(&input, &bitcode, &dependencies, log);
    if (status == SP_CC_OK) {
        struct sp_cc_blob blob = {bitcode.bytes, bitcode.size};
        struct sp_cc_link link = {.inputs = &blob, .num_inputs = 1};
        status = sp_cc_link(&link, &program->ir, &program->info, log);
    }
    sp_cc_text_finish(&bitcode);
    sp_cc_strings_finish(&input.options);
    sp_cc_strings_finish(&dependencies);
    return status;
}

void program_init(struct program *program, const char *source, const char *const *options)
{
    struct sp_cc_text log = {0};
    *program = (struct program){0};
    enum sp_cc_status status = build(program, source, options, &log);
    if (status != SP_CC_OK)
        fail_msg("%s", log.bytes ? log.bytes : "no log");
    sp_cc_text_finish(&log);
}

enum sp_cc_status try_program(const char *source, const char *const *options, char **log)
{
    struct program program = {0};
    struct sp_cc_text text = {0};
    enum sp_cc_status status = build(&program, source, options, &text);
    program_finish(&program);
    *log = text.bytes ? text.bytes : sp_cc_copy("");
    return status;
}

void program_finish(struct program *program)
{
    sp_cc_text_finish(&program->ir);
    sp_cc_program_info_finish(&program->info);
}

/* A file of its own each time: dlopen takes equal names for the same object. */
static void *load(const void *bytes, size_t size)
{
    struct sp_cc_folder folder;
    struct sp_cc_text path = {0};
    assert_int_equal(sp_cc_folder_create(&folder), 0);
    sp_cc_text_format(&path, "%s/kernels.so", folder.path);
    assert_int_equal(sp_cc_write_file(path.bytes, bytes, size), 0);
    void *handle = dlopen(path.bytes, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    sp_cc_folder_destroy(&folder);
    sp_cc_text_finish(&path);
    return handle;
}

void object_init(struct object *object, const struct program *program, const uint64_t local[3],
                 const char *const *options)
{
    struct sp_cc_code code = {.ir = {program->ir.bytes, program->ir.size}};
    struct sp_cc_text bytes = {0}, log = {0};
    for (uint32_t i = 0; i < program->info.num_kernels; i++)
        sp_cc_strings_add(&code.kernels, program->info.kernels[i].name);
    for (; options && *options; options++)
        sp_cc_strings_add(&code.options, *options);
    if (local)
        memcpy(code.local_size, local, sizeof(code.local_size));
    object->codes = sp_cc_allocate(program->info.num_kernels * sizeof(*object->codes));
    if (sp_cc_code(&code, &bytes, object->codes, &log) != SP_CC_OK)
        fail_msg("%s", log.bytes ? log.bytes : "no log");
    object->handle = load(bytes.bytes, bytes.size);
    sp_cc_text_finish(&bytes);
    sp_cc_text_finish(&log);
    sp_cc_strings_finish(&code.kernels);
    sp_cc_strings_finish(&code.options);
}

void object_finish(struct object *object)
{
    free(object->codes);
    dlclose(object->handle);
    *object = (struct object){0};
}

/* oracle_NAME(args): loads the arguments and calls the kernel for one work-item. */
static void add_thunk(LLVMModuleRef module, LLVMValueRef kernel, const struct sp_kernel_info *info)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), &pointer, 1, false);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    struct sp_cc_text name = {0};
    sp_cc_text_format(&name, "oracle_%s", info->name);
    LLVMValueRef thunk = LLVMAddFunction(module, name.bytes, type);
    LLVMValueRef *values = sp_cc_allocate(info->num_args * sizeof(LLVMValueRef));
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(context, thunk, ""));
    for (uint32_t i = 0; i < info->num_args; i++) {
        LLVMValueRef offset =
            LLVMConstInt(LLVMInt64TypeInContext(context), info->args[i].offset, false);
        LLVMValueRef at = LLVMBuildGEP2(b, LLVMInt8TypeInContext(context), LLVMGetParam(thunk, 0),
                                        &offset, 1, "");
        unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
        LLVMAttributeRef attribute = LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval);
        values[i] = attribute ? at : LLVMBuildLoad2(b, LLVMTypeOf(LLVMGetParam(kernel, i)), at, "");
    }
    LLVMValueRef call =
        LLVMBuildCall2(b, LLVMGlobalGetValueType(kernel), kernel, values, info->num_args, "");
    for (uint32_t i = 0; i < info->num_args; i++) {
        unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
        LLVMAttributeRef attribute = LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval);
        if (attribute)
            LLVMAddCallSiteAttribute(call, i + 1, attribute);
    }
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    free(values);
    sp_cc_text_finish(&name);
}

void oracle_init(struct object *object, const struct program *program)
{
    struct sp_cc_text log = {0}, bytes = {0};
    struct sp_cc_folder folder;
    struct sp_cc_strings words = {0};
    char *message = NULL;
    LLVMContextRef context = sp_cc_context_create(&log);
    LLVMTargetMachineRef machine = sp_cc_target_machine(false);
    LLVMModuleRef module =
        sp_cc_module_read(context, (struct sp_cc_blob){program->ir.bytes, program->ir.size}, &log);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMSetTarget(module, triple);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetData(layout);
    for (uint32_t i = 0; i < program->info.num_kernels; i++)
        add_thunk(module, LLVMGetNamedFunction(module, program->info.kernels[i].name),
                  &program->info.kernels[i]);
    for (LLVMValueRef v = LLVMGetFirstGlobal(module); v; v = LLVMGetNextGlobal(v))
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(v)) == SP_SPACE_LOCAL)
            LLVMSetInitializer(v, LLVMConstNull(LLVMGlobalGetValueType(v)));
    assert_int_equal(sp_cc_folder_create(&folder), 0);
    sp_cc_strings_add(&words, "-shared");
    sp_cc_strings_format(&words, "%s/oracle.o", folder.path);
    if (LLVMTargetMachineEmitToFile(machine, module, words.items[1], LLVMObjectFile, &message))
        fail_msg("%s", message);
    sp_cc_strings_add(&words, "-o");
    sp_cc_strings_add(&words, "-");
    assert_int_equal(
        sp_cc_run_tool(&(struct sp_cc_tool){.name = SP_TEST_LLD}, &words, NULL, 0, &bytes, &log),
        0);
    object->handle = load(bytes.bytes, bytes.size);
    object->codes = NULL;
    sp_cc_folder_destroy(&folder);
    sp_cc_strings_finish(&words);
    sp_cc_text_finish(&bytes);
    sp_cc_text_finish(&log);
    LLVMDisposeModule(module);
    LLVMDisposeTargetMachine(machine);
    LLVMContextDispose(context);
}

/* Where the fibers of one work-group are, and who runs. */
static struct {
    struct range range;
    uint64_t group[3], actual[3];
    uint64_t id[3];
    ucontext_t scheduler, items[MAX_ITEMS];
    char *stacks;
    unsigned running;
    int ended[MAX_ITEMS];
    void (*function)(const void *);
    const void *args;
    uint64_t group_scratch[MAX_ITEMS * 16];
} now;

#define EXPORTED __attribute__((visibility("default")))
#define DIMENSIONED(name, expression)                                                              \
    EXPORTED uint64_t name##_0(void);                                                              \
    EXPORTED uint64_t name##_1(void);                                                              \
    EXPORTED uint64_t name##_2(void);                                                              \
    uint64_t name##_0(void)                                                                        \
    {                                                                                              \
        const int d = 0;                                                                           \
        return expression;                                                                         \
    }                                                                                              \
    uint64_t name##_1(void)                                                                        \
    {                                                                                              \
        const int d = 1;                                                                           \
        return expression;                                                                         \
    }                                                                                              \
    uint64_t name##_2(void)                                                                        \
    {                                                                                              \
        const int d = 2;                                                                           \
        return expression;                                                                         \
    }
DIMENSIONED(__sp_local_id, now.id[d])
DIMENSIONED(__sp_group_id, now.group[d])
DIMENSIONED(__sp_local_size, now.actual[d])
DIMENSIONED(__sp_enqueued_local_size, now.range.local[d])
DIMENSIONED(__sp_global_size, now.range.global[d])
DIMENSIONED(__sp_global_offset, now.range.offset[d])
DIMENSIONED(__sp_num_groups, (now.range.global[d] + now.range.local[d] - 1) / now.range.local[d])

EXPORTED uint32_t __sp_work_dim(void);
uint32_t __sp_work_dim(void)
{
    return now.range.dimensions;
}

EXPORTED void *__sp_group_scratch(void);
void *__sp_group_scratch(void)
{
    return now.group_scratch;
}

EXPORTED void __sp_barrier(void);
void __sp_barrier(void)
{
    swapcontext(&now.items[now.running], &now.scheduler);
}

static void run_item(void)
{
    now.function(now.args);
    now.ended[now.running] = 1;
}

static void start_item(unsigned i)
{
    getcontext(&now.items[i]);
    now.items[i].uc_stack.ss_sp = now.stacks + (size_t)i * STACK_BYTES;
    now.items[i].uc_stack.ss_size = STACK_BYTES;
    now.items[i].uc_link = &now.scheduler;
    makecontext(&now.items[i], run_item, 0);
}

/* Work-items run backwards, so that code that leans on the order of samepage-cc's loops shows. */
static void run_oracle_group(void)
{
    unsigned items = (unsigned)(now.actual[0] * now.actual[1] * now.actual[2]);
    memset(now.ended, 0, sizeof(now.ended));
    for (unsigned i = 0; i < items; i++)
        start_item(i);
    for (bool left = true; left;) {
        left = false;
        for (unsigned i = items; i-- > 0;) {
            if (now.ended[i])
                continue;
            now.running = i;
            now.id[0] = i % now.actual[0];
            now.id[1] = i / now.actual[0] % now.actual[1];
            now.id[2] = i / now.actual[0] / now.actual[1];
            swapcontext(&now.scheduler, &now.items[i]);
            left |= !now.ended[i];
        }
    }
}

static uint64_t minimum(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t groups_of(const struct range *range, int d)
{
    return (range->global[d] + range->local[d] - 1) / range->local[d];
}

void run_oracle(const struct object *object, const struct program *program, const char *kernel,
                const struct range *range, const void *args)
{
    const struct sp_kernel_info *info = sp_program_info_find(&program->info, kernel);
    struct sp_cc_text name = {0};
    char *local = sp_cc_allocate(LOCAL_BYTES);
    unsigned char *block = sp_cc_allocate(info->args_bytes + 1);
    uint64_t used = 0;
    memcpy(block, args, info->args_bytes);
    for (uint32_t i = 0; i < info->num_args; i++) {
        if (info->args[i].kind != SP_ARG_LOCAL)
            continue;
        uint64_t bytes;
        memcpy(&bytes, block + info->args[i].offset, 8);
        char *place = local + used;
        memcpy(block + info->args[i].offset, &place, 8);
        used = sp_ir_align_up(used + bytes, SP_CPU_SCRATCH_ALIGN);
    }
    sp_cc_text_format(&name, "oracle_%s", kernel);
    now.range = *range;
    now.args = block;
    now.function = (void (*)(const void *))dlsym(object->handle, name.bytes);
    assert_non_null(now.function);
    if (!now.stacks) /* kept: touched pages are the oracle's main cost */
        now.stacks = sp_cc_allocate((size_t)MAX_ITEMS * STACK_BYTES);
    for (uint64_t z = 0; z < groups_of(range, 2); z++)
        for (uint64_t y = 0; y < groups_of(range, 1); y++)
            for (uint64_t x = 0; x < groups_of(range, 0); x++) {
                uint64_t group[3] = {x, y, z};
                memcpy(now.group, group, sizeof(group));
                for (int d = 0; d < 3; d++)
                    now.actual[d] =
                        minimum(range->local[d], range->global[d] - group[d] * range->local[d]);
                run_oracle_group();
            }
    free(local);
    free(block);
    sp_cc_text_finish(&name);
}

/* Prints a record plainly: each value as number, text or address, blanks between. */
static int32_t print(const struct sp_cpu_launch *launch, const char *format, const void *record,
                     uint64_t bytes)
{
    const unsigned char *at = record, *end = at + bytes;
    (void)launch;
    sp_cc_text_format(&printed, "[%s]", format);
    while (at < end) {
        struct sp_print_argument header;
        memcpy(&header, at, sizeof(header));
        at += sizeof(header);
        for (unsigned lane = 0; lane < header.lanes; lane++) {
            const unsigned char *value = at + lane * header.lane_bytes;
            int64_t integer = 0;
            double real = 0;
            memcpy(&integer, value, header.lane_bytes);
            if (header.kind == SP_PRINT_FLOAT && header.lane_bytes == 8)
                memcpy(&real, value, 8);
            if (header.kind == SP_PRINT_FLOAT && header.lane_bytes == 4) {
                float single;
                memcpy(&single, value, 4);
                real = (double)single;
            }
            if (header.kind == SP_PRINT_FLOAT)
                sp_cc_text_format(&printed, " %g", real);
            else if (header.kind == SP_PRINT_INTEGER)
                sp_cc_text_format(&printed, " %lld", (long long)integer);
            else
                sp_cc_text_format(&printed, " '%s'", (const char *)integer);
        }
        at += sp_ir_align_up((uint64_t)header.lanes * header.lane_bytes, 8);
    }
    return 0;
}

static uint32_t index_of(const struct program *program, const struct sp_kernel_info *info)
{
    return (uint32_t)(info - program->info.kernels);
}

void run_object(const struct object *object, const struct program *program, const char *kernel,
                const struct range *range, const void *args, unsigned char *globals)
{
    const struct sp_kernel_info *info = sp_program_info_find(&program->info, kernel);
    const struct sp_kernel_code *code = &object->codes[index_of(program, info)];
    struct sp_cpu_launch launch = {.work_dim = range->dimensions, .print = print};
    struct sp_cc_text name = {0};
    unsigned char *block = sp_cc_allocate(info->args_bytes + 1);
    uint64_t used = sp_ir_align_up(info->local_static_bytes, SP_CPU_SCRATCH_ALIGN), items = 1;
    memcpy(block, args, info->args_bytes);
    for (uint32_t i = 0; i < info->num_args; i++) {
        if (info->args[i].kind != SP_ARG_LOCAL)
            continue;
        uint64_t bytes;
        memcpy(&bytes, block + info->args[i].offset, 8);
        memcpy(block + info->args[i].offset, &used, 8);
        used = sp_ir_align_up(used + bytes, SP_CPU_SCRATCH_ALIGN);
    }
    for (int d = 0; d < 3; d++) {
        launch.global_size[d] = range->global[d];
        launch.global_offset[d] = range->offset[d];
        launch.local_size[d] = range->local[d];
        launch.num_groups[d] = groups_of(range, d);
        items *= minimum(range->local[d], range->global[d]);
    }
    launch.args = block;
    launch.globals = globals;
    launch.local_bytes = used;
    uint64_t scratch_bytes = used + code->context_fixed_bytes +
                             code->context_item_bytes * sp_ir_align_up(items, SP_CPU_CONTEXT_ROUND);
    unsigned char *scratch = NULL;
    assert_int_equal(
        posix_memalign((void **)&scratch, SP_CPU_SCRATCH_ALIGN, scratch_bytes + GUARD_BYTES), 0);
    memset(scratch, GUARD_BYTE, scratch_bytes + GUARD_BYTES);
    sp_cc_text_format(&name, SP_CPU_KERNEL_SYMBOL_PREFIX "%s", kernel);
    sp_cpu_kernel_fn *function = (sp_cpu_kernel_fn *)dlsym(object->handle, name.bytes);
    assert_non_null(function);
    for (uint64_t z = 0; z < launch.num_groups[2]; z++)
        for (uint64_t y = 0; y < launch.num_groups[1]; y++)
            for (uint64_t x = 0; x < launch.num_groups[0]; x++)
                function(&launch, x, y, z, scratch);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(scratch[scratch_bytes + i], GUARD_BYTE);
    free(scratch);
    free(block);
    sp_cc_text_finish(&name);
}
