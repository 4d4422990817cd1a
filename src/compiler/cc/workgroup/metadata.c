/* See metadata.h. The names are those of LLVM's language reference, "llvm.loop" and
 * "llvm.access.group".
 *
 * Work-items between two barriers are independent, so the accesses of a loop over them are
 * parallel. Unrolling before vectorisation would hide the loop from the vectoriser: it is disabled
 * on the loop as made, and allowed again on what the vectoriser leaves (its follow-up attributes),
 * which is also marked as done. */
#include "compiler/cc/workgroup/metadata.h"

#include "compiler/cc/ir.h"
#include "compiler/cc/text.h"

#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <stdbool.h>
#include <string.h>

static LLVMMetadataRef string_node(LLVMContextRef context, const char *text)
{
    return LLVMMDStringInContext2(context, text, strlen(text));
}

/* The C API makes no distinct nodes; the parser does. The node outlives the module it came in. */
LLVMMetadataRef sp_wg_access_group(LLVMContextRef context)
{
    static const char text[] = "!sp.group = !{!0}\n!0 = distinct !{}\n";
    LLVMModuleRef module = NULL;
    LLVMValueRef node = NULL;
    char *message = NULL;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "group");
    if (LLVMParseIRInContext(context, buffer, &module, &message)) {
        LLVMDisposeMessage(message);
        return NULL;
    }
    LLVMGetNamedMetadataOperands(module, "sp.group", &node);
    LLVMMetadataRef group = LLVMValueAsMetadata(node);
    LLVMDisposeModule(module);
    return group;
}

void sp_wg_mark_access(LLVMContextRef context, LLVMValueRef access, LLVMMetadataRef group)
{
    if (group)
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(context, "llvm.access.group", 17),
                        LLVMMetadataAsValue(context, group));
}

static LLVMMetadataRef flag(LLVMContextRef context, const char *name)
{
    LLVMMetadataRef part = string_node(context, name);
    return LLVMMDNodeInContext2(context, &part, 1);
}

static LLVMMetadataRef is_vectorised(LLVMContextRef context)
{
    LLVMMetadataRef parts[2] = {
        string_node(context, "llvm.loop.isvectorized"),
        LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), 1, false)),
    };
    return LLVMMDNodeInContext2(context, parts, 2);
}

/* A node whose first operand is itself is distinct, as the id of a loop must be. parts[0] is free
 * for it. */
static void set_loop(LLVMContextRef context, LLVMValueRef latch, LLVMMetadataRef *parts,
                     size_t count)
{
    parts[0] = LLVMTemporaryMDNode(context, NULL, 0);
    LLVMMetadataRef loop = LLVMMDNodeInContext2(context, parts, count);
    LLVMMetadataReplaceAllUsesWith(parts[0], loop);
    LLVMSetMetadata(latch, LLVMGetMDKindIDInContext(context, "llvm.loop", 9),
                    LLVMMetadataAsValue(context, loop));
}

void sp_wg_mark_loop(LLVMContextRef context, LLVMValueRef latch, LLVMMetadataRef group)
{
    LLVMMetadataRef followup[2] = {string_node(context, "llvm.loop.vectorize.followup_vectorized"),
                                   is_vectorised(context)};
    LLVMMetadataRef epilogue[3] = {string_node(context, "llvm.loop.vectorize.followup_epilogue"),
                                   is_vectorised(context),
                                   flag(context, "llvm.loop.unroll.disable")};
    LLVMMetadataRef parallel[2] = {string_node(context, "llvm.loop.parallel_accesses"), group};
    LLVMMetadataRef parts[5] = {
        NULL,
        flag(context, "llvm.loop.unroll.disable"),
        LLVMMDNodeInContext2(context, followup, 2),
        LLVMMDNodeInContext2(context, epilogue, 3),
        group ? LLVMMDNodeInContext2(context, parallel, 2) : NULL,
    };
    set_loop(context, latch, parts, group ? 5 : 4);
}

void sp_wg_mark_plain_loop(LLVMContextRef context, LLVMValueRef latch)
{
    LLVMMetadataRef parts[3] = {
        NULL,
        flag(context, "llvm.loop.unroll.disable"),
        is_vectorised(context),
    };
    set_loop(context, latch, parts, 3);
}

void sp_wg_mark_unrolled_loop(LLVMContextRef context, LLVMValueRef latch)
{
    LLVMMetadataRef parts[2] = {NULL, flag(context, "llvm.loop.unroll.full")};
    set_loop(context, latch, parts, 2);
}

void sp_wg_mark_partly_unrolled_loop(LLVMContextRef context, LLVMValueRef latch, unsigned turns)
{
    LLVMMetadataRef count[2] = {
        string_node(context, "llvm.loop.unroll.count"),
        LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), turns, false)),
    };
    LLVMMetadataRef parts[2] = {NULL, LLVMMDNodeInContext2(context, count, 2)};
    set_loop(context, latch, parts, 2);
}

void sp_wg_mark_rolled_loop(LLVMContextRef context, LLVMValueRef latch)
{
    LLVMMetadataRef parts[2] = {NULL, flag(context, "llvm.loop.unroll.disable")};
    set_loop(context, latch, parts, 2);
}

#define UNVERSIONED "llvm.loop.licm_versioning.disable"

void sp_wg_unmark_versions(LLVMContextRef context, LLVMValueRef latch)
{
    enum { MOST_PARTS = 16 };
    unsigned kind = LLVMGetMDKindIDInContext(context, "llvm.loop", 9), length;
    LLVMValueRef loop = LLVMGetMetadata(latch, kind), parts[MOST_PARTS], name;
    unsigned count = loop ? (unsigned)LLVMGetMDNodeNumOperands(loop) : 0;
    if (!count || count > MOST_PARTS)
        return;
    LLVMGetMDNodeOperands(loop, parts);
    for (unsigned i = 1; i < count; i++) {
        if (!parts[i] || !LLVMIsAMDNode(parts[i]) || LLVMGetMDNodeNumOperands(parts[i]) < 1)
            continue;
        LLVMGetMDNodeOperands(parts[i], &name);
        const char *text = name ? LLVMGetMDString(name, &length) : NULL;
        if (text && length == strlen(UNVERSIONED) && !memcmp(text, UNVERSIONED, length))
            LLVMSetMetadata(latch, kind, NULL);
    }
}

void sp_wg_mark_unversioned_loop(LLVMContextRef context, LLVMValueRef latch)
{
    LLVMMetadataRef parts[2] = {NULL, flag(context, UNVERSIONED)};
    set_loop(context, latch, parts, 2);
}

void sp_wg_mark_space(LLVMContextRef context, LLVMValueRef access)
{
    bool load = LLVMIsALoadInst(access), store = LLVMIsAStoreInst(access);
    if (!load && !store)
        return;
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(access, load ? 0 : 1)));
    if (space != SP_SPACE_GLOBAL && space != SP_SPACE_CONSTANT && space != SP_SPACE_LOCAL)
        return;
    LLVMMetadataRef domain = string_node(context, "samepage"), scopes[2], lists[2];
    domain = LLVMMDNodeInContext2(context, &domain, 1);
    for (int local = 0; local < 2; local++) {
        LLVMMetadataRef parts[2] = {string_node(context, local ? "local" : "global"), domain};
        scopes[local] = LLVMMDNodeInContext2(context, parts, 2);
        lists[local] = LLVMMDNodeInContext2(context, &scopes[local], 1);
    }
    bool local = space == SP_SPACE_LOCAL;
    LLVMSetMetadata(access, LLVMGetMDKindIDInContext(context, "alias.scope", 11),
                    LLVMMetadataAsValue(context, lists[local]));
    LLVMSetMetadata(access, LLVMGetMDKindIDInContext(context, "noalias", 7),
                    LLVMMetadataAsValue(context, lists[!local]));
}
