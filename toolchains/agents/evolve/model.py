"""The model as a search sees it: many questions in parallel, each asked only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from budget import Budget, Cost
from endpoint import EndpointError
from journal import Journal, key_of
from protocols import Answer, Question

REPLY = "reply"


class Asking(Protocol):
    """An endpoint."""

    def ask(self, question: Question) -> Answer:
        """The answer. Raises EndpointError."""


@dataclass(frozen=True)
class Asked:
    """One of many questions; ``slot`` tells equal questions apart."""

    slot: str
    question: Question

    @property
    def key(self) -> str:
        """The key of its answer in the journal."""
        question = self.question
        parts = (question.model, question.system, question.text, str(question.tokens))
        return key_of(self.slot, *parts)


@dataclass(frozen=True)
class Told:
    """The result of a question: an answer, an error, or neither if a budget was used up."""

    answer: Answer | None = None
    error: EndpointError | None = None


class Model:
    """Asks an endpoint the questions that the journal lacks, ``parallel`` at a time.

    Every answer is in the journal before it is used. ``on_usage`` gets the usage so far after each
    answer.
    """

    def __init__(
        self,
        endpoint: Asking,
        journal: Journal,
        budget: Budget,
        parallel: int,
        on_usage: Callable[[dict[str, float | int]], None],
    ) -> None:
        self._endpoint = endpoint
        self._journal = journal
        self._budget = budget
        self._parallel = parallel
        self._on_usage = on_usage

    def ask(self, questions: Sequence[Asked]) -> list[Told]:
        """An entry for each, in order."""
        with ThreadPoolExecutor(self._parallel) as pool:
            begun = [self._begin(asked, pool) for asked in questions]
            return [self._end(found) for found in begun]

    def _begin(self, asked: Asked, pool: ThreadPoolExecutor) -> Answer | Future[Answer] | None:
        """The known or pending answer. Budgets are counted in order."""
        known = _read(self._journal.find(REPLY, asked.key))
        if known is not None:
            self._budget.reserve()
            return known
        if self._budget.exceeded(self._journal.seconds):
            return None
        self._budget.reserve()
        return pool.submit(self._answer, asked)

    def _answer(self, asked: Asked) -> Answer:
        answer = self._endpoint.ask(asked.question)
        self._journal.write(REPLY, asked.key, {"slot": asked.slot, **asdict(answer)})
        return answer

    def _end(self, found: Answer | Future[Answer] | None) -> Told:
        if found is None:
            return Told()
        try:
            answer = found if isinstance(found, Answer) else found.result()
        except EndpointError as error:
            self._budget.release()
            return Told(error=error)
        self._budget.pay(answer.cost)
        self._on_usage(self._budget.usage())
        return Told(answer)


def _read(value: Any) -> Answer | None:
    """An answer from the journal; None if there is none."""
    if not isinstance(value, dict):
        return None
    try:
        return Answer(str(value["text"]), bool(value["is_cut"]), Cost(**value["cost"]))
    except (KeyError, TypeError):
        return None
