"""The benchmark cases, by name."""

from fusionq.benchmarks.case import Case
from fusionq.benchmarks.cases import (
    activation_chain,
    axpy_chain,
    bias_gelu,
    group_functions,
    group_neighbours,
    long_chain,
    mlp,
    normalise,
    rearrange,
    seeds,
    stencils,
    transformer_block,
)

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        seeds.CASE,
        axpy_chain.CASE,
        activation_chain.CASE,
        bias_gelu.CASE,
        long_chain.CASE,
        group_neighbours.CASE,
        group_functions.CASE,
        *stencils.CASES,
        *rearrange.CASES,
        *normalise.CASES,
        *mlp.CASES,
        transformer_block.CASE,
    )
}
