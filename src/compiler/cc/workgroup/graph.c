/* See graph.h. Kernels have tens of blocks, rarely a hundred thousand: nothing here is kept for
 * each pair. */
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
    for (uint32_t i = 0; i < n; i++) {
        unsigned count = count_successors(graph->blocks[i]);
        if (count > 2)
            abort(); /* lower-switch left none */
        for (unsigned s = 0; s < 2; s++) {
            graph->successors[i][s] = SP_WG_NONE;
            if (s < count)
                graph->successors[i][s] = sp_wg_block_number(
                    graph, LLVMGetSuccessor(LLVMGetBasicBlockTerminator(graph->blocks[i]), s));
        }
    }
}

/* Edges in one direction, from each block and from the exit. */
struct edges {
    uint32_t *first; /* where those of each begin in `to`, and the last end */
    uint32_t *to;
};

/* The block's successors, each once; the exit where it has none. How many. */
static unsigned distinct_successors(const struct sp_wg_graph *graph, uint32_t block, uint32_t to[2])
{
    const uint32_t *all = graph->successors[block];
    to[0] = all[0] == SP_WG_NONE ? SP_WG_EXIT(graph) : all[0];
    to[1] = all[1];
    return all[1] == SP_WG_NONE || all[1] == all[0] ? 1 : 2;
}

static struct edges find_forward(const struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks, count = 0;
    struct edges edges = {sp_cc_allocate((n + 2) * sizeof(uint32_t)),
                          sp_cc_allocate(2 * n * sizeof(uint32_t))};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to[2];
        unsigned own = distinct_successors(graph, i, to);
        edges.first[i] = count;
        for (unsigned s = 0; s < own; s++)
            edges.to[count++] = to[s];
    }
    edges.first[n] = edges.first[n + 1] = count;
    return edges;
}

static struct edges turn_round(const struct edges *edges, uint32_t nodes)
{
    uint32_t count = edges->first[nodes];
    struct edges turned = {sp_cc_allocate((nodes + 1) * sizeof(uint32_t)),
                           sp_cc_allocate((count + 1) * sizeof(uint32_t))};
    uint32_t *next = sp_cc_allocate((nodes + 1) * sizeof(uint32_t));
    for (uint32_t e = 0; e < count; e++)
        turned.first[edges->to[e] + 1]++;
    for (uint32_t i = 0; i < nodes; i++)
        next[i + 1] = turned.first[i + 1] += turned.first[i];
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t e = edges->first[i]; e < edges->first[i + 1]; e++)
            turned.to[next[edges->to[e]]++] = i;
    free(next);
    return turned;
}

static void edges_finish(struct edges *edges)
{
    free(edges->first);
    free(edges->to);
}

/* Nodes that `root` reaches, those last that lead to others; gives each its place + 1 in `place`.
 * How many. */
static uint32_t put_in_postorder(const struct edges *out, uint32_t nodes, uint32_t root,
                                 uint32_t *postorder, uint32_t *place)
{
    uint32_t *stack = sp_cc_allocate(nodes * sizeof(uint32_t));
    uint32_t *next = sp_cc_allocate(nodes * sizeof(uint32_t)); /* place of an edge + 1; 0: unseen */
    uint32_t depth = 0, done = 0;
    stack[depth++] = root;
    next[root] = out->first[root] + 1;
    while (depth) {
        uint32_t node = stack[depth - 1];
        if (next[node] - 1 == out->first[node + 1]) {
            postorder[done++] = node;
            place[node] = done;
            depth--;
            continue;
        }
        uint32_t to = out->to[next[node]++ - 1];
        if (!next[to]) {
            next[to] = out->first[to] + 1;
            stack[depth++] = to;
        }
    }
    free(stack);
    free(next);
    return done;
}

/* The immediate dominator of each node, SP_WG_NONE where `root` does not reach it: Cooper, Harvey
 * and Kennedy, "A Simple, Fast Dominance Algorithm". */
static uint32_t *find_dominators(const struct edges *out, const struct edges *in, uint32_t nodes,
                                 uint32_t root)
{
    uint32_t *dominator = sp_cc_allocate(nodes * sizeof(uint32_t));
    uint32_t *postorder = sp_cc_allocate(nodes * sizeof(uint32_t));
    uint32_t *place = sp_cc_allocate(nodes * sizeof(uint32_t));
    uint32_t reached = put_in_postorder(out, nodes, root, postorder, place);
    for (uint32_t i = 0; i < nodes; i++)
        dominator[i] = SP_WG_NONE;
    dominator[root] = root;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = reached - 1; k-- > 0;) {
            uint32_t node = postorder[k], meet = SP_WG_NONE;
            for (uint32_t e = in->first[node]; e < in->first[node + 1]; e++) {
                uint32_t other = in->to[e];
                if (dominator[other] == SP_WG_NONE)
                    continue;
                if (meet == SP_WG_NONE)
                    meet = other;
                while (meet != other) {
                    if (place[meet] < place[other])
                        meet = dominator[meet];
                    else
                        other = dominator[other];
                }
            }
            changed |= dominator[node] != meet;
            dominator[node] = meet;
        }
    }
    free(postorder);
    free(place);
    return dominator;
}

/* Blocks that run for ever have nothing that comes after: the exit. */
static void find_dominance(struct sp_wg_graph *graph)
{
    uint32_t n = graph->num_blocks, exit = SP_WG_EXIT(graph);
    struct edges forward = find_forward(graph), back = turn_round(&forward, n + 1);
    graph->dominator = find_dominators(&forward, &back, n + 1, 0);
    graph->post_dominator = find_dominators(&back, &forward, n + 1, exit);
    for (uint32_t i = 0; i < n; i++)
        if (graph->post_dominator[i] == SP_WG_NONE)
            graph->post_dominator[i] = exit;
    graph->first_predecessor = back.first;
    graph->predecessors = back.to;
    edges_finish(&forward);
}

bool sp_wg_dominates(const struct sp_wg_graph *graph, uint32_t by, uint32_t block)
{
    while (block > by)
        block = graph->dominator[block];
    return block == by;
}

bool sp_wg_leads_to(const struct sp_wg_graph *graph, uint32_t from, uint32_t to)
{
    return graph->successors[from][0] == to || graph->successors[from][1] == to;
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
        SP_WG_EACH_PREDECESSOR(p, graph, block)
        if (!sp_bits_has(&loop->blocks, *p)) {
            sp_bits_add(&loop->blocks, *p);
            stack[depth++] = *p;
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
            if (to != SP_WG_NONE && sp_wg_dominates(graph, to, i))
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
    SP_WG_EACH_PREDECESSOR(p, graph, block)
    if (!sp_bits_has(placed, *p) && !sp_wg_dominates(graph, block, *p))
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

bool sp_wg_has_switch(LLVMValueRef function)
{
    LLVMBasicBlockRef block;
    for (block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        if (LLVMIsASwitchInst(LLVMGetBasicBlockTerminator(block)))
            return true;
    return false;
}

void sp_wg_graph_init(struct sp_wg_graph *graph, LLVMValueRef function)
{
    *graph = (struct sp_wg_graph){.function = function};
    number_blocks(graph);
    find_edges(graph);
    find_dominance(graph);
    find_loops(graph);
    find_order(graph);
}

void sp_wg_graph_finish(struct sp_wg_graph *graph)
{
    for (uint32_t i = 0; i < graph->num_loops; i++)
        sp_bits_finish(&graph->loops[i].blocks);
    free(graph->blocks);
    sp_map_finish(&graph->numbers);
    free(graph->successors);
    free(graph->predecessors);
    free(graph->first_predecessor);
    free(graph->dominator);
    free(graph->post_dominator);
    free(graph->loops);
    free(graph->loop_of);
    free(graph->order);
    *graph = (struct sp_wg_graph){0};
}
