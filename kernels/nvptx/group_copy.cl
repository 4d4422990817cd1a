/* The copy of async_work_group_copy for GPUs (plain pointers are generic here): neighbours among
 * the work-items copy neighbours in memory, in the widest pieces that the alignment allows. Every
 * caller's unit is a constant, so one of the loops is left.
 */
#include <opencl-c-base.h>

#define CONST_FUNCTION __attribute__((const))

size_t CONST_FUNCTION __sp_local_id_0(void);
size_t CONST_FUNCTION __sp_local_id_1(void);
size_t CONST_FUNCTION __sp_local_id_2(void);
size_t CONST_FUNCTION __sp_local_size_0(void);
size_t CONST_FUNCTION __sp_local_size_1(void);
size_t CONST_FUNCTION __sp_local_size_2(void);

#define COPY(T)                                                                                    \
    for (ulong i = place; i < bytes / sizeof(T); i += places)                                      \
    ((T *)destination)[i] = ((const T *)source)[i]

void __sp_target_group_copy(void *destination, const void *source, ulong bytes, uint unit)
{
    uint width = (uint)__sp_local_size_0(), height = (uint)__sp_local_size_1();
    uint row = (uint)__sp_local_id_2() * height + (uint)__sp_local_id_1();
    uint place = row * width + (uint)__sp_local_id_0();
    uint places = width * height * (uint)__sp_local_size_2();
    if (unit >= sizeof(uint4))
        COPY(uint4);
    else if (unit == sizeof(ulong))
        COPY(ulong);
    else if (unit == sizeof(uint))
        COPY(uint);
    else if (unit == sizeof(ushort))
        COPY(ushort);
    else
        COPY(uchar);
}
