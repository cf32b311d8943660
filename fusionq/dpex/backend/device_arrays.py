"""Arrays of generated kernels: made inside the kernel, from an address or in fast memory.

numba-dpex passes an array as five kernel arguments and takes USM only, and it miscompiles strided
views.  An address is one argument, reaches whatever memory the device reaches, and as a
contiguous one-dimensional array its elements are addressed by the kernel's own arithmetic.

To be imported when numba-dpex is loaded, see ``environment.load_numba_dpex``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba_dpex import USMNdArray
from numba_dpex.kernel_api import AddressSpace
from numba_dpex.kernel_api_impl.spirv.target import SPIRV_TARGET_NAME

cgutils: Any = import_module("numba.core.cgutils")  # which has no types


def _nominal_length(itemsize: int) -> int:
    """Of an array whose length the kernel does not need to know.

    numba-dpex's AtomicRef adds it to a negative index, of which it takes no unsigned ones.  So it
    is as many elements as there are addresses, which leads back to the same one; but for types
    without atomic operations, of which there would be more than an int64 counts.
    """
    return (1 << 64) // itemsize if itemsize >= 4 else 1 << 60


def _array_type(dtype: Any, space: Any) -> Any:
    return USMNdArray(ndim=1, layout="C", dtype=dtype.instance_type, addrspace=space.value)


def _array(context: Any, builder: Any, type: Any, pointer: Any, length: int) -> Any:
    """An array value: numba's struct of length, element size, address, shape and strides."""
    itemsize = context.get_abi_sizeof(context.get_data_type(type.dtype))
    array = cgutils.create_struct_proxy(type)(context, builder)
    nitems, size = (context.get_constant(types.intp, n) for n in (length, itemsize))
    array.nitems, array.itemsize, array.data = nitems, size, pointer
    array.shape = cgutils.pack_array(builder, [nitems])
    array.strides = cgutils.pack_array(builder, [size])
    return array._getvalue()


def _global_array(typing_context: Any, address: Any, dtype: Any) -> Any:
    """``global_array(address, np.float32)``: global memory from ``address`` on."""
    result = _array_type(dtype, AddressSpace.GLOBAL)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(result.dtype)
        pointer = builder.inttoptr(arguments[0], element.as_pointer(result.addrspace))
        length = _nominal_length(context.get_abi_sizeof(element))
        return _array(context, builder, result, pointer, length)

    return result(address, dtype), generate


def _local_array(typing_context: Any, length: Any, dtype: Any) -> Any:
    """``local_array(64, np.float32)``: memory that the work-group shares."""
    result = _array_type(dtype, AddressSpace.LOCAL)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(result.dtype)
        block = ir.ArrayType(element, length.literal_value)
        name = builder.module.get_unique_name("local_memory")
        memory = cgutils.add_global_variable(builder.module, block, name, result.addrspace)
        memory.linkage = "internal"
        memory.initializer = ir.Constant(block, ir.Undefined)
        pointer = builder.bitcast(memory, element.as_pointer(result.addrspace))
        return _array(context, builder, result, pointer, length.literal_value)

    return result(length, dtype), generate


def _private_array(typing_context: Any, length: Any, dtype: Any) -> Any:
    """``private_array(4, np.float32)``: memory of the work-item."""
    result = _array_type(dtype, AddressSpace.PRIVATE)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(result.dtype)
        block = ir.ArrayType(element, length.literal_value)
        memory = cgutils.alloca_once(builder, block, zfill=False)
        pointer = builder.bitcast(memory, element.as_pointer(result.addrspace))
        return _array(context, builder, result, pointer, length.literal_value)

    return result(length, dtype), generate


global_array = intrinsic(target=SPIRV_TARGET_NAME)(_global_array)
local_array = intrinsic(target=SPIRV_TARGET_NAME, prefer_literal=True)(_local_array)
private_array = intrinsic(target=SPIRV_TARGET_NAME, prefer_literal=True)(_private_array)
