"""What the rounds of a row add up to: the table, and the JSON file that it is kept in."""
import json
import os
import statistics
from dataclasses import dataclass
from typing import Dict, List, Optional

from .process import Program, Sample
from .rows import Row


@dataclass
class Result:
    row: Row
    samples: Dict[Program, List[Sample]]  # in the order of running; libmcrt first

    def summary(self, program: Program) -> Dict[str, float]:
        values = [sample.figure(self.row.further) for sample in self.samples[program]]
        return {"median": statistics.median(values), "min": min(values), "max": max(values)}

    def extras(self, program: Program) -> Dict[str, float]:
        """Medians of the further lines; a row that is one of them itself leaves them to the row that it comes from."""
        samples = [] if self.row.further else self.samples[program]
        names = samples[0].extras if samples else {}
        return {name: statistics.median(sample.extras[name] for sample in samples) for name in names}

    def entry(self, program: Program) -> dict:
        extras = self.extras(program)
        return {**self.summary(program), **({"further": extras} if extras else {})}

    @property
    def ours(self) -> Program:
        return next(program for program in self.samples if program.kind == "ours")

    @property
    def peers(self) -> List[Program]:
        return [program for program in self.samples if program.kind != "ours"]

    def best_peer(self) -> Optional[Program]:
        rivals = [program for program in self.peers if not program.limit]
        pick = min if self.row.better == "lower" else max
        return pick(rivals, key=lambda program: self.summary(program)["median"]) if rivals else None

    def ratio_to(self, program: Program) -> Optional[float]:
        """Below 1 when ours is better, whichever way the unit points."""
        ours, theirs = self.summary(self.ours)["median"], self.summary(program)["median"]
        above, below = (ours, theirs) if self.row.better == "lower" else (theirs, ours)
        return above / below if below > 0 else None

    def as_json(self) -> dict:
        best = self.best_peer()
        return {
            "row": self.row.name,
            "executors": self.row.executors,
            "unit": self.row.unit,
            "better": self.row.better,
            "ours": self.entry(self.ours),
            "peers": {program.label: self.entry(program) for program in self.peers},
            "best_peer": best.label if best else None,
            "ratio": self.ratio_to(best) if best else None,
        }


def figure(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


TABLE = "{:<21}{:<19}{:<26}{:>9}{:>9}{:>9}  {:>9}"


def print_result(result: Result) -> None:
    best = result.best_peer()
    for index, program in enumerate(result.samples):
        summary = result.summary(program)
        ratio = result.ratio_to(program) if program.kind != "ours" else None
        columns = [result.row.title, result.row.unit] if index == 0 else ["", ""]
        columns += [program.label, *(figure(summary[key]) for key in ("median", "min", "max"))]
        remarks = ["best peer"] if program == best else ["limit"] if program.limit else []
        remarks += [f"{name.replace('_', ' ')} {figure(value)}" for name, value in result.extras(program).items()]
        line = TABLE.format(*columns, f"{ratio:.2f}" if ratio is not None else "")
        print(f"{line}  {', '.join(remarks)}".rstrip(), flush=True)
    print(flush=True)


def write_json(path: str, results: List[Result]) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump([result.as_json() for result in results], file, indent=1)
        file.write("\n")
