/* See print.h. */
#include "compiler/cc/print.h"

#include "compiler/cc/ir.h"
#include "compiler/cpu_abi.h"

#include <llvm-c/Target.h>
#include <stddef.h>

#define VALUE_ALIGN 8u /* values of a record are padded to it (cpu_abi.h) */

struct shape {
    struct sp_print_argument header;
    uint64_t bytes; /* padded */
};

static struct shape shape_of(LLVMTypeRef type)
{
    struct shape shape = {.header = {.kind = SP_PRINT_INTEGER, .lanes = 1}};
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        shape.header.lanes = (uint8_t)LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
    }
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
        shape.header.kind = SP_PRINT_FLOAT;
        shape.header.lane_bytes = 2;
        break;
    case LLVMFloatTypeKind:
        shape.header.kind = SP_PRINT_FLOAT;
        shape.header.lane_bytes = 4;
        break;
    case LLVMDoubleTypeKind:
        shape.header.kind = SP_PRINT_FLOAT;
        shape.header.lane_bytes = 8;
        break;
    case LLVMPointerTypeKind:
        shape.header.kind = SP_PRINT_POINTER;
        shape.header.lane_bytes = 8;
        break;
    default:
        shape.header.lane_bytes = (uint16_t)((LLVMGetIntTypeWidth(type) + 7) / 8);
        break;
    }
    shape.bytes =
        sp_ir_align_up((uint64_t)shape.header.lanes * shape.header.lane_bytes, VALUE_ALIGN);
    return shape;
}

/* The header's eight bytes as one number, in the order of its members. */
static uint64_t header_bits(struct sp_print_argument header)
{
    return (uint64_t)header.kind | (uint64_t)header.lanes << 8 | (uint64_t)header.lane_bytes << 16;
}

static LLVMValueRef address_at(LLVMContextRef context, LLVMBuilderRef builder, LLVMValueRef base,
                               uint64_t offset)
{
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(context), offset, false);
    return LLVMBuildInBoundsGEP2(builder, LLVMInt8TypeInContext(context), base, &index, 1, "");
}

static void store_lanes(LLVMContextRef context, LLVMBuilderRef builder, LLVMValueRef value,
                        const struct shape *shape, LLVMValueRef record, uint64_t offset)
{
    for (unsigned lane = 0; lane < shape->header.lanes; lane++) {
        LLVMValueRef part = value;
        if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind)
            part = LLVMBuildExtractElement(
                builder, value, LLVMConstInt(LLVMInt32TypeInContext(context), lane, false), "");
        LLVMValueRef to = address_at(context, builder, record,
                                     offset + (uint64_t)lane * shape->header.lane_bytes);
        LLVMSetAlignment(LLVMBuildStore(builder, part, to), shape->header.lane_bytes);
    }
}

LLVMValueRef sp_cc_emit_record(LLVMModuleRef module, LLVMBuilderRef builder, LLVMBuilderRef entry,
                               LLVMValueRef *operands, unsigned count, uint64_t *bytes)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(context);
    *bytes = 0;
    for (unsigned i = 1; i < count; i++)
        *bytes += sizeof(struct sp_print_argument) + shape_of(LLVMTypeOf(operands[i])).bytes;
    LLVMValueRef record =
        LLVMBuildAlloca(entry, LLVMArrayType2(i64, *bytes / VALUE_ALIGN + 1), "record");
    uint64_t offset = 0;
    for (unsigned i = 1; i < count; i++) {
        struct shape shape = shape_of(LLVMTypeOf(operands[i]));
        LLVMBuildStore(builder, LLVMConstInt(i64, header_bits(shape.header), false),
                       address_at(context, builder, record, offset));
        offset += sizeof(struct sp_print_argument);
        store_lanes(context, builder, operands[i], &shape, record, offset);
        offset += shape.bytes;
    }
    return record;
}

LLVMValueRef sp_cc_emit_print(LLVMModuleRef module, LLVMBuilderRef builder, LLVMBuilderRef entry,
                              LLVMValueRef launch, LLVMValueRef *operands, unsigned count)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(context), i32 = LLVMInt32TypeInContext(context);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0);
    uint64_t bytes;
    LLVMValueRef record = sp_cc_emit_record(module, builder, entry, operands, count, &bytes);
    LLVMTypeRef parameters[] = {pointer, pointer, pointer, i64};
    LLVMTypeRef type = LLVMFunctionType(i32, parameters, 4, false);
    LLVMValueRef print = LLVMBuildLoad2(
        builder, pointer,
        address_at(context, builder, launch, offsetof(struct sp_cpu_launch, print)), "");
    LLVMValueRef arguments[] = {
        launch,
        LLVMBuildAddrSpaceCast(builder, operands[0], pointer, ""),
        record,
        LLVMConstInt(i64, bytes, false),
    };
    return LLVMBuildCall2(builder, type, print, arguments, 4, "");
}
