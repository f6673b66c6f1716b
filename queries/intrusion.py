"""Network intrusion: three monitors watch a network; hosts that knock on many ports are reported.

The example of the Borealis paper (§1): each monitor sends a record for every packet it sees. Some answers are worth
having even when one monitor is cut off.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import evenflow as ef

MONITORS = ("monitor1", "monitor2", "monitor3")
PACKET = {"src": pl.String, "port": pl.Int64, "bytes": pl.Int64}
PORTS_SUSPICIOUS = 40

net = ef.Network("intrusion")
monitors = [net.source(name, PACKET) for name in MONITORS]
packets = net.union(*monitors).named("packets")
busy = (
    packets.filter(pl.col("bytes") > 0)
    .window("1s", every="500ms", by="src")
    .agg(n=ef.count(), total=ef.sum("bytes"), ports=pl.col("port").n_unique())
    .named("busy")
)
busy.output("busy")
scans = busy.filter(pl.col("ports") >= PORTS_SUSPICIOUS).top(3, by="ports", ties=True).named("scans")
scans.output("scans")

app = ef.Deployment(net, bucket="100ms")
app.node("edge", [packets], x="1s", replicas=2)
app.node("site", [scans], x="2s", replicas=2)


def inputs(seed: int = 0, seconds: int = 30, rate: int = 5_000) -> dict[str, pl.DataFrame]:
    """Packets of a quiet network in which two hosts scan ports for a while; ``rate`` a second for each monitor."""
    rng = np.random.default_rng(seed)
    return {name: _monitored(rng, seconds, rate) for name in MONITORS}


def _monitored(rng: np.random.Generator, seconds: int, rate: int) -> pl.DataFrame:
    n = seconds * rate
    stamps = np.sort(rng.integers(0, seconds * 1_000_000, n))
    src = rng.zipf(1.3, n) % 500
    port = rng.choice([22, 53, 80, 443, 8080], n, p=[0.05, 0.15, 0.3, 0.45, 0.05])
    for scanner, begin, end in ((901, 0.2, 0.35), (902, 0.6, 0.7)):
        scanning = (stamps > begin * seconds * 1e6) & (stamps < end * seconds * 1e6) & (rng.random(n) < 0.02)
        src[scanning] = scanner
        port[scanning] = rng.integers(1, 1024, int(scanning.sum()))
    size = rng.integers(40, 1500, n)
    size[rng.random(n) < 0.1] = 0
    hosts = pl.Series([f"10.0.{i // 256}.{i % 256}" for i in range(1024)])
    return pl.DataFrame({"tuple_time": stamps, "src": hosts[src], "port": port, "bytes": size})
