/* PTX: what kernels become for NVIDIA GPUs. */
#include "ptx.h"

#include "compiler/cc/code.h"
#include "compiler/cc/gpu/spaces.h"
#include "compiler/cc/ir.h"
#include "compiler/cc/link.h"
#include "compiler/cc/module.h"
#include "compiler/cc/target.h"
#include "compiler/cc/tools.h"
#include "compiler/gpu_abi.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SPIR_KERNEL_CALL_CONV 76u /* llvm::CallingConv::SPIR_KERNEL */

/* --- Corpora -------------------------------------------------------------------------------- */

static void takes_all_kernels_of(const char *path)
{
    char *source = read_text(path);
    struct program program;
    program_init(&program, source, version_3);
    char *ptx = ptx_of(&program, NULL, version_3);
    for (uint32_t i = 0; i < program.info.num_kernels; i++) {
        struct sp_cc_text entry = {0};
        sp_cc_text_format(&entry, ".visible .entry " SP_GPU_KERNEL_SYMBOL_PREFIX "%s(",
                          program.info.kernels[i].name);
        assert_has(ptx, entry.bytes);
        sp_cc_text_finish(&entry);
    }
    program_finish(&program);
    free(ptx);
    free(source);
}

static void takes_hard_kernels(void **state)
{
    (void)state;
    takes_all_kernels_of(SP_TEST_FOLDER "/corpus.cl");
}

static void takes_vectors(void **state)
{
    (void)state;
    takes_all_kernels_of(SP_TEST_FOLDER "/vectors.cl");
}

static void takes_the_benchmark(void **state)
{
    (void)state;
    char *source = read_text(SP_TEST_BENCH);
    char *ptx = compile(source);
    assert_has_not(ptx, ".local"); /* nothing on a stack */
    assert_has_not(ptx, "ld.f32"); /* nothing through generic addresses */
    assert_has_not(ptx, "ld.u32");
    assert_has_not(ptx, "st.f32");
    assert_has(ptx, "ld.global.v4.f32");
    assert_has(ptx, "ld.shared.v4.f32");
    assert_has(ptx, "rsqrt.approx.f32");
    assert_has(ptx, "ex2.approx");
    assert_has_not(ptx, "membar");
    assert_has_not(ptx, "fence");
    free(ptx);
    free(source);
}

/* A kernel that calls a function which returns something, and stores that. */
static void add_caller(LLVMModuleRef module, LLVMValueRef function)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef type = LLVMGlobalGetValueType(function), types[16];
    unsigned count = LLVMCountParams(function);
    struct sp_cc_text name = {0};
    LLVMValueRef values[16];
    assert_true(count < 16);
    LLVMGetParamTypes(type, types);
    types[count] = LLVMPointerTypeInContext(context, SP_SPACE_GLOBAL);
    sp_cc_text_format(&name, "k_%s", LLVMGetValueName(function));
    LLVMValueRef kernel =
        LLVMAddFunction(module, name.bytes,
                        LLVMFunctionType(LLVMVoidTypeInContext(context), types, count + 1, false));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, kernel, ""));
    for (unsigned i = 0; i < count; i++)
        values[i] = LLVMGetParam(kernel, i);
    LLVMValueRef call = LLVMBuildCall2(builder, type, function, values, count, "");
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(function));
    LLVMBuildStore(builder, call, LLVMGetParam(kernel, count));
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
    LLVMSetFunctionCallConv(kernel, SPIR_KERNEL_CALL_CONV);
    sp_cc_text_finish(&name);
}

/* Every `step`th function in a file of builtin calls becomes a kernel. */
static void takes_builtins(const char *name, unsigned step)
{
    unsigned seen = 0;
    struct sp_cc_text path = {0}, bytes = {0}, bitcode = {0}, log = {0};
    struct program program = {0};
    sp_cc_text_format(&path, SP_TEST_KERNELS "/%s_kernels.bc", name);
    assert_int_equal(sp_cc_read_file(path.bytes, &bytes), 0);
    setenv("SAMEPAGE_BUILTINS", SP_TEST_BUILTINS, 0);
    sp_cc_target_warm_up();
    LLVMContextRef context = sp_cc_context_create(&log);
    LLVMModuleRef module =
        sp_cc_module_read(context, (struct sp_cc_blob){bytes.bytes, bytes.size}, &log);
    assert_non_null(module);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (!sp_ir_is_definition(f) || LLVMGetLinkage(f) != LLVMExternalLinkage ||
            LLVMGetFunctionCallConv(f) == SPIR_KERNEL_CALL_CONV || seen++ % step)
            continue;
        if (LLVMGetTypeKind(LLVMGetReturnType(LLVMGlobalGetValueType(f))) == LLVMVoidTypeKind)
            LLVMSetFunctionCallConv(f, SPIR_KERNEL_CALL_CONV);
        else
            add_caller(module, f);
    }
    sp_cc_module_write(module, &bitcode);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    struct sp_cc_blob blob = {bitcode.bytes, bitcode.size};
    struct sp_cc_link link = {.inputs = &blob, .num_inputs = 1};
    if (sp_cc_link(&link, &program.ir, &program.info, &log) != SP_CC_OK)
        fail_msg("%.4000s", log.bytes ? log.bytes : "no log");
    print_message("%u kernels\n", program.info.num_kernels);
    assert_true(program.info.num_kernels >= seen / step);
    free(ptx_of(&program, NULL, NULL));
    program_finish(&program);
    sp_cc_text_finish(&path);
    sp_cc_text_finish(&bytes);
    sp_cc_text_finish(&bitcode);
    sp_cc_text_finish(&log);
}

static void takes_math(void **state)
{
    (void)state;
    takes_builtins("math", 5);
}

static void takes_integer(void **state)
{
    (void)state;
    takes_builtins("integer", 5);
}

static void takes_float(void **state)
{
    (void)state;
    takes_builtins("float", 1);
}

static void takes_convert(void **state)
{
    (void)state;
    takes_builtins("convert", 11);
}

static void takes_memory(void **state)
{
    (void)state;
    takes_builtins("memory", 1);
}

static void takes_group(void **state)
{
    (void)state;
    takes_builtins("group", 1);
}

/* --- The entry ------------------------------------------------------------------------------ */

static void reads_arguments_at_their_offsets(void **state)
{
    (void)state;
    static const char source[] =
        "struct s { char c; long l; int a[3]; };\n"
        "kernel void k(char c, global int *out, short3 v, local int *tmp, struct s s, double d,\n"
        "              long16 w, int index)\n"
        "{ out[0] = c + v.z + s.a[index] + (int)d + (int)w.sf + (int)s.l; out[1] = tmp[3]; }\n";
    struct program program;
    program_init(&program, source, version_3);
    char *ptx = ptx_of(&program, NULL, version_3);
    const struct sp_kernel_info *info = &program.info.kernels[0];
    struct sp_cc_text word = {0};
    sp_cc_text_format(&word, ".param .align 16 .b8 sp_kernel_k_param_0[%zu]",
                      (size_t)sp_gpu_launch_offset(info->args_bytes) +
                          sizeof(struct sp_gpu_launch));
    assert_has(ptx, word.bytes);
    sp_cc_text_finish(&word);
    /* out, tmp, s (in pieces of 16 bytes), d, the last element of w, and index. */
    const uint32_t offsets[] = {info->args[1].offset,       info->args[3].offset,
                                info->args[4].offset,       info->args[5].offset,
                                info->args[6].offset + 120, info->args[7].offset};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        sp_cc_text_format(&word, "+%u]", offsets[i]);
        assert_has(ptx, word.bytes);
        sp_cc_text_finish(&word);
    }
    assert_has(ptx, ".extern .shared .align 128 .b8 __sp_local_memory[]");
    assert_has_not(ptx, "ld.param.u8"); /* no copy of the whole block, byte by byte */
    program_finish(&program);
    free(ptx);
}

/* As much as a block may be, and one word more; ptxas agrees. */
static void takes_so_many_arguments(void **state)
{
    (void)state;
    for (int extra = 0; extra <= 8; extra += 8) {
        struct program program;
        struct sp_cc_text source = {0}, ptx = {0}, log = {0};
        sp_cc_text_format(&source,
                          "struct s { ulong words[%zu]; };\n"
                          "kernel void few(global ulong *out) { *out = 1; }\n"
                          "kernel void many(global ulong *out, struct s s)\n"
                          "{ *out = s.words[get_global_id(0)]; }\n",
                          (SP_GPU_MAX_ARGS_BYTES - 8 + (size_t)extra) / 8);
        program_init(&program, source.bytes, version_3);
        if (extra) {
            assert_int_equal(try_ptx(&program, TARGET, NULL, NULL, &ptx, &log), SP_CC_SOURCE_ERROR);
            assert_string_equal(log.bytes, "error: kernel 'many': its arguments take 4224 bytes, "
                                           "and this device takes 4216 at most; give it a pointer "
                                           "to the rest\n");
        } else {
            char *text = ptx_of(&program, NULL, version_3);
            assert_has(text, ".param .align 16 .b8 sp_kernel_many_param_0[4352]");
            free(text);
        }
        program_finish(&program);
        sp_cc_text_finish(&source);
        sp_cc_text_finish(&ptx);
        sp_cc_text_finish(&log);
    }
}

static void knows_required_sizes(void **state)
{
    (void)state;
    char *ptx =
        compile("kernel __attribute__((reqd_work_group_size(8, 4, 2)))\n"
                "void k(global int *p) { p[get_local_size(0) + get_local_size(1)] = 1; }\n");
    assert_has(ptx, ".reqntid 8, 4, 2");
    free(ptx);
    ptx = compile("kernel void k(global int *p) { p[get_local_size(0)] = 1; }\n");
    assert_has(ptx, ".maxntid 1024");
    free(ptx);
    ptx = compile_with("kernel void k(global int *p) { p[get_local_size(0)] = 1; }\n",
                       (const uint64_t[]){64, 1, 1}, version_3);
    assert_has(ptx, ".reqntid 64, 1, 1");
    assert_has_not(ptx, "bra"); /* no edges to look out for */
    free(ptx);
}

static void ends_work_items_outside(void **state)
{
    (void)state;
    static const char source[] = "kernel void k(global int *p) { p[get_global_id(0)] = 1; }\n";
    static const char *const uniform[] = {"-cl-std=CL3.0", "-cl-uniform-work-group-size", NULL};
    char *ptx = compile(source);
    assert_has(ptx, "%ctaid.z");
    free(ptx);
    ptx = compile_with(source, NULL, uniform);
    assert_has_not(ptx, "%ctaid.z");
    assert_int_equal(count(ptx, "bra"), 0);
    free(ptx);
}

static void writes_initial_values(void **state)
{
    (void)state;
    char *ptx =
        compile("global int counter = 7; global int *where = &counter;\n"
                "constant int table[4] = {1, 2, 3, 4};\n"
                "kernel void k(global int *p, int i) { p[0] = counter++ + table[i] + *where; }\n");
    assert_has(ptx, ".visible .entry " SP_GPU_GLOBALS_INIT_SYMBOL "(");
    assert_has(ptx, "ld.global");
    assert_has(ptx, ".global .align 4 .b8 table[16]");
    assert_has_not(ptx, "counter"); /* it is the application's memory */
    free(ptx);
    ptx = compile("global int counter; kernel void k(global int *p) { p[0] = counter++; }\n");
    assert_has_not(ptx, SP_GPU_GLOBALS_INIT_SYMBOL);
    free(ptx);
}

static void prints(void **state)
{
    (void)state;
    char *ptx = compile("kernel void k(global int *p, float f)\n"
                        "{ p[0] = printf(\"%d %f %s\\n\", p[1], f, \"three\"); }\n");
    assert_has(ptx, "atom.relaxed.gpu.global.add.u64");
    assert_has(ptx, "37, 100, 32, 37, 102"); /* the format, in global memory */
    free(ptx);
}

/* --- Local memory and barriers -------------------------------------------------------------- */

static void places_local_variables(void **state)
{
    (void)state;
    char *ptx = compile("kernel void k(global int *p) { local int t[64]; t[p[0]] = p[1];\n"
                        "barrier(CLK_LOCAL_MEM_FENCE); p[2] = t[p[3]]; }\n");
    assert_has(ptx, ".shared .align 16 .b8");
    assert_has_not(ptx, "__sp_local_memory");
    assert_has(ptx, "st.shared");
    assert_has(ptx, "ld.shared");
    free(ptx);
    ptx = compile("kernel void k(global int *p) { local int t[16384]; t[p[0]] = p[1];\n"
                  "barrier(CLK_LOCAL_MEM_FENCE); p[2] = t[p[3]]; }\n");
    assert_has(ptx, ".extern .shared .align 128 .b8 __sp_local_memory[]");
    assert_int_equal(count(ptx, "\n.shared") + count(ptx, "// k") + count(ptx, "\t.shared"), 0);
    free(ptx);
    assert_int_equal(sp_gpu_local_front(48 << 10), 0);
    assert_int_equal(sp_gpu_local_front((48 << 10) + 1), (48 << 10) + 128);
}

static void keeps_barriers(void **state)
{
    (void)state;
    char *ptx = compile("kernel void k(global int *p, local int *t, int n) {\n"
                        "  int l = get_local_id(0); if (n > 3) t[l] = p[l]; else t[l] = p[l + 1];\n"
                        "  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n"
                        "  p[l] = t[l ^ 1]; }\n");
    assert_int_equal(count(ptx, "bar.sync"), 1);
    assert_has_not(ptx, "membar");
    assert_has_not(ptx, "fence");
    free(ptx);
    ptx =
        compile("kernel void k(global int *p) { p[0] = 1;\n"
                "work_group_barrier(CLK_GLOBAL_MEM_FENCE, memory_scope_device); p[1] = p[2]; }\n");
    assert_int_equal(count(ptx, "fence.acq_rel.gpu"), 2);
    assert_int_equal(count(ptx, "bar.sync"), 1);
    free(ptx);
    ptx = compile(
        "kernel void k(global int *p) { p[get_local_id(0)] = work_group_reduce_add(p[0]); }\n");
    assert_has(ptx, "bar.sync");
    assert_has(ptx, ".shared .align 128 .b8 __sp_scratch[8192]");
    free(ptx);
}

static void shares_copies(void **state)
{
    (void)state;
    char *ptx =
        compile("kernel void k(global const float4 *in, global float *out, local float4 *tmp) {\n"
                "event_t e = async_work_group_copy(tmp, in, 256, 0); wait_group_events(1, &e);\n"
                "out[get_local_id(0)] = tmp[255 - get_local_id(0)].x; }\n");
    assert_has(ptx, "ld.global.v4.u32");
    assert_has(ptx, "st.shared.v4.u32");
    assert_has_not(ptx, "ld.global.u8");
    free(ptx);
}

/* --- Atomics -------------------------------------------------------------------------------- */

static const struct {
    const char *statement;
    const char *expected[3];
    const char *without;
} atomics[] = {
    {"atomic_add(g, 3);", {"atom.relaxed.gpu.global.add.u32"}, "fence"},
    {"atomic_inc(l);", {"atom.relaxed.cta.shared.add.u32"}, "fence"},
    {"atomic_sub(g, *h);", {"atom.relaxed.gpu.global.add.u32", "neg.s32"}, "fence"},
    {"*h = atomic_cmpxchg(g, 3, 4);", {"atom.relaxed.gpu.global.cas.b32"}, "fence"},
    {"*h = atomic_xchg(f, 3.0f) > 1;", {"atom.relaxed.gpu.global.exch.b32"}, "fence"},
    {"atomic_min(g, 3);", {"atom.relaxed.gpu.global.min.s32"}, "fence"},
    {"atomic_max(u, 3u);", {"atom.relaxed.gpu.global.max.u32"}, "fence"},
    {"atomic_fetch_add((global atomic_int *)g, 1);",
     {"fence.sc.gpu", "atom.acquire.gpu.global.add.u32"},
     "sys"},
    {"atomic_fetch_or_explicit((global atomic_int *)g, 1, memory_order_acq_rel,\n"
     "memory_scope_work_group);",
     {"atom.acq_rel.cta.global.or.b32"},
     "fence"},
    {"atomic_fetch_max_explicit((global atomic_ulong *)w, (ulong)1, memory_order_release,\n"
     "memory_scope_device);",
     {"atom.release.gpu.global.max.u64"},
     "fence"},
    {"*h = atomic_load_explicit((global atomic_int *)g, memory_order_acquire,\n"
     "memory_scope_all_svm_devices);",
     {"ld.acquire.sys.global.b32"},
     "fence"},
    {"*h = atomic_load((global atomic_int *)g);",
     {"fence.sc.gpu", "ld.acquire.gpu.global.b32"},
     "sys"},
    {"atomic_store_explicit((global atomic_long *)w, 7l, memory_order_release,\n"
     "memory_scope_work_group);",
     {"st.release.cta.global.b64"},
     "fence"},
    {"atomic_store_explicit((local atomic_int *)l, 7, memory_order_release,\n"
     "memory_scope_all_svm_devices);",
     {"st.release.cta.shared.b32"},
     "fence"},
    {"int e = 5; *h = atomic_compare_exchange_weak_explicit((global atomic_int *)g, &e, 6,\n"
     "memory_order_release, memory_order_acquire, memory_scope_device);",
     {"atom.acq_rel.gpu.global.cas.b32"},
     "fence"},
    {"atomic_int *x = *h ? (atomic_int *)g : (atomic_int *)l;\n"
     "atomic_fetch_add_explicit(x, 1, memory_order_relaxed, memory_scope_work_group);",
     {"atom.relaxed.cta.add.u32"},
     "fence"},
    {"*h = atomic_flag_test_and_set_explicit((global atomic_flag *)g, memory_order_acquire,\n"
     "memory_scope_work_group);",
     {"atom.acquire.cta.global.exch.b32"},
     "fence"},
    {"mem_fence(CLK_LOCAL_MEM_FENCE);", {"fence.acq_rel.cta"}, "gpu"},
    {"mem_fence(CLK_GLOBAL_MEM_FENCE);", {"fence.acq_rel.gpu"}, ".cta"},
    {"atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst,\n"
     "memory_scope_all_svm_devices);",
     {"fence.sc.sys"},
     "gpu"},
    {"atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release,\n"
     "memory_scope_work_group);",
     {"fence.acq_rel.cta"},
     "gpu"},
};

/* Those of all-devices scope: outside of the atomic part the hardware's, inside the unit's, after
 * the fence of a sequentially consistent one. */
static const struct {
    const char *statement;
    const char *native;
    unsigned operation;
    bool is_sequential;
} shared_atomics[] = {
    {"atomic_fetch_add_explicit((global atomic_int *)g, 1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.add.u32", SP_UNIT_ADD, false},
    {"atomic_fetch_sub_explicit((global atomic_ulong *)w, (ulong)1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.add.u64", SP_UNIT_ADD | SP_UNIT_WIDE, false},
    {"atomic_fetch_and_explicit((global atomic_uint *)u, 1u, memory_order_acquire, ALL);",
     "atom.acquire.sys.global.and.b32", SP_UNIT_AND, false},
    {"atomic_fetch_or_explicit((global atomic_long *)w, (long)1, memory_order_release, ALL);",
     "atom.release.sys.global.or.b64", SP_UNIT_OR | SP_UNIT_WIDE, false},
    {"atomic_fetch_xor_explicit((global atomic_int *)g, 1, memory_order_seq_cst, ALL);",
     "atom.acquire.sys.global.xor.b32", SP_UNIT_XOR, true},
    {"atomic_fetch_min_explicit((global atomic_int *)g, 1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.min.s32", SP_UNIT_MIN_SIGNED, false},
    {"atomic_fetch_max_explicit((global atomic_long *)w, (long)1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.max.s64", SP_UNIT_MAX_SIGNED | SP_UNIT_WIDE, false},
    {"atomic_fetch_min_explicit((global atomic_ulong *)w, (ulong)1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.min.u64", SP_UNIT_MIN_UNSIGNED | SP_UNIT_WIDE, false},
    {"atomic_fetch_max_explicit((global atomic_uint *)u, 1u, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.global.max.u32", SP_UNIT_MAX_UNSIGNED, false},
    {"*h = atomic_exchange_explicit((global atomic_int *)g, 7, memory_order_acq_rel, ALL);",
     "atom.acq_rel.sys.global.exch.b32", SP_UNIT_EXCHANGE, false},
    {"*f = atomic_exchange_explicit((global atomic_float *)f, 7.5f, memory_order_acq_rel, ALL);",
     "atom.acq_rel.sys.global.exch.b32", SP_UNIT_EXCHANGE, false},
    {"int e = 5; *h = atomic_compare_exchange_strong_explicit((global atomic_int *)g, &e, 6,\n"
     "memory_order_acq_rel, memory_order_relaxed, ALL);",
     "atom.acq_rel.sys.global.cas.b32", SP_UNIT_COMPARE_EXCHANGE, false},
    {"long e = 5; *h = atomic_compare_exchange_weak_explicit((global atomic_long *)w, &e, 6l,\n"
     "memory_order_seq_cst, memory_order_relaxed, ALL);",
     "atom.acquire.sys.global.cas.b64", SP_UNIT_COMPARE_EXCHANGE | SP_UNIT_WIDE, true},
    {"*h = atomic_flag_test_and_set_explicit((global atomic_flag *)g, memory_order_acquire, ALL);",
     "atom.acquire.sys.global.exch.b32", SP_UNIT_EXCHANGE, false},
    /* A scope that is not known. */
    {"atomic_fetch_add_explicit((global atomic_int *)g, 1, memory_order_relaxed, "
     "(memory_scope)*l);",
     "atom.relaxed.sys.global.add.u32", SP_UNIT_ADD, false},
    /* A pointer that is not known. */
    {"atomic_int *x = *h ? (atomic_int *)g : (atomic_int *)l;\n"
     "atomic_fetch_add_explicit(x, 1, memory_order_relaxed, ALL);",
     "atom.relaxed.sys.add.u32", SP_UNIT_ADD, false},
};

static char *compile_statement(const char *statement)
{
    struct sp_cc_text source = {0};
    sp_cc_text_format(&source,
                      "#define ALL memory_scope_all_svm_devices\n"
                      "kernel void k(global int *g, local int *l, global uint *u,\n"
                      "global float *f, global long *w, global int *h) { %s h[1] = 1; }\n",
                      statement);
    char *ptx = compile(source.bytes);
    sp_cc_text_finish(&source);
    return ptx;
}

static void asks_the_unit_for_shared_atomics(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shared_atomics) / sizeof(shared_atomics[0]); i++) {
        /* Another operation, so that there are two callers who differ. */
        bool is_xor = shared_atomics[i].operation == SP_UNIT_XOR;
        struct sp_cc_text statements = {0}, operation = {0};
        sp_cc_text_format(&statements,
                          "%s h[3] = atomic_fetch_%s_explicit((global atomic_int *)g,\n"
                          "h[2], memory_order_relaxed, ALL);",
                          shared_atomics[i].statement, is_xor ? "or" : "xor");
        char *ptx = compile_statement(statements.bytes);
        sp_cc_text_format(&operation, "[param1+0], %u;", shared_atomics[i].operation);
        char *unit = strstr(ptx, UNIT);
        print_message("%s\n", shared_atomics[i].statement);
        assert_non_null(unit);
        *unit = 0;
        assert_has(ptx, shared_atomics[i].native);
        assert_has(ptx, operation.bytes);
        assert_int_equal(count(ptx, "fence"), shared_atomics[i].is_sequential);
        assert_int_equal(count(ptx, "fence.sc.sys"), shared_atomics[i].is_sequential);
        assert_int_equal(count(ptx, "call.uni"), 2);
        sp_cc_text_finish(&operation);
        sp_cc_text_finish(&statements);
        free(ptx);
    }
}

/* One unit for all operations, and what holds its work-items together stays where it is. */
static void has_one_unit(void **state)
{
    (void)state;
    char *ptx = compile_statement(
        "atomic_fetch_add_explicit((global atomic_int *)g, 1, memory_order_relaxed, ALL);\n"
        "atomic_fetch_max_explicit((global atomic_long *)w, 3, memory_order_seq_cst, ALL);\n");
    assert_int_equal(count(ptx, UNIT), 1);
    assert_int_equal(count(ptx, "call.uni"), 2);
    const char *active = strstr(ptx, "activemask.b32"), *match = strstr(ptx, "match.any.sync.b64");
    assert_non_null(active);
    assert_true(match > active);
    assert_int_equal(count(active, "activemask.b32"), 1);
    for (const char *at = active; at < match; at++) /* in one block */
        assert_false(at[0] == '$' || !strncmp(at, "bra", 3));
    free(ptx);
}

/* Loads, stores, fences and narrower scopes are the hardware's alone. */
static void pays_nothing_without_shared_atomics(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "*h = atomic_load_explicit((global atomic_int *)g, memory_order_seq_cst, ALL);",
        "atomic_store_explicit((global atomic_int *)g, 1, memory_order_seq_cst, ALL);",
        "atomic_flag_clear_explicit((global atomic_flag *)g, memory_order_release, ALL);",
        "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, ALL);",
        "atomic_fetch_add((global atomic_int *)g, 1);",
        "atomic_fetch_add_explicit((global atomic_int *)g, 1, memory_order_relaxed,\n"
        "memory_scope_device);",
        "atomic_fetch_add_explicit((local atomic_int *)l, 1, memory_order_relaxed, ALL);",
        "atomic_inc(g);",
    };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        char *ptx = compile_statement(statements[i]);
        print_message("%s\n", statements[i]);
        assert_has_not(ptx, "__sp_unit");
        assert_has_not(ptx, "call");
        assert_has_not(ptx, "activemask");
        assert_has_not(ptx, "sub.s64");
        free(ptx);
    }
}

static void says_who_needs_the_unit(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool needs;
    } kernels[] = {
        {"atomic_fetch_add_explicit(g, 1, memory_order_relaxed, memory_scope_all_svm_devices);",
         true},
        {"atomic_fetch_add_explicit(g, 1, memory_order_relaxed, (memory_scope)s);", true},
        {"int e = 1; atomic_compare_exchange_strong_explicit(g, &e, 2, memory_order_relaxed,\n"
         "memory_order_relaxed, memory_scope_all_svm_devices);",
         true},
        {"atomic_fetch_add_explicit(s ? g : g + 1, 1, memory_order_relaxed,\n"
         "memory_scope_all_svm_devices);",
         true},
        {"if (s) atomic_fetch_or_explicit(g, 1, memory_order_relaxed, "
         "memory_scope_all_svm_devices);\n"
         "else atomic_fetch_or_explicit(g + 1, 1, memory_order_relaxed, memory_scope_device);",
         true},
        {"atomic_fetch_add_explicit(g, 1, memory_order_relaxed, memory_scope_device);", false},
        {"atomic_fetch_add(g, 1);", false},
        {"atomic_store_explicit(g, 1, memory_order_relaxed, memory_scope_all_svm_devices);", false},
    };
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        struct sp_cc_text source = {0};
        struct program program;
        sp_cc_text_format(&source, "kernel void k(global atomic_int *g, int s) { %s }\n",
                          kernels[i].body);
        program_init(&program, source.bytes, version_3);
        print_message("%s\n", kernels[i].body);
        assert_int_equal(program.info.kernels[0].has_shared_atomics, kernels[i].needs);
        program_finish(&program);
        sp_cc_text_finish(&source);
    }
}

static void gives_atomics_scope_and_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++) {
        struct sp_cc_text source = {0};
        sp_cc_text_format(&source,
                          "kernel void k(global int *g, local int *l, global uint *u,\n"
                          "global float *f, global long *w, global int *h) { %s h[1] = 1; }\n",
                          atomics[i].statement);
        char *ptx = compile(source.bytes);
        for (int w = 0; w < 3 && atomics[i].expected[w]; w++) {
            if (!strstr(ptx, atomics[i].expected[w]))
                print_message("%s\n", atomics[i].statement);
            assert_has(ptx, atomics[i].expected[w]);
        }
        const char *body = strstr(ptx, ".entry");
        if (strstr(body, atomics[i].without))
            print_message("%s\n", atomics[i].statement);
        assert_has_not(body, atomics[i].without);
        assert_int_equal(count(ptx, "atom."),
                         count(atomics[i].expected[0], "atom.") ||
                             (atomics[i].expected[1] && count(atomics[i].expected[1], "atom.")));
        free(ptx);
        sp_cc_text_finish(&source);
    }
}

/* --- Address spaces ------------------------------------------------------------------------- */

static void finds_address_spaces(void **state)
{
    (void)state;
    char *ptx = compile("float sum(const float *p) { return p[0] + p[1]; }\n"
                        "kernel void k(global float *g, local float *l, constant float *c, int i)\n"
                        "{ float m[2] = {g[2], g[3]}; g[i] = sum(g) + sum(l) + sum(m) + c[i]; }\n");
    assert_has(ptx, "ld.global.f32");
    assert_has(ptx, "ld.shared.v2.f32");
    assert_has_not(ptx, "ld.f32");
    assert_has_not(ptx, "cvta");
    free(ptx);
    ptx = compile("kernel void k(global int *g, local int *l, int i) {\n"
                  "int *p = i ? (int *)g : (int *)l; *p = 5;\n"
                  "g[1] = get_fence(p) == CLK_LOCAL_MEM_FENCE;\n"
                  "local int *q = to_local(p); if (q) g[2] = q[1]; }\n");
    assert_has(ptx, "st.u32");
    assert_has(ptx, "isspacep.shared");
    assert_has(ptx, "cvta.shared");
    assert_has(ptx, "ld.shared");
    free(ptx);
}

/* A generic pointer to local memory is not its local address; null is null all the same. */
static void keeps_null_pointers(void **state)
{
    (void)state;
    char *ptx =
        compile("kernel void k(global int *g, local int *l, int i) {\n"
                "local int *local s[4]; s[i] = i > 3 ? l : 0; barrier(CLK_LOCAL_MEM_FENCE);\n"
                "int *q = s[i + 1]; ((global ulong *)g)[0] = (ulong)q; }\n");
    assert_has(ptx, "cvta.shared");
    assert_int_equal(count(strstr(ptx, "cvta.shared"), "selp.b64"), 1);
    free(ptx);
    /* What comes from an argument or a variable is not asked. */
    ptx = compile("kernel void k(global ulong *g, local int *l, int i) {\n"
                  "int *q = l + i; g[0] = (ulong)q; }\n");
    assert_has(ptx, "cvta.shared");
    assert_has_not(ptx, "selp");
    free(ptx);
}

/* A vector's alignment is its element's, whatever LLVM makes of sixteen bytes. */
static void splits_unaligned_vectors(void **state)
{
    (void)state;
    static const char *const types[] = {"uchar", "ushort", "uint", "ulong"};
    for (int t = 0; t < 4; t++)
        for (int n = 2; n <= 16; n *= 2) {
            struct sp_cc_text source = {0};
            sp_cc_text_format(&source,
                              "kernel void k(global %s *to, global const %s *from, uint i)\n"
                              "{ vstore%d(vload%d(i, from + 1), i, to + 1); }\n",
                              types[t], types[t], n, n);
            char *ptx = compile(source.bytes);
            assert_has_not(ptx, "ld.global.v");
            assert_has_not(ptx, "st.global.v");
            assert_int_equal(count(ptx, "ld.global.u"), n);
            assert_int_equal(count(ptx, "st.global.u"), n);
            free(ptx);
            sp_cc_text_finish(&source);
        }
    char *ptx = compile("kernel void k(global uchar16 *to, global const uchar16 *from)\n"
                        "{ to[0] = from[0]; }\n");
    assert_has(ptx, "ld.global.v4.u32");
    assert_has(ptx, "st.global.v4.u32");
    free(ptx);
}

static void rewrites_only_address_spaces(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } lines[] = {
        {"%1 = load i32, ptr addrspace(2) %p", "%1 = load i32, ptr addrspace(1) %p"},
        {"@x = internal addrspace(3) global i32 undef",
         "@x = internal addrspace(3) global i32 undef"},
        {"%1 = addrspacecast ptr addrspace(1) %p to ptr addrspace(4)",
         "%1 = addrspacecast ptr addrspace(1) %p to ptr "},
        {"%1 = addrspacecast ptr %p to ptr addrspace(4)", "%1 = bitcast ptr %p to ptr "},
        {"%1 = addrspacecast <2 x ptr addrspace(4)> %p to <2 x ptr>",
         "%1 = bitcast <2 x ptr > %p to <2 x ptr>"},
        {"store ptr addrspace(4) addrspacecast (ptr addrspace(3) getelementptr (i8, ptr "
         "addrspace(3) @t, i64 1) to ptr addrspace(4)), ptr %q",
         "store ptr  addrspacecast (ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @t, i64 "
         "1) to ptr ), ptr %q"},
        {"call void @f(ptr addrspace(4) addrspacecast (ptr @\"a to ptr addrspace(1)\" to ptr "
         "addrspace(4)))",
         "call void @f(ptr  bitcast (ptr @\"a to ptr addrspace(1)\" to ptr ))"},
        {"@s = constant [17 x i8] c\"ptr addrspace(4)\\22\", align 1",
         "@s = constant [17 x i8] c\"ptr addrspace(4)\\22\", align 1"},
        {"!1 = !{!\"addrspacecast ptr addrspace(2)\"}",
         "!1 = !{!\"addrspacecast ptr addrspace(2)\"}"},
        {"%e = alloca target(\"spirv.Event\"), align 8", "%e = alloca ptr, align 8"},
        {"; ptr addrspace(4)", "; ptr addrspace(4)"},
        {"select i1 %c, ptr addrspace(4) addrspacecast (ptr addrspace(3) null to ptr "
         "addrspace(4)), "
         "ptr addrspace(4) addrspacecast (ptr null to ptr addrspace(4))",
         "select i1 %c, ptr  null, ptr  null"},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct sp_cc_text result = {0};
        sp_gpu_respace(lines[i].before, &result);
        assert_string_equal(result.bytes, lines[i].after);
        sp_cc_text_finish(&result);
    }
}

/* --- Options -------------------------------------------------------------------------------- */

static void obeys_options(void **state)
{
    (void)state;
    static const char source[] =
        "kernel void k(global float *p, float x)\n"
        "{ p[0] = p[1] / x; p[2] = sqrt(p[3]); p[4] = sin(p[5]); p[6] = pown(p[7], 3); }\n";
    static const struct {
        const char *option;
        const char *expected[3];
        const char *without;
    } cases[] = {
        {"-w", {"div.full.f32", "sqrt.approx.f32", "fma.rn.f32"}, ".rn.ftz"},
        {"-cl-fp32-correctly-rounded-divide-sqrt", {"div.rn.f32", "sqrt.rn.f32"}, "div.full"},
        {"-cl-denorms-are-zero", {"div.full.ftz.f32", "fma.rn.ftz.f32"}, "div.full.f32"},
        {"-cl-fast-relaxed-math", {"div.approx.f32", "sin.approx", "sqrt.approx"}, "div.full"},
        {"-cl-opt-disable", {"div.full.f32", "sqrt.approx.f32"}, ".rn.ftz"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *options[] = {"-cl-std=CL3.0", cases[i].option, NULL};
        char *ptx = compile_with(source, NULL, options);
        for (int w = 0; w < 3 && cases[i].expected[w]; w++)
            assert_has(ptx, cases[i].expected[w]);
        assert_has_not(ptx, cases[i].without);
        free(ptx);
    }
}

/* The bytes that the text gives a variable; what it leaves out is zero. */
static void read_bytes(const char *ptx, const char *name, unsigned char *bytes, size_t size)
{
    struct sp_cc_text declaration = {0};
    sp_cc_text_format(&declaration, " %s[%zu] = {", name, size);
    const char *at = strstr(ptx, declaration.bytes);
    if (!at)
        fail_msg("no '%s' in\n%.4000s", declaration.bytes, ptx);
    memset(bytes, 0, size);
    at += declaration.size;
    for (size_t i = 0; i < size; i++) {
        char *end;
        bytes[i] = (unsigned char)strtoul(at, &end, 10);
        if (*end == '}')
            break;
        at = end + 1;
    }
    sp_cc_text_finish(&declaration);
}

/* Vectors of three elements take the room of four, in arrays and structures as well. */
static void lays_constants_out(void **state)
{
    (void)state;
    struct entry {
        _Alignas(16) char kind;
        _Alignas(16) float place[4];
        _Alignas(8) short near[2][4];
        int tail;
        _Alignas(32) int64_t far[4];
    };
    static const struct entry table[2] = {
        {1, {1, 2, 3}, {{4, 5, 6}, {7, 8, 9}}, 10, {-1, -2, -3}},
        {11, {12, 13, 14}, {{0}, {18, 19, 20}}, 21, {0}},
    };
    static const int pair[2][4] = {{45, 46, 47}, {48, 49, 50}};
    unsigned char bytes[sizeof(table)];
    char *ptx = compile("struct entry { char kind; float3 place; short3 near[2]; int tail;\n"
                        "               long3 far; };\n"
                        "constant struct entry table[2] = {\n"
                        "    {1, (float3)(1, 2, 3), {(short3)(4, 5, 6), (short3)(7, 8, 9)}, 10,\n"
                        "     (long3)(-1, -2, -3)},\n"
                        "    {11, (float3)(12, 13, 14), {0, (short3)(18, 19, 20)}, 21, 0}};\n"
                        "constant int3 pair[2] = {(int3)(45, 46, 47), (int3)(48, 49, 50)};\n"
                        "__kernel void k(__global int *out, uint n)\n"
                        "{\n"
                        "    constant struct entry *at = &table[n & 1];\n"
                        "    out[0] = at->kind + (int)at->place.y + at->near[out[1] & 1].z;\n"
                        "    out[1] = at->tail + (int)at->far.z + pair[n & 1].y;\n"
                        "}\n");
    read_bytes(ptx, "table", bytes, sizeof(table));
    assert_memory_equal(bytes, table, sizeof(table));
    read_bytes(ptx, "pair", bytes, sizeof(pair));
    assert_memory_equal(bytes, pair, sizeof(pair));
    free(ptx);
}

/* With tables of pointers, the atomic unit, debug information, and local and private arrays. */
static void suits_each_architecture(void **state)
{
    (void)state;
    static const char source[] =
        "constant char *constant names[] = {\"alpha\", \"beta\", \"gamma\"};\n"
        "constant int one[] = {1, 2}, two[] = {3, 4};\n"
        "constant int *constant tables[] = {one, two};\n"
        "int pick(global int *p, int i)\n"
        "{\n"
        "    int near[4] = {i, i + 1, i + 2, i + 3};\n"
        "    return near[p[i] & 3];\n"
        "}\n"
        "kernel void k(global int *p, global atomic_int *shared)\n"
        "{\n"
        "    local int l[64];\n"
        "    int i = get_local_id(0);\n"
        "    l[i] = pick(p, i) + names[p[0] % 3][p[1]] + tables[p[0] & 1][p[1] & 1];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    atomic_fetch_add_explicit(shared, l[63 - i], memory_order_relaxed,\n"
        "                              memory_scope_all_svm_devices);\n"
        "    printf(\"%s\\n\", names[p[2] % 3]);\n"
        "}\n";
    static const char *const options[] = {"-cl-std=CL3.0", "-g", NULL};
    static const unsigned architectures[] = {70, 72, 75, 80, 86, 87, 89, 90};
    struct program program;
    program_init(&program, source, options);
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
        struct sp_cc_text target = {0}, line = {0};
        unsigned major, minor;
        sp_cc_text_format(&target, "nvptx64:sm_%u", architectures[i]);
        sp_cc_text_format(&line, "\n.target sm_%u\n", architectures[i]); /* and not ", debug" */
        char *ptx = ptx_for(&program, target.bytes, NULL, options);
        assert_has(ptx, line.bytes);
        assert_has_not(ptx, ".section");
        /* activemask came with 6.2, nanosleep with 6.3. */
        assert_int_equal(sscanf(strstr(ptx, "\n.version "), "\n.version %u.%u", &major, &minor), 2);
        assert_true(major * 10 + minor >= 63);
        free(ptx);
        sp_cc_text_finish(&target);
        sp_cc_text_finish(&line);
    }
    program_finish(&program);
}

static void refuses_other_targets(void **state)
{
    (void)state;
    static const char *const targets[] = {"nvptx64:sm_35", "nvptx64:sm_", "amdgcn:gfx90a", "x"};
    struct program program;
    program_init(&program, "kernel void k(global int *p) { p[0] = 1; }\n", version_3);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct sp_cc_text ptx = {0}, log = {0};
        assert_int_equal(try_ptx(&program, targets[i], NULL, NULL, &ptx, &log), SP_CC_BAD_REQUEST);
        assert_has(log.bytes, targets[i]);
        assert_has(log.bytes, "nvptx64:sm_70");
        sp_cc_text_finish(&ptx);
        sp_cc_text_finish(&log);
    }
    /* A GPU that LLVM does not know yet runs code for the newest that it knows. */
    struct sp_cc_text ptx = {0}, log = {0};
    assert_int_equal(try_ptx(&program, "nvptx64:sm_120", NULL, NULL, &ptx, &log), SP_CC_OK);
    assert_has(ptx.bytes, ".target sm_90");
    sp_cc_text_finish(&ptx);
    sp_cc_text_finish(&log);
    program_finish(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_only_address_spaces),
        cmocka_unit_test(reads_arguments_at_their_offsets),
        cmocka_unit_test(takes_so_many_arguments),
        cmocka_unit_test(knows_required_sizes),
        cmocka_unit_test(ends_work_items_outside),
        cmocka_unit_test(writes_initial_values),
        cmocka_unit_test(prints),
        cmocka_unit_test(places_local_variables),
        cmocka_unit_test(keeps_barriers),
        cmocka_unit_test(shares_copies),
        cmocka_unit_test(gives_atomics_scope_and_order),
        cmocka_unit_test(asks_the_unit_for_shared_atomics),
        cmocka_unit_test(has_one_unit),
        cmocka_unit_test(pays_nothing_without_shared_atomics),
        cmocka_unit_test(says_who_needs_the_unit),
        cmocka_unit_test(finds_address_spaces),
        cmocka_unit_test(keeps_null_pointers),
        cmocka_unit_test(splits_unaligned_vectors),
        cmocka_unit_test(obeys_options),
        cmocka_unit_test(lays_constants_out),
        cmocka_unit_test(suits_each_architecture),
        cmocka_unit_test(refuses_other_targets),
        cmocka_unit_test(takes_hard_kernels),
        cmocka_unit_test(takes_vectors),
        cmocka_unit_test(takes_the_benchmark),
        cmocka_unit_test(takes_math),
        cmocka_unit_test(takes_integer),
        cmocka_unit_test(takes_float),
        cmocka_unit_test(takes_convert),
        cmocka_unit_test(takes_memory),
        cmocka_unit_test(takes_group),
    };
    if (!find_ptxas())
        print_message("no ptxas here: the PTX is looked at, not assembled\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
