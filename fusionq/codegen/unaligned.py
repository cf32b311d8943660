"""Elements that do not lie at multiples of their size, in dialects of C with GNU's attributes."""

from __future__ import annotations


def unaligned_structure(storage: str, alignment: int) -> tuple[str, str]:
    """The name of a structure whose member ``value``, of the type ``storage``, lies at a multiple
    of ``alignment`` bytes, in memory that may have any other type, and its definition."""
    name = f"fq_unaligned_{storage.replace(' ', '_').removeprefix('fq_')}_{alignment}"
    attributes = f"__attribute__((packed, aligned({alignment}), may_alias))"
    return name, f"typedef struct {attributes} {{ {storage} value; }} {name};"
