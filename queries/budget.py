"""From end-to-end budgets to each node's X: what a path may take is shared by the nodes on it that name no X."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenflow.operators.errors import DeclarationError
from evenflow.operators.times import readable


def share(
    reads: Mapping[str, set[str]], given: Mapping[str, int | None], budgets: Mapping[str, tuple[str, int]]
) -> dict[str, int]:
    """Each node's X. ``reads`` says which nodes each reads; ``budgets`` has, by output, its node and its budget.

    >>> share({"edge": set(), "site": {"edge"}}, {"edge": None, "site": 2_000_000}, {"busy": ("site", 3_000_000)})
    {'edge': 1000000, 'site': 2000000}
    """
    found: dict[str, int] = {name: x_us for name, x_us in given.items() if x_us is not None}
    for output, (node, budget_us) in budgets.items():
        for path in _paths(node, reads):
            unset = [name for name in path if given[name] is None]
            left_us = budget_us - sum(x_us for name in path if (x_us := given[name]) is not None)
            if left_us < len(unset):
                raise DeclarationError(
                    f"deadline of {output!r}: {readable(budget_us)} is less than the x of the nodes "
                    f"{' and '.join(path)} on its path together; make it longer, or an x shorter"
                )
            for name in unset:
                found[name] = min(found.get(name, left_us), left_us // len(unset))
    return {name: found[name] for name in given}


def _paths(node: str, reads: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    if not reads[node]:
        yield (node,)
    for above in sorted(reads[node]):
        for path in _paths(above, reads):
            yield (*path, node)
