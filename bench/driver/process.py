"""Programs of the benchmark, and one process of one of them; bench/harness.hpp has their command form."""
import os
import subprocess
import time
from dataclasses import dataclass
from typing import Callable, Dict, FrozenSet, List, Optional

from .console import Stop
from .rows import Row

PROCESS_TIMEOUT_SECONDS = 120
SHARED = 1_600  # iterations are a multiple of this, so that every row can share them out evenly


@dataclass(frozen=True)
class Kind:
    """A key of Row.peers. find returns the paths of its programs: none, one, or one for each version there is."""

    find: Callable[[str], List[str]]
    limit: bool = False  # a limit that nobody is measured against: never the best peer
    needs: str = ""  # what to install when there is none


@dataclass(frozen=True)
class Program:
    kind: str
    path: str
    label: str  # "NAME VERSION"
    rows: FrozenSet[str] = frozenset()
    limit: bool = False  # as Kind.limit


def cpus_for(executors: int) -> Optional[List[int]]:
    """The highest CPUs, which interrupts visit least; None (no pinning) when there are not enough."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-executors:] if executors <= len(allowed) else None


def run_process(command: List[str], cpus: Optional[List[int]]) -> str:
    pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    try:
        done = subprocess.run(command, preexec_fn=pin, capture_output=True, text=True, timeout=PROCESS_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Stop(f"{' '.join(command)}: not done after {PROCESS_TIMEOUT_SECONDS} s")
    if done.returncode != 0:
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        raise Stop(f"{' '.join(command)}: {how}\n{done.stderr}")
    return done.stdout


@dataclass
class Sample:
    value: float
    extras: Dict[str, float]

    def figure(self, further: str) -> float:
        return self.extras[further] if further else self.value


def measure(program: Program, name: str, iterations: int, executors: int) -> Sample:
    command = [program.path, name, str(iterations), str(executors)]
    first, *rest = run_process(command, cpus_for(executors)).splitlines()
    return Sample(float(first), {name: float(value) for name, value in (line.split() for line in rest)})


def calibrate(program: Program, row: Row, target_seconds: float, quick: bool) -> int:
    """The iterations that take about target_seconds."""
    if row.fixed_iterations:
        return row.iterations(quick)
    iterations = 25 * SHARED
    while True:
        start = time.monotonic()
        measure(program, row.command, iterations, row.executors)
        took = max(time.monotonic() - start, 1e-4)
        if took >= 0.5 * target_seconds:
            return iterations
        iterations = int(iterations * min(20.0, max(2.0, target_seconds / took))) // SHARED * SHARED
