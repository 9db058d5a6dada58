"""What each row is meant to reach. docs/performance.md says which are reached, and why others are not.

A target is a ratio to the best peer of the same run, as figures drift from machine to machine and ratios much less;
where there is no peer to measure by, or where the unit does not drift (bytes), it is an absolute figure.
"""
from dataclasses import dataclass
from typing import Dict, Optional, Tuple


@dataclass(frozen=True)
class Target:
    ratio: float = 0  # to the best peer
    most: float = 0  # in the row's unit
    least: float = 0  # likewise
    above_limit: float = 0  # in the row's unit, more than the limit that was measured beside it
    further: str = ""  # ratio to this further line of ours
    words: str = ""

    def bound(self, entry: dict) -> Optional[float]:
        """In the row's unit; None where what it is measured by is missing."""
        if self.most or self.least:
            return self.most or self.least
        if self.above_limit:
            limits = [peer["median"] for name, peer in entry["peers"].items() if name.startswith("raw ")]
            return limits[0] + self.above_limit if limits else None
        if self.further:
            beside = entry["ours"].get("further", {}).get(self.further)
            return beside * self.ratio if beside else None
        if entry["best_peer"] is None:
            return None
        best = entry["peers"][entry["best_peer"]]["median"]
        return best * self.ratio if entry["better"] == "lower" else best / self.ratio


TARGETS: Dict[Tuple[str, int], Target] = {
    ("yield2", 1): Target(above_limit=8, words="the bare jump + 8 ns"),
    ("yield100", 1): Target(above_limit=8, words="the bare jump + 8 ns"),
    ("rendezvous", 1): Target(0.48),
    ("stream", 1): Target(0.40),
    ("buffered_spsc", 1): Target(0.73),
    ("buffered_mpsc4", 1): Target(0.70),
    ("alt4", 1): Target(0.68),
    ("prialt4", 1): Target(0.70),
    ("alt4_ack", 1): Target(0.48),
    ("alt64", 1): Target(most=15),
    ("threadring", 1): Target(0.95),
    ("spawn_join", 1): Target(0.63),
    ("memory", 1): Target(most=4400),
    ("memory_1m", 1): Target(most=4400),
    ("create_1m", 1): Target(most=1000),
    ("rendezvous_cross", 2): Target(0.67),
    ("buffered_spsc", 2): Target(0.75),
    ("buffered_mpsc4", 2): Target(0.67),
    ("skynet", 1): Target(0.78),
    ("skynet", 2): Target(0.63),
    ("spawn_bulk", 2): Target(0.81),
    ("mutex", 1): Target(1.60),
    ("mutex", 2): Target(1.54),
    ("timer_pair", 1): Target(0.69),
    ("timers_1s", 2): Target(1.00),
    ("timers_1s_mean", 2): Target(0.36),
    ("timers_1s_p99", 2): Target(most=1),
    ("hogs", 2): Target(most=2, words="two quanta, 2 ms"),
    ("machine_step", 1): Target(0.94),
    ("machine_ask", 1): Target(0.97),
    ("machine_ask_attached", 1): Target(most=200),
    ("machine_parallel", 1): Target(most=80),
    ("machine_parallel", 2): Target(1 / 1.7, further="one", words="`one` / 1.7"),
    ("ledger", 2): Target(least=1),
    ("machine_memory", 1): Target(most=160),
    ("descriptor_lookup", 1): Target(1.2, further="ten", words="1.2 times `ten`"),
    ("pending_lookup", 1): Target(1.2, further="ten", words="1.2 times `ten`"),
}
