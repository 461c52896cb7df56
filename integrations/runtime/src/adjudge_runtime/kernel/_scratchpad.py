"""What the model is shown: the last steps as they were, and a summary of those before them.

It is the working set alone. What is folded into the summary is lost here on purpose, and is kept
in the execution chain. Counting tokens costs the same however many steps came before.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice

from adjudge_runtime._stops import said
from adjudge_runtime.kernel._steps import Step, default_summarizer, estimate_tokens

__all__ = ["Scratchpad", "Summarize"]

Summarize = Callable[[Sequence[Step]], str | Awaitable[str]]


class Scratchpad:
    """The steps that a model sees, within `max_tokens` as far as folding can keep them there.

    `summarize` gets the steps to fold, oldest first; where there is a summary already it comes
    before them, as the observation of a step 0. What it returns takes the place of all of them.
    `keep_recent` is how many of the last steps are never folded. `estimate` counts tokens.
    """

    def __init__(
        self,
        max_tokens: int,
        summarize: Summarize = default_summarizer,
        *,
        keep_recent: int = 2,
        estimate: Callable[[str], int] = estimate_tokens,
        steps: Iterable[Step] = (),
        summary: str = "",
        compactions: int = 0,
    ) -> None:
        if type(max_tokens) is not int or max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens!r}; give a whole number above 0.")
        if type(keep_recent) is not int or keep_recent < 0:
            raise ValueError(f"keep_recent is {keep_recent!r}; give a whole number from 0.")
        self.max_tokens = max_tokens
        self.keep_recent = keep_recent
        self.compactions = compactions
        self.compaction_error: str | None = None
        """Why the last attempt at folding came to nothing; None where there was no such."""
        self._summarize = summarize
        self._estimate = estimate
        self._steps: list[Step] = []
        self._costs: list[int] = []
        self._shown: list[str] = []
        self._summary = summary
        self._tokens = self._summary_cost(summary)
        for step in steps:
            self.append(step)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that are shown in full."""
        return tuple(self._steps)

    @property
    def summary(self) -> str:
        """What stands for the steps before them."""
        return self._summary

    def append(self, step: Step) -> None:
        """Add a step."""
        shown = step.render()
        cost = self._estimate(shown)
        self._steps.append(step)
        self._shown.append(shown)
        self._costs.append(cost)
        self._tokens += cost

    def token_count(self) -> int:
        """Give how many tokens summary and steps have."""
        return self._tokens

    def render(self) -> str:
        """Write all of it for a model."""
        return "\n".join([*self._summary_lines(self._summary), *self._shown])

    async def compact_if_needed(self) -> bool:
        """Fold the older steps if there are too many tokens, and say whether that was done.

        A summarizer that raises, gives no text, or one that saves nothing, changes nothing:
        `compaction_error` then says why.
        """
        summary = await self.compacted_summary()
        if summary is None:
            return False
        self.fold(summary, len(self._steps) - self.keep_recent)
        return True

    async def compacted_summary(self) -> str | None:
        """Give the summary that folding would leave, None where there is nothing to fold."""
        self.compaction_error = None
        count = len(self._steps) - self.keep_recent
        if self._tokens <= self.max_tokens or count <= 0:
            return None
        folded = list(islice(self._steps, count))
        if self._summary:
            before = Step(0, "summary of earlier steps", observation=self._summary)
            folded.insert(0, before)
        try:
            answer = self._summarize(folded)
            summary = await answer if inspect.isawaitable(answer) else answer
            self._check_summary(summary, count)
        except Exception as error:
            # Only the model's view grows by this: no permission hangs on it.
            self.compaction_error = said(error)
            return None
        return summary

    def fold(self, summary: str, count: int) -> None:
        """Put a summary in place of the earlier one and of the first `count` steps."""
        self._tokens += self._summary_cost(summary) - self._summary_cost(self._summary)
        self._tokens -= sum(self._costs[:count])
        del self._steps[:count], self._costs[:count], self._shown[:count]
        self._summary = summary
        self.compactions += 1

    def _check_summary(self, summary: object, count: int) -> None:
        if not isinstance(summary, str) or not summary.strip():
            raise ValueError(f"the summary is {summary!r}; give a text")
        was = self._summary_cost(self._summary) + sum(self._costs[:count])
        if self._summary_cost(summary) >= was:
            raise ValueError(f"the summary is no shorter than the {was} tokens that it stands for")

    def _summary_cost(self, summary: str) -> int:
        return sum(self._estimate(line) for line in self._summary_lines(summary))

    @staticmethod
    def _summary_lines(summary: str) -> list[str]:
        return [f"[summary of earlier steps]\n{summary}"] if summary else []
