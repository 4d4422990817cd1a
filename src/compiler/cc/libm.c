/* See libm.h. glibc's libmvec has variants named by the vector ABI of x86 (_ZGVeN16v_sinf); LLVM's
 * vectoriser takes them from the attribute "vector-function-abi-variant" of a call, in its own
 * spelling
 * (_ZGV_LLVM_N16v_sinf(_ZGVeN16v_sinf)), provided that the variant is declared. */
#include "compiler/cc/libm.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "__sp_libm_"
#define VARIANT_ATTRIBUTE "vector-function-abi-variant"

/* Encodings of the attribute "memory", two bits for each of: argument memory, inaccessible memory,
 * other. */
enum { TOUCHES_NOTHING = 0, TOUCHES_ARGUMENTS = 3 };

/* Functions whose vector variants are exact enough. glibc gives them at most 4 ulp ("Errors in Math
 * Functions"); OpenCL C 3.0, 7.4, allows the number in the comment. What is allowed 3 or
 * less is not here: kernels/math_exp.cl and math_log.cl have such. */
static const struct {
    const char *name; /* without f */
    unsigned arguments;
    bool as_float, as_double;
} exact_enough[] = {
    {"acos", 1, true, true},  /* 4 */
    {"acosh", 1, true, true}, /* 4 */
    {"asin", 1, true, true},  /* 4 */
    {"asinh", 1, true, true}, /* 4 */
    {"atan", 1, true, true},  /* 5 */
    {"atan2", 2, true, true}, /* 6 */
    {"atanh", 1, true, true}, /* 5 */
    {"cos", 1, true, true},   /* 4 */
    {"cosh", 1, true, true},  /* 4 */
    {"erf", 1, true, true},   /* 16 */
    {"erfc", 1, true, true},  /* 16 */
    {"hypot", 2, true, true}, /* 4 */
    {"pow", 2, true, true},   /* 16 */
    {"sin", 1, true, true},   /* 4 */
    {"sinh", 1, true, true},  /* 4 */
    {"tan", 1, true, true},   /* 5 */
    {"tanh", 1, true, true},  /* 5 */
};

struct binder {
    LLVMModuleRef module;
    LLVMContextRef context;
    void *vectors; /* libmvec, or NULL */
    uint32_t vector_bits;
    LLVMValueRef *variants; /* declared, to be kept */
    unsigned num_variants;
};

static void add_attribute(LLVMContextRef context, LLVMValueRef function, const char *name,
                          uint64_t value)
{
    LLVMAddAttributeAtIndex(
        function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName(name, strlen(name)),
                                value));
}

static void describe_function(LLVMContextRef context, LLVMValueRef function)
{
    bool pointers = false;
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        pointers |= LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, i))) == LLVMPointerTypeKind;
    add_attribute(context, function, "nounwind", 0);
    add_attribute(context, function, "willreturn", 0);
    add_attribute(context, function, "nofree", 0);
    add_attribute(context, function, "memory", pointers ? TOUCHES_ARGUMENTS : TOUCHES_NOTHING);
}

static void rename_functions(struct binder *binder)
{
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(binder->module); f; f = next) {
        next = LLVMGetNextFunction(f);
        const char *name = LLVMGetValueName(f);
        if (strncmp(name, PREFIX, strlen(PREFIX)))
            continue;
        char *plain = sp_cc_copy(name + strlen(PREFIX));
        LLVMValueRef other = LLVMGetNamedFunction(binder->module, plain);
        if (other) {
            LLVMReplaceAllUsesWith(f, other);
            LLVMDeleteFunction(f);
            f = other;
        } else {
            LLVMSetValueName2(f, plain, strlen(plain));
        }
        describe_function(binder->context, f);
        free(plain);
    }
}

/* The C name of what a call computes: a function of libm, or an intrinsic that stands for one
 * (llvm.sin.f32). */
static char *c_name(const char *callee)
{
    size_t length = strlen(callee);
    if (strncmp(callee, "llvm.", 5))
        return sp_cc_copy(callee);
    if (length < 10 || (strcmp(callee + length - 4, ".f32") && strcmp(callee + length - 4, ".f64")))
        return NULL;
    char *name = sp_cc_copy(callee + 5);
    strcpy(name + length - 9, callee[length - 2] == '3' ? "f" : "");
    return name;
}

/* The number of arguments of a function in the table, or 0. */
static unsigned find_exact(const char *name, bool *is_float)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(exact_enough) / sizeof(exact_enough[0]); i++) {
        size_t plain = strlen(exact_enough[i].name);
        if (strncmp(name, exact_enough[i].name, plain))
            continue;
        *is_float = length == plain + 1 && name[plain] == 'f';
        if ((*is_float && exact_enough[i].as_float) ||
            (length == plain && exact_enough[i].as_double))
            return exact_enough[i].arguments;
    }
    return 0;
}

static bool declare_variant(struct binder *binder, const char *name, bool is_float, unsigned lanes,
                            unsigned arguments)
{
    if (!dlsym(binder->vectors, name))
        return false;
    if (LLVMGetNamedFunction(binder->module, name))
        return true;
    LLVMTypeRef scalar = is_float ? LLVMFloatTypeInContext(binder->context)
                                  : LLVMDoubleTypeInContext(binder->context);
    LLVMTypeRef vector = LLVMVectorType(scalar, lanes);
    LLVMTypeRef parameters[2] = {vector, vector};
    LLVMValueRef function = LLVMAddFunction(binder->module, name,
                                            LLVMFunctionType(vector, parameters, arguments, false));
    describe_function(binder->context, function);
    binder->variants =
        sp_cc_reallocate(binder->variants, (binder->num_variants + 1) * sizeof(LLVMValueRef));
    binder->variants[binder->num_variants++] = function;
    return true;
}

static void offer_variants(struct binder *binder, LLVMValueRef call, const char *callee)
{
    static const struct {
        uint32_t bits;
        char letter; /* of the vector ABI */
    } widths[] = {{512, 'e'}, {256, 'd'}, {128, 'b'}};
    bool is_float = false;
    char *name = c_name(callee);
    unsigned arguments = name ? find_exact(name, &is_float) : 0;
    struct sp_cc_text list = {0};
    for (size_t i = 0; arguments && i < sizeof(widths) / sizeof(widths[0]); i++) {
        unsigned lanes = widths[i].bits / (is_float ? 32 : 64);
        const char *shape = arguments == 2 ? "vv" : "v";
        struct sp_cc_text variant = {0};
        sp_cc_text_format(&variant, "_ZGV%cN%u%s_%s", widths[i].letter, lanes, shape, name);
        if (widths[i].bits <= binder->vector_bits &&
            declare_variant(binder, variant.bytes, is_float, lanes, arguments))
            sp_cc_text_format(&list, "%s_ZGV_LLVM_N%u%s_%s(%s)", list.size ? "," : "", lanes, shape,
                              callee, variant.bytes);
        sp_cc_text_finish(&variant);
    }
    if (list.size)
        LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateStringAttribute(binder->context, VARIANT_ATTRIBUTE,
                                                           strlen(VARIANT_ATTRIBUTE), list.bytes,
                                                           (unsigned)list.size));
    sp_cc_text_finish(&list);
    free(name);
}

/* Declarations that nothing calls yet would be dropped before the vectoriser runs. */
static void keep_variants(struct binder *binder)
{
    if (!binder->num_variants)
        return;
    LLVMTypeRef pointer = LLVMPointerTypeInContext(binder->context, 0);
    LLVMTypeRef array = LLVMArrayType2(pointer, binder->num_variants);
    LLVMValueRef used = LLVMAddGlobal(binder->module, array, "llvm.compiler.used");
    LLVMSetInitializer(used, LLVMConstArray2(pointer, binder->variants, binder->num_variants));
    LLVMSetLinkage(used, LLVMAppendingLinkage);
    LLVMSetSection(used, "llvm.metadata");
}

void sp_cc_bind_libm(LLVMModuleRef module, uint32_t vector_bits)
{
    struct binder binder = {
        .module = module,
        .context = LLVMGetModuleContext(module),
        .vectors = dlopen("libmvec.so.1", RTLD_LAZY | RTLD_LOCAL),
        .vector_bits = vector_bits,
    };
    rename_functions(&binder);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); binder.vectors && f;
         f = LLVMGetNextFunction(f)) {
        LLVMBasicBlockRef block;
        for (block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef value = LLVMGetFirstInstruction(block); value;
                 value = LLVMGetNextInstruction(value)) {
                const char *callee = sp_ir_callee(value);
                if (callee)
                    offer_variants(&binder, value, callee);
            }
    }
    keep_variants(&binder);
    free(binder.variants);
    if (binder.vectors)
        dlclose(binder.vectors);
}
