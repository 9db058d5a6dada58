"""Tables of documents, from the figures of a run: what stands between two marks in a Markdown file is written anew.

    <!-- bench: begin -->          a selection, in words: README.md
    <!-- bench: begin all -->      every row, every peer
    <!-- bench: begin targets -->  every row beside its target
    <!-- bench: begin latency -->  the rows of latencies, with their further figures
    <!-- account: begin -->        where the instructions go (--account)
    <!-- bench: end -->, <!-- account: end -->

Nothing else of the file is touched: what is said about the figures is for people to write. The machine is not in the
figures' file; what stands above a table stays unless a run or its log (--log) says anew where it was.
"""
import re
from typing import Callable, Dict, List, Optional, Tuple

from .console import Stop
from .targets import TARGETS

# What stands in one column: of several versions the better one. The last takes the rest.
FAMILIES = ("Boost.Fiber", "Go", "tokio", "Erlang/OTP")
REST = "others"
LIMIT = "raw "

# README.md's rows, in its words.
SELECTION: Tuple[Tuple[str, int, str], ...] = (
    ("yield2", 1, "yield, 2 microthreads, ns"),
    ("yield100", 1, "yield, 100 microthreads, ns"),
    ("rendezvous", 1, "rendezvous ping-pong, ns a message"),
    ("stream", 1, "unbuffered stream, ns a message"),
    ("buffered_spsc", 1, "buffered, 1 producer, million messages a second"),
    ("buffered_spsc", 2, "the same (2)"),
    ("buffered_mpsc4", 1, "buffered, 4 producers, million messages a second"),
    ("buffered_mpsc4", 2, "the same (2)"),
    ("alt4", 1, "choice over 4 channels that waits, ns a message"),
    ("prialt4", 1, "the same by priority"),
    ("alt4_ready", 1, "choice over 4 channels that are ready, and a yield, ns a message"),
    ("alt64", 1, "choice over 64 channels that waits, ns a channel"),
    ("threadring", 1, "a token in a ring of 503, ns a hop"),
    ("spawn_join", 1, "spawn and join, ns"),
    ("memory_1m", 1, "a blocked microthread of a million, bytes"),
    ("create_1m", 1, "the same, until all are blocked, ns each"),
    ("rendezvous_cross", 2, "rendezvous between two executors, ns a message (2)"),
    ("skynet", 1, "a tree of 1,111,111 microthreads, ms"),
    ("skynet", 2, "the same (2)"),
    ("spawn_bulk", 2, "spawn 10⁶, then join all, ns each (2)"),
    ("mutex", 1, "lock and unlock a mutex, ns"),
    ("mutex", 2, "the same, contended by two, ns (2)"),
    ("timer_pair", 1, "start and stop a timer beside 10⁴, ns"),
    ("timers_1s", 2, "10⁵ sleepers within a second, CPU s (2)"),
    ("timers_1s_mean", 2, "the same, mean lateness, ms (2)"),
    ("timers_1s_p99", 2, "the same, lateness of 99 in 100, ms (2)"),
    ("hogs", 2, "a 1 ms ticker beside two hogs, lateness of 999 in 1,000, ms (2)"),
    ("latency_50", 2, "a message to a receiver that is busy half of the time, late by, 99 in 100, µs (2)"),
    ("idle_cpu", 2, "processor time while all wait, ms a second (2)"),
    ("machine_step", 1, "one step of a machine, ns"),
    ("machine_ask", 1, "a machine's request and its reply, ns"),
    ("machine_ask_attached", 1, "the same on an executor"),
    ("machine_parallel", 1, "one step of a machine of 20,000 on an executor, ns"),
    ("machine_parallel", 2, "the same (2)"),
    ("ledger", 2, "transfers of the ledger example, million a second (2)"),
    ("machine_memory", 1, "an idle machine, bytes"),
)


def amount(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def family_of(label: str) -> str:
    return next((family for family in FAMILIES if label.startswith(family + " ")), REST)


def columns_of(entry: dict) -> Dict[str, Tuple[float, str]]:
    """The best of each family, and its label."""
    pick = min if entry["better"] == "lower" else max
    found: Dict[str, List[Tuple[float, str]]] = {}
    for label, peer in entry["peers"].items():
        if not label.startswith(LIMIT):
            found.setdefault(family_of(label), []).append((peer["median"], label))
    return {family: pick(those) for family, those in found.items()}


def peer_cells(entry: dict) -> List[str]:
    """A figure is bold where it is better than ours."""
    columns = columns_of(entry)
    ours = entry["ours"]["median"]
    cells = []
    for family in (*FAMILIES, REST):
        if family not in columns:
            cells.append("")
            continue
        value, label = columns[family]
        text = amount(value)
        if family == REST:
            text += " " + short(label)
        is_ahead = value < ours if entry["better"] == "lower" else value > ours
        cells.append(f"**{text}**" if is_ahead else text)
    return cells


def short(label: str) -> str:
    """A peer's name without its version."""
    return label.split(" ")[0].replace("-channel", "") if not label.startswith("plain C") else "plain C"


def line_of(entry: dict, words: str) -> str:
    """libmcrt beside each family."""
    ratio = entry["ratio"]
    cells = [words, amount(entry["ours"]["median"]), *peer_cells(entry)]
    return "| " + " | ".join([*cells, f"{ratio:.2f}" if ratio is not None else ""]) + " |"


HEAD = f"| | libmcrt | {' | '.join((*FAMILIES, REST))} | against the best |\n|---|{'---|' * (len(FAMILIES) + 3)}"


def title_of(entry: dict) -> str:
    return f"`{entry['row']}`" + (f" ({entry['executors']})" if entry["executors"] > 1 else "")


def selection(entries: List[dict]) -> str:
    found = {(entry["row"], entry["executors"]): entry for entry in entries}
    chosen = [(found.get((row, executors)), words) for row, executors, words in SELECTION]
    return "\n".join([HEAD, *(line_of(entry, words) for entry, words in chosen if entry)])


def everything(entries: List[dict]) -> str:
    return "\n".join([HEAD, *(line_of(entry, f"{title_of(entry)}, {entry['unit']}") for entry in entries)])


def verdict(entry: dict, bound: float) -> str:
    median = entry["ours"]["median"]
    over = median / bound if entry["better"] == "lower" else bound / median
    if over <= 1:
        return "hit"
    return f"missed by {over - 1:.0%}" if over < 2 else f"missed, {over:.1f} times"


def targets(entries: List[dict]) -> str:
    lines = ["| row | unit | libmcrt | least, greatest | best peer | ratio | target | |", "|---|" + "---|" * 7]
    for entry in entries:
        ours, best = entry["ours"], entry["best_peer"]
        target = TARGETS.get((entry["row"], entry["executors"]))
        bound = target.bound(entry) if target else None
        cells = [title_of(entry), entry["unit"], amount(ours["median"])]
        cells += [f"{amount(ours['min'])}, {amount(ours['max'])}"]
        if best:
            figure = f"{amount(entry['peers'][best]['median'])} {best}"
            cells += [f"**{figure}**" if entry["ratio"] > 1 else figure, f"{entry['ratio']:.2f}"]
        else:
            cells += ["", ""]
        if target is None or bound is None:
            cells += ["", ""]
        else:
            wanted = target.words or (f"{target.ratio:.2f}" if target.ratio else amount(target.most or target.least))
            cells += [wanted, verdict(entry, bound)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def latency(entries: List[dict]) -> str:
    lines = ["| row | program | p50 | p99 | least, greatest | p99.9 | max | processors |", "|---|" + "---|" * 7]
    for entry in entries:
        if not entry["row"].startswith("latency_"):
            continue
        for label, figures in {"libmcrt": entry["ours"], **entry["peers"]}.items():
            further = figures["further"]
            cells = [title_of(entry) if label == "libmcrt" else "", label, amount(further["p50"])]
            cells += [amount(figures["median"]), f"{amount(figures['min'])}, {amount(figures['max'])}"]
            cells += [amount(further[name]) for name in ("p999", "max", "processors")]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


KINDS: Dict[str, Callable[[List[dict]], str]] = {
    "": selection,
    "all": everything,
    "targets": targets,
    "latency": latency,
}
CAPTIONED = ("", "targets")  # a file has one of them


# --- the file --------------------------------------------------------------------------------------------------------


def versions_of(entries: List[dict]) -> str:
    labels = dict.fromkeys(label for entry in entries for label in entry["peers"])
    return ", ".join(label for label in labels if not label.startswith(LIMIT))


def read_log(path: str) -> str:
    """The machine, system and compiler lines of what a run printed."""
    try:
        with open(path, encoding="utf-8") as file:
            found = re.findall(r"^(?:machine|system|compiler) {2,}(.+)$", file.read(), re.MULTILINE)
    except OSError as error:
        raise Stop(f"{path}: {error}") from None
    if not found:
        raise Stop(f"{path} says nothing about a machine: it is not what a run printed")
    return "; ".join(found)


def wrapped(text: str, width: int = 128) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines)


def caption(before: str, entries: List[dict], machine: Optional[str]) -> str:
    """What stands above the table: as it was where nothing is known anew."""
    if machine is None:
        return before.partition("| ")[0].strip()
    machine = re.sub(r"kernel (\d+\.\d+)[^;\s]*", r"kernel \1", machine)
    return wrapped(f"Medians of one run (`./run bench`). {machine}. Beside {versions_of(entries)}.")


def replace(text: str, kind: str, argument: str, make: Callable[[str], str]) -> Tuple[str, int]:
    """make is given what stands between the marks."""
    mark = re.escape(f"{kind}: begin{' ' + argument if argument else ''}")
    pattern = re.compile(rf"(<!-- {mark} -->\n)(.*?)(<!-- {kind}: end -->)", re.DOTALL)
    return pattern.subn(lambda match: match.group(1) + make(match.group(2)) + match.group(3), text)


def write(path: str, changes: List[Tuple[str, str, Callable[[str], str]]]) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Stop(f"{path}: {error}") from None
    count = 0
    for kind, argument, make in changes:
        text, times = replace(text, kind, argument, make)
        count += times
    if count == 0:
        raise Stop(f"{path} has no marks of {' or '.join(sorted({kind for kind, _, _ in changes}))} to write between")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{path} has the figures")


def write_rows(path: str, entries: List[dict], machine: Optional[str]) -> None:
    def make(argument: str) -> Callable[[str], str]:
        def between(before: str) -> str:
            above = caption(before, entries, machine) if argument in CAPTIONED else ""
            return (above + "\n\n" if above else "") + KINDS[argument](entries) + "\n"

        return between

    write(path, [("bench", argument, make(argument)) for argument in KINDS])


def write_account(path: str, tables: str) -> None:
    write(path, [("account", "", lambda before: tables)])
