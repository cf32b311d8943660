"""Whether a kernel's first parameter is its work-item: by its annotation, its name, or what it is
asked for."""

from __future__ import annotations

import ast
from typing import Literal

from fusionq.frontend.callees import Callee

ItemKind = Literal["item", "nd_item"]
_ITEM_KINDS: dict[str, ItemKind] = {"Item": "item", "NdItem": "nd_item"}


def is_item(name: str, tree: ast.FunctionDef) -> bool:
    """Whether the function takes this parameter for a work-item, whatever its annotation is."""
    if name == "item":
        return True
    from fusionq.frontend.item_queries import ITEM_MEMBERS  # few kernels need it

    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and any(node.attr in members for members in ITEM_MEMBERS.values())
        for node in ast.walk(tree)
    )


def item_kind(callee: Callee) -> ItemKind | None:
    """From the annotation of the first parameter that is not bound, an object or the text of an
    expression."""
    function = callee.function
    try:
        first, *_ = callee.free_parameters
        annotation = function.__annotations__.get(first)
    except ValueError:  # there is none
        return None
    except NameError:  # evaluated only now (Python 3.14), and imported for type checking only
        return None
    if isinstance(annotation, str):
        # The name decides, so that names imported for type checking only are understood.
        try:
            tree = ast.parse(annotation.strip(), mode="eval").body
        except SyntaxError:
            return None
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            return _ITEM_KINDS.get(tree.value.rpartition(".")[2])
        name = tree.attr if isinstance(tree, ast.Attribute) else getattr(tree, "id", None)
        resolved = function.__globals__.get(name) if isinstance(name, str) else None
        return _ITEM_KINDS.get(getattr(resolved, "__name__", None) or name or "")
    return _ITEM_KINDS.get(getattr(annotation, "__name__", ""))
