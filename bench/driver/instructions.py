"""Instructions an operation of libmcrt's rows on one executor, and the record of them in bench/instructions.json.

Instructions neither drift nor depend on who else uses the machine, so a record of them can be tested against: the test
instructions (tests/instructions_test.sh) fails when a row takes more or less than TOLERANCE off. A change that is meant
to alter a figure writes the record anew, and so shows in review what it costs or saves.

A figure is the difference of two runs, so that what starting and warming up take falls out. The record holds for one
compiler, its flags, one valgrind (which decides what the processor can do) and one architecture; elsewhere a comparison
says nothing. Rejected: rows with executors of their own (threads that search for work execute what no clock sees);
perf's counters (virtual machines often have none).
"""
import json
import os
import platform
import re
import shutil
import subprocess
from typing import Dict, List

from .console import Stop, note, progress
from .machine import compiler_of
from .process import SHARED, Program
from .rows import Row

FEW, MANY = 2 * SHARED, 22 * SHARED
TOLERANCE = 0.03
SKIPPED = 77  # the status by which a test says that it can not tell


def can_be_counted(row: Row) -> bool:
    return row.executors == 1 and not row.fixed_iterations


def is_counted(row: Row) -> bool:
    return can_be_counted(row) and row.recorded


def circumstances(build: str) -> Dict[str, str]:
    done = subprocess.run(["valgrind", "--version"], capture_output=True, text=True)
    return {"compiler": compiler_of(build), "valgrind": done.stdout.strip(), "architecture": platform.machine()}


def count(program: Program, row: Row, iterations: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [program.path, row.command, str(iterations), str(row.executors)]
    done = subprocess.run(command, capture_output=True, text=True)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or match is None:
        raise Stop(f"{' '.join(command)} failed\n{done.stderr}")
    return int(match.group(1))


def per_operation(program: Program, row: Row) -> float:
    progress(f"counting {row.title}")
    few, many = (count(program, row, iterations) for iterations in (FEW, MANY))
    progress("")
    return (many - few) / (MANY - FEW)


def read_record(path: str) -> dict:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_record(path: str, here: Dict[str, str], figures: Dict[str, float]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**here, "rows": figures}, file, indent=1)
        file.write("\n")


def differences(recorded: dict, here: Dict[str, str]) -> List[str]:
    """Why the record does not hold here; [] when it does."""
    if not recorded:
        return ["there is no record"]
    unlike = [name for name in here if recorded.get(name) != here[name]]
    return [f"{name} is {here[name]}, recorded with {recorded.get(name)}" for name in unlike]


def print_row(row: Row, mine: float, theirs: float) -> bool:
    """Whether it is as recorded; theirs is 0 where nothing is."""
    change = mine / theirs - 1 if theirs else 0.0
    is_off = abs(change) > TOLERANCE
    remark = f"{theirs:>11.1f}{change:>+9.1%}" if theirs else ""
    print(f"{row.title:<21}{row.counted:<26}{mine:9.1f}{remark}{'  off' if is_off else ''}", flush=True)
    return not is_off


def instructions(ours: Program, rows: List[Row], build: str, record: str, update: bool, check: bool) -> int:
    """The exit status. update: the record becomes what is counted. check: it must be what is counted."""
    if shutil.which("valgrind") is None:
        note("--instructions needs valgrind (Debian: valgrind)")
        return SKIPPED if check else 1
    here, recorded = circumstances(build), read_record(record)
    unlike = differences(recorded, here)
    if check and unlike:
        note(f"{record} says nothing here: {'; '.join(unlike)}")
        return SKIPPED
    known = {} if unlike else recorded["rows"]
    figures: Dict[str, float] = {}
    off: List[str] = []
    print(f"{ours.label}: instructions an operation ({here['valgrind']}, {MANY - FEW} operations); recorded; change")
    for row in filter(is_counted, rows):
        figures[row.name] = round(per_operation(ours, row), 1)
        if not print_row(row, figures[row.name], known.get(row.name, 0.0)) or (check and row.name not in known):
            off.append(row.name)
    if update:
        write_record(record, here, {**known, **figures})
        print(f"written to {record}")
    elif check and off:
        note(f"not as recorded (more than {TOLERANCE:.0%} off, or new): {', '.join(off)}")
        note("if that is meant: ./run bench --instructions --update")
        return 1
    return 0
