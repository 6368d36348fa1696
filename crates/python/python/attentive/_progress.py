"""Progress bars on long work: tqdm's, if it is installed and somebody is watching."""

import sys
from typing import Any, Optional


def bar(total: Optional[int], unit: str, wanted: Optional[bool]) -> Any:
    """A bar of tqdm's, or None. Unless someone says whether one is wanted, a terminal and a notebook get one."""
    if wanted is False or (wanted is None and not _is_watched()):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=unit, unit_scale=unit == "B", disable=False)


def _is_watched() -> bool:
    stream = sys.stderr
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())
