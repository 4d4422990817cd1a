/* See graph.h. Dominance is the textbook fixpoint over bit sets: kernels have tens of blocks,
 * rarely thousands. */
#include "compiler/cc/workgroup/graph.h"

#include "compiler/cc/text.h"

#include <stdlib.h>
#include <string.h>

static unsigned count_successors(LLVMBasicBlockRef block)
{
    return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block));
}

/* Numbers the blocks in reverse postorder, so that the fixpoints below end early. */
static void number_blocks(struct sp_wg_graph *graph)
{
    uint32_t total = LLVMCountBasicBlocks(graph->function), depth = 0, done = 0;
    LLVMBasicBlockRef *stack = sp_cc_allocate(total * sizeof(LLVMBasicBlockRef));
    LLVMBasicBlockRef *post = sp_cc_allocate(total * sizeof(LLVMBasicBlockRef));
    unsigned *next = sp_cc_allocate(total * sizeof(unsigned));
    struct sp_map seen = {0};
    stack[depth++] = LLVMGetEntryBasicBlock(graph->function);
    sp_map_set(&seen, stack[0], stack[0]);
    while (depth) {
        LLVMBasicBlockRef block = stack[depth - 1];
        if (next[depth - 1] == count_successors(block)) {
            post[done++] = block;
            depth--;
            continue;
        }
        LLVMBasicBlockRef successor =
            LLVMGetSuccessor(LLVMGetBasicBlockTerminator(block), next[depth - 1]++);
        if (!sp_map_get(&seen, successor)) {
            sp_map_set(&seen, successor, successor);
            next[depth] = 0;
            stack[depth++] = successor;
        }
    }
    graph->num_blocks = done;
    graph->blocks = sp_cc_allocate(done * sizeof(LLVMBasicBlockRef));
    for (uint32_t i = 0; i < done; i++) {
        graph->blocks[i] = post[done - 1 - i];
        sp_map_set(&graph->numbers, graph->blocks[i], (void *)(uintptr_t)(i + 1));
    }
    sp_map_finish(&seen);
    free(stack);
    free(post);
    free(next);
}

uint32_t sp_wg_block_number(const struct sp_wg_graph *graph, LLVMBasicBlockRef block)
{
    return (uint32_t)(uintptr_t)sp_map_get(&graph->numbers, block) - 1;
}

static void find_edges(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks;
    graph->successors = sp_cc_allocate(n * sizeof(*graph->successors));
    graph->predecessors = sp_cc_allocate(n * sizeof(struct sp_bits));
    for (uint32_t i = 0; i < n; i++)
        graph->predecessors[i] = sp_bits_create(n);
    for (uint32_t i = 0; i < n; i++) {
        unsigned count = count_successors(graph->blocks[i]);
        if (count > 2)
            abort(); /* lower-switch left none */
        for (unsigned s = 0; s < 2; s++) {
            graph->successors[i][s] = SP_WG_NONE;
            if (s >= count)
                continue;
            uint32_t to = sp_wg_block_number(
                graph, LLVMGetSuccessor(LLVMGetBasicBlockTerminator(graph->blocks[i]), s));
            graph->successors[i][s] = to;
            sp_bits_add(&graph->predecessors[to], i);
        }
    }
}

static void find_dominators(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks;
    struct sp_bits meet = sp_bits_create(n);
    graph->dominators = sp_cc_allocate(n * sizeof(struct sp_bits));
    for (uint32_t i = 0; i < n; i++) {
        graph->dominators[i] = sp_bits_create(n);
        if (i)
            sp_bits_fill(&graph->dominators[i]);
    }
    sp_bits_add(&graph->dominators[0], 0);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < n; i++) {
            sp_bits_fill(&meet);
            SP_BITS_EACH(p, &graph->predecessors[i])
            sp_bits_intersect(&meet, &graph->dominators[p]);
            sp_bits_add(&meet, i);
            changed |= sp_bits_intersect(&graph->dominators[i], &meet);
        }
    }
    sp_bits_finish(&meet);
}

/* Blocks from which an end is reached. */
static struct sp_bits find_ending(const struct sp_wg_graph *graph)
{
    struct sp_bits ending = sp_bits_create(graph->num_blocks);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = graph->num_blocks; i-- > 0;) {
            const uint32_t *to = graph->successors[i];
            bool ends = to[0] == SP_WG_NONE || sp_bits_has(&ending, to[0]) ||
                        (to[1] != SP_WG_NONE && sp_bits_has(&ending, to[1]));
            if (ends && !sp_bits_has(&ending, i)) {
                sp_bits_add(&ending, i);
                changed = true;
            }
        }
    }
    return ending;
}

static void find_post_dominators(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks, exit = SP_WG_EXIT(graph);
    struct sp_bits *sets = sp_cc_allocate((n + 1) * sizeof(struct sp_bits));
    struct sp_bits meet = sp_bits_create(n + 1);
    struct sp_bits ending = find_ending(graph);
    for (uint32_t i = 0; i <= n; i++) {
        sets[i] = sp_bits_create(n + 1);
        if (i < n)
            sp_bits_fill(&sets[i]);
    }
    sp_bits_add(&sets[exit], exit);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = n; i-- > 0;) {
            const uint32_t *to = graph->successors[i];
            sp_bits_copy(&meet, &sets[to[0] == SP_WG_NONE ? exit : to[0]]);
            if (to[1] != SP_WG_NONE)
                sp_bits_intersect(&meet, &sets[to[1]]);
            sp_bits_add(&meet, i);
            changed |= sp_bits_intersect(&sets[i], &meet);
        }
    }
    uint32_t *counts = sp_cc_allocate((n + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i <= n; i++)
        counts[i] = sp_bits_count(&sets[i]);
    graph->post_dominator = sp_cc_allocate(n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) {
        graph->post_dominator[i] = exit;
        if (!sp_bits_has(&ending, i))
            continue; /* runs for ever: nothing comes after */
        SP_BITS_EACH(p, &sets[i])
        if (p != i && counts[p] == counts[i] - 1)
            graph->post_dominator[i] = p;
    }
    free(counts);
    for (uint32_t i = 0; i <= n; i++)
        sp_bits_finish(&sets[i]);
    free(sets);
    sp_bits_finish(&meet);
    sp_bits_finish(&ending);
}

static struct sp_wg_loop *loop_with_header(struct sp_wg_graph *graph, uint32_t header)
{
    for (uint32_t i = 0; i < graph->num_loops; i++)
        if (graph->loops[i].header == header)
            return &graph->loops[i];
    graph->loops = sp_cc_reallocate(graph->loops, (graph->num_loops + 1) * sizeof(*graph->loops));
    struct sp_wg_loop *loop = &graph->loops[graph->num_loops++];
    *loop = (struct sp_wg_loop){header, SP_WG_NONE, sp_bits_create(graph->num_blocks)};
    sp_bits_add(&loop->blocks, header);
    return loop;
}

static void add_loop_body(struct sp_wg_graph *graph, struct sp_wg_loop *loop, uint32_t latch)
{
    if (sp_bits_has(&loop->blocks, latch))
        return;
    uint32_t *stack = sp_cc_allocate(graph->num_blocks * sizeof(uint32_t)), depth = 0;
    sp_bits_add(&loop->blocks, latch);
    stack[depth++] = latch;
    while (depth) {
        uint32_t block = stack[--depth];
        SP_BITS_EACH(p, &graph->predecessors[block])
        if (!sp_bits_has(&loop->blocks, p)) {
            sp_bits_add(&loop->blocks, p);
            stack[depth++] = p;
        }
    }
    free(stack);
}

/* The smallest loop that `block` is in, but `other` and those with its header; or SP_WG_NONE. */
static uint32_t smallest_loop(const struct sp_wg_graph *graph, const uint32_t *counts,
                              uint32_t block, uint32_t other)
{
    uint32_t best = SP_WG_NONE;
    for (uint32_t l = 0; l < graph->num_loops; l++)
        if (sp_bits_has(&graph->loops[l].blocks, block) &&
            (other == SP_WG_NONE || graph->loops[l].header != graph->loops[other].header) &&
            (best == SP_WG_NONE || counts[l] < counts[best]))
            best = l;
    return best;
}

static void find_loops(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks;
    for (uint32_t i = 0; i < n; i++)
        for (unsigned s = 0; s < 2; s++) {
            uint32_t to = graph->successors[i][s];
            if (to != SP_WG_NONE && sp_bits_has(&graph->dominators[i], to))
                add_loop_body(graph, loop_with_header(graph, to), i);
        }
    uint32_t *counts = sp_cc_allocate((graph->num_loops + 1) * sizeof(uint32_t));
    for (uint32_t l = 0; l < graph->num_loops; l++)
        counts[l] = sp_bits_count(&graph->loops[l].blocks);
    graph->loop_of = sp_cc_allocate(n * sizeof(uint32_t));
    for (uint32_t b = 0; b < n; b++)
        graph->loop_of[b] = smallest_loop(graph, counts, b, SP_WG_NONE);
    for (uint32_t l = 0; l < graph->num_loops; l++)
        graph->loops[l].parent = smallest_loop(graph, counts, graph->loops[l].header, l);
    free(counts);
}

/* True where all predecessors but those over back edges have their place. */
static bool is_ready(const struct sp_wg_graph *graph, const struct sp_bits *placed, uint32_t block)
{
    SP_BITS_EACH(p, &graph->predecessors[block])
    if (!sp_bits_has(placed, p) && !sp_bits_has(&graph->dominators[p], block))
        return false;
    return true;
}

static void find_order(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks, depth = 0;
    struct sp_bits placed = sp_bits_create(n);
    uint32_t *open = sp_cc_allocate((graph->num_loops + 1) * sizeof(uint32_t));
    uint32_t *left = sp_cc_allocate((graph->num_loops + 1) * sizeof(uint32_t));
    /* At each depth: no block below it waits for its place there. */
    uint32_t *least = sp_cc_allocate((graph->num_loops + 1) * sizeof(uint32_t));
    graph->order = sp_cc_allocate(n * sizeof(uint32_t));
    for (uint32_t l = 0; l < graph->num_loops; l++)
        left[l] = sp_bits_count(&graph->loops[l].blocks);
    for (uint32_t place = 0; place < n; place++) {
        while (depth && !left[open[depth - 1]])
            depth--;
        uint32_t chosen = SP_WG_NONE, fallback = SP_WG_NONE;
        const struct sp_bits *inside = depth ? &graph->loops[open[depth - 1]].blocks : NULL;
        while (sp_bits_has(&placed, least[depth]) || (inside && !sp_bits_has(inside, least[depth])))
            least[depth]++;
        for (uint32_t b = least[depth]; b < n && chosen == SP_WG_NONE; b++) {
            if (sp_bits_has(&placed, b) || (inside && !sp_bits_has(inside, b)))
                continue;
            if (fallback == SP_WG_NONE)
                fallback = b;
            if (is_ready(graph, &placed, b))
                chosen = b;
        }
        if (chosen == SP_WG_NONE) {
            graph->irreducible = true;
            chosen = fallback;
        }
        graph->order[chosen] = place;
        sp_bits_add(&placed, chosen);
        for (uint32_t l = 0; l < graph->num_loops; l++) {
            left[l] -= sp_bits_has(&graph->loops[l].blocks, chosen);
            if (graph->loops[l].header == chosen) {
                open[depth++] = l;
                least[depth] = 0;
            }
        }
    }
    sp_bits_finish(&placed);
    free(open);
    free(left);
    free(least);
}

void sp_wg_influence(const struct sp_wg_graph *graph, uint32_t block, struct sp_bits *blocks)
{
    uint32_t *stack = sp_cc_allocate((graph->num_blocks + 2) * sizeof(uint32_t)), depth = 0;
    struct sp_bits seen = sp_bits_create(graph->num_blocks);
    uint32_t end = graph->post_dominator[block], at = block;
    for (bool more = true; more;) {
        for (unsigned s = 0; s < 2; s++) {
            uint32_t to = graph->successors[at][s];
            if (to == SP_WG_NONE || to == end || sp_bits_has(&seen, to))
                continue;
            sp_bits_add(&seen, to);
            stack[depth++] = to;
        }
        more = depth > 0;
        if (more)
            at = stack[--depth];
    }
    sp_bits_unite(blocks, &seen);
    sp_bits_finish(&seen);
    free(stack);
}

void sp_wg_graph_init(struct sp_wg_graph *graph, LLVMValueRef function)
{
    *graph = (struct sp_wg_graph){.function = function};
    number_blocks(graph);
    find_edges(graph);
    find_dominators(graph);
    find_post_dominators(graph);
    find_loops(graph);
    find_order(graph);
}

void sp_wg_graph_finish(struct sp_wg_graph *graph)
{
    for (uint32_t i = 0; i < graph->num_blocks; i++) {
        sp_bits_finish(&graph->predecessors[i]);
        sp_bits_finish(&graph->dominators[i]);
    }
    for (uint32_t i = 0; i < graph->num_loops; i++)
        sp_bits_finish(&graph->loops[i].blocks);
    free(graph->blocks);
    sp_map_finish(&graph->numbers);
    free(graph->successors);
    free(graph->predecessors);
    free(graph->dominators);
    free(graph->post_dominator);
    free(graph->loops);
    free(graph->loop_of);
    free(graph->order);
    *graph = (struct sp_wg_graph){0};
}
