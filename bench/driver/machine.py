"""The machine that the figures come from."""
import os
import platform
import re
import subprocess
import time
from typing import List

from .console import note

BUSY_CPUS = 0.1  # CPUs that others use before the first run: above this the figures are not for the record


def first_match(path: str, pattern: str, default: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return default
    return match.group(1).strip() if match else default


def compiler_of(build: str) -> str:
    cache = os.path.join(build, "CMakeCache.txt")
    compiler = first_match(cache, r"^CMAKE_CXX_COMPILER:\w+=(.*)$", "c++")
    flags = first_match(cache, r"^CMAKE_CXX_FLAGS:\w+=(.*)$", "")
    try:
        lines = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.splitlines()
    except OSError:
        lines = []
    return f"{lines[0] if lines else compiler}, {flags}".rstrip(", ")


def machine_lines(build: str) -> List[str]:
    cpu = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", platform.machine())
    system = first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', platform.system())
    return [
        f"machine   {cpu}, {platform.machine()}, {len(os.sched_getaffinity(0))} CPUs",
        f"system    {system}, kernel {platform.release()}",
        f"compiler  {compiler_of(build)}",
    ]


def cpu_seconds_used() -> float:
    """By the whole machine since it started: all of /proc/stat's first line but idle and iowait."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def warn_if_busy() -> None:
    before, start = cpu_seconds_used(), time.monotonic()
    time.sleep(1)
    busy = (cpu_seconds_used() - before) / (time.monotonic() - start)
    if busy > BUSY_CPUS:
        note(f"others use {busy:.1f} CPUs of this machine: these figures are not for the record")
