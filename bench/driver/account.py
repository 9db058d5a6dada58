"""Where the instructions of an operation go: libmcrt's rows on one executor, by groups of functions that add up.

callgrind counts each instruction by its address; addr2line says which functions stand inlined there. An instruction
belongs to the group of the innermost of these that GROUPS knows, so a list or an atomic that a channel uses counts as
the channel's, and what nothing matches is `other`, as is what is too little to be shown. As in instructions.py a figure
is the difference of two runs.

Nanoseconds beside it, when there are figures of a run (--from), are the measured time divided in proportion. That is a
guide and no measurement: an atomic read-modify-write takes as long as twenty plain instructions, which is why they are
counted too, and a miss of the caches appears nowhere.

Rejected: callgrind's own groups, functions or files (a function that was resumed on another stack is counted as the one
that was left, and what is inlined from the C++ library's headers as nobody's); perf (virtual machines often have no
counters, and its samples of a few nanoseconds' work slip by instructions).
"""
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from typing import Dict, List, Optional, Tuple

from .console import Stop, note, progress
from .instructions import FEW, MANY, can_be_counted
from .process import Program
from .rows import Row

# Label, and what it matches in "FILE FUNCTION", the file below the project's directory. The first that matches wins.
WAITERS = r"^src/base/list\S* mc::base::List<mc::csp|\b(Channel::(link|claim_first)|commit_(single|alt)|unlink_arms)\b"
LIBRARY = r"^src/base/alloc|\b(mem(cpy|move|set|cmp)\w*|(_int_)?(malloc|free)|calloc|operator (new|delete).*)$"
ROW_ITSELF = "the row's own code"  # with its calls into the library
GROUPS = (
    (ROW_ITSELF, r"^bench/"),
    ("context switch", r"^src/fiber/(context|sanitizer)\.|\b(jump|make|ontop)_fcontext$"),
    ("stacks", r"^src/fiber/"),
    ("simulator", r"^src/sim/|^src/abi/sim|^src/sched/simulat"),
    ("spinlocks", r"^src/base/spinlock"),
    ("handles, slabs", r"^src/base/(handle|slab)|\b(channel_at|is_handle|resolve_handle)\b"),
    ("random numbers", r"^src/base/prng"),
    ("epochs", r"^src/base/epoch|^src/sched/reclaim"),
    ("timers, clock", r"^src/sched/(timer|calendar)|^src/csp/timer_source|\b(clock_gettime|now_ns)\b"),
    ("task word, park, wake", r"^src/sched/(task_word|park|op_word|wake_word|pending|task)\."),
    ("queue, who runs next", r"^src/sched/((run|local|shared)_queue|switch|executor|many|wheel|thread_bed)\."),
    ("mutex", r"^src/sched/mutex"),
    ("arguments, thread-local", r"^src/abi/|^src/base/sync\.cpp|^src/sched/runtimes?\."),
    ("spawn, end, join", r"^src/sched/"),
    ("waiters in and out", WAITERS),
    ("choice (alt)", r"^src/csp/alt"),
    ("buffer", r"^src/csp/elements|\bElements::|\bpass_buffer\b"),
    ("channel", r"^src/csp/"),
    ("machines: tables", r"^src/machine/(descriptor|word_map|id_table|hash|table|registry)\."),
    ("machines: host", r"^src/compose/machine_host|\bMachineHost::"),
    ("machines: parties, locks", r"^src/machine/parties"),
    ("machines: mail, requests", r"^src/machine/(mailbox|delivery|asking|pending|parts|boxes|policy|subscriptions)\."),
    ("machines: effects, commit", r"^src/machine/(commit|emit)\."),
    ("machines: step", r"^src/machine/"),
    ("allocation, C library", LIBRARY),
)
OTHER = "other"
ALL = "all"
LEAST = 0.95  # instructions an operation; groups with fewer are counted as other
MATCHERS = tuple((label, re.compile(pattern)) for label, pattern in GROUPS)
LABELS = tuple(label for label, _ in GROUPS) + (OTHER,)
TOOLS = ("valgrind", "addr2line", "objdump")
COLUMNS = 5  # rows of the benchmark in one table of a document

Place = Tuple[str, str, str]  # object, address, callgrind's name of the function
Share = Dict[str, Tuple[float, float]]  # group: instructions, and atomic read-modify-writes among them


# --- counting --------------------------------------------------------------------------------------------------------


def read_counts(path: str) -> Counter:
    """Executions by Place, of a callgrind file with --dump-instr=yes and without compression."""
    counts: Counter = Counter()
    found = function = ""
    of_callee = False  # the line after calls= is what the callee took
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if of_callee:
                of_callee = False
            elif line.startswith("ob="):
                found = line[3:].strip()
            elif line.startswith("fn="):
                function = line[3:].strip().partition("'")[0]
            elif line.startswith("calls="):
                of_callee = True
            elif line.startswith("0x"):
                address, _, executed = line.split()
                counts[(found, address, function)] += int(executed)
    return counts


def run_counted(program: Program, row: Row, iterations: int) -> Counter:
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, "counts")
        command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"]
        command += [f"--callgrind-out-file={output}", program.path, row.command, str(iterations), str(row.executors)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Stop(f"{' '.join(command)} failed\n{done.stderr}")
        return read_counts(output)


# --- from an address to a group --------------------------------------------------------------------------------------


def project_path(path: str) -> str:
    """src/ROOM/FILE or bench/FILE of a file of the project, wherever it was built; else "", as the C++ library's."""
    match = re.search(r"/((?:src/\w+|bench(?:/\w+)?)/[^/:]+)(?::.*)?$", path)
    return match.group(1) if match and not path.startswith("/usr/") else ""


def frames_of(binary: str, addresses: List[str]) -> Dict[str, List[str]]:
    """For each address "FILE FUNCTION" of the functions that stand there, the innermost first."""
    if not os.path.isfile(binary):
        return {}
    command = ["addr2line", "-aifC", "-e", binary]
    done = subprocess.run(command, input="\n".join(addresses), capture_output=True, text=True)
    frames: Dict[str, List[str]] = {}
    lines = iter(done.stdout.splitlines())
    known: List[str] = []
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            known = frames.setdefault(hex(int(line, 16)), [])
        else:
            known.append(f"{project_path(next(lines, ''))} {line}")
    return frames


def group_of(frames: List[str], default: str = OTHER) -> str:
    for frame in frames:
        for label, pattern in MATCHERS:
            if pattern.search(frame):
                return label
    return default


def atomics_of(binary: str) -> frozenset:
    """The addresses of its atomic read-modify-writes."""
    if not os.path.isfile(binary):
        return frozenset()
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], capture_output=True, text=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\s+(?:lock |xchg .*\()", listing, re.MULTILINE)
    return frozenset(hex(int(address, 16)) for address in found)


class Reader:
    """Remembers what it has asked of each object."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.frames: Dict[str, Dict[str, List[str]]] = {}
        self.atomics: Dict[str, frozenset] = {}

    def learn(self, counts: Counter) -> None:
        wanted: Dict[str, List[str]] = {}
        for binary, address, _ in counts:
            if address not in self.frames.setdefault(binary, {}):
                wanted.setdefault(binary, []).append(address)
        for binary, addresses in wanted.items():
            self.frames[binary].update(frames_of(binary, addresses))
            if binary not in self.atomics:
                self.atomics[binary] = atomics_of(binary)

    def share(self, counts: Counter, operations: int) -> Share:
        self.learn(counts)
        sums: Dict[str, List[float]] = {}
        for (binary, address, function), executed in counts.items():
            of_program = os.path.basename(binary) == os.path.basename(self.program.path)
            frames = [*self.frames[binary].get(address, []), f" {function}"]
            both = sums.setdefault(group_of(frames, ROW_ITSELF if of_program else OTHER), [0, 0])
            both[0] += executed / operations
            both[1] += executed / operations if address in self.atomics.get(binary, ()) else 0
        shown = {label: (plain, atomic) for label, (plain, atomic) in sums.items() if plain >= LEAST and label != OTHER}
        left = [both for label, both in sums.items() if label not in shown]
        return {**shown, OTHER: (sum(plain for plain, _ in left), sum(atomic for _, atomic in left))}


def account_of(program: Program, row: Row, reader: Reader) -> Share:
    progress(f"counting {row.title}")
    counts = run_counted(program, row, MANY)
    counts.subtract(run_counted(program, row, FEW))
    progress("")
    return reader.share(counts, MANY - FEW)


# --- nanoseconds -----------------------------------------------------------------------------------------------------


def nanoseconds(row: Row, entries: List[dict]) -> Optional[float]:
    """Of an operation, by the figures of a run; None where they have none."""
    for entry in entries:
        if (entry["row"], entry["executors"]) != (row.name, row.executors):
            continue
        median = entry["ours"]["median"]
        if entry["unit"].startswith("M "):
            return 1e3 / median
        if row.operation and row.operation in entry["ours"].get("further", {}):
            return entry["ours"]["further"][row.operation]
        channels = re.search(r"\d+$", row.name) if row.unit == "ns/channel" else None
        return median * (int(channels.group()) if channels else 1)
    return None


# --- showing ---------------------------------------------------------------------------------------------------------


def ordered(share: Share) -> List[str]:
    return sorted(share, key=lambda label: (label == OTHER, -share[label][0]))


def print_account(row: Row, share: Share, took: Optional[float]) -> None:
    total = sum(plain for plain, _ in share.values())
    print(f"{row.title}, {row.counted}")
    for label in [*ordered(share), ALL]:
        plain, atomic = share[label] if label != ALL else (total, sum(atomic for _, atomic in share.values()))
        time = f"{took * plain / total:9.1f} ns" if took else ""
        print(f"  {label:<26}{plain:9.1f}{plain / total:>7.0%}{atomic:9.1f} atomic{time}")
    print(flush=True)


def cell(plain: float, total: float, took: Optional[float]) -> str:
    if plain < 0.5:
        return ""
    return f"{plain:,.0f} ({took * plain / total:.1f})" if took else f"{plain:,.0f}"


def as_markdown(accounts: Dict[Row, Share], entries: List[dict]) -> str:
    """Tables with a column for each row, COLUMNS at a time."""
    lines: List[str] = []
    rows = list(accounts)
    for first in range(0, len(rows), COLUMNS):
        those = rows[first : first + COLUMNS]
        totals = {row: sum(plain for plain, _ in accounts[row].values()) for row in those}
        took = {row: nanoseconds(row, entries) for row in those}
        lines += ["| | " + " | ".join(f"`{row.name}`" for row in those) + " |", "|---|" + "---|" * len(those)]
        for label in LABELS:
            cells = [cell(accounts[row].get(label, (0, 0))[0], totals[row], took[row]) for row in those]
            if any(cells):
                lines.append(f"| {label} | " + " | ".join(cells) + " |")
        cells = [f"**{cell(totals[row], totals[row], took[row])}**" for row in those]
        lines.append(f"| **{ALL}** | " + " | ".join(cells) + " |")
        atomics = [sum(atomic for _, atomic in accounts[row].values()) for row in those]
        lines += ["| of them atomic | " + " | ".join(f"{atomic:.1f}" for atomic in atomics) + " |", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def account(ours: Program, rows: List[Row], entries: List[dict]) -> Dict[Row, Share]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Stop(f"--account needs {', '.join(missing)} (Debian: valgrind, binutils)")
    left_out = [row.title for row in rows if not can_be_counted(row)]
    if left_out:
        note(f"left out, since threads or the kernel decide them: {', '.join(left_out)}")
    print(f"{ours.label}: where the instructions of an operation go ({MANY - FEW} operations)\n")
    reader, accounts = Reader(ours), {}
    for row in filter(can_be_counted, rows):
        if row.command not in ours.rows:
            note(f"{row.title} is left out: the program does not have it")
            continue
        accounts[row] = account_of(ours, row, reader)
        print_account(row, accounts[row], nanoseconds(row, entries))
    return accounts
