#!/usr/bin/env bash
# Compares the numbers and structs that cuda_api.h declares with NVIDIA's cuda.h, where a toolkit is installed.
# Exit 77: there is none.
set -euo pipefail
ours=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/src/device/process/cuda/cuda_api.h
include=${CUDA_HOME:-/usr/local/cuda}/include
[ -f "$include/cuda.h" ] || { echo "skipped: there is no $include/cuda.h"; exit 77; }
{
  echo '#include <cuda.h>'
  sed -n 's/^    \(CU[A-Z0-9_]*\) = \([0-9]*\),.*/_Static_assert((int)\1 == \2, "\1");/p' "$ours"
  echo '_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp");'
  echo '_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc");'
  echo '_Static_assert(sizeof(CUuuid) == 16, "CUuuid");'
  echo '_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == 72, "CUDA_KERNEL_NODE_PARAMS");'
} >"${TMPDIR:-/tmp}/check_cuda_api.$$.c"
trap 'rm -f "${TMPDIR:-/tmp}/check_cuda_api.$$.c"' EXIT
cc -std=c17 -I"$include" -fsyntax-only "${TMPDIR:-/tmp}/check_cuda_api.$$.c"
echo "$(grep -c Static_assert "${TMPDIR:-/tmp}/check_cuda_api.$$.c") declarations are as in cuda.h"
