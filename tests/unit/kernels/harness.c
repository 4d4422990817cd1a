/* See harness.h. */
#include "harness.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct harness {
    LLVMContextRef context;
    LLVMExecutionEngineRef engine; /* owns the module */
};

#define LIBM_PREFIX "__sp_libm_"
#define TARGET_PREFIX "__sp_target_"
#define GPU_PREFIX "llvm.nvvm."

/* The test is of correct rounding, which this function gives up where it need not be
 * (docs/nvptx.md). */
#define NOT_ROUNDED TARGET_PREFIX "sqrtf"

static _Noreturn void fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\n", what, detail ? detail : "");
    exit(1);
}

/* Stand-ins for what samepage-cc replaces. */

static _Thread_local struct harness_work_item current;
static pthread_barrier_t group_barrier;
static _Alignas(128) unsigned char group_scratch[8 * 1024];
const void *harness_private;

void harness_set_work_item(const struct harness_work_item *item)
{
    current = *item;
}

void *harness_group_scratch(void)
{
    return group_scratch;
}

#define DIMENSIONAL(name)                                                                          \
    static size_t name##_0(void)                                                                   \
    {                                                                                              \
        return current.name[0];                                                                    \
    }                                                                                              \
    static size_t name##_1(void)                                                                   \
    {                                                                                              \
        return current.name[1];                                                                    \
    }                                                                                              \
    static size_t name##_2(void)                                                                   \
    {                                                                                              \
        return current.name[2];                                                                    \
    }
DIMENSIONAL(local_id)
DIMENSIONAL(group_id)
DIMENSIONAL(local_size)
DIMENSIONAL(enqueued_local_size)
DIMENSIONAL(global_size)
DIMENSIONAL(global_offset)
DIMENSIONAL(num_groups)

static uint32_t work_dim(void)
{
    return current.work_dim;
}

static void barrier(void)
{
    pthread_barrier_wait(&group_barrier);
}

static int is_local(const void *pointer)
{
    const unsigned char *byte = pointer;
    return byte >= group_scratch && byte < group_scratch + sizeof(group_scratch);
}

static int is_private(const void *pointer)
{
    return pointer == harness_private;
}

/* Instructions of a GPU. Those whose errors OpenCL limits are computed exactly, then moved by
 * `ulps` up or down, which the operand decides: with the rounding that is what NVIDIA gives as the
 * largest error ("CUDA C++ Programming Guide", mathematical functions: exp2f 2 ulp, rsqrtf 2, and 1
 * for the reciprocal). ftz: subnormal numbers are zero. */
static float off_by(double exact, double ulps, float operand)
{
    uint32_t bits;
    memcpy(&bits, &operand, sizeof(bits));
    float rounded = fabsf((float)exact);
    if (isnan(exact) || rounded == 0 || isinf(rounded))
        return (float)exact;
    double ulp = (double)rounded - (double)nextafterf(rounded, 0);
    return (float)(exact + ((bits * 0x9E3779B9u) >> 31 ? ulps : -ulps) * ulp);
}

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float gpu_ex2(float x)
{
    return flushed(off_by(exp2((double)flushed(x)), 1.5, x));
}

static float gpu_rcp(float x)
{
    return flushed(off_by(1 / (double)flushed(x), 0.5, x));
}

static float gpu_rsqrt(float x)
{
    return off_by(1 / sqrt((double)x), 1.5, x);
}

static float gpu_rsqrt_flushed(float x)
{
    return gpu_rsqrt(flushed(x));
}

static float gpu_sqrt(float x)
{
    return off_by(sqrt((double)x), 0.5, x);
}

static float gpu_lg2(float x)
{
    return (float)log2((double)flushed(x));
}

static float gpu_sin(float x)
{
    return (float)sin((double)x);
}

static float gpu_cos(float x)
{
    return (float)cos((double)x);
}

static float gpu_div(float x, float y)
{
    return flushed(flushed(x) / flushed(y));
}

/* Conversions saturate, and take NaN for 0. */
#define CONVERSION(name, from, to, least, most)                                                    \
    static to name(from x)                                                                         \
    {                                                                                              \
        if (isnan(x))                                                                              \
            return 0;                                                                              \
        return x <= (from)least ? least : x >= (from)most ? most : (to)x;                          \
    }
CONVERSION(gpu_f2i, float, int32_t, INT32_MIN, INT32_MAX)
CONVERSION(gpu_f2ui, float, uint32_t, 0, UINT32_MAX)
CONVERSION(gpu_f2ll, float, int64_t, INT64_MIN, INT64_MAX)
CONVERSION(gpu_f2ull, float, uint64_t, 0, UINT64_MAX)
CONVERSION(gpu_d2i, double, int32_t, INT32_MIN, INT32_MAX)
CONVERSION(gpu_d2ui, double, uint32_t, 0, UINT32_MAX)
CONVERSION(gpu_d2ll, double, int64_t, INT64_MIN, INT64_MAX)
CONVERSION(gpu_d2ull, double, uint64_t, 0, UINT64_MAX)

static const struct {
    const char *name; /* after GPU_PREFIX */
    void *address;
} instructions[] = {
    {"ex2.approx.ftz.f", (void *)gpu_ex2}, {"rcp.approx.ftz.f", (void *)gpu_rcp},
    {"rsqrt.approx.f", (void *)gpu_rsqrt}, {"rsqrt.approx.ftz.f", (void *)gpu_rsqrt_flushed},
    {"sqrt.approx.f", (void *)gpu_sqrt},   {"sqrt.approx.ftz.f", (void *)gpu_sqrt},
    {"lg2.approx.ftz.f", (void *)gpu_lg2}, {"sin.approx.ftz.f", (void *)gpu_sin},
    {"cos.approx.ftz.f", (void *)gpu_cos}, {"div.approx.ftz.f", (void *)gpu_div},
    {"f2i.rz", (void *)gpu_f2i},           {"f2ui.rz", (void *)gpu_f2ui},
    {"f2ll.rz", (void *)gpu_f2ll},         {"f2ull.rz", (void *)gpu_f2ull},
    {"d2i.rz", (void *)gpu_d2i},           {"d2ui.rz", (void *)gpu_d2ui},
    {"d2ll.rz", (void *)gpu_d2ll},         {"d2ull.rz", (void *)gpu_d2ull},
};

#define ENTRIES(name)                                                                              \
    {"__sp_" #name "_0", (void *)name##_0}, {"__sp_" #name "_1", (void *)name##_1},                \
    {                                                                                              \
        "__sp_" #name "_2", (void *)name##_2                                                       \
    }
static const struct {
    const char *name;
    void *address;
} stand_ins[] = {
    ENTRIES(local_id),
    ENTRIES(group_id),
    ENTRIES(local_size),
    ENTRIES(enqueued_local_size),
    ENTRIES(global_size),
    ENTRIES(global_offset),
    ENTRIES(num_groups),
    {"__sp_work_dim", (void *)work_dim},
    {"__sp_barrier", (void *)barrier},
    {"__sp_group_scratch", (void *)harness_group_scratch},
    {"__sp_is_local", (void *)is_local},
    {"__sp_is_private", (void *)is_private},
};

struct work_item_thread {
    struct harness_work_item item;
    void (*body)(void *);
    void *argument;
};

static void *run_work_item(void *p)
{
    struct work_item_thread *thread = p;
    current = thread->item;
    thread->body(thread->argument);
    return NULL;
}

void harness_run_group(const struct harness_work_item *item, void (*body)(void *), void *argument)
{
    size_t count = item->local_size[0] * item->local_size[1] * item->local_size[2];
    pthread_t *threads = calloc(count, sizeof(*threads));
    struct work_item_thread *arguments = calloc(count, sizeof(*arguments));
    pthread_barrier_init(&group_barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = (struct work_item_thread){*item, body, argument};
        arguments[i].item.local_id[0] = i % item->local_size[0];
        arguments[i].item.local_id[1] = i / item->local_size[0] % item->local_size[1];
        arguments[i].item.local_id[2] = i / item->local_size[0] / item->local_size[1];
        if (pthread_create(&threads[i], NULL, run_work_item, &arguments[i]))
            fail("pthread_create", NULL);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&group_barrier);
    free(arguments);
    free(threads);
}

/* From bitcode to code. */

/* lazily: function bodies are read when something links them */
static LLVMModuleRef parse(LLVMContextRef context, const char *path, bool lazily)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef module;
    char *message = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message))
        fail(path, message);
    if (lazily ? LLVMGetBitcodeModuleInContext2(context, buffer, &module) /* owns the buffer */
               : LLVMParseBitcodeInContext2(context, buffer, &module))
        fail(path, "not bitcode");
    if (!lazily)
        LLVMDisposeMemoryBuffer(buffer);
    return module;
}

/* Every function and call in the C convention, and libm under its own names. */
static void adapt_to_host(LLVMModuleRef module)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        const char *name = LLVMGetValueName(f);
        LLVMSetFunctionCallConv(f, LLVMCCallConv);
        if (!strncmp(name, LIBM_PREFIX, strlen(LIBM_PREFIX))) {
            char *plain = strdup(name + strlen(LIBM_PREFIX));
            LLVMSetValueName2(f, plain, strlen(plain));
            free(plain);
        }
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                if (LLVMIsACallInst(i))
                    LLVMSetInstructionCallConv(i, LLVMCCallConv);
    }
}

/* A declaration under the function's name, used where the function was. */
static LLVMValueRef put_declaration(LLVMModuleRef module, LLVMValueRef function, const char *name)
{
    LLVMSetValueName2(function, "replaced", 8);
    LLVMValueRef other = LLVMAddFunction(module, name, LLVMGlobalGetValueType(function));
    LLVMReplaceAllUsesWith(function, other);
    return other;
}

/* What is still open, or may be replaced, comes from a GPU's library. */
static void link_target(LLVMContextRef context, LLVMModuleRef module, const char *path)
{
    LLVMModuleRef library = parse(context, path, true);
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = next) {
        next = LLVMGetNextFunction(f);
        char *name = strdup(LLVMGetValueName(f));
        LLVMValueRef own = LLVMGetNamedFunction(library, name);
        if (!strncmp(name, TARGET_PREFIX, strlen(TARGET_PREFIX)) && !LLVMIsDeclaration(f) && own &&
            !LLVMIsDeclaration(own) && strcmp(name, NOT_ROUNDED)) {
            put_declaration(module, f, name);
            LLVMSetLinkage(f, LLVMInternalLinkage);
        }
        free(name);
    }
    LLVMSetTarget(library, LLVMGetTarget(module));
    LLVMSetDataLayout(library, LLVMGetDataLayoutStr(module));
    if (LLVMLinkModules2(module, library))
        fail(path, "linking failed");
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                         "target-cpu", 10);
}

static void *find_instruction(const char *name)
{
    if (strncmp(name, GPU_PREFIX, strlen(GPU_PREFIX)))
        return NULL;
    for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++)
        if (!strcmp(name + strlen(GPU_PREFIX), instructions[i].name))
            return instructions[i].address;
    fail("no stand-in for", name);
}

struct harness *harness_create(const char *bitcode_path, const char *target_library)
{
    struct {
        LLVMValueRef function;
        void *address;
    } mapped[sizeof(instructions) / sizeof(instructions[0])];
    size_t num_mapped = 0;
    LLVMLinkInMCJIT();
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    struct harness *harness = calloc(1, sizeof(*harness));
    harness->context = LLVMContextCreate();
    LLVMModuleRef module = parse(harness->context, bitcode_path, false);
    if (LLVMLinkModules2(module, parse(harness->context, SP_TEST_CPU_BC, true)))
        fail(bitcode_path, "linking failed");
    if (target_library)
        link_target(harness->context, module, target_library);

    char *triple = LLVMGetDefaultTargetTriple();
    char *cpu = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures();
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message))
        fail(triple, message);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMSetTarget(module, triple);
    adapt_to_host(module);
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = next) {
        next = LLVMGetNextFunction(f);
        void *address = LLVMIsDeclaration(f) ? find_instruction(LLVMGetValueName(f)) : NULL;
        if (!address)
            continue;
        mapped[num_mapped].function = put_declaration(module, f, "gpu_instruction");
        mapped[num_mapped++].address = address;
        LLVMDeleteFunction(f);
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f))
            continue;
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                                LLVMCreateStringAttribute(harness->context, "target-features", 15,
                                                          features, (unsigned)strlen(features)));
        /* Code generation knows no calls that pass an event_t; samepage-cc inlines all. */
        LLVMTypeRef returned = LLVMGetReturnType(LLVMGlobalGetValueType(f));
        if (LLVMGetTypeKind(returned) == LLVMTargetExtTypeKind)
            LLVMAddAttributeAtIndex(
                f, LLVMAttributeFunctionIndex,
                LLVMCreateEnumAttribute(harness->context,
                                        LLVMGetEnumAttributeKindForName("alwaysinline", 12), 0));
    }
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        fail(bitcode_path, message);
    LLVMDisposeMessage(message);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, "default<O1>", machine, options);
    if (error)
        fail("passes", LLVMGetErrorMessage(error));
    LLVMDisposePassBuilderOptions(options);

    struct LLVMMCJITCompilerOptions jit;
    LLVMInitializeMCJITCompilerOptions(&jit, sizeof(jit));
    jit.OptLevel = 1;
    if (LLVMCreateMCJITCompilerForModule(&harness->engine, module, &jit, sizeof(jit), &message))
        fail("MCJIT", message);
    for (size_t i = 0; i < sizeof(stand_ins) / sizeof(stand_ins[0]); i++) {
        LLVMValueRef f = LLVMGetNamedFunction(module, stand_ins[i].name);
        if (f)
            LLVMAddGlobalMapping(harness->engine, f, stand_ins[i].address);
    }
    for (size_t i = 0; i < num_mapped; i++)
        LLVMAddGlobalMapping(harness->engine, mapped[i].function, mapped[i].address);
    LLVMDisposeTargetData(layout);
    LLVMDisposeTargetMachine(machine);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return harness;
}

void harness_destroy(struct harness *harness)
{
    if (!harness)
        return;
    LLVMDisposeExecutionEngine(harness->engine);
    LLVMContextDispose(harness->context);
    free(harness);
}

void *harness_function(struct harness *harness, const char *name)
{
    uint64_t address = LLVMGetFunctionAddress(harness->engine, name);
    if (!address)
        fail("no such function in the test", name);
    return (void *)(uintptr_t)address;
}

void *harness_functionf(struct harness *harness, const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    return harness_function(harness, name);
}

static void call(void *function, size_t num_arguments, const void *const a[], void *result,
                 uint64_t count)
{
    typedef void one(const void *, void *, uint64_t);
    typedef void two(const void *, const void *, void *, uint64_t);
    typedef void three(const void *, const void *, const void *, void *, uint64_t);
    switch (num_arguments) {
    case 1:
        ((one *)function)(a[0], result, count);
        break;
    case 2:
        ((two *)function)(a[0], a[1], result, count);
        break;
    default:
        ((three *)function)(a[0], a[1], a[2], result, count);
        break;
    }
}

static void make_nans_alike(void *array, size_t bytes, size_t count)
{
    float *f = array;
    double *d = array;
    for (size_t i = 0; i < count; i++) {
        if (bytes == sizeof(float))
            f[i] = isnan(f[i]) ? NAN : f[i];
        else
            d[i] = isnan(d[i]) ? (double)NAN : d[i];
    }
}

void harness_run_widths(struct harness *harness, const char *name, const char *type,
                        size_t num_arguments, const void *const arguments[], void *result,
                        size_t bytes, bool floating, size_t count)
{
    static const int widths[] = {2, 3, 4, 8, 16};
    unsigned char *vector = malloc(bytes * count);
    call(harness_functionf(harness, "%s_%s", name, type), num_arguments, arguments, result, count);
    if (floating)
        make_nans_alike(result, bytes, count);
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        call(harness_functionf(harness, "%s_%s%d", name, type, widths[w]), num_arguments, arguments,
             vector, count);
        if (floating)
            make_nans_alike(vector, bytes, count);
        for (size_t i = 0; i < count * bytes; i++) {
            if (vector[i] != ((unsigned char *)result)[i]) {
                fprintf(stderr, "%s on %s%d differs from the scalar form at element %zu\n", name,
                        type, widths[w], i / bytes);
                exit(1);
            }
        }
    }
    free(vector);
}

/* The generator splitmix64. */
uint64_t harness_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
