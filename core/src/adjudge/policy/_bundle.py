"""Compiling: from policy text, or from layers of it, to a bundle that can be asked.

A bundle is immutable, is known by an id that covers whatever can change a decision, and pickles by
compiling again from its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from adjudge._types import ActionRequest, ToolMetadata, Verdict
from adjudge.errors import PolicyCompileError
from adjudge.policy._compile import CompiledPolicy, compile_source
from adjudge.policy._identity import identity_of_layers, identity_of_policy
from adjudge.policy._layers import (
    Combiner,
    first_layer_wins,
    last_layer_wins,
    strict_overrides_loose,
)
from adjudge.policy._model import Always, Defaults, PolicySource
from adjudge.policy._python_rules import PythonRule, named, priorities_of
from adjudge.policy._reading.source import read_policy
from adjudge.policy._resolving import paths_to_resolve
from adjudge.policy._verdicts import strictest
from adjudge.policy._work import Progress, Work

__all__ = [
    "LayeredPolicyBundle",
    "PolicyBundle",
    "PolicyLayer",
    "compile_policy",
    "load_policy_file",
]

Format = Literal["yaml", "json", "toml"]
Text = str | bytes | Mapping[str, Any] | PolicySource
Priorities = Iterable[tuple[str, int]] | Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class PolicyBundle:
    """One compiled policy.

    `id` is its content address, `source` the policy as read. `may_ask` says whether any decision
    can be approve_required; a Python rule may always ask.
    """

    id: str
    source: PolicySource
    python_rules: tuple[PythonRule, ...]
    python_rule_priorities: tuple[tuple[str, int], ...]
    may_ask: bool
    _compiled: CompiledPolicy

    @property
    def version(self) -> int:
        """The version that the policy states."""
        return self.source.version

    @property
    def defaults(self) -> Defaults:
        """What holds where no rule matches."""
        return self.source.defaults

    @property
    def source_files(self) -> tuple[str, ...]:
        """The file that the policy was read from, if any."""
        return () if self.source.file is None else (self.source.file,)

    def metadata_for(
        self, tool: str, namespace: str | None, declared: ToolMetadata | None
    ) -> ToolMetadata | None:
        """Give what holds of a tool: what `tools:` states, else what it declares of itself."""
        return self._compiled.metadata_for(tool, namespace, declared)

    def namespace_for(self, tool: str) -> str | None:
        """Give the namespace that `tools:` declares for a tool, if any (clause 13)."""
        entry = self.source.tools.get(tool)
        return None if entry is None else entry.namespace

    def paths_to_resolve(self, request: ActionRequest) -> tuple[str, ...]:
        """Give the paths to hand in, resolved, as `ActionRequest.resolved` of this request."""
        return paths_to_resolve((self._compiled,), request)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (_compile_one, (self.source, self.python_rules, self.python_rule_priorities))


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """One named layer of a layered policy; its source is anything that `compile_policy` reads."""

    name: str
    source: Text
    python_rules: tuple[PythonRule, ...] = ()
    python_rule_priorities: Priorities = ()


@dataclass(frozen=True, slots=True, eq=False)
class LayeredPolicyBundle:
    """Several policies that are judged alone and combined (clause 20).

    `layers` are names and bundles in order, `merge` the combiner, `defaults` the strictest of all
    layers'.
    """

    id: str
    layers: tuple[tuple[str, PolicyBundle], ...]
    merge: Combiner
    _compiled: tuple[CompiledPolicy, ...]

    @property
    def defaults(self) -> Defaults:
        """What holds where every layer abstains: the strictest of each."""
        stated = [bundle.defaults for _, bundle in self.layers]
        return Defaults(
            on_missing_shadow=strictest(each.on_missing_shadow for each in stated),
            on_no_match=strictest(each.on_no_match for each in stated),
        )

    @property
    def may_ask(self) -> bool:
        """Whether any decision can be approve_required; a combiner of yours may always ask."""
        ours = (strict_overrides_loose, first_layer_wins, last_layer_wins)
        return self.merge not in ours or any(bundle.may_ask for _, bundle in self.layers)

    @property
    def source_files(self) -> tuple[str, ...]:
        """The files that the layers were read from."""
        return tuple(file for _, bundle in self.layers for file in bundle.source_files)

    def metadata_for(
        self, tool: str, namespace: str | None, declared: ToolMetadata | None
    ) -> ToolMetadata | None:
        """Give what holds of a tool outside the layers; each layer judges by its own `tools:`.

        Where two layers state a field the earlier layer's word holds.
        """
        for _, bundle in reversed(self.layers):
            declared = bundle.metadata_for(tool, namespace, declared)
        return declared

    def namespace_for(self, tool: str) -> str | None:
        """Give the namespace that the first layer to declare one declares for a tool."""
        declared = (bundle.namespace_for(tool) for _, bundle in self.layers)
        return next((namespace for namespace in declared if namespace is not None), None)

    def paths_to_resolve(self, request: ActionRequest) -> tuple[str, ...]:
        """Give the paths to hand in, resolved, as `ActionRequest.resolved` of this request."""
        return paths_to_resolve(self._compiled, request)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        layers = tuple(
            PolicyLayer(name, bundle.source, bundle.python_rules, bundle.python_rule_priorities)
            for name, bundle in self.layers
        )
        return (_compile_layers, (layers, self.merge))


@overload
def compile_policy(
    source: Text,
    *,
    python_rules: Iterable[PythonRule] = (),
    python_rule_priorities: Priorities = (),
    merge: None = None,
    format: Format | None = None,
    file: str | None = None,
    progress: Progress | None = None,
) -> PolicyBundle: ...


@overload
def compile_policy(
    source: Sequence[PolicyLayer],
    *,
    merge: Combiner | None = None,
    progress: Progress | None = None,
) -> LayeredPolicyBundle: ...


def compile_policy(
    source: Text | Sequence[PolicyLayer],
    *,
    python_rules: Iterable[PythonRule] = (),
    python_rule_priorities: Priorities = (),
    merge: Combiner | None = None,
    format: Format | None = None,
    file: str | None = None,
    progress: Progress | None = None,
) -> PolicyBundle | LayeredPolicyBundle:
    """Compile a policy, or a list of `PolicyLayer` to be combined by `merge`.

    `source` is YAML, JSON or TOML text (`format`, else the suffix of `file`, else what it looks
    like) or a mapping. Python rules are functions `(request, context) -> Decision | None`;
    `python_rule_priorities` gives theirs by name (default: 0). `progress` is called now and then
    with how much is done, and of how much; of layers each begins anew. Raises `PolicyCompileError`
    with every problem found.
    """
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        if tuple(python_rules) or dict(python_rule_priorities) or format or file:
            raise PolicyCompileError(
                "Python rules, format and file belong to one layer: write PolicyLayer(name, "
                "source, python_rules=...)."
            )
        return _compile_layers(source, merge or strict_overrides_loose, progress)
    if merge is not None:
        raise PolicyCompileError("merge combines layers; pass a list of PolicyLayer with it.")
    return _compile_text(
        source, python_rules, python_rule_priorities, work=Work(progress), format=format, file=file
    )


def load_policy_file(
    path: str | Path,
    *,
    python_rules: Iterable[PythonRule] = (),
    python_rule_priorities: Priorities = (),
    progress: Progress | None = None,
) -> PolicyBundle:
    """Compile the policy in a file; its suffix says the format (.yaml, .yml, .json, .toml).

    `progress` is as for `compile_policy`. Raises `PolicyCompileError`, also where the file cannot
    be read.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise PolicyCompileError(
            f"The policy file {str(path)!r} cannot be read: {error.strerror or error}."
        ) from error
    return compile_policy(
        text,
        python_rules=python_rules,
        python_rule_priorities=python_rule_priorities,
        file=str(path),
        progress=progress,
    )


def _compile_text(
    source: Text,
    python_rules: Iterable[PythonRule],
    python_rule_priorities: Priorities,
    *,
    work: Work,
    layer: str = "",
    format: Format | None = None,
    file: str | None = None,
) -> PolicyBundle:
    read = (
        source
        if isinstance(source, PolicySource)
        else read_policy(source, format=format, file=file, work=work)
    )
    return _compile_one(read, python_rules, python_rule_priorities, layer, work)


def _compile_one(
    source: PolicySource,
    python_rules: Iterable[PythonRule],
    python_rule_priorities: Priorities,
    layer: str = "",
    work: Work | None = None,
) -> PolicyBundle:
    work = work or Work()
    rules = named(python_rules, (rule.id for rule in source.rules))
    priorities = priorities_of(python_rule_priorities, rules)
    return PolicyBundle(
        id=identity_of_policy(source, rules, priorities, work),
        source=source,
        python_rules=tuple(rules.values()),
        python_rule_priorities=tuple(sorted(priorities.items())),
        may_ask=bool(rules) or Verdict.APPROVE_REQUIRED in _reachable_verdicts(source),
        _compiled=compile_source(source, rules, priorities, layer=layer, work=work),
    )


def _reachable_verdicts(source: PolicySource) -> set[Verdict]:
    """Give the verdicts that a policy can come to: below a rule for everything nothing decides."""
    ordered = sorted(source.rules, key=lambda rule: -rule.priority)
    place = next((i for i, rule in enumerate(ordered) if isinstance(rule.match, Always)), None)
    if place is None:
        defaults = source.defaults
        return {
            *(rule.verdict for rule in ordered),
            defaults.on_no_match,
            defaults.on_missing_shadow,
        }
    # What a transform makes of a call is judged by all rules (clause 19).
    rewrites = any(rule.verdict is Verdict.TRANSFORM for rule in ordered)
    return {rule.verdict for rule in (ordered if rewrites else ordered[: place + 1])}


def _compile_layers(
    layers: Sequence[PolicyLayer], merge: Combiner, progress: Progress | None = None
) -> LayeredPolicyBundle:
    if not layers:
        raise PolicyCompileError("A layered policy has at least one PolicyLayer.")
    bundles: dict[str, PolicyBundle] = {}
    for layer in layers:
        if not isinstance(layer, PolicyLayer):
            raise PolicyCompileError(
                f"A layered policy is a list of PolicyLayer; it has a {type(layer).__name__}."
            )
        if not layer.name:
            raise PolicyCompileError("A layer needs a name; rules are reported as layer:rule.")
        if layer.name in bundles:
            raise PolicyCompileError(f"Two layers are called {layer.name!r}; rename one.")
        bundles[layer.name] = _compile_layer(layer, Work(progress))
    if not callable(merge):
        raise PolicyCompileError(
            f"merge is a function of the layers' decisions, not a {type(merge).__name__}."
        )
    ids = {name: bundle.id for name, bundle in bundles.items()}
    return LayeredPolicyBundle(
        id=identity_of_layers(ids, merge),
        layers=tuple(bundles.items()),
        merge=merge,
        _compiled=tuple(bundle._compiled for bundle in bundles.values()),
    )


def _compile_layer(layer: PolicyLayer, work: Work) -> PolicyBundle:
    """Compile one layer; its problems are reported under its name."""
    try:
        return _compile_text(
            layer.source,
            layer.python_rules,
            layer.python_rule_priorities,
            work=work,
            layer=layer.name,
        )
    except PolicyCompileError as error:
        raise PolicyCompileError(
            [f"Layer {layer.name!r}: {problem}" for problem in error.problems]
        ) from None
