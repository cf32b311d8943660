"""The benchmark cases, by name."""

from fusionq.benchmarks.case import Case
from fusionq.benchmarks.cases import (
    activation_chain,
    axpy_chain,
    bias_gelu,
    group_neighbours,
    long_chain,
    seeds,
)

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE
    for module in (seeds, axpy_chain, activation_chain, bias_gelu, long_chain, group_neighbours)
}
