"""Many small requests of one event loop, translated together.

Each ``await`` hands over a few texts. While one batch is being translated, on a thread of its own, the next one
gathers; so a thousand requests at once are as fast as one list of a thousand texts, and a single one waits for nobody.
No translation depends on what else is in its batch.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional
from weakref import WeakKeyDictionary

from attentive._attentive import Cancel, Model, Translation

#: More texts than this are not translated together, so that the first of many requests need not wait for the last.
MOST_TEXTS = 1024


@dataclass
class _Request:
    model: Model
    texts: Sequence[str]
    prefixes: Optional[Sequence[str]]
    html: bool
    answer: "asyncio.Future[list[Translation]]"

    def goes_with(self, other: "_Request") -> bool:
        same = self.model is other.model and self.html == other.html
        return same and (self.prefixes is None) == (other.prefixes is None)


@dataclass
class _Queue:
    waiting: "list[_Request]" = field(default_factory=list)
    worker: "Optional[asyncio.Task[None]]" = None


_queues: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue]" = WeakKeyDictionary()


async def translate(
    model: Model, texts: Sequence[str], prefixes: Optional[Sequence[str]], html: bool
) -> list[Translation]:
    """The translations of these texts, beside those of other requests."""
    loop = asyncio.get_running_loop()
    queue = _queues.setdefault(loop, _Queue())
    request = _Request(model, texts, prefixes, html, loop.create_future())
    queue.waiting.append(request)
    if queue.worker is None:
        queue.worker = loop.create_task(_work(queue))
    return await request.answer


async def _work(queue: _Queue) -> None:
    try:
        while queue.waiting:
            batch = _next_batch(queue)
            if batch:
                await _answer(batch)
    finally:
        queue.worker = None
        for request in queue.waiting:  # The loop is being closed.
            request.answer.cancel()
        queue.waiting.clear()


def _next_batch(queue: _Queue) -> list[_Request]:
    """The first requests that can be translated together; those that were cancelled are left out."""
    waiting = [request for request in queue.waiting if not request.answer.done()]
    batch: list[_Request] = []
    texts = 0
    for request in waiting:
        if batch and (texts + len(request.texts) > MOST_TEXTS or not request.goes_with(batch[0])):
            break
        batch.append(request)
        texts += len(request.texts)
    queue.waiting[:] = waiting[len(batch) :]
    return batch


async def _answer(batch: list[_Request]) -> None:
    first = batch[0]
    texts = [text for request in batch for text in request.texts]
    prefixes = None
    if first.prefixes is not None:
        prefixes = [prefix for request in batch for prefix in request.prefixes or ()]
    cancel = Cancel()
    abandoned = 0

    def leave(answer: "asyncio.Future[list[Translation]]") -> None:
        nonlocal abandoned
        abandoned += answer.cancelled()
        if abandoned == len(batch):  # Nobody waits for it any more.
            cancel.cancel()

    for request in batch:
        request.answer.add_done_callback(leave)
    loop = asyncio.get_running_loop()

    def work() -> list[Translation]:
        return first.model.translate(texts, prefixes=prefixes, html=first.html, cancel=cancel)

    try:
        found = await loop.run_in_executor(None, work)
    except InterruptedError:
        return
    except asyncio.CancelledError:
        cancel.cancel()
        for request in batch:
            request.answer.cancel()
        raise
    except BaseException as error:  # Whoever waits gets it.
        for request in batch:
            if not request.answer.done():
                request.answer.set_exception(error)
        return
    begin = 0
    for request in batch:
        end = begin + len(request.texts)
        if not request.answer.done():
            request.answer.set_result(found[begin:end])
        begin = end
