"""Charts of the figures, as SVG: rows beside their peers, and curves. Nothing else needs matplotlib, which draws them.

They stand in documents with a light or a dark background: nothing is filled, and text and lines are of a grey that is
legible on both. The same figures give the same file.

Rejected: bars of the figures themselves (nanoseconds, bytes and messages a second have no common axis), and one chart a
row (thirty of them compare nothing).
"""
import os
from typing import Dict, List, Tuple

from .console import Stop

GREY = "#7d8590"
BETTER, WORSE = "#3b8eea", "#d9822b"
PEERS = ("#8a63d2", "#2da44e", "#cf4a7a", "#1b9aaa", "#b58900", "#a0522d", "#6e7781", "#d1242f", "#5b8c00", "#3f6fd8")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<", ">", "p")
WIDEST = 100.0  # ratios beyond are drawn there
LIMIT = "raw fcontext"  # no rival: what a bare switch takes


def pyplot():
    try:
        import matplotlib
    except ImportError:
        raise Stop("charts need matplotlib (Debian: python3-matplotlib); ./run bench --chart installs it") from None
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "mcrt", "font.family": "sans-serif", "font.size": 9,
        "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
        "axes.facecolor": "none", "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    })  # fmt: skip
    from matplotlib import pyplot as plt

    return plt


def save(plt, figure, path: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    figure.savefig(path, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    print(f"{path} has the chart")


# --- rows ------------------------------------------------------------------------------------------------------------


def amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def title(entry: dict) -> str:
    return entry["row"] if entry["executors"] == 1 else f"{entry['row']} x{entry['executors']}"


def against_best(entry: dict, median: float) -> float:
    """How many times the best peer's cost; below 1 is better. Within what the chart has room for."""
    best = entry["peers"][entry["best_peer"]]["median"]
    above, below = (median, best) if entry["better"] == "lower" else (best, median)
    ratio = above / below if below > 0 else WIDEST
    return min(max(ratio, 1 / WIDEST), WIDEST)


def styles_of(entries: List[dict]) -> Dict[str, Tuple[str, str]]:
    names = dict.fromkeys(name for entry in entries for name in entry["peers"])
    return {name: (PEERS[i % len(PEERS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}


def draw_row(axes, y: int, entry: dict, styles: Dict[str, Tuple[str, str]]) -> None:
    ours = against_best(entry, entry["ours"]["median"])
    axes.barh(y, ours - 1, left=1, height=0.56, color=BETTER if ours <= 1 else WORSE, zorder=2)
    for name, peer in entry["peers"].items():
        color, marker = styles[name]
        hollow = "none" if name.startswith(LIMIT) else color
        axes.plot(against_best(entry, peer["median"]), y, marker, ms=5, color=color, mfc=hollow, zorder=3)
    figure = f"{amount(entry['ours']['median'])} {entry['unit']}"
    axes.text(1.02, y, figure, transform=axes.get_yaxis_transform(), va="center")


def label_axis(axes, entries: List[dict]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=30))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color=GREY, lw=1, zorder=1)
    axes.grid(axis="x", color=GREY, alpha=0.25, lw=0.6)
    axes.set_yticks(range(len(entries)), [title(entry) for entry in entries])
    axes.set_ylim(len(entries) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("cost, as a multiple of the best peer's (log scale): left of 1, less")
    axes.text(1.02, -0.9, "libmcrt", transform=axes.get_yaxis_transform(), va="bottom", weight="bold")


def draw_rows(entries: List[dict], path: str) -> None:
    """entries: as bench.json has them. Rows without a peer are left out."""
    entries = [entry for entry in entries if entry["best_peer"]]
    if not entries:
        raise Stop("there is no row with a peer to draw")
    plt = pyplot()
    styles = styles_of(entries)
    figure, axes = plt.subplots(figsize=(7.5, 1.4 + 0.27 * len(entries)))
    for y, entry in enumerate(entries):
        draw_row(axes, y, entry, styles)
    label_axis(axes, entries)
    handles = [plt.Rectangle((0, 0), 1, 1, color=BETTER), plt.Rectangle((0, 0), 1, 1, color=WORSE)]
    labels = ["libmcrt, better than the best peer", "libmcrt, worse"]
    for name, (color, marker) in styles.items():
        hollow = "none" if name.startswith(LIMIT) else color
        handles.append(plt.Line2D([], [], color=color, marker=marker, mfc=hollow, ls="", ms=5))
        labels.append(f"{name} (a limit)" if name.startswith(LIMIT) else name)
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(-0.2, 1 + 0.7 / len(entries)), ncol=3)
    save(plt, figure, path)


# --- curves ----------------------------------------------------------------------------------------------------------


def draw_axis(plt, axis: str, results: List[dict], path: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = plt.subplots(figsize=(6, 3.6))
    for index, result in enumerate(results):
        points = result["points"]
        medians = [point["median"] for point in points]
        spread = [[p["median"] - p["min"] for p in points], [p["max"] - p["median"] for p in points]]
        axes.errorbar([point["at"] for point in points], medians, yerr=spread, color=PEERS[index], lw=1.4, capsize=2,
                      marker=MARKERS[index], ms=4, label=f"{result['curve']} ({result['unit']})")  # fmt: skip
    axes.set_xscale("log", base=2 if axis in ("arms", "executors") else 10)
    axes.set_yscale("log")
    for which in (axes.xaxis, axes.yaxis):
        which.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if f"{x:e}"[0] in "25" else ""))
    axes.grid(color=GREY, alpha=0.25, lw=0.6)
    axes.set_xlabel(axis)
    axes.set_ylabel("ns an operation")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=2)
    save(plt, figure, path)


def draw_curves(results: List[dict], directory: str) -> None:
    """One file for each axis."""
    plt = pyplot()
    for axis in dict.fromkeys(result["axis"] for result in results):
        those = [result for result in results if result["axis"] == axis]
        draw_axis(plt, axis, those, os.path.join(directory, f"{axis}.svg"))
