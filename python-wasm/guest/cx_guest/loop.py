"""The event loop: asyncio's own, with one waiting host call in the place of a selector.

Calls in flight are in `calls`, whichever loop waits for them: there is one interpreter and one thread. Their
completions may arrive during any wait, also a blocking one, and resolve their futures then.
"""

import asyncio
import heapq
import math
import time
from asyncio import base_events, events, tasks, unix_events
from types import TracebackType

import wit_world

from cx_guest import refusals
from cx_guest.output import say

_start_call = wit_world.start_call
_wait = wit_world.wait
_QUERY = wit_world.Operation.QUERY
_running_loop = events._get_running_loop
_monotonic = time.monotonic

_NO_THREADS = "scripts have no threads: call the function directly, without `to_thread` or `run_in_executor`"
_NO_PROCESSES = refusals.PROCESS
_NO_SIGNALS = refusals.SIGNALS
_NO_NETWORK = "scripts have no sockets; `await fetch(url)` reaches hosts that a person has granted (`--allow-net HOST`)"

# The futures that wait for calls in flight, by the number of the call.
calls: dict[int, asyncio.Future] = {}
# Answers to blocking calls that arrived during the wait for another one.
_answers: dict[int, str] = {}
_blocking: set[int] = set()


def deliver(completions: list) -> None:
    """Resolves the future of each completion. A completion whose future is gone is dropped."""
    for completion in completions:
        number = completion.call
        future = calls.pop(number, None)
        if future is not None:
            if not future.done():
                try:
                    future.set_result(completion.answer)
                except RuntimeError:
                    # Its loop is closed.
                    pass
        elif number in _blocking:
            _answers[number] = completion.answer


def wait(timeout_ms: float) -> None:
    """Waits this many milliseconds, as `time.sleep` does. Completions are kept for the loop."""
    end = _monotonic() + timeout_ms / 1000.0
    while timeout_ms > 0:
        deliver(_wait(timeout_ms))
        timeout_ms = (end - _monotonic()) * 1000.0


def sleep(seconds, /) -> None:
    """Sleeps in the host. Tool calls that end meanwhile are kept for the event loop."""
    # What `float` refuses, the original refused too; `-0.0` is zero.
    seconds = float(seconds)
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    end = _monotonic() + seconds
    # The host may return early, when a call ends.
    while (left := end - _monotonic()) > 0:
        wait(left * 1000)


def limit(number: int, timeout_ms: float | None) -> None:
    """Gives the call of a tool with this number so much time for its answer. The host ends it then."""
    if timeout_ms is not None:
        _start_call(_QUERY, "", "", f'{{"kind":"limitCall","id":{number},"timeoutMs":{timeout_ms!r}}}')


def block(started: tuple[int, str | None], timeout_ms: float | None = None) -> str:
    """Waits for the answer to a call that was started, and for nothing else."""
    number, answer = started
    if answer is not None:
        return answer
    limit(number, timeout_ms)
    _blocking.add(number)
    try:
        while True:
            completions = _wait(None)
            if len(completions) == 1 and completions[0].call == number:
                return completions[0].answer
            if not completions:
                raise RuntimeError("the host has no answer to this call")
            deliver(completions)
            if number in _answers:
                return _answers.pop(number)
    finally:
        _blocking.discard(number)


def block_for(started: tuple[int, str | None], timeout_ms: float) -> str | None:
    """Waits for an answer for so long. Returns None if there is none then: it is dropped when it comes."""
    number, answer = started
    if answer is not None:
        return answer
    end = _monotonic() + timeout_ms / 1000.0
    _blocking.add(number)
    try:
        while True:
            left = (end - _monotonic()) * 1000.0
            deliver(_wait(max(left, 0.0)))
            if number in _answers:
                return _answers.pop(number)
            if left <= 0:
                return None
    finally:
        _blocking.discard(number)


def block_all(requests: list[tuple], most: int | None = None, timeout_ms: float | None = None) -> list[str]:
    """Makes several calls, each by the arguments of `start_call`, at most `most` (or all) at once."""
    most = most or len(requests)
    answers = [""] * len(requests)
    # Calls in flight, by number: the position of their request.
    waiting: dict[int, int] = {}
    position = 0
    try:
        while position < len(requests) or waiting:
            if position < len(requests) and len(waiting) < most:
                number, answer = _start_call(*requests[position])
                if answer is None:
                    waiting[number] = position
                    _blocking.add(number)
                    limit(number, timeout_ms)
                else:
                    answers[position] = answer
                position += 1
                continue
            completions = _wait(None)
            if not completions:
                raise RuntimeError("the host has no answer to this call")
            deliver(completions)
            for number in [completion.call for completion in completions if completion.call in waiting]:
                answers[waiting.pop(number)] = _answers.pop(number)
                _blocking.discard(number)
        return answers
    finally:
        _blocking.difference_update(waiting)


def begin(operation, server: str, name: str, arguments: str, timeout_ms: float | None = None):
    """Starts a call. Returns its answer, or a future of it.

    If no other task can run before the answer arrives, this waits for it: the outcome is the same, and a turn of the
    loop is saved.
    """
    loop = _running_loop()
    number, answer = started = _start_call(operation, server, name, arguments)
    if loop is None or (not calls and not loop._ready and not loop._scheduled and not _must_cancel(loop)):
        return block(started, timeout_ms)
    future = loop.create_future()
    if answer is None:
        calls[number] = future
        # For `finish`: to look for it among many calls that are cancelled together would take the square of their number.
        future.call_number = number
        limit(number, timeout_ms)
    else:
        # In the loop's next turn, so that a script which makes one quick call after the other does not keep its other
        # tasks from running.
        loop.call_soon(_settle, future, answer)
    return future


def _settle(future: asyncio.Future, answer: str) -> None:
    if not future.done():
        future.set_result(answer)


def _must_cancel(loop) -> bool:
    """Whether the current task was cancelled and not told yet: it is at its next `await`, so the call must await."""
    task = tasks.current_task(loop)
    return task is not None and task._must_cancel


async def finish(future: asyncio.Future, is_tool: bool = False) -> str:
    """Waits for a future of `begin`. If the task is cancelled, so is the call of a tool; the answer to any other call
    is dropped."""
    try:
        return await future
    except asyncio.CancelledError:
        number = getattr(future, "call_number", None)
        if calls.get(number) is future:
            del calls[number]
            if is_tool:
                _start_call(_QUERY, "", "", f'{{"kind":"cancelCall","id":{number}}}')
        raise


# As in asyncio: with fewer cancelled timers a look at all of them is not worth it.
_MAX_CANCELLED_TIMERS = 50

# How long tasks that have not ended at the script's end may take to do so.
_CLEANUP_SECONDS = 1.0


class EventLoop(base_events.BaseEventLoop):
    """asyncio's loop over the one waiting host call."""

    def time(self) -> float:
        return _monotonic()

    def _run_once(self) -> None:
        ready = self._ready
        if self._timer_cancelled_count > _MAX_CANCELLED_TIMERS:
            self._drop_cancelled()
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)._scheduled = False
        if ready or self._stopping:
            if calls:
                deliver(_wait(0.0))
        elif scheduled:
            timeout = scheduled[0]._when - _monotonic()
            deliver(_wait(timeout * 1000.0 if timeout > 0.0 else 0.0))
        elif calls:
            deliver(_wait(None))
        else:
            raise self._stuck()
        if scheduled:
            end = _monotonic() + self._clock_resolution
            while scheduled and scheduled[0]._when < end:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        handle = None

    def _drop_cancelled(self) -> None:
        """Removes cancelled timers behind one that is not, if most are: each `wait_for` leaves one."""
        if self._timer_cancelled_count * 2 <= len(self._scheduled):
            return
        kept = []
        for handle in self._scheduled:
            if handle._cancelled:
                handle._scheduled = False
            else:
                kept.append(handle)
        heapq.heapify(kept)
        self._scheduled = kept
        self._timer_cancelled_count = 0

    def _stuck(self) -> RuntimeError:
        """Returns the error of a script whose wait cannot end, with the location where it waits."""
        error = RuntimeError("the script waits for something that nothing can bring about")
        error.add_note("no timer and no tool call is left that could end the wait")
        frames = []
        waiting = self._root.get_coro() if self._root is not None else None
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
            if frame is not None:
                frames.append(frame)
            waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
        traceback = None
        for frame in reversed(frames):
            traceback = TracebackType(traceback, frame, frame.f_lasti, frame.f_lineno)
        return error.with_traceback(traceback)

    # The task that `run_until_complete` waits for.
    _root = None

    def run_until_complete(self, future):
        if self.is_running():
            raise RuntimeError("this event loop is running already; write `await` instead of `run_until_complete`")
        new = not asyncio.isfuture(future)
        future = tasks.ensure_future(future, loop=self)
        if new:
            # The base class does it for a coroutine only.
            future._log_destroy_pending = False
        self._root = future if isinstance(future, asyncio.Task) else None
        try:
            return super().run_until_complete(future)
        except BaseException:
            if new and future.done() and not future.cancelled():
                future.exception()
            raise
        finally:
            self._root = None

    def _write_to_self(self) -> None:
        """There is no other thread that could have to wake this one."""

    def default_exception_handler(self, context: dict) -> None:
        """Writes one line: the error of a task that was never awaited must not be silent."""
        exception = context.get("exception")
        if isinstance(exception, (SystemExit, KeyboardInterrupt)):
            # It ends the script, which says so.
            return
        what = context.get("message") or "an error in the event loop"
        if what.endswith("exception was never retrieved"):
            what = "a task that was not awaited failed"
        elif what.startswith("Task was destroyed"):
            return
        shown = f"{type(exception).__name__}: {exception}" if exception is not None else ""
        say(f"{what}: {shown}"[:2048] if shown else what)

    # --- what cannot work ---

    def run_in_executor(self, executor, func, *args):
        raise RuntimeError(_NO_THREADS)

    def set_default_executor(self, executor):
        raise RuntimeError(_NO_THREADS)

    def add_signal_handler(self, sig, callback, *args):
        # The class that programs expect where there are no signals.
        raise NotImplementedError(_NO_SIGNALS)

    def remove_signal_handler(self, sig):
        raise NotImplementedError(_NO_SIGNALS)

    async def subprocess_exec(self, *args, **kwargs):
        raise OSError(_NO_PROCESSES)

    async def subprocess_shell(self, *args, **kwargs):
        raise OSError(_NO_PROCESSES)

    async def create_connection(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def create_server(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def create_datagram_endpoint(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def create_unix_connection(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def create_unix_server(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def getaddrinfo(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)

    async def getnameinfo(self, *args, **kwargs):
        raise OSError(_NO_NETWORK)


class _Policy(events._BaseDefaultEventLoopPolicy):
    _loop_factory = EventLoop

    def get_event_loop(self):
        """Returns the thread's loop and makes it if there is none, as scripts written for older Pythons expect."""
        if self._local._loop is None:
            self.set_event_loop(self.new_event_loop())
        return self._local._loop


_run = asyncio.run


def run(main, **options):
    """asyncio.run, with an error that says what to write where a loop runs already."""
    if _running_loop() is not None:
        if asyncio.iscoroutine(main):
            main.close()
        raise RuntimeError("asyncio.run() cannot be called while an event loop runs; write `await main()` instead")
    return _run(main, **options)


def install() -> None:
    """Makes this the loop that asyncio gives, and `time.sleep` a wait in the host. Called at build time."""
    time.sleep = sleep
    events._event_loop_policy = _Policy()
    # What `set_event_loop_policy(None)` and `asyncio.DefaultEventLoopPolicy()` make.
    unix_events._DefaultEventLoopPolicy = _Policy
    asyncio.run = asyncio.runners.run = run
    asyncio.EventLoop = asyncio.SelectorEventLoop = EventLoop


def run_coroutine(loop: EventLoop, coroutine):
    """Runs the script's coroutine, then cancels the tasks that have not ended."""
    events.set_event_loop(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        left = tasks.all_tasks(loop)
        if left:
            for task in left:
                task.cancel()
            # A task that does not end must not cost the run its value.
            done, unwilling = loop.run_until_complete(tasks.wait(left, timeout=_CLEANUP_SECONDS))
            for task in done:
                # Retrieved, so that asyncio does not report it.
                task.cancelled() or task.exception()
            for task in unwilling:
                task._log_destroy_pending = False
                say(f"the task `{task.get_name()}` did not end when it was cancelled")
        if loop._asyncgens:
            loop.run_until_complete(loop.shutdown_asyncgens())
