"""The search: ask, judge, keep what is significantly faster, tell the model, repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import amdahl
import normal_form
import prompts
from attempts import Attempt, Outcome, failure_text
from endpoint import EndpointError, Trouble
from journal import Journal
from judging import Judge, Judgement
from model import Asked, Model, Told
from modelled_times import Ranking
from plan import Planner
from population import Candidate, Population
from prompts import Ask, Task
from protocols import Question
from replies import ReplyError, read_proposal
from soft import Opinion, SoftVerifier
from transcript import Transcript

DECISION = "decision"


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes:
        model: its name at the endpoint; ``tokens`` at most in a reply, 0 for any number.
        population: the number of correct kernels to build on.
        parallel: the proposals of a generation, asked for at once.
        generations: the most generations.
        soft: whether a model reviews proposals before the gates run them.
    """

    model: str
    seed: int = 1
    tokens: int = 0
    population: int = 4
    parallel: int = 4
    generations: int = 10
    soft: bool = True


@dataclass(frozen=True)
class End:
    """How a search ended: ``finished``, ``budget``, ``failed`` or ``unavailable``, and why."""

    state: str
    message: str = ""


class Search:
    """One search for one task.

    ``exceeded`` names the budget that is used up, or is empty; ``hand_in`` gets each kernel that is
    kept, and has to write it atomically.
    """

    def __init__(
        self,
        task: Task,
        original: str,
        settings: Settings,
        *,
        model: Model,
        judge: Judge,
        ranking: Ranking,
        journal: Journal,
        transcript: Transcript,
        exceeded: Callable[[], str],
        hand_in: Callable[[str], None],
    ) -> None:
        self._task = task
        self._original = original
        self._settings = settings
        self._model = model
        self._judge = judge
        self._ranking = ranking
        self._journal = journal
        self._transcript = transcript
        self._exceeded = exceeded
        self._hand_in = hand_in
        self._population = Population(settings.population)
        self._planner = Planner(original, self._population, settings.seed, settings.parallel)
        self._soft = SoftVerifier(str(settings.seed))
        self._seen = {self._digest(original)}
        self._attempts: list[Attempt] = []

    def run(self) -> End:
        """Search until something ends it."""
        self._transcript.say("system", prompts.system(self._task))
        if problem := self._begin():
            return End("unavailable", f"the initial kernel cannot be judged: {problem}")
        for generation in range(1, self._settings.generations + 1):
            if end := self._generation(generation):
                return end
        return End("finished")

    def figures(self) -> dict[str, Any]:
        """The result of the search."""
        best = self._population.best
        outcomes = Counter(attempt.outcome.value for attempt in self._attempts)
        return {
            "proposals": len(self._attempts),
            "outcomes": {outcome.value: outcomes[outcome.value] for outcome in Outcome},
            "speedup": round(best.fitness, 4) if best else None,
            "parts": [asdict(part) for part in self._planner.parts],
            "speedup_of_the_whole": round(amdahl.speedup(self._planner.parts), 4),
            "soft": self._soft.figures() if self._settings.soft else None,
        }

    def _begin(self) -> str:
        """Judge the initial kernel; returns why that is impossible, or an empty text."""
        proved = self._judge.prove(self._original)
        if proved.problem or not proved.is_right:
            self._transcript.say("tool", failure_text(proved) or proved.problem)
            return proved.problem
        timed = self._judge.time(self._original, "")
        gained = {case.config: 1.0 for case in timed.cases}
        digest = self._digest(self._original)
        first = Candidate(self._original, digest, 1.0, proved, timed, gained=gained)
        self._population.keep(first)
        self._planner.begin(first)
        self._transcript.say("tool", f"the initial kernel:\n{prompts.measured(timed)}")
        return timed.problem

    def _generation(self, generation: int) -> End | None:
        """Run one round; returns how it ends the search, if it does."""
        if spent := self._exceeded():
            return End("budget", spent)
        planned = self._planner.plan(generation, self._attempts)
        asked = [Asked(slot, self._question(ask)) for slot, ask in planned]
        told = self._model.ask(asked)
        opinions = self._read_softly(asked, told)
        for one, (slot, ask), answer in self._in_order(asked, planned, told):
            if answer.answer is not None:
                self._transcript.say("user", one.question.text, slot=slot)
                self._transcript.say("assistant", answer.answer.text, slot=slot)
                self._note(self._settle(slot, ask, answer, opinions.get(slot)))
            elif answer.error is not None:
                self._transcript.say("tool", f"no answer: {answer.error}", slot=slot)
        if failed := _fatal([answer.error for answer in told if answer.error], len(told)):
            return _ended_by(failed, answered=bool(self._attempts))
        return None if any(answer.answer for answer in told) else End("budget", self._exceeded())

    def _in_order(
        self,
        asked: Sequence[Asked],
        planned: Sequence[tuple[str, Ask]],
        told: Sequence[Told],
    ) -> list[tuple[Asked, tuple[str, Ask], Told]]:
        """A generation, what the model of times finds fastest first."""
        sources = [_proposal(answer) for answer in told]
        fresh = [s for s in sources if s and self._digest(s) not in self._seen]
        best = self._population.best
        if len(fresh) > 1 or (fresh and best):
            self._ranking.learn([*([best.source] if best else []), *fresh])
        rows = list(zip(asked, planned, told, strict=True))
        order = sorted(range(len(rows)), key=lambda index: self._ranking.ns(sources[index]))
        return [rows[index] for index in order]

    def _question(self, ask: Ask) -> Question:
        text = prompts.question(self._task, ask, self._attempts)
        return Question(
            self._settings.model, prompts.system(self._task), text, self._settings.tokens
        )

    def _read_softly(self, asked: Sequence[Asked], told: Sequence[Told]) -> dict[str, Opinion]:
        """Reviews of a generation's proposals, by slot; an error costs only the review."""
        if not (self._settings.soft and self._soft.is_asked):
            return {}
        system = prompts.reader_system(self._task)
        questions = []
        for one, answer in zip(asked, told, strict=True):
            source = _proposal(answer)
            if source and self._digest(source) not in self._seen:
                text = prompts.reading(self._task, source)
                question = Question(self._settings.model, system, text, self._settings.tokens)
                questions.append(Asked(f"{one.slot}.soft", question))
        opinions = {}
        for one, answer in zip(questions, self._model.ask(questions), strict=True):
            if answer.answer:
                self._transcript.say("assistant", answer.answer.text, slot=one.slot)
                opinions[one.slot.removesuffix(".soft")] = Opinion.read(answer.answer.text)
        return opinions

    def _settle(self, slot: str, ask: Ask, told: Told, opinion: Opinion | None) -> Attempt:
        """Process one proposal."""
        assert told.answer is not None, "others are not settled"
        made = partial(Attempt, slot, ask.what, ask.focus)
        try:
            source = read_proposal(told.answer.text, is_cut=told.answer.is_cut)
        except ReplyError as error:
            return made(Outcome.MALFORMED, str(error), reason="NO_PROPOSAL")
        digest = self._digest(source)
        if digest in self._seen:
            return made(Outcome.DUPLICATE, "it equals an earlier kernel", source=source)
        self._seen.add(digest)
        if opinion and self._soft.leaves_out(opinion, slot):
            wrong = ", ".join(name for name, right in opinion.says.items() if not right)
            note = f"a review finds it wrong ({wrong}); it was not run"
            return made(Outcome.LEFT_OUT, note, source=source)
        return self._judged(slot, source, opinion, partial(made, source=source))

    def _judged(
        self, slot: str, source: str, opinion: Opinion | None, made: Callable[..., Attempt]
    ) -> Attempt:
        """Judge one proposal by the gates."""
        proved = self._judge.prove(source)
        if opinion:
            self._soft.learn(opinion, proved)
        if proved.problem or not proved.is_right:
            return _refused(made, proved)
        best = self._population.best
        if best and self._ranking.is_hopeless(source, best.source):
            modelled = self._ranking.ns(source) / self._ranking.ns(best.source)
            note = f"right, but takes {modelled:.1f} times as long by its counts; it was not timed"
            return made(Outcome.SLOW, note)
        timed = self._judge.time(source, best.source if best else "")
        ratio = timed.ratio
        if ratio is None:
            return _refused(made, timed)
        gained = {
            case.config: best.gained.get(case.config, 1.0) * case.ratio.value if best else 1.0
            for case in timed.cases
        }
        fitness = ratio.value * (best.fitness if best else 1.0)
        digest = self._digest(source)
        candidate = Candidate(source, digest, fitness, proved, timed, slot, gained)
        if best is not None and not ratio.is_faster:
            self._population.add(candidate)
            return made(Outcome.REVERTED, f"right, but not significantly faster: {ratio}; reverted")
        self._keep(candidate, first=best is None)
        against = "the one before" if best else "the baseline"
        return made(Outcome.KEPT, f"right, and {ratio} against {against}; kept")

    def _keep(self, candidate: Candidate, *, first: bool) -> None:
        self._hand_in(candidate.source)
        self._population.keep(candidate)
        if first:
            self._planner.begin(candidate)
        self._planner.helped(dict(candidate.gained))

    def _note(self, attempt: Attempt) -> None:
        """Record the result of a proposal, for later prompts and for readers."""
        self._attempts.append(attempt)
        text = attempt.note if not attempt.detail else f"{attempt.note}\n{attempt.detail}"
        self._transcript.say("tool", text, slot=attempt.slot, outcome=attempt.outcome.value)
        decision = {"outcome": attempt.outcome.value, "note": attempt.note, "what": attempt.what}
        decision |= {"focus": attempt.focus} if attempt.focus else {}
        self._journal.write(DECISION, attempt.slot, decision)

    def _digest(self, source: str) -> str:
        return normal_form.digest(source, python=self._task.is_python)


def _proposal(told: Told) -> str:
    """The kernel of a reply; empty if there is none."""
    if told.answer is None:
        return ""
    try:
        return read_proposal(told.answer.text, is_cut=told.answer.is_cut)
    except ReplyError:
        return ""


def _refused(made: Callable[..., Attempt], judged: Judgement) -> Attempt:
    """Record a proposal that a gate failed, or that could not be judged."""
    failed = judged.failed
    if judged.problem or failed is None:
        problem = judged.problem or "it was not timed"
        return made(Outcome.UNJUDGED, f"the judge could not say: {problem}")
    note = f"{judged.reason}: {failed.get('summary', '')}"
    return made(Outcome.WRONG, note, detail=failure_text(judged), reason=judged.reason)


def _fatal(errors: Sequence[EndpointError], asked: int) -> EndpointError | None:
    """The error that makes further questions pointless; the refusal of one question does not."""
    passing = [error for error in errors if error.trouble is Trouble.REFUSED]
    others = [error for error in errors if error.trouble is not Trouble.REFUSED]
    return next(iter(others), passing[0] if passing and len(passing) == asked else None)


def _ended_by(error: EndpointError, *, answered: bool) -> End:
    """A model that never answered, or a refused key, is a fault of the set-up.

    Any other error is the run's end.
    """
    state = "failed" if answered and error.trouble is not Trouble.DENIED else "unavailable"
    return End(state, f"the model does not answer: {error}")
