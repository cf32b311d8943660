"""Random kernels with control flow, calls that write to memory, and mixed types.

Every variable has one strong type and is assigned through a cast to it, so that the compiled
kernel and plain Python agree bit for bit (a Python number and a NumPy scalar never meet on two
paths).
"""

from __future__ import annotations

import random

CASTS = {"p": "np.float32", "q": "np.int64", "r": "np.float64", "s": "np.int32"}
SIZE = 6


class Program:
    """The text of one kernel ``kernel(item, x, out, n, f)`` and of the functions it calls:
    ``x`` has ``SIZE`` elements, ``out`` is (4, ``SIZE``)."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops: list[str] = []
        self.count = 0
        self.in_kernel = False
        self.scopes = 0
        device = self.device_function()
        self.in_kernel = True
        lines = [
            *device,
            "def put(a, j, v):",
            "    a[j] = v",
            "    return v + 1",
            "def kernel(item, x, out, n, f):",
            "    i = item.get_id(0)",
            "    p, q, r, s = np.float32(0.5), np.int64(i), np.float64(1.25), np.int32(3)",
            "    def local(a, b=q):",
            "        if a < b:",
            "            return np.float32(a + p)",
            "        x[i] += s",
            "        return np.float32(b - q)",
            *self.block("    ", 0, False, 7),
            *(f"    out[{row}, i] += {name}" for row, name in enumerate(CASTS)),
        ]
        self.text = "\n".join(lines) + "\n"

    def device_function(self) -> list[str]:
        """A function with returns in the middle; assigns its own variables only."""
        head = ["def device(a, b):", "    x, i, n, f = (a, b), 0, 2, 1.5"]
        head += [f"    {name} = {cast}(a)" for name, cast in CASTS.items()]
        body = self.block("    ", 1, False, 3)
        return [*head, *body, "    return np.float32(p + q)"]

    def leaf(self) -> str:
        literal = repr(self.random.choice([0, 1, 2, 3, -1, 0.5, -2.5]))
        elements = ["x[i]", f"x[(i + 1) % {SIZE}]"] if self.in_kernel else ["x[0]", "x[1]"]
        return self.random.choice([*CASTS, *elements, "n", "f", *self.loops, literal])

    def number(self, depth: int = 0) -> str:
        choose = self.random.choice
        if depth > 3 or self.random.random() < 0.25:
            return self.leaf()

        def inner() -> str:
            return self.number(depth + 1)

        kind = self.random.randrange(18)
        if kind == 13 and not self.scopes:
            name, cast = choose(list(CASTS.items()))
            return f"({name} := {cast}({inner()}))"
        if kind == 14:
            return f"np.float32(sum({self.generator(depth)}))"
        if kind == 15:
            return f"(lambda v, w={inner()}: v - w * {self.leaf()})({inner()})"
        if kind == 17:
            sides = [f"np.float32({inner()})" for _ in "abc"]
            op = choose(["{} or {}", "{} and {}", "{} and {} or {}", "max(({}, {}) + ({},))"])
            return f"({op.format(*sides)})"
        if kind == 16 and self.in_kernel:
            return f"local({inner()})"
        if kind < 4:
            return f"({inner()} {choose('+-*')} {inner()})"
        if kind == 4:
            return f"({inner()} {choose(['/', '//', '%'])} {inner()})"
        if kind == 5:
            return f"min(np.float32({inner()}), np.float32({inner()}))"
        if kind == 6:
            return f"np.float32({inner()})"
        if kind == 7:
            return f"abs({inner()})"
        if kind == 8:
            sides = [f"np.float32({inner()})" for _ in "ab"]
            return f"({sides[0]} if {self.condition(depth + 1)} else {sides[1]})"
        if kind == 9 and self.in_kernel:
            return f"device({inner()}, {inner()})"
        if kind == 10 and self.in_kernel:
            return f"put(x, (i + {self.random.randrange(3)}) % {SIZE}, {inner()})"
        if kind == 11:
            return f"np.int64({inner()})"
        if kind == 12:
            return f"np.where({self.condition(depth + 1)}, {inner()}, {inner()})"
        return f"np.int32({inner()})"

    def generator(self, depth: int) -> str:
        """Numbers of one type, made by a generator."""
        self.count += 1
        variable = f"j{self.count}"
        items = self.random.choice(["range(3)", "(2, 0, 5)", "range(1, 1)", "range(n)"])
        self.scopes += 1
        self.loops.append(variable)
        number = f"np.float32({self.number(depth + 2)})"
        test = f" if {self.condition(depth + 2)}" if self.random.random() < 0.3 else ""
        self.loops.pop()
        self.scopes -= 1
        return f"{number} for {variable} in {items}{test}"

    def condition(self, depth: int = 0) -> str:
        kind = self.random.randrange(7)
        if kind == 6:
            return f"{self.random.choice(['any', 'all'])}({self.generator(depth)})"
        a, b = self.number(depth + 1), self.number(depth + 1)
        if depth > 3 or kind < 3:
            return f"({a} {self.random.choice(['<', '<=', '>', '==', '!='])} {b})"
        if kind == 3:
            return f"({a} < {b} <= {self.number(depth + 1)})"
        if kind == 4:
            op = self.random.choice(["and", "or"])
            return f"({self.condition(depth + 1)} {op} {self.condition(depth + 1)})"
        return f"(not {self.condition(depth + 1)})"

    def assignment(self) -> str:
        kind = self.random.randrange(6)
        name, cast = self.random.choice(list(CASTS.items()))
        if kind < 3 or not self.in_kernel:
            return f"{name} = {cast}({self.number()})"
        if kind < 5:
            op = "=" if kind == 3 else "+="
            return f"out[{self.random.randrange(4)}, i] {op} {self.number()}"
        return f"x[i] {self.random.choice(['=', '+=', '*='])} {self.number()}"

    def jump(self, in_loop: bool) -> str:
        back = "return" if self.in_kernel else f"return np.float32({self.random.choice('pqrs')})"
        return self.random.choice([back, "break", "continue", "break"] if in_loop else [back])

    def block(self, indent: str, depth: int, in_loop: bool, limit: int = 4) -> list[str]:
        deeper, lines = indent + "    ", []
        for _ in range(self.random.randrange(1, limit)):
            kind = self.random.randrange(10)
            if depth > 2 or kind < 4:
                lines.append(indent + self.assignment())
            elif kind < 7:
                lines.append(f"{indent}if {self.condition()}:")
                lines += self.block(deeper, depth + 1, in_loop)
                if self.random.random() < 0.5:
                    lines.append(f"{indent}else:")
                    lines += self.block(deeper, depth + 1, in_loop)
            elif kind == 7:
                self.count += 1
                bounds = self.random.choice(
                    ["3", "n", "1, 4", "5, 0, -2", "n, 0, -1", "i % 3" if self.in_kernel else "2"]
                )
                items = f"range({bounds})"
                if self.random.random() < 0.4:
                    bounds = "3"
                    items = self.random.choice(["(2, 0, 3)", "(1, n)", "(n - 1, q, 4)"])
                lines.append(f"{indent}for k{self.count} in {items}:")
                self.loops.append(f"k{self.count}")
                lines += self.block(deeper, depth + 1, True)
                last = self.loops.pop()
                if not bounds.startswith("i") and self.random.random() < 0.5:
                    lines.append(f"{indent}q = np.int64(q + {last})")
            elif kind == 8:
                self.count += 1
                name = f"w{self.count}"
                lines.append(f"{indent}{name} = 0")
                lines.append(f"{indent}while {name} < 4 and {self.condition()}:")
                lines.append(f"{deeper}{name} += 1")
                lines += self.block(deeper, depth + 1, True)
            else:
                lines.append(f"{indent}if {self.condition()}:")
                lines.append(deeper + self.jump(in_loop))
        return lines
