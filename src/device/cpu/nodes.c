/* NUMA nodes: which processors of the device lie together; and places, each a processor.
 *
 * Read from libnuma once, when the device is found, and never changed. Only nodes that have
 * processors of the device count; they are numbered from 0 without gaps, and so are places, node by
 * node. Where libnuma knows nothing, all processors are one node.
 */
#include <numa.h>

#include "device/cpu/cpu.h"

static struct {
    unsigned count;
    cpu_set_t processors[SP_CPU_MAX_NODES];
    unsigned num_places, per_place; /* processors of a place; the last of a node may have fewer */
    struct sp_cpu_place places[SP_CPU_MAX_PLACES + SP_CPU_MAX_NODES];
    unsigned char place_of[CPU_SETSIZE]; /* of each processor; 0 where it is not the device's */
} nodes;

static void add_node(const cpu_set_t *processors)
{
    unsigned first = nodes.num_places, count = (unsigned)CPU_COUNT(processors), seen = 0;
    if (!count)
        return;
    nodes.processors[nodes.count] = *processors;
    nodes.num_places += (count + nodes.per_place - 1) / nodes.per_place;
    for (unsigned place = first; place < nodes.num_places; place++)
        nodes.places[place] =
            (struct sp_cpu_place){.first_of_node = first, .end_of_node = nodes.num_places};
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, processors)) {
            nodes.place_of[cpu] = (unsigned char)(first + seen++ / nodes.per_place);
            nodes.places[nodes.place_of[cpu]].processors++;
        }
    nodes.count++;
}

void sp_cpu_nodes_init(const cpu_set_t *processors)
{
    cpu_set_t left = *processors;
    struct bitmask *mask = numa_available() < 0 ? NULL : numa_allocate_cpumask();
    nodes.count = nodes.num_places = 0;
    nodes.per_place = ((unsigned)CPU_COUNT(processors) - 1) / SP_CPU_MAX_PLACES + 1;
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

unsigned sp_cpu_num_places(void)
{
    return nodes.num_places;
}

const struct sp_cpu_place *sp_cpu_place(unsigned place)
{
    return &nodes.places[place];
}

unsigned sp_cpu_place_here(void)
{
    int cpu = sched_getcpu();
    return cpu >= 0 && cpu < CPU_SETSIZE ? nodes.place_of[cpu] : 0;
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
