"""Benchmarks: ``python -m bench core``. Ratios within one run count; times on one machine on one day do not."""
