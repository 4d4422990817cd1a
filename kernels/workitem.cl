/* Work-item functions (OpenCL C 3.0, 6.15.1).
 *
 * Each is a choice among the three dimensions that the launch record has; a dimension that the
 * NDRange does not use is filled in there with size 1, id 0 and offset 0, which is what the
 * specification wants of it, so only dimensions above 2 need an answer here. In almost every kernel
 * the dimension is a constant, and the switch disappears.
 *
 * The global id is counted in full work-groups, since only the last group of a dimension is
 * smaller.
 */
#include "gentype.h"

#define BY_DIMENSION(name, value, outside)                                                         \
    size_t OVERLOAD name(uint dimension)                                                           \
    {                                                                                              \
        switch (dimension) {                                                                       \
        case 0:                                                                                    \
            return value(0);                                                                       \
        case 1:                                                                                    \
            return value(1);                                                                       \
        case 2:                                                                                    \
            return value(2);                                                                       \
        default:                                                                                   \
            return outside;                                                                        \
        }                                                                                          \
    }

#define LOCAL_ID(d) __sp_local_id_##d()
#define GROUP_ID(d) __sp_group_id_##d()
#define LOCAL_SIZE(d) __sp_local_size_##d()
#define ENQUEUED_LOCAL_SIZE(d) __sp_enqueued_local_size_##d()
#define GLOBAL_SIZE(d) __sp_global_size_##d()
#define GLOBAL_OFFSET(d) __sp_global_offset_##d()
#define NUM_GROUPS(d) __sp_num_groups_##d()
#define ID_WITHOUT_OFFSET(d) (GROUP_ID(d) * ENQUEUED_LOCAL_SIZE(d) + LOCAL_ID(d))
#define GLOBAL_ID(d) (ID_WITHOUT_OFFSET(d) + GLOBAL_OFFSET(d))

BY_DIMENSION(get_global_id, GLOBAL_ID, 0)
BY_DIMENSION(get_global_size, GLOBAL_SIZE, 1)
BY_DIMENSION(get_global_offset, GLOBAL_OFFSET, 0)
BY_DIMENSION(get_local_id, LOCAL_ID, 0)
BY_DIMENSION(get_local_size, LOCAL_SIZE, 1)
BY_DIMENSION(get_enqueued_local_size, ENQUEUED_LOCAL_SIZE, 1)
BY_DIMENSION(get_group_id, GROUP_ID, 0)
BY_DIMENSION(get_num_groups, NUM_GROUPS, 1)

uint OVERLOAD get_work_dim(void)
{
    return __sp_work_dim();
}

size_t OVERLOAD get_global_linear_id(void)
{
    return (ID_WITHOUT_OFFSET(2) * GLOBAL_SIZE(1) + ID_WITHOUT_OFFSET(1)) * GLOBAL_SIZE(0) +
           ID_WITHOUT_OFFSET(0);
}

size_t OVERLOAD get_local_linear_id(void)
{
    return (LOCAL_ID(2) * LOCAL_SIZE(1) + LOCAL_ID(1)) * LOCAL_SIZE(0) + LOCAL_ID(0);
}
