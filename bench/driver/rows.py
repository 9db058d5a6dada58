"""The rows of the benchmark; bench/README.md says what each measures."""
from dataclasses import dataclass
from typing import Tuple

QUICK_SHARE = 4  # --quick does a fourth of the iterations of rows that can do with fewer


@dataclass(frozen=True)
class Row:
    name: str
    executors: int
    unit: str
    better: str  # "lower" or "higher"
    peers: Tuple[str, ...]  # keys of PROGRAMS; a program that cannot do the row is left out here
    fixed_iterations: int = 0  # 0: as many as take TARGET_SECONDS
    measured_as: str = ""  # the programs' name for the row, where one of their rows gives several figures
    further: str = ""  # which of its further lines is this row's figure; "": its first line
    seconds: float = 0.5  # about what a process takes with the fixed iterations
    sampled: bool = False  # fewer of the fixed iterations are as good, only less exact
    recorded: bool = True  # among the instructions; False where that takes minutes
    operation: str = ""  # what an iteration is; "": what the unit names last

    @property
    def title(self) -> str:
        return self.name if self.executors == 1 else f"{self.name} x{self.executors}"

    @property
    def command(self) -> str:
        return self.measured_as or self.name

    @property
    def counted(self) -> str:
        """The unit of --instructions."""
        return f"instructions/{self.operation or self.unit.rpartition('/')[2]}"

    def same_runs(self, other: "Row") -> bool:
        return self.command == other.command and self.executors == other.executors

    def iterations(self, quick: bool) -> int:
        """0: to be found."""
        return self.fixed_iterations // QUICK_SHARE if quick and self.sampled else self.fixed_iterations


def timers_1s(name: str, unit: str, further: str) -> Row:
    peers = ("go", "tokio", "erlang", "libuv")
    return Row(name, 2, unit, "lower", peers, 100_000, measured_as="timers_1s", further=further, seconds=2.3)


def latency(load: int, messages: int) -> Row:
    return Row(f"latency_{load}", 2, "us", "lower", ("crossbeam", "go", "tokio"), messages, seconds=2.3, sampled=True)


MILLION = 1_000_000

ROWS = (
    Row("yield2", 1, "ns/switch", "lower", ("fcontext", "boost_fiber", "go", "tokio")),
    Row("yield100", 1, "ns/switch", "lower", ("fcontext", "boost_fiber", "go", "tokio")),
    Row("rendezvous", 1, "ns/message", "lower", ("boost_fiber", "go", "tokio")),
    Row("stream", 1, "ns/message", "lower", ("boost_fiber", "go", "tokio")),
    Row("buffered_spsc", 1, "M messages/s", "higher", ("boost_fiber", "go", "tokio"), operation="message"),
    Row("buffered_mpsc4", 1, "M messages/s", "higher", ("boost_fiber", "go", "tokio"), operation="message"),
    Row("alt4", 1, "ns/message", "lower", ("go", "tokio")),
    Row("prialt4", 1, "ns/message", "lower", ("go", "tokio")),
    Row("alt4_ready", 1, "ns/message", "lower", ("go", "tokio")),
    Row("alt4_ack", 1, "ns/message", "lower", ("go", "tokio")),
    Row("alt64", 1, "ns/channel", "lower", ("go", "tokio"), operation="message"),
    Row("threadring", 1, "ns/hop", "lower", ("boost_fiber", "go", "tokio", "erlang")),
    Row("spawn_join", 1, "ns/microthread", "lower", ("boost_fiber", "go", "tokio", "erlang")),
    Row("memory", 1, "bytes/microthread", "lower", ("boost_fiber", "go", "tokio", "erlang"), fixed_iterations=100_000),
    Row("memory_1m", 1, "bytes/microthread", "lower", ("boost_fiber", "go", "tokio", "erlang"), MILLION, seconds=6),
    Row("create_1m", 1, "ns/microthread", "lower", ("boost_fiber", "go", "tokio", "erlang"), MILLION, "memory_1m",
        "create", 6),
    Row("rendezvous_cross", 2, "ns/message", "lower", ("crossbeam", "go", "tokio")),
    Row("buffered_spsc", 2, "M messages/s", "higher", ("boost_fiber", "crossbeam", "go", "tokio")),
    Row("buffered_mpsc4", 2, "M messages/s", "higher", ("boost_fiber", "crossbeam", "go", "tokio")),
    Row("skynet", 1, "ms", "lower", ("go", "tokio", "erlang"), fixed_iterations=MILLION, seconds=1),
    Row("skynet", 2, "ms", "lower", ("go", "tokio", "erlang"), fixed_iterations=MILLION),
    Row("spawn_bulk", 2, "ns/microthread", "lower", ("go", "tokio", "erlang"), fixed_iterations=MILLION),
    Row("mutex", 1, "ns/pair", "lower", ("std_mutex", "boost_fiber", "go", "tokio")),
    Row("mutex", 2, "ns/pair", "lower", ("std_mutex", "boost_fiber", "go", "tokio")),
    Row("timer_pair", 1, "ns/pair", "lower", ("go", "tokio", "erlang", "libuv")),
    timers_1s("timers_1s", "CPU s", ""),
    timers_1s("timers_1s_mean", "ms", "mean"),
    timers_1s("timers_1s_p99", "ms", "p99"),
    Row("hogs", 2, "ms", "lower", ("go", "tokio"), fixed_iterations=2_000, seconds=2.3),
    latency(1, 2_000),
    latency(50, 100_000),
    latency(95, 190_000),
    Row("idle_cpu", 2, "ms CPU/s", "lower", ("boost_fiber", "go", "tokio"), fixed_iterations=100_000, seconds=2.1),
    Row("machine_step", 1, "ns/step", "lower", ("plain_machines",)),
    Row("machine_ask", 1, "ns/request", "lower", ("plain_machines",)),
    Row("machine_ask_attached", 1, "ns/request", "lower", ()),
    Row("machine_parallel", 1, "ns/dispatch", "lower", ("plain_machines",)),
    Row("machine_parallel", 2, "ns/dispatch", "lower", ()),
    Row("ledger", 2, "M transfers/s", "higher", (), MILLION, seconds=1.5),
    Row("machine_memory", 1, "bytes/machine", "lower", ("plain_machines",), MILLION),
    Row("descriptor_lookup", 1, "ns/step", "lower", ("plain_machines",)),
    Row("pending_lookup", 1, "ns/request", "lower", (), recorded=False),
    Row("sim_step", 1, "ns/step", "lower", (), operation="message"),
)
