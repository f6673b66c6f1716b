"""A bucket of an SUnion: the rows of one stretch of ``tuple_time``, by input and lane."""

from __future__ import annotations

from typing import Generic, TypeVar

R = TypeVar("R")


class Bucket(Generic[R]):
    """Parts of each input as they arrived. Stable parts stay; tentative ones are replaced when stable ones come."""

    __slots__ = ("stable", "tentative")

    def __init__(self, inputs: int) -> None:
        self.stable: list[list[R]] = [[] for _ in range(inputs)]
        self.tentative: list[list[R]] = [[] for _ in range(inputs)]

    @property
    def empty(self) -> bool:
        return not any(self.stable) and not any(self.tentative)
