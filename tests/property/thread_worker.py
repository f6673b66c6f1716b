"""Prints digests of random cases; run in processes with other numbers of Polars threads."""

from __future__ import annotations

import random
import sys

import polars as pl

import evenflow as ef
from recipes import digest, few_keys, random_case


def main() -> None:
    for seed in range(int(sys.argv[1])):
        print(digest(ef.fold(*random_case(seed, rows=200))))
    for seed in range(3):
        print(digest(ef.fold(*few_keys(seed), bucket=random.Random(pl.thread_pool_size()).choice(["1ms", "1s"]))))


if __name__ == "__main__":
    main()
