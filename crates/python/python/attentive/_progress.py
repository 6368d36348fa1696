"""Progress bars on long work: tqdm's, if it is installed and somebody is watching."""

import sys
from types import TracebackType
from typing import Any, Optional


class Bar:
    """A bar of tqdm's, or nothing. Unless someone says whether one is wanted, terminals and notebooks get one."""

    def __init__(self, total: Optional[int], unit: str, wanted: Optional[bool]) -> None:
        self._bar: Any = None
        if wanted is False or (wanted is None and not _is_watched()):
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B")

    def add(self, count: int) -> None:
        """So much more is done."""
        if self._bar is not None:
            self._bar.update(count)

    def show(self, done: int, all: Optional[int]) -> None:
        """So much is done, of so much."""
        if self._bar is not None:
            self._bar.total = all
            self._bar.update(done - self._bar.n)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __bool__(self) -> bool:
        return self._bar is not None


def _is_watched() -> bool:
    stream = sys.stderr
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())
