"""The programs of the corpus, a module a family."""

from fusionq.benchmarks.corpus.program import CorpusProgram
from fusionq.benchmarks.corpus.programs import (
    clustering,
    convolution,
    corners,
    dense_solver,
    dynamic,
    fields,
    finance,
    fluids,
    hydro,
    images,
    inference,
    jacobi,
    lattice,
    multiresolution,
    pairs,
    particles,
    products,
    relaxation,
    sequences,
    solvers,
    statistics,
    thermal,
    transformer,
    weather,
)

PROGRAMS: dict[str, CorpusProgram] = {
    program.name: program
    for family in (
        jacobi,
        relaxation,
        fields,
        weather,
        thermal,
        dynamic,
        fluids,
        hydro,
        lattice,
        images,
        corners,
        multiresolution,
        solvers,
        dense_solver,
        products,
        statistics,
        clustering,
        pairs,
        particles,
        sequences,
        inference,
        convolution,
        transformer,
        finance,
    )
    for program in family.PROGRAMS
}
