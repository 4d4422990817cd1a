/* NUMA nodes: which processors of the device lie together.
 *
 * Read from libnuma once, when the device is found, and never changed. Only nodes that have
 * processors of the device count; they are numbered from 0 without gaps. Where libnuma knows
 * nothing, all processors are one node.
 */
#include <numa.h>

#include "device/cpu/cpu.h"

static struct {
    unsigned count;
    cpu_set_t processors[SP_CPU_MAX_NODES];
    unsigned char node_of[CPU_SETSIZE]; /* of each processor; 0 where it is not the device's */
} nodes;

static void add_node(const cpu_set_t *processors)
{
    if (!CPU_COUNT(processors))
        return;
    nodes.processors[nodes.count] = *processors;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, processors))
            nodes.node_of[cpu] = (unsigned char)nodes.count;
    nodes.count++;
}

void sp_cpu_nodes_init(const cpu_set_t *processors)
{
    cpu_set_t left = *processors;
    struct bitmask *mask = numa_available() < 0 ? NULL : numa_allocate_cpumask();
    nodes.count = 0;
    for (int node = 0; mask && node <= numa_max_node() && nodes.count < SP_CPU_MAX_NODES - 1;
         node++) {
        cpu_set_t own;
        CPU_ZERO(&own);
        if (numa_node_to_cpus(node, mask))
            continue;
        for (unsigned cpu = 0; cpu < mask->size && cpu < CPU_SETSIZE; cpu++)
            if (numa_bitmask_isbitset(mask, cpu) && CPU_ISSET(cpu, &left))
                CPU_SET(cpu, &own);
        CPU_XOR(&left, &left, &own);
        add_node(&own);
    }
    if (mask)
        numa_free_cpumask(mask);
    add_node(&left);
}

unsigned sp_cpu_num_nodes(void)
{
    return nodes.count;
}

const cpu_set_t *sp_cpu_node_processors(unsigned node)
{
    return &nodes.processors[node];
}

unsigned sp_cpu_node_here(void)
{
    int cpu = nodes.count > 1 ? sched_getcpu() : 0;
    return cpu >= 0 && cpu < CPU_SETSIZE ? nodes.node_of[cpu] : 0;
}

unsigned sp_cpu_node_of_thread(unsigned number, unsigned count)
{
    unsigned all = 0, before = 0, node = 0;
    for (unsigned i = 0; i < nodes.count; i++)
        all += (unsigned)CPU_COUNT(&nodes.processors[i]);
    while (node + 1 < nodes.count) {
        before += (unsigned)CPU_COUNT(&nodes.processors[node]);
        if ((uint64_t)number * all < (uint64_t)before * count)
            break;
        node++;
    }
    return node;
}
