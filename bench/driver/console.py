"""What the driver says, and how it gives up."""
import sys


class Stop(Exception):
    """Ends the run with a message and status 1."""


def note(text: str) -> None:
    progress("")
    print(f"bench: {text}", file=sys.stderr, flush=True)


def progress(text: str, detail: str = "") -> None:
    """One line that overwrites itself on a terminal; elsewhere a line when text is not empty and there is no detail."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text} {detail}".rstrip(" "))
        sys.stderr.flush()
    elif text and not detail:
        print(f"bench: {text}", file=sys.stderr, flush=True)
