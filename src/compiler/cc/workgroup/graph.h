/* The control flow of one function: blocks as numbers, dominance, loops, and an order.
 *
 * Block 0 is the entry; only blocks that it reaches have numbers. Every block has at most two
 * successors (switches were lowered). SP_WG_EXIT(graph) is a block of no instructions that all ends
 * lead to. The graph is a snapshot: whoever changes the function makes a new one. */
#ifndef SP_COMPILER_CC_WORKGROUP_GRAPH_H
#define SP_COMPILER_CC_WORKGROUP_GRAPH_H

#include "compiler/cc/ir.h"
#include "compiler/cc/workgroup/bits.h"

#define SP_WG_EXIT(graph) ((graph)->num_blocks)
#define SP_WG_NONE UINT32_MAX

struct sp_wg_loop {
    uint32_t header;
    uint32_t parent; /* the loop around it, or SP_WG_NONE */
    struct sp_bits blocks;
};

struct sp_wg_graph {
    LLVMValueRef function;
    uint32_t num_blocks;
    LLVMBasicBlockRef *blocks;
    struct sp_map numbers;       /* block to its number + 1 */
    uint32_t (*successors)[2];   /* SP_WG_NONE where there is none */
    uint32_t *predecessors;      /* of block 0, in order, then of block 1, and last SP_WG_EXIT's */
    uint32_t *first_predecessor; /* where those of each block begin, and the last end */
    uint32_t *dominator;         /* the immediate one of each block, a smaller number; 0 for 0 */
    uint32_t *post_dominator;    /* the immediate one of each block; SP_WG_EXIT for none nearer */
    struct sp_wg_loop *loops;
    uint32_t num_loops;
    uint32_t *loop_of; /* the innermost loop around each block, or SP_WG_NONE */
    uint32_t *order;  /* a place for each block: after all its predecessors but those of back edges,
                         and  every loop in one piece */
    bool irreducible; /* a cycle with two entries: then `order` promises nothing */
};

/* Graphs are of functions whose switches were lowered: who looks at one before that asks first. */
bool sp_wg_has_switch(LLVMValueRef function);

void sp_wg_graph_init(struct sp_wg_graph *graph, LLVMValueRef function);
void sp_wg_graph_finish(struct sp_wg_graph *graph);

/* `at` points to each predecessor of `block`. */
#define SP_WG_EACH_PREDECESSOR(at, graph, block)                                                   \
    for (const uint32_t *at = (graph)->predecessors + (graph)->first_predecessor[block];           \
         at < (graph)->predecessors + (graph)->first_predecessor[(block) + 1]; at++)

/* Whether every way from the entry to `block` passes `by`, which may be the block itself. */
bool sp_wg_dominates(const struct sp_wg_graph *graph, uint32_t by, uint32_t block);

/* Whether there is an edge. */
bool sp_wg_leads_to(const struct sp_wg_graph *graph, uint32_t from, uint32_t to);

uint32_t sp_wg_block_number(const struct sp_wg_graph *graph, LLVMBasicBlockRef block);

/* The blocks that some, not all, work-items may run when they disagree at the end of `block`: those
 * reachable from it before its immediate post-dominator. Added to `blocks`. */
void sp_wg_influence(const struct sp_wg_graph *graph, uint32_t block, struct sp_bits *blocks);

#endif
