"""How libmcrt's costs grow: the curves of bench/scale.cpp, several rounds of each, as JSON.

A round goes through all points of a curve before the next one begins, so that a machine's drift bends no curve. Curves
over executors are not pinned: what they ask is what happens when there are more executors than processors.
"""
import json
import os
import statistics
from dataclasses import dataclass
from typing import Dict, List, Tuple

from .console import Stop, progress
from .process import cpus_for, run_process

ROUNDS, QUICK_ROUNDS = 5, 3  # the least
QUICK_SHARE = 10  # --quick does a tenth of the iterations


@dataclass(frozen=True)
class Curve:
    name: str
    axis: str  # what there is more and more of
    unit: str
    at: Tuple[int, ...]
    iterations: int
    size: int = 0  # of every point, where it is the number of executors that grows


MICROTHREADS = (10, 1_000, 100_000, 1_000_000)
EXECUTORS = (1, 2, 3, 4, 5, 6, 7, 8)
ARMS = tuple(2**power for power in range(11))
WAITERS = (1, 10, 100, 1_000, 10_000)
MILLION = 1_000_000

CURVES = (
    Curve("yield", "microthreads", "ns/switch", MICROTHREADS, 10 * MILLION),
    Curve("rendezvous", "microthreads", "ns/message", MICROTHREADS, 4 * MILLION),
    Curve("pairs", "executors", "ns/message", EXECUTORS, 4 * MILLION, size=64),
    Curve("spawn_bulk", "executors", "ns/microthread", EXECUTORS, MILLION, size=MILLION),
    Curve("skynet", "executors", "ns/leaf", EXECUTORS, MILLION, size=MILLION),
    Curve("alt_waiting", "arms", "ns/message", ARMS, 2 * MILLION),
    Curve("alt_ready", "arms", "ns/message", ARMS, 200_000),
    Curve("receivers", "waiters", "ns/message", WAITERS, 2 * MILLION),
    Curve("senders", "waiters", "ns/message", WAITERS, 2 * MILLION),
)


def command(program: str, curve: Curve, at: int, quick: bool) -> List[str]:
    iterations = curve.iterations // QUICK_SHARE if quick else curve.iterations
    executors, size = (at, curve.size) if curve.size else (1, at)
    return [program, curve.name, str(iterations), str(executors), str(size)]


def sample(program: str, curve: Curve, at: int, quick: bool) -> float:
    cpus = None if curve.size else cpus_for(1)
    return float(run_process(command(program, curve, at, quick), cpus).split()[0])


def summary(values: List[float]) -> Dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def run_curve(program: str, curve: Curve, rounds: int, quick: bool) -> dict:
    values: Dict[int, List[float]] = {at: [] for at in curve.at}
    progress(f"{curve.name}: {rounds} rounds over {', '.join(f'{at:,}' for at in curve.at)} {curve.axis}")
    for turn in range(1, rounds + 1):
        for at in curve.at:
            progress(f"{curve.name}: round {turn} of {rounds}", f"{at:,} {curve.axis}")
            values[at].append(sample(program, curve, at, quick))
    progress("")
    points = [{"at": at, **summary(those)} for at, those in values.items()]
    return {"curve": curve.name, "axis": curve.axis, "unit": curve.unit, "points": points}


def print_curve(result: dict) -> None:
    print(f"{result['curve']}, {result['unit']}")
    for point in result["points"]:
        figures = "".join(f"{point[key]:>12,.1f}" for key in ("median", "min", "max"))
        print(f"  {point['at']:>10,} {result['axis']:<14}{figures}")
    print(flush=True)


def scale(build: str, names: List[str], rounds: int, quick: bool, json_path: str) -> List[dict]:
    unknown = set(names) - {curve.name for curve in CURVES}
    if unknown:
        raise Stop(f"no curve {', '.join(sorted(unknown))}; there are {', '.join(curve.name for curve in CURVES)}")
    program = os.path.join(build, "bench", "scale")
    print("how libmcrt's costs grow: median, least and greatest of the rounds\n", flush=True)
    results: List[dict] = []
    os.makedirs(os.path.dirname(os.path.abspath(json_path)), exist_ok=True)
    for curve in CURVES:
        if names and curve.name not in names:
            continue
        results.append(run_curve(program, curve, max(rounds, QUICK_ROUNDS if quick else ROUNDS), quick))
        print_curve(results[-1])
        with open(json_path, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    print(f"{json_path} has the figures")
    return results
