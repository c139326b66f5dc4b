"""InterPodAffinity: pods are attracted to or repelled by others in their domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from stowplan.models.arrays import Ints
from stowplan.models.kubernetes import LabelSelector, LabelSelectorRequirement, Pod
from stowplan.models.kubernetes.pod import PodAffinity, PodAffinityTerm
from stowplan.models.problem import POINTS, Attract, Origin, Repel, Rule, Topology, Weighted
from stowplan.plugins_compat.framework.counts import DomainCounts
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.plugin import Args, Plugin
from stowplan.plugins_compat.framework.signatures import Signature
from stowplan.plugins_compat.framework.status import SKIP, UNRESOLVABLE, UNSCHEDULABLE, Status
from stowplan.plugins_compat.framework.view import ScoreView, View
from stowplan.plugins_compat.matching import with_keys

NamespaceLabels = Mapping[str, Mapping[str, str]]

DomainReading = tuple[DomainCounts, Topology]

NO_AFFINITY = PodAffinity()


class InterPodAffinityArgs(Args):
    """How much a required affinity of an existing pod is worth to the incoming one."""

    hard_pod_affinity_weight: Annotated[int, Field(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """An affinity term as the plugin uses it; equal terms match the same pods.

    Parameters
    ----------
    namespaces
        Namespaces named by the term, or the owner's own when the term names and selects none.
    """

    key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None

    def matches_incoming(self, pod: Pod, labels: NamespaceLabels) -> bool:
        """Whether the incoming pod matches an existing pod's term."""
        chosen = self.namespace_selector
        here = chosen is not None and chosen.matches(labels.get(pod.namespace, {}))
        return (here or pod.namespace in self.namespaces) and self._selects(pod)

    def matches_existing(self, pod: Pod, labels: NamespaceLabels, selects_twice: bool) -> bool:
        """Whether an existing pod matches the incoming pod's term.

        Upstream turns the namespace selector into names first; a release with ``selects_twice`` then evaluates the
        selector once more, against no labels.
        """
        chosen = self.namespace_selector
        here = chosen is not None and (
            chosen.empty
            or (pod.namespace in labels and chosen.matches(labels[pod.namespace]))
            or (selects_twice and chosen.matches({}))
        )
        return (here or pod.namespace in self.namespaces) and self._selects(pod)

    def _selects(self, pod: Pod) -> bool:
        return self.selector is not None and self.selector.matches(pod.metadata.labels)


@dataclass(frozen=True, slots=True)
class Terms:
    """All terms of a signature; preferred ones with their weights."""

    affinity: tuple[Term, ...]
    anti_affinity: tuple[Term, ...]
    preferred: tuple[tuple[Term, int], ...]
    preferred_anti: tuple[tuple[Term, int], ...]


class InterPodAffinity(Plugin):
    """Rejects nodes by required affinity and by anti-affinity, either way; scores by preferred terms."""

    name = "InterPodAffinity"
    surrogate = "the share of matching pods that are apart, or together for anti-affinity"
    Args = InterPodAffinityArgs

    # -- filter -----------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState) -> Status | None:
        """Skip, in releases that do, a pod without terms that no existing pod repels.

        Then nominated pods are not asked either. Without nominated pods the filter itself would come to the same, and
        nothing is asked.
        """
        if not self.release.pre_filter_continues or not self.state.nominator:
            return None
        terms = self._terms(cycle.signature)
        repelled = any(
            self._owners(term, "anti_affinity").total(self.state.topology(term.key)).any()
            for term in self._matching(cycle.signature, "anti_affinity")
        )
        return None if terms.affinity or terms.anti_affinity or repelled else SKIP

    def idle(self, cycle: CycleState) -> bool:
        """Whether the pod has no required term, and no pod has one against it."""
        terms = self._terms(cycle.signature)
        return not (terms.affinity or terms.anti_affinity or self._matching(cycle.signature, "anti_affinity"))

    def filter(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Check required affinity, then own and existing pods' anti-affinity."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        repelled = self._repelled_by_own(cycle.signature, nodes) | self._repelled_by_existing(cycle.signature, nodes)
        codes[repelled] = UNSCHEDULABLE
        codes[~self._attracted(cycle.signature, nodes)] = UNRESOLVABLE
        return codes

    def reasons(self, cycle: CycleState, node: int) -> Sequence[str]:
        """Return upstream's reason for the first check that fails."""
        nodes = np.array([node])
        return tuple(self.count_reasons(cycle, nodes, self.filter(cycle, nodes)))

    def count_reasons(self, cycle: CycleState, nodes: Ints, codes: Ints) -> Counter[str]:
        """Count the nodes by the first check that fails."""
        repelled = nodes[codes != UNRESOLVABLE]
        own = int(self._repelled_by_own(cycle.signature, repelled).sum())
        counts = {
            "node(s) didn't match pod affinity rules": len(nodes) - len(repelled),
            "node(s) didn't match pod anti-affinity rules": own,
            "node(s) didn't satisfy existing pods anti-affinity rules": len(repelled) - own,
        }
        return Counter({reason: number for reason, number in counts.items() if number})

    def _attracted(self, signature: Signature, nodes: Ints) -> np.ndarray:
        terms = self._terms(signature).affinity
        ok = np.ones(len(nodes), dtype=np.bool_)
        if not terms:
            return ok
        matching = self._matching_counts(terms)
        found = False
        met = ok.copy()
        for term in terms:
            topology = self.state.topology(term.key)
            domain = topology.domain[nodes]
            totals = matching.total(topology)
            found = found or bool(totals.any())
            ok &= domain >= 0
            met &= (domain >= 0) & (totals[domain] > 0 if topology.size else False)
        if not found and self._all_match(terms)(signature):
            return ok  # the first of its kind may go wherever the keys are
        return met

    def _repelled_by_own(self, signature: Signature, nodes: Ints) -> np.ndarray:
        repelled = np.zeros(len(nodes), dtype=np.bool_)
        for term in self._terms(signature).anti_affinity:
            repelled |= self._in_domain(self._matching_counts((term,)), term.key, nodes)
        return repelled

    def _repelled_by_existing(self, signature: Signature, nodes: Ints) -> np.ndarray:
        repelled = np.zeros(len(nodes), dtype=np.bool_)
        for term in self._matching(signature, "anti_affinity"):
            repelled |= self._in_domain(self._owners(term, "anti_affinity"), term.key, nodes)
        return repelled

    def _in_domain(self, domain_counts: DomainCounts, key: str, nodes: Ints) -> np.ndarray:
        topology = self.state.topology(key)
        if not topology.size:
            return np.zeros(len(nodes), dtype=np.bool_)
        domain = topology.domain[nodes]
        there: np.ndarray = (domain >= 0) & (domain_counts.total(topology)[domain] > 0)
        return there

    def required_counts(self, signature: Signature) -> Iterator[DomainCounts]:
        """Yield all counts of pods that the filter reads for a signature."""
        company, _, apart = self.required(signature)
        yield from (counts for counts, _ in (*company, *apart))

    def required(self, signature: Signature) -> tuple[Sequence[DomainReading], bool, Sequence[DomainReading]]:
        """Return what the filter reads for a signature.

        Returns
        -------
        company, first_of_kind, apart
            Counts of pods in domains: some must be in each, unless there are none at all and a pod of the signature is
            what it seeks itself; and none may be in each.
        """
        terms = self._terms(signature)
        company = [(self._matching_counts(terms.affinity), self.state.topology(term.key)) for term in terms.affinity]
        apart = [(self._matching_counts((term,)), self.state.topology(term.key)) for term in terms.anti_affinity]
        for term in self._matching(signature, "anti_affinity"):
            apart.append((self._owners(term, "anti_affinity"), self.state.topology(term.key)))
        return company, self._all_match(terms.affinity)(signature), apart

    def sought(self, signature: Signature) -> tuple[Sequence[Topology], Callable[[Signature], bool]]:
        """Return the topologies of a signature's required affinity, and the predicate of the signatures it matches."""
        terms = self._terms(signature).affinity
        return [self.state.topology(term.key) for term in terms], self._all_match(terms)

    def finds_company(self, signature: Signature) -> bool:
        """Whether any pod that the required affinity of a signature seeks is placed anywhere."""
        terms = self._terms(signature).affinity
        matching = self._matching_counts(terms)
        return any(matching.total(self.state.topology(term.key)).any() for term in terms)

    # -- rules ------------------------------------------------------------------------------------------------

    def rules(self, view: View) -> Iterable[Rule]:
        """A `Repel` for each anti-affinity term, an `Attract` for each set of affinity terms, an `Allow` for keys."""
        for term, owners in self._owned("anti_affinity").items():
            repelled = self._repelled(term)
            seekers, targets = view.select(owners), view.select(repelled)
            if len(seekers) or len(targets):
                origin = Origin(self.name, f"anti-affinity over {term.key}")
                held = view.relation(owners, repelled)
                yield Repel(origin, seekers, targets, self.state.topology(term.key), held)
        attracting: dict[tuple[Term, ...], list[Signature]] = {}
        for signature in self.state.signatures.all:
            if together := self._terms(signature).affinity:
                attracting.setdefault(together, []).append(signature)
        for together, owners in attracting.items():
            matching = self._matching_all(together)
            seekers, targets = view.select(owners), view.select(matching)
            if len(seekers) or len(targets):
                topologies = tuple(self.state.topology(term.key) for term in together)
                origin = Origin(self.name, f"affinity over {', '.join(term.key for term in together)}")
                yield Attract(origin, seekers, targets, topologies, view.relation(owners, matching))
        rule = view.allow(
            self.name, lambda signature: with_keys(self.state, {term.key for term in self._terms(signature).affinity})
        )
        if rule is not None:
            yield rule

    # -- score ------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, nodes: Ints) -> bool:
        """Sum what matching pods are worth, by topology key and domain."""
        if self._scores_nobody(cycle.signature):
            return False
        worth: dict[str, Ints] = {}
        for domain_counts, topology, weight in self.worths(cycle.signature):
            totals = domain_counts.total(topology)
            if totals.any():
                before = worth.get(topology.key, np.zeros(topology.size, dtype=np.int64))
                worth[topology.key] = before + totals * weight
        cycle.data[self.name] = worth
        return bool(worth) or not self.release.skips_idle_scores

    def worths(self, signature: Signature) -> Iterator[tuple[DomainCounts, Topology, int]]:
        """Yield what makes domains better or worse for a pod: counts of pods, the domains, what each of them is worth.

        Terms that are worth nothing are left out.
        """
        if self._scores_nobody(signature):
            return
        terms = self._terms(signature)
        found = [(self._matching_counts((term,)), term.key, weight) for term, weight in terms.preferred]
        found += [(self._matching_counts((term,)), term.key, -weight) for term, weight in terms.preferred_anti]
        hard = self.args.hard_pod_affinity_weight
        for role, weight in (("affinity", hard), ("preferred", 1), ("preferred_anti", -1)):
            found += [(self._owners(term, role), term.key, weight) for term in self._matching(signature, role)]
        for domain_counts, key, weight in found:
            if weight:
                yield domain_counts, self.state.topology(key), weight

    def _scores_nobody(self, signature: Signature) -> bool:
        """Whether arguments say that a pod without preferred terms of its own is not scored."""
        terms = self._terms(signature)
        return bool(self.args.ignore_preferred_terms_of_existing_pods and not (terms.preferred or terms.preferred_anti))

    def score(self, cycle: CycleState, nodes: Ints) -> Ints:
        """Sum what the matching pods in the node's domains are worth."""
        raw = np.zeros(len(nodes), dtype=np.int64)
        for key, worth in cycle.data[self.name].items():
            domain = self.state.topology(key).domain[nodes]
            raw += np.where(domain >= 0, worth[domain], 0)
        return raw

    def normalize(self, cycle: CycleState, nodes: Ints, scores: Ints) -> Ints:
        """Scale between the smallest and the largest, dividing before multiplying, as upstream does in floats."""
        if not cycle.data[self.name] or not len(scores):
            return scores
        lowest, highest = int(scores.min()), int(scores.max())
        if highest == lowest:
            return np.zeros_like(scores)
        scaled = float(POINTS) * ((scores - lowest).astype(np.float64) / float(highest - lowest))
        normal: Ints = scaled.astype(np.int64)
        return normal

    def terms(self, view: ScoreView) -> Iterator[Weighted]:
        """Return a surrogate: a preferred term costs its weight times the share of matching pods that are apart.

        For anti-affinity, the share that are together. The exact score is rescaled between the best and the worst
        node at the moment of placement, which has no final-state meaning.
        """
        for role, together in (("preferred", False), ("preferred_anti", True)):
            owners: dict[tuple[Term, int], list[Signature]] = {}
            for signature in self.state.signatures.all:
                for weighted in getattr(self._terms(signature), role):
                    owners.setdefault(weighted, []).append(signature)
            for (term, weight), owning in owners.items():
                origin = Origin(self.name, f"{role.replace('_', ' ')} over {term.key}")
                matching = self._matching_all((term,))
                yield from view.affinity(origin, self.state.topology(term.key), owning, matching, weight, together)

    # -- matching ---------------------------------------------------------------------------------------------

    def _terms(self, signature: Signature) -> Terms:
        def make() -> Terms:
            affinity = signature.pod.spec.affinity
            toward = (affinity and affinity.pod_affinity) or NO_AFFINITY
            away = (affinity and affinity.pod_anti_affinity) or NO_AFFINITY
            return Terms(
                tuple(self._term(signature.pod, term) for term in toward.required),
                tuple(self._term(signature.pod, term) for term in away.required),
                tuple((self._term(signature.pod, w.pod_affinity_term), w.weight) for w in toward.preferred),
                tuple((self._term(signature.pod, w.pod_affinity_term), w.weight) for w in away.preferred),
            )

        return self.state.memo((self.name, "terms", signature), make)

    def _term(self, owner: Pod, term: PodAffinityTerm) -> Term:
        selector = term.label_selector
        if self.release.affinity_label_keys and selector is not None:
            labels = owner.metadata.labels
            selector = selector.also(
                *(LabelSelectorRequirement(k, "In", (labels[k],)) for k in term.match_label_keys if k in labels),
                *(LabelSelectorRequirement(k, "NotIn", (labels[k],)) for k in term.mismatch_label_keys if k in labels),
            )
        names = frozenset(term.namespaces)
        if not names and term.namespace_selector is None:
            names = frozenset({owner.namespace})
        return Term(term.topology_key, selector, names, term.namespace_selector)

    def _all_match(self, terms: Sequence[Term]) -> Callable[[Signature], bool]:
        """Return the predicate of signatures that match all terms of an incoming pod."""
        labels, twice = self.state.snapshot.namespace_labels, self.release.affinity_keeps_namespace_selector
        return lambda signature: all(term.matches_existing(signature.pod, labels, twice) for term in terms)

    def _matching_all(self, terms: Sequence[Term]) -> list[Signature]:
        """Return the signatures that match all terms of an incoming pod."""
        matches = self._all_match(terms)
        return [signature for signature in self.state.signatures.selected(terms[0].selector) if matches(signature)]

    def _repelled(self, term: Term) -> list[Signature]:
        """Return the signatures that an anti-affinity term repels, whichever comes first."""
        labels, existing = self.state.snapshot.namespace_labels, self._all_match((term,))
        selected = self.state.signatures.selected(term.selector)
        return [
            signature for signature in selected if existing(signature) or term.matches_incoming(signature.pod, labels)
        ]

    def _matching_counts(self, terms: tuple[Term, ...]) -> DomainCounts:
        """Count the pods that match all of the terms."""
        key = (self.name, "matching", terms)
        return self.state.domain_counts(key, self._all_match(terms), lambda: self._matching_all(terms))

    def _owners(self, term: Term, role: str) -> DomainCounts:
        """Count the pods that have a term; a preferred one counts its weight."""

        def weight(signature: Signature) -> int:
            mine = getattr(self._terms(signature), role)
            if role.startswith("preferred"):
                return sum(weight for other, weight in mine if other == term)
            return sum(other == term for other in mine)

        return self.state.domain_counts((self.name, role, term), weight, lambda: self._owned(role).get(term, ()))

    def _owned(self, role: str) -> dict[Term, list[Signature]]:
        """Return every distinct term in a role, with the signatures that have it."""
        signatures = self.state.signatures.all

        def make() -> dict[Term, list[Signature]]:
            owned: dict[Term, list[Signature]] = {}
            for signature in signatures:
                mine = getattr(self._terms(signature), role)
                for term in dict.fromkeys(item[0] if role.startswith("preferred") else item for item in mine):
                    owned.setdefault(term, []).append(signature)
            return owned

        return self.state.memo((self.name, "owned", role, len(signatures)), make)

    def _matching(self, signature: Signature, role: str) -> Sequence[Term]:
        """Return the distinct terms of existing pods, in a role, that match the incoming pod."""
        number = len(self.state.signatures.all)
        labels = self.state.snapshot.namespace_labels

        def index() -> dict[tuple[str, str] | None, list[Term]]:
            """Sort terms by one label that they demand, so that most are never looked at."""
            by_label: dict[tuple[str, str] | None, list[Term]] = {}
            for term in self._owned(role):
                demanded = term.selector.match_labels.items() if term.selector else ()
                by_label.setdefault(next(iter(demanded), None), []).append(term)
            return by_label

        def make() -> list[Term]:
            by_label = self.state.memo((self.name, "index", role, number), index)
            candidates = [
                t for label in (None, *signature.pod.metadata.labels.items()) for t in by_label.get(label, ())
            ]
            return [term for term in candidates if term.matches_incoming(signature.pod, labels)]

        key: Hashable = (self.name, "matching", role, number, signature)
        return self.state.memo(key, make)
