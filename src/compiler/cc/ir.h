/* Small helpers over LLVM's C API that more than one file here needs. */
#ifndef SP_COMPILER_CC_IR_H
#define SP_COMPILER_CC_IR_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address spaces of spir64 IR (docs/compiler-contract.md). */
enum {
    SP_SPACE_PRIVATE = 0,
    SP_SPACE_GLOBAL = 1,
    SP_SPACE_CONSTANT = 2,
    SP_SPACE_LOCAL = 3,
    SP_SPACE_GENERIC = 4,
};

#define SP_BARRIER_NAME "__sp_barrier"
#define SP_ALL_NAME "__sp_all" /* workgroup/sums.c */
#define SP_GROUP_SCRATCH_NAME "__sp_group_scratch"

/* A map from pointers to pointers or numbers. Zeroed is empty. */
struct sp_map {
    struct sp_map_entry *entries; /* owned; open addressing */
    size_t capacity;              /* a power of two, or 0 */
    size_t count;
};
void sp_map_set(struct sp_map *map, const void *key, void *value);
void *sp_map_get(const struct sp_map *map, const void *key); /* NULL where absent */
void sp_map_clear(struct sp_map *map);
void sp_map_finish(struct sp_map *map);

/* The name of the function that `value` calls directly, or NULL. */
const char *sp_ir_callee(LLVMValueRef value);

/* True for a call of exactly that function. */
bool sp_ir_calls(LLVMValueRef value, const char *name);

/* True for an instruction that computes integers or addresses: it reads no memory, and harms nobody
 * whatever its operands are. */
bool sp_ir_is_computation(LLVMValueRef value);

/* True where `value` is a call of an LLVM intrinsic whose name starts with `prefix`. */
bool sp_ir_is_intrinsic(LLVMValueRef value, const char *prefix);

bool sp_ir_is_definition(LLVMValueRef function);

bool sp_ir_has_one_use(LLVMValueRef value);

/* The comparison that holds where this one does not, and the same one with its sides exchanged. */
LLVMIntPredicate sp_ir_opposite(LLVMIntPredicate predicate);
LLVMIntPredicate sp_ir_swapped(LLVMIntPredicate predicate);

/* Calls `visit` for each instruction of the module, in order. It may replace and erase the one it
 * is given, and build before and right behind it: what it builds is not visited. */
void sp_ir_each_instruction(LLVMModuleRef module,
                            void (*visit)(LLVMBuilderRef builder, LLVMValueRef value));

/* True where the constant is, or holds in an expression or aggregate, a value for which test is
 * true. */
bool sp_ir_constant_holds(LLVMValueRef constant, bool (*test)(LLVMValueRef, const void *),
                          const void *data);

/* True where an instruction of `function` uses `global`, directly or inside constants. */
bool sp_ir_uses_global(LLVMValueRef function, LLVMValueRef global);

/* Rebuilds a constant with the globals inside it replaced: replace gives the value for a global, or
 * NULL to keep it. Returns the constant itself where nothing in it is replaced. */
typedef LLVMValueRef sp_ir_replace_fn(LLVMValueRef global, void *data);
LLVMValueRef sp_ir_rebuild_constant(LLVMBuilderRef builder, LLVMValueRef constant,
                                    sp_ir_replace_fn *replace, void *data);

/* Alignment of a global variable: the one written, else its type's. */
uint32_t sp_ir_alignment(LLVMModuleRef module, LLVMValueRef global);

uint64_t sp_ir_align_up(uint64_t value, uint64_t alignment);

/* Runs a textual pass pipeline; `machine` may be NULL. A message on failure, to be freed, else
 * NULL. */
struct LLVMOpaqueTargetMachine;
char *sp_ir_run_passes(LLVMModuleRef module, const char *passes,
                       struct LLVMOpaqueTargetMachine *machine);

/* Writes the module's text as NAME.ll into the folder that SAMEPAGE_CC_DUMP names, if it does. */
void sp_ir_dump(LLVMModuleRef module, const char *name);

#endif
