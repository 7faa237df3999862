"""Maps of tables: which column is which fact, in which unit; a small YAML file, checked before a row is read."""

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import NAMES
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.readers.tables.units import ENERGIES, POWERS, SPELLED, TIMES
from crosswind.ingest.readers.trackers.yaml_file import mapping_in

NAMED = 12  # columns that an error lists
WORDS = ("completed", "failed", "lost")  # states that a map may list the table's words for
ONE, JOINED, GROUP = "one", "joined", "group"


@dataclass(frozen=True)
class Fact:
    """One fact that a map may name: its form, its units, the first of them the usual one, and whether it is needed."""

    form: str = ONE
    units: Sequence[str] = ()
    is_needed: bool = False


TIME, ENERGY, POWER = tuple(TIMES), tuple(ENERGIES), tuple(POWERS)
PHASES = ("input", "compute", "comm", "checkpoint", "other")
COMMON = {"workload": Fact(JOINED), "system": Fact(), "run": Fact(JOINED)}
IN_SECONDS = Fact(units=("s", *TIME))
KINDS: Mapping[str, Mapping[str, Fact]] = {
    "runs": {
        **COMMON,
        **dict.fromkeys(("ranks", "nodes", "ranks_per_node", "steps", "state", "job"), Fact()),
        **dict.fromkeys(("start", "end", "seconds", "step_seconds"), IN_SECONDS),
        "energy": Fact(units=ENERGY),
        "power": Fact(units=("W", *POWER)),
        **dict.fromkeys(("configuration", "software", "tags", "facts"), Fact(GROUP)),
    },
    "steps": {
        **COMMON,
        "rank": Fact(is_needed=True),
        "step": Fact(is_needed=True),
        "seconds": replace(IN_SECONDS, is_needed=True),
        **dict.fromkeys(("start", *PHASES), IN_SECONDS),
    },
    "operations": {
        **COMMON,
        **dict.fromkeys(("rank", "step", "operation"), Fact(is_needed=True)),
        **dict.fromkeys(("start", "seconds"), replace(IN_SECONDS, is_needed=True)),
        **dict.fromkeys(("number", "stage", "replica", "micro_batch", "chunk", "meeting"), Fact()),
    },
    "trials": {
        **{name: COMMON[name] for name in ("workload", "system")},
        "study": Fact(JOINED),
        "objective": Fact(units=(*TIME, *ENERGY, *POWER), is_needed=True),
        "parameters": Fact(GROUP, is_needed=True),
        "valid": Fact(),
    },
}
SETTINGS = ("table", "delimiter", "direction")
DIRECTIONS = ("minimise", "maximise")


@dataclass(frozen=True)
class Source:
    """The origin of one fact of a row: columns (several are joined by /), or a value that is the same in all rows."""

    columns: tuple[str, ...] = ()
    unit: str = ""
    value: Parameter | None = None
    name: str = ""  # of an objective
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the table's words by state


@dataclass(frozen=True)
class TableMap:
    """A map of one table: sources of facts by name; `text` is the same for maps that say the same."""

    path: str  # as errors name it
    kind: str
    facts: Mapping[str, Source]
    groups: Mapping[str, Mapping[str, Source]]
    delimiter: str = ""
    is_maximised: bool = False
    text: str = ""

    @classmethod
    def read(cls, path: Path) -> "TableMap":
        """Return the map in a file. Raises: MalformedError naming file, field, value and expectation."""
        return cls.of(mapping_in(path), str(path))

    @classmethod
    def of(cls, words: Mapping[object, object], path: str) -> "TableMap":
        """Return the map that these words describe. Raises: as `read`."""
        kind = str(words.get("table", ""))
        if kind not in KINDS:
            raise MalformedError(f"{path}: table is {kind!r:.60}; {_expected(kind, KINDS)}")
        fields = KINDS[kind]
        _check_names(path, kind, words)
        delimiter, direction = words.get("delimiter", ""), words.get("direction", DIRECTIONS[0])
        if not isinstance(delimiter, str) or len(delimiter) > 1:
            raise MalformedError(f"{path}: delimiter is {delimiter!r:.60}; expected one character, such as ';'")
        if direction not in DIRECTIONS:
            raise MalformedError(f"{path}: direction is {direction!r:.60}; {_expected(str(direction), DIRECTIONS)}")
        parser = _Parser(path)
        facts = {
            name: parser.source(name, words[name], fields[name]) for name in fields if _is_one(words, fields, name)
        }
        groups = {name: parser.group(name, words[name]) for name in fields if name in words and name not in facts}
        _check_objective(path, facts.get("objective"))
        _check_facts(path, groups.get("facts", {}))
        text = json.dumps({str(name): value for name, value in words.items()}, sort_keys=True, default=str)
        return cls(path, kind, facts, groups, delimiter, direction == DIRECTIONS[1], text)

    def bound(self, names: Sequence[str], table: str) -> "TableMap":
        """Return the map for a table with these columns: patterns become the columns that they match.

        Raises: MalformedError naming a column that is not there, and those that are spelled nearly so.
        """
        for name, source in self.facts.items():
            self._check(name, source, names, table)
        groups = {name: self._matched(name, group, names, table) for name, group in self.groups.items()}
        return replace(self, groups=groups)

    def _matched(
        self, name: str, group: Mapping[str, Source], names: Sequence[str], table: str
    ) -> Mapping[str, Source]:
        matched: dict[str, Source] = {}
        for key, source in group.items():
            if source.columns == (key,) and key not in names and any(sign in key for sign in "*?["):
                hits = [column for column in names if fnmatch.fnmatchcase(column, key)]
                if not hits:
                    raise MalformedError(
                        f"{self.path}: {name}: no column of {table} matches {key!r}; {_columns(names)}"
                    )
                matched |= {column: Source((column,)) for column in hits}
            else:
                self._check(f"{name}: {key}", source, names, table)
                matched[key] = source
        return matched

    def _check(self, name: str, source: Source, names: Sequence[str], table: str) -> None:
        for column in source.columns:
            if column not in names:
                near = get_close_matches(column, names, 3, 0.6)
                hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
                raise MalformedError(f"{self.path}: {name}: {table} has no column {column!r}; {hint}{_columns(names)}")


@dataclass(frozen=True)
class _Parser:
    """Reads the words of a map at `path`, and names what is wrong with them."""

    path: str

    def source(self, name: str, value: object, fact: Fact) -> Source:
        """Return the source of one fact. Raises: MalformedError."""
        match value:
            case str() if value:
                source = Source((value,))
            case list() if fact.form == JOINED and value and all(isinstance(one, str) for one in value):
                source = Source(tuple(value))
            case dict() if set(value) == {"value"} and isinstance(value["value"], str | int | float):
                source = Source(value=value["value"])
            case dict() if isinstance(value.get("column"), str):
                source = self._detailed(name, value, fact)
            case _:
                lists = ", a list of columns to be joined" if fact.form == JOINED else ""
                unit = f", {{column: NAME, unit: {fact.units[0]}}}" if fact.units else ", {column: NAME}"
                raise self._fault(name, value, f"a column{lists}{unit}, or {{value: THE SAME FOR ALL ROWS}}")
        return self._with_unit(name, source, fact)

    def group(self, name: str, value: object) -> dict[str, Source]:
        """Return the sources of a group of facts: of a list of columns or patterns, or of names with their sources."""
        match value:
            case list() if value and all(isinstance(one, str) and one for one in value):
                return {column: Source((column,)) for column in value}
            case dict() if value:
                return {str(key): self.source(f"{name}: {key}", source, Fact(JOINED)) for key, source in value.items()}
        raise self._fault(name, value, "a list of columns or patterns such as hp_*, or NAME: column pairs")

    def _detailed(self, name: str, value: Mapping[str, object], fact: Fact) -> Source:
        of_state = WORDS if name == "state" else ()
        fields = ("column", *(["unit"] if fact.units else []), *(["name"] if name == "objective" else []), *of_state)
        for key in value:
            if key not in fields:
                raise MalformedError(f"{self.path}: {name}: {key!r:.60} is not known; {_expected(str(key), fields)}")
        words = {word: self._words(f"{name}: {word}", value[word]) for word in of_state if word in value}
        unit, named = (str(value.get(key, "")) for key in ("unit", "name"))
        return Source((str(value["column"]),), unit, name=named, words=words)

    def _words(self, name: str, value: object) -> tuple[str, ...]:
        words = value if isinstance(value, list) else [value]
        if not words or not all(isinstance(word, str | int | bool) for word in words):
            raise self._fault(name, value, "a word of the table, or a list of them")
        return tuple(str(word) for word in words)

    def _with_unit(self, name: str, source: Source, fact: Fact) -> Source:
        if not fact.units or source.value is not None:
            return source
        unit = SPELLED.get(source.unit, source.unit)
        if not unit:
            return source if name == "objective" else replace(source, unit=fact.units[0])
        if unit not in fact.units and name != "objective":
            units = dict.fromkeys(fact.units)
            raise MalformedError(f"{self.path}: {name}: unit is {source.unit!r:.60}; {_expected(unit, units)}")
        return replace(source, unit=unit)

    def _fault(self, name: str, value: object, expected: str) -> MalformedError:
        return MalformedError(f"{self.path}: {name} is {value!r:.80}; expected {expected}")


def _check_objective(path: str, objective: Source | None) -> None:
    name = objective and (objective.name or "".join(objective.columns[:1]))
    if objective and not (name and name.isidentifier()):
        expected = "a name such as step_p50_seconds: {column: NAME, name: step_p50_seconds, unit: ms}"
        raise MalformedError(f"{path}: objective is called {name!r:.60}; expected {expected}")


def _check_facts(path: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in NAMES:
            raise MalformedError(f"{path}: facts: {name!r:.60} is no fact; {_expected(name, NAMES)}")


def _is_one(words: Mapping[object, object], fields: Mapping[str, Fact], name: str) -> bool:
    return name in words and fields[name].form != GROUP


def _check_names(path: str, kind: str, words: Mapping[object, object]) -> None:
    fields = KINDS[kind]
    for name in words:
        if name not in (*SETTINGS, *fields):
            raise MalformedError(f"{path}: {name!r:.60} is no field of {kind}; {_expected(str(name), fields)}")
    for name, fact in fields.items():
        if fact.is_needed and name not in words:
            raise MalformedError(f"{path}: {name} is missing; expected the column that holds it in a table of {kind}")
    if kind == "runs" and not {"seconds", "end", "step_seconds"} & set(words):
        raise MalformedError(f"{path}: seconds is missing; expected it, end or step_seconds: the time of a run")
    if kind == "runs" and "end" in words and "start" not in words:
        raise MalformedError(f"{path}: end without start; expected both, or seconds")


def _expected(word: str, fields: Iterable[str]) -> str:
    names = list(fields)
    near = get_close_matches(word, names, 2, 0.6)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{hint}expected one of: {', '.join(names)}"


def _columns(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"its columns: {', '.join(names[:NAMED])}{more}"
