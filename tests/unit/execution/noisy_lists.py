"""Lists on a machine that others disturb: candidates of which it is known what they take, a noise
that hides it, and trials that learn from the times, by a clock that is made up.

What disturbs runs comes by the clock, as it does on a machine: a core is taken away for some
milliseconds, which makes a short run take ten times and more what it takes; and for a while all
runs take longer, those of persistent kernels the most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from fusionq.execution.contender import Candidate
from fusionq.execution.standing import CANDIDATES
from fusionq.execution.trials import Trials

ASKED = 0.02
"""Seconds of a list's runs between two of them that ask whether something is to be compared."""

WORTH = 0.1
"""Seconds that a list has run before a candidate is made."""


@dataclass(frozen=True)
class Noise:
    """What else a machine does."""

    spread: float
    """Of a run's time from one to the next: the standard deviation of its logarithm."""
    taken: float
    """Times a second that a core is taken away, for 2 to 12 milliseconds."""
    slow: float
    """The part of the time in which all takes longer, for three tenths of a second at a time, on
    average."""
    factor: float = 1.0
    """So many times as long at most."""


NOISES = {
    "quiet": Noise(0.02, 0.5, 0.0),
    "shared": Noise(0.06, 8.0, 0.15, 1.6),
    "noisy": Noise(0.12, 25.0, 0.35, 2.2),
    "stormy": Noise(0.25, 60.0, 0.5, 3.0),
}


@dataclass
class NoisyList:
    """``seconds`` that a run of each candidate takes where nothing disturbs it, and ``model``, what
    the cost model says of them; ``waits``: whether the program waits for each run."""

    seconds: dict[Candidate, float]
    model: dict[Candidate, float]
    first: Candidate
    noise: Noise
    random: Random
    waits: bool = False
    beside: dict[Candidate, float] = field(default_factory=dict)
    """Seconds that a sample takes beside its runs."""
    cold: dict[Candidate, float] = field(default_factory=dict)
    """Seconds that its first run takes longer."""
    changes: tuple[float, dict[Candidate, float]] = (math.inf, {})
    """When runs take other times from then on, and what they take then."""
    clock: float = 0.0
    _ended: float = 0.0
    """When the slow phase, or the phase behind the last one, ends."""
    _factor: float = 1.0

    def truth(self) -> dict[Candidate, float]:
        """What a run of each takes the program where nothing disturbs it."""
        beside = self.beside if self.waits else {}
        return {name: took + beside.get(name, 0.0) for name, took in self.seconds.items()}

    def took(self, name: Candidate, runs: int) -> float:
        """What a run of a sample of so many takes, as far as a clock tells."""
        if self.clock > self.changes[0]:
            self.seconds, self.changes = self.changes[1], (math.inf, {})
        begun, random = self.clock, self.random
        self.clock += self.beside.get(name, 0.0) + self.cold.pop(name, 0.0)
        workers = 2.0 if name == "megakernel" else 1.0
        for _ in range(runs):
            factor = self._slowness()
            took = self.seconds[name] * math.exp(random.gauss(0.0, self.noise.spread))
            took *= factor ** (1.3 if name == "megakernel" else 1.0)
            if random.random() < self.noise.taken * took * workers:
                took += random.uniform(2e-3, 12e-3)
            self.clock += took
        return (self.clock - begun) / runs

    def _slowness(self) -> float:
        while self.clock >= self._ended:
            was_slow = self._factor > 1
            part, random = self.noise.slow, self.random
            if not part or was_slow:
                self._factor = 1.0
                mean = 0.3 * (1 - part) / part if part else math.inf
            else:
                self._factor, mean = random.uniform(1.2, self.noise.factor), 0.3
            self._ended += random.expovariate(1 / mean) if part else math.inf
        return self._factor

    def runs_by(self, name: Candidate, seconds: float) -> float:
        """Run by ``name`` for so long; what the last run took."""
        self.clock += max(seconds - self.seconds[name], 0.0)
        return self.took(name, 1)


@dataclass
class Learned:
    """What became of it."""

    trials: Trials
    chosen: list[tuple[float, Candidate]] = field(default_factory=list)
    """By when, and what."""
    runs: int = 0
    """Of trials until the first choice."""
    cost: float = 0.0
    """What they took more than runs of the fastest known then, by what runs take undisturbed."""
    later: float = 0.0
    """The same from then on."""

    def at(self, seconds: float) -> Candidate | None:
        """What was chosen by then."""
        return next((name for by, name in reversed(self.chosen) if by <= seconds), None)


def learn(of: NoisyList, until: float) -> Learned:
    """Run a list for so many seconds."""
    trials = Trials(of.first, [name for name in CANDIDATES if name in of.seconds])
    trials.contenders["megakernel" if "megakernel" in of.seconds else of.first].is_persistent = (
        "megakernel" in of.seconds
    )
    made, built = Learned(trials), WORTH
    while of.clock < until:
        trials.costs.taken = of.clock
        trials.in_batches = not of.waits
        if trials.waits and trials.awaited and of.clock >= built and not trials.costs.is_spent:
            name = trials.awaited[0]
            trials.ready(name, of.model[name] / of.model[of.first])
            built = of.clock + 0.1
        if trials.chosen is not None and not (made.chosen and made.chosen[-1][1] == trials.chosen):
            made.chosen.append((of.clock, trials.chosen))
            made.runs = made.runs or trials.tried
        is_open = (trials.chosen is None and not trials.waits) or trials.compares_again()
        name, runs = trials.next() if is_open else (trials.chosen or trials.best, 0)
        if runs:
            best, cold = trials.best, of.cold.get(name, 0.0)
            took = of.took(name, runs)
            truth = of.truth()
            excess = runs * (truth[name] - truth[best])
            cost = max(excess, 0.0) + cold
            cost += 0.0 if of.waits else of.beside.get(name, 0.0)
            if made.chosen:
                made.later += cost
            else:
                made.cost += cost
            trials.costs.taken = of.clock
            trials.add(name, took, runs)
        elif is_open:
            of.took(name, 1)
        else:
            took = of.runs_by(name, max(ASKED, of.seconds[name]))
            if trials.chosen is not None:
                trials.costs.taken = of.clock
                trials.sample(took)
    return made


def drawn(random: Random, noise: Noise) -> NoisyList:
    """A list as they are: of 0.03 to 10 ms, whose candidates are half to thrice as fast as each
    submission by itself, and a model that is a quarter off."""
    unfused = 10 ** random.uniform(-4.5, -2.0)
    others: list[Candidate] = random.sample(
        ("megakernel", "overlap", "fused", "sequence"), random.randint(1, 4)
    )
    seconds: dict[Candidate, float] = {"unfused": unfused}
    for name in others:
        seconds[name] = unfused / 2 ** random.gauss(0.4, 0.7)
        if random.random() < 0.3:  # as those that join almost the same
            seconds[name] = random.choice(list(seconds.values())) * random.uniform(0.9, 1.1)
    model = {name: took * math.exp(random.gauss(0.0, 0.25)) for name, took in seconds.items()}
    return NoisyList(
        seconds,
        model,
        random.choice(["unfused", "unfused", others[0]]),
        noise,
        random,
        random.random() < 0.3,
        {name: random.uniform(1e-5, 1.7e-4) for name in seconds},
        {name: random.choice([0.0, 2e-4, 4e-3]) for name in seconds},
    )
