/* See special.h. Between two barriers of a loop the work-items meet again: what each holds goes to
 * memory and comes back, distances between them are values of the run, and a condition such as
 * `lid < step` is a mask. Unrolled with constants, each turn is a region of its own, in which LLVM
 * sees strides, masks and bounds; and a loop without barriers becomes part of one region, whose
 * values stay in registers.
 *
 * Turns are counted here, by walking through the loop with numbers, so that what a loop grows to is
 * known before it is asked for; LLVM's own pass then unrolls what is marked. An inner loop whose
 * turns depend on the outer one's counter gets its turn in the next round. */
#include "compiler/cc/workgroup/special.h"

#include "compiler/cc/text.h"
#include "compiler/cc/workgroup/graph.h"
#include "compiler/cc/workgroup/metadata.h"
#include "compiler/cc/workgroup/numbers.h"

#include <llvm-c/Linker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loops as they are after LINK, with what constants made of them; then what unrolling made of them.
 * The rounds serve a nest whose inner turns depend on outer ones. */
#define TO_COUNTED                                                                                 \
    "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,lower-switch,loop-simplify,"   \
    "lcssa,loop(loop-rotate,indvars))"
#define TO_STRAIGHT                                                                                \
    "function(loop-unroll,sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,gvn,"         \
    "lower-switch,loop-simplify,lcssa)"
#define ROUNDS 3u

/* Most turns of a loop that becomes straight code, instructions that one loop may grow to, and a
 * kernel. SHA-256 has 64 rounds of 90 instructions, twice; LLVM takes some 0.15 ms for each of
 * them. */
#define MOST_TURNS 64u
#define LOOP_LIMIT 8192u
#define KERNEL_LIMIT 16384u

/* The name of a copy has this before the kernel's, which no name in OpenCL C begins with. */
#define COPY_PREFIX "__sp_special."

static void name_globals(LLVMModuleRef module)
{
    char name[32];
    unsigned count = 0;
    size_t length;
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        LLVMGetValueName2(g, &length);
        if (length)
            continue;
        int size = snprintf(name, sizeof(name), "__sp_unnamed.%u", count++);
        LLVMSetValueName2(g, name, (size_t)size);
    }
}

/* Leaves nothing in the copied module but the wanted functions: variables become references to
 * those of the same names in the original. */
static void strip_copy(LLVMModuleRef copy, const LLVMValueRef *kernels, size_t count)
{
    LLVMValueRef next;
    for (LLVMValueRef f = LLVMGetFirstFunction(copy); f; f = LLVMGetNextFunction(f)) {
        bool wanted = false;
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        for (size_t i = 0; i < count; i++)
            wanted |= !strcmp(name, LLVMGetValueName(kernels[i]));
        if (!sp_ir_is_definition(f))
            continue;
        if (!wanted) {
            LLVMBasicBlockRef block;
            while ((block = LLVMGetLastBasicBlock(f)) != NULL)
                LLVMDeleteBasicBlock(block);
            LLVMSetLinkage(f, LLVMExternalLinkage);
            continue;
        }
        struct sp_cc_text renamed = {0};
        sp_cc_text_format(&renamed, COPY_PREFIX "%s", name);
        LLVMSetValueName2(f, renamed.bytes, renamed.size);
        sp_cc_text_finish(&renamed);
    }
    for (LLVMValueRef g = LLVMGetFirstGlobal(copy); g; g = next) {
        next = LLVMGetNextGlobal(g);
        if (LLVMGetLinkage(g) == LLVMAppendingLinkage) {
            LLVMDeleteGlobal(g);
            continue;
        }
        LLVMSetInitializer(g, NULL);
        LLVMSetLinkage(g, LLVMExternalLinkage);
    }
}

bool sp_wg_copy_kernels(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                        LLVMValueRef *copies)
{
    struct sp_map linkages = {0};
    name_globals(module);
    LLVMModuleRef copy = LLVMCloneModule(module);
    strip_copy(copy, kernels, count);
    /* Only what is not internal is found by its name. */
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        LLVMLinkage linkage = LLVMGetLinkage(g);
        if (linkage != LLVMInternalLinkage && linkage != LLVMPrivateLinkage)
            continue;
        sp_map_set(&linkages, g, (void *)(uintptr_t)(linkage + 1));
        LLVMSetLinkage(g, LLVMExternalLinkage);
    }
    bool linked = !LLVMLinkModules2(module, copy);
    for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
        uintptr_t linkage = (uintptr_t)sp_map_get(&linkages, g);
        if (linkage)
            LLVMSetLinkage(g, (LLVMLinkage)(linkage - 1));
    }
    sp_map_finish(&linkages);
    for (size_t i = 0; i < count && linked; i++) {
        struct sp_cc_text name = {0};
        sp_cc_text_format(&name, COPY_PREFIX "%s", LLVMGetValueName(kernels[i]));
        copies[i] = LLVMGetNamedFunction(module, name.bytes);
        sp_cc_text_finish(&name);
        linked = copies[i] != NULL;
    }
    return linked;
}

static void bound_id(LLVMValueRef call, uint64_t size)
{
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMContextRef context = LLVMGetTypeContext(type);
    LLVMMetadataRef bounds[2] = {LLVMValueAsMetadata(LLVMConstInt(type, 0, false)),
                                 LLVMValueAsMetadata(LLVMConstInt(type, size, false))};
    LLVMSetMetadata(call, LLVMGetMDKindIDInContext(context, "range", 5),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, bounds, 2)));
}

void sp_wg_fix_local_size(LLVMValueRef kernel, const uint64_t local_size[3])
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(kernel); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef next;
        for (LLVMValueRef value = LLVMGetFirstInstruction(block); value; value = next) {
            next = LLVMGetNextInstruction(value);
            for (unsigned d = 0; d < 3; d++) {
                char size[32], enqueued[32], id[32];
                snprintf(size, sizeof(size), "__sp_local_size_%u", d);
                snprintf(enqueued, sizeof(enqueued), "__sp_enqueued_local_size_%u", d);
                snprintf(id, sizeof(id), "__sp_local_id_%u", d);
                if (sp_ir_calls(value, id)) {
                    bound_id(value, local_size[d]);
                } else if (sp_ir_calls(value, size) || sp_ir_calls(value, enqueued)) {
                    LLVMReplaceAllUsesWith(value,
                                           LLVMConstInt(LLVMTypeOf(value), local_size[d], false));
                    LLVMInstructionEraseFromParent(value);
                    break;
                }
            }
        }
    }
}

/* A walk through a loop with numbers in place of its header's PHIs. */
struct walk {
    const struct sp_wg_graph *graph;
    const struct sp_bits *blocks;
    struct sp_map numbers; /* PHI to its value's place in `values` + 1 */
    uint64_t *values;
    unsigned steps; /* instructions still looked at in one turn */
};

static uint64_t masked(LLVMTypeRef type, uint64_t value)
{
    unsigned bits = LLVMGetIntTypeWidth(type);
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static bool is_number(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

/* The value of an operation on two numbers of `type`. False for an operation that is not known, or
 * has no value. */
static bool operate(LLVMOpcode opcode, LLVMTypeRef type, uint64_t a, uint64_t b, uint64_t *result)
{
    unsigned width = LLVMGetIntTypeWidth(type);
    bool shift = opcode == LLVMShl || opcode == LLVMLShr || opcode == LLVMAShr;
    bool division = opcode == LLVMUDiv || opcode == LLVMURem;
    if (!sp_wg_is_operation(opcode) || opcode == LLVMSDiv || opcode == LLVMSRem ||
        (shift && b >= width) || (division && !b))
        return false;
    *result = sp_wg_operate(opcode, width, a, b);
    return true;
}

static bool evaluate(struct walk *walk, LLVMValueRef value, uint64_t *result)
{
    uint64_t a, b;
    if (!is_number(value) || !walk->steps--) {
        walk->steps = 0;
        return false;
    }
    if (LLVMIsAConstantInt(value)) {
        *result = LLVMConstIntGetZExtValue(value);
        return true;
    }
    if (!LLVMIsAInstruction(value))
        return false;
    uintptr_t place = (uintptr_t)sp_map_get(&walk->numbers, value);
    if (place) {
        *result = walk->values[place - 1];
        return true;
    }
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    if (opcode == LLVMTrunc || opcode == LLVMZExt || opcode == LLVMSExt) {
        LLVMValueRef from = LLVMGetOperand(value, 0);
        if (!evaluate(walk, from, &a))
            return false;
        *result =
            masked(type, opcode == LLVMSExt
                             ? (uint64_t)sp_wg_signed(LLVMGetIntTypeWidth(LLVMTypeOf(from)), a)
                             : a);
        return true;
    }
    if (opcode != LLVMICmp && !LLVMIsABinaryOperator(value))
        return false;
    if (!evaluate(walk, LLVMGetOperand(value, 0), &a) ||
        !evaluate(walk, LLVMGetOperand(value, 1), &b))
        return false;
    if (opcode == LLVMICmp) {
        *result = sp_wg_compare(LLVMGetICmpPredicate(value),
                                LLVMGetIntTypeWidth(LLVMTypeOf(LLVMGetOperand(value, 0))), a, b);
        return true;
    }
    if (!operate(opcode, type, a, b, result))
        return false;
    *result = masked(type, *result);
    return true;
}

/* The only latch, or SP_WG_NONE. */
static uint32_t latch_of(const struct sp_wg_graph *graph, const struct sp_wg_loop *loop)
{
    uint32_t latch = SP_WG_NONE;
    SP_WG_EACH_PREDECESSOR(b, graph, loop->header)
    if (sp_bits_has(&loop->blocks, *b)) {
        if (latch != SP_WG_NONE)
            return SP_WG_NONE;
        latch = *b;
    }
    return latch;
}

static LLVMValueRef incoming(LLVMValueRef phi, const struct sp_wg_graph *graph,
                             const struct sp_bits *blocks, bool inside)
{
    LLVMValueRef found = NULL;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        uint32_t from = sp_wg_block_number(graph, LLVMGetIncomingBlock(phi, i));
        if (from == SP_WG_NONE || sp_bits_has(blocks, from) != inside)
            continue;
        if (found && found != LLVMGetIncomingValue(phi, i))
            return NULL;
        found = LLVMGetIncomingValue(phi, i);
    }
    return found;
}

/* Turns until the exit at the end of `block` is taken. */
static unsigned turns_to_exit(struct walk *walk, uint32_t header, uint32_t block, unsigned limit)
{
    enum { MOST_PHIS = 16, STEPS = 64 };
    const struct sp_wg_graph *graph = walk->graph;
    LLVMValueRef condition = LLVMGetCondition(LLVMGetBasicBlockTerminator(graph->blocks[block]));
    LLVMValueRef phis[MOST_PHIS];
    uint64_t values[MOST_PHIS], next[MOST_PHIS], leaves;
    unsigned count = 0;
    walk->values = values;
    for (LLVMValueRef phi = LLVMGetFirstInstruction(graph->blocks[header]);
         phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
        LLVMValueRef first = incoming(phi, graph, walk->blocks, false);
        if (count == MOST_PHIS || !first || !is_number(phi) || !LLVMIsAConstantInt(first))
            continue;
        phis[count] = phi;
        values[count++] = LLVMConstIntGetZExtValue(first);
        sp_map_set(&walk->numbers, phi, (void *)(uintptr_t)count);
    }
    for (unsigned turn = 1; turn <= limit; turn++) {
        walk->steps = STEPS;
        if (!evaluate(walk, condition, &leaves))
            return 0;
        if (sp_bits_has(walk->blocks, graph->successors[block][0]))
            leaves = !leaves;
        if (leaves)
            return turn;
        for (unsigned i = 0; i < count; i++) {
            LLVMValueRef value = incoming(phis[i], graph, walk->blocks, true);
            walk->steps = STEPS;
            /* A PHI that is no counter has no number any more. */
            if (!value || !evaluate(walk, value, &next[i]))
                sp_map_set(&walk->numbers, phis[i], NULL);
        }
        memcpy(values, next, sizeof(values));
    }
    return 0;
}

unsigned sp_wg_loop_turns(const struct sp_wg_graph *graph, uint32_t loop, unsigned limit)
{
    const struct sp_wg_loop *around = &graph->loops[loop];
    uint32_t latch = latch_of(graph, around);
    unsigned turns = 0;
    if (latch == SP_WG_NONE)
        return 0;
    SP_BITS_EACH(b, &around->blocks)
    {
        const uint32_t *to = graph->successors[b];
        if (to[0] == SP_WG_NONE || to[1] == SP_WG_NONE ||
            sp_bits_has(&around->blocks, to[0]) == sp_bits_has(&around->blocks, to[1]) ||
            !sp_wg_dominates(graph, b, latch))
            continue;
        struct walk walk = {.graph = graph, .blocks = &around->blocks};
        turns = turns_to_exit(&walk, around->header, b, limit);
        sp_map_finish(&walk.numbers);
        if (turns)
            return turns;
    }
    return 0;
}

static unsigned count_instructions(const struct sp_wg_graph *graph, const struct sp_bits *blocks)
{
    unsigned count = 0;
    SP_BITS_EACH(b, blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value))
        count += !LLVMIsAPHINode(value);
    return count;
}

/* Whether an address lies in a private variable. */
static bool is_private(LLVMValueRef address)
{
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address);
}

/* Loops with barriers, where wanted, and loops over private arrays, whose elements may become
 * registers. Others are better as they are: work-items then go through each turn together, and what
 * a turn loads serves several of them (matmul: twice as fast). */
static bool unrolling_pays(const struct sp_wg_graph *graph, const struct sp_bits *blocks,
                           bool barriers)
{
    bool pays = false;
    SP_BITS_EACH(b, blocks)
    for (LLVMValueRef value = LLVMGetFirstInstruction(graph->blocks[b]); value;
         value = LLVMGetNextInstruction(value)) {
        bool load = LLVMIsALoadInst(value), store = LLVMIsAStoreInst(value);
        if (sp_ir_calls(value, SP_BARRIER_NAME))
            return barriers;
        pays |= (load || store) && is_private(LLVMGetOperand(value, load ? 0 : 1));
    }
    return pays;
}

/* The operation with a constant that all values which meet in `phi` are, on a value that is known
 * there too; else NULL. */
static LLVMValueRef same_operation(const struct sp_wg_graph *graph, uint32_t block,
                                   LLVMValueRef phi)
{
    LLVMValueRef first = LLVMGetIncomingValue(phi, 0);
    if (!LLVMIsABinaryOperator(first) || !LLVMIsAConstantInt(LLVMGetOperand(first, 1)) ||
        !LLVMIsAInstruction(LLVMGetOperand(first, 0)))
        return NULL;
    LLVMBasicBlockRef from = LLVMGetInstructionParent(LLVMGetOperand(first, 0));
    if (!sp_wg_dominates(graph, sp_wg_block_number(graph, from), block))
        return NULL;
    for (unsigned i = 1; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef other = LLVMGetIncomingValue(phi, i);
        if (!LLVMIsABinaryOperator(other) ||
            LLVMGetInstructionOpcode(other) != LLVMGetInstructionOpcode(first) ||
            LLVMGetOperand(other, 0) != LLVMGetOperand(first, 0) ||
            LLVMGetOperand(other, 1) != LLVMGetOperand(first, 1))
            return NULL;
    }
    return first;
}

/* `k + 1`, computed early on each of two ways, meets in a PHI, in which LLVM does not see a
 * counter. It is computed where they meet again; without the flags that may hold on one way only.
 */
static void join_operations(const struct sp_wg_graph *graph)
{
    LLVMBuilderRef builder =
        LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(graph->function)));
    for (uint32_t b = 0; b < graph->num_blocks; b++) {
        LLVMValueRef next, end = LLVMGetFirstInstruction(graph->blocks[b]);
        while (LLVMIsAPHINode(end))
            end = LLVMGetNextInstruction(end);
        for (LLVMValueRef phi = LLVMGetFirstInstruction(graph->blocks[b]); LLVMIsAPHINode(phi);
             phi = next) {
            next = LLVMGetNextInstruction(phi);
            LLVMValueRef operation = same_operation(graph, b, phi);
            if (!operation || LLVMCountIncoming(phi) < 2)
                continue;
            LLVMPositionBuilderBefore(builder, end);
            LLVMValueRef joined =
                LLVMBuildBinOp(builder, LLVMGetInstructionOpcode(operation),
                               LLVMGetOperand(operation, 0), LLVMGetOperand(operation, 1), "");
            LLVMReplaceAllUsesWith(phi, joined);
            LLVMInstructionEraseFromParent(phi);
        }
    }
    LLVMDisposeBuilder(builder);
}

/* Marks loops to be unrolled, and takes what they grow by from *room. */
static bool mark_loops(LLVMValueRef kernel, bool barriers, unsigned *room)
{
    struct sp_wg_graph graph;
    bool marked = false;
    sp_wg_graph_init(&graph, kernel);
    join_operations(&graph);
    for (uint32_t l = 0; l < graph.num_loops && !graph.irreducible; l++) {
        unsigned turns = sp_wg_loop_turns(&graph, l, MOST_TURNS);
        unsigned size = count_instructions(&graph, &graph.loops[l].blocks) * turns;
        if (!turns || size > LOOP_LIMIT || size > *room ||
            !unrolling_pays(&graph, &graph.loops[l].blocks, barriers))
            continue;
        *room -= size;
        marked = true;
        uint32_t latch = latch_of(&graph, &graph.loops[l]);
        sp_wg_mark_unrolled_loop(LLVMGetModuleContext(LLVMGetGlobalParent(kernel)),
                                 LLVMGetBasicBlockTerminator(graph.blocks[latch]));
    }
    sp_wg_graph_finish(&graph);
    return marked;
}

/* Passes leave a function with these attributes alone. */
void sp_wg_leave_others(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count, bool on)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    /* What a function has of its own stays: so what is added has a mark of its own beside it. */
    static const char *const names[] = {"optnone", "noinline"};
    static const char *const marks[] = {"sp-optnone", "sp-noinline"};
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        bool wanted = !sp_ir_is_definition(f);
        for (size_t i = 0; i < count; i++)
            wanted |= kernels[i] == f;
        for (unsigned n = 0; n < 2 && !wanted; n++) {
            unsigned kind = LLVMGetEnumAttributeKindForName(names[n], strlen(names[n]));
            unsigned length = (unsigned)strlen(marks[n]);
            if (on && !LLVMGetEnumAttributeAtIndex(f, at, kind)) {
                LLVMAddAttributeAtIndex(f, at, LLVMCreateEnumAttribute(context, kind, 0));
                LLVMAddAttributeAtIndex(
                    f, at, LLVMCreateStringAttribute(context, marks[n], length, "", 0));
            } else if (!on && LLVMGetStringAttributeAtIndex(f, at, marks[n], length)) {
                LLVMRemoveEnumAttributeAtIndex(f, at, kind);
                LLVMRemoveStringAttributeAtIndex(f, at, marks[n], length);
            }
        }
    }
}

char *sp_wg_straighten(LLVMModuleRef module, const LLVMValueRef *kernels, size_t count,
                       bool barriers, LLVMTargetMachineRef machine)
{
    unsigned *room = sp_cc_allocate(count * sizeof(unsigned));
    for (size_t i = 0; i < count; i++)
        room[i] = KERNEL_LIMIT;
    sp_wg_leave_others(module, kernels, count, true);
    char *error = sp_ir_run_passes(module, TO_COUNTED, machine);
    for (unsigned round = 0; round < ROUNDS && !error; round++) {
        bool marked = false;
        for (size_t i = 0; i < count; i++)
            marked |= mark_loops(kernels[i], barriers, &room[i]);
        if (!marked)
            break;
        error = sp_ir_run_passes(module, TO_STRAIGHT, machine);
    }
    sp_wg_leave_others(module, kernels, count, false);
    free(room);
    return error;
}
