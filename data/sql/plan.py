"""The rows that a statement needs: which tables and columns it names, and which of their rows can matter.

Read from the syntax tree of DuckDB (`json_serialize_sql`), in the process that runs the statement. Whatever is left out
of doubt is too many rows, never too few: the statement itself is run over what was handed over.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Node = Mapping[str, Any]
Tables = Mapping[str, Mapping[str, str]]  # by table: by column its type, a dtype of metric sets
OPERATORS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
TURNED = {"=": "=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
INTEGER = re.compile(r"-?[0-9]{1,18}")
NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,2})?")
OF_DUCKDB = ("duckdb_", "pg_", "sqlite_", "information_schema")  # its own lists, of this process alone
IN_MAX = 1000  # values of one condition
RUN_ID = "run_id"
Value = str | int | float


@dataclass(frozen=True)
class Condition:
    """A condition that every row of a table meets that can matter: the column compared with any of the values."""

    column: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Wanted:
    """The part of a table that a statement needs.

    Its columns, None: all; rows that meet all conditions, and whose runs are among those handed over of each of the
    other tables; the first `limit` of them, None: all.
    """

    table: str
    columns: tuple[str, ...] | None
    conditions: tuple[Condition, ...] = ()
    runs_of: tuple[str, ...] = ()
    limit: int | None = None


@dataclass
class _Mention:
    """One place where a statement names a table."""

    table: str
    alias: str
    conditions: list[Condition] = field(default_factory=list)
    runs_of: list[str] = field(default_factory=list)
    limit: int | None = None


@dataclass
class _Names:
    """The names that occur anywhere in a statement."""

    columns: set[str] = field(default_factory=set)
    rows: set[str] = field(default_factory=set)  # an alias alone is the row as a whole, unless a column has that name
    whole: set[str] = field(default_factory=set)  # aliases and tables of which all columns are wanted; "" for all
    views: set[str] = field(default_factory=set)  # of common table expressions


class Planner:
    """Finds what a statement needs. `parameters` are its values by name, `limit` the rows that are wanted of it."""

    def __init__(self, tables: Tables, parameters: Mapping[str, object], limit: int) -> None:
        self._tables = tables
        self._parameters = parameters
        self._limit = limit
        self._names = _Names()
        self._mentions: dict[int, _Mention] = {}  # by the address of their node

    def plan(self, statement: Node) -> list[Wanted]:
        """Return what is needed of each table. Raises: ValueError naming a table that there is not."""
        root = statement["node"]
        limits = {id(root): self._limit}
        for node in _nodes(root):
            self._note(node)
            if node.get("show_type") == "DESCRIBE":
                limits[id(node["query"])] = 0
        for node in _nodes(root):
            if node.get("type") == "BASE_TABLE":
                self._mention(node)
        for node in _nodes(root):
            if node.get("type") == "SELECT_NODE":
                self._read(node, limits.get(id(node)))
        by_table: dict[str, list[_Mention]] = {}
        for mention in self._mentions.values():
            by_table.setdefault(mention.table, []).append(mention)
        return [self._wanted(table, mentions) for table, mentions in by_table.items()]

    def _note(self, node: Node) -> None:
        kind = node.get("type")
        if kind == "COLUMN_REF":
            names = [str(name).lower() for name in node["column_names"]]
            self._names.columns.update(names)
            self._names.rows.update(names[-1:])
        elif kind == "STAR":
            self._names.whole.add(str(node.get("relation_name") or "").lower())
        elif kind == "JOIN":
            self._names.columns.update(str(name).lower() for name in node["using_columns"])
            self._names.whole.update([""] if node["ref_type"] == "NATURAL" else [])
        elif kind in ("SHOW_REF", "PIVOT", "POSITIONAL_REFERENCE") or node.get("column_name_alias"):
            self._names.whole.add("")
        for entry in (node.get("cte_map") or {}).get("map", ()):
            self._names.views.add(str(entry["key"]).lower())

    def _mention(self, node: Node) -> None:
        name, schema = str(node["table_name"]).lower(), str(node["schema_name"]).lower()
        if schema not in ("", "main") or name in self._names.views - set(self._tables):
            return
        if name in self._tables:
            self._mentions[id(node)] = _Mention(name, str(node["alias"] or node["table_name"]).lower())
        elif not name.startswith(OF_DUCKDB):
            listed = ", ".join(sorted(self._tables))
            raise ValueError(f"table {node['table_name']!r:.80} is unknown, expected one of {listed}")

    def _read(self, select: Node, limit: int | None) -> None:
        """Read one SELECT: the tables that it names itself, and the conditions on them."""
        named = list(_tables_in(select["from_table"]))
        joins = list(_joins_in(select["from_table"]))
        is_usual = all(join["ref_type"] in ("REGULAR", "CROSS") for join in joins)
        if not is_usual or any(part["sample"] or part.get("column_name_alias") for part in named):
            return
        mentions = [self._mentions[id(table)] for table in named if id(table) in self._mentions]
        is_inner = all(join["join_type"] == "INNER" for join in joins)
        using = {str(name).lower() for join in joins for name in join["using_columns"]} if is_inner else set()
        is_exact = True
        for part in _conjuncts(select["where_clause"]):
            is_exact &= self._hold(part, mentions, using)
        if is_inner:
            self._bind(select, mentions, joins, using)
        if len(mentions) == 1 and is_exact and _is_plain(select):
            mentions[0].limit = self._first(select, limit)

    def _hold(self, part: Node, mentions: list[_Mention], using: Collection[str]) -> bool:
        """Note a condition on a table; whether the whole of the part was noted."""
        compared = self._compared(part)
        if compared is None:
            self._hold_runs(part, mentions, using)
            return False
        names, conditions = compared
        held = False
        for mention in _owners(names, mentions, self._tables, using):
            column = names[-1]
            fit = [_fitting(condition, self._tables[mention.table][column]) for condition in conditions]
            if None not in fit:
                mention.conditions += [Condition(column, one.operator, one.values) for one in fit if one]
                held = True
        return held

    def _compared(self, part: Node) -> tuple[list[str], list[Condition]] | None:
        """Return the names of a column and what it is compared with, where the part is such a condition."""
        kind = part.get("type")
        if kind in OPERATORS:
            sides, operator = (part["left"], part["right"]), OPERATORS[kind]
            if sides[1].get("type") == "COLUMN_REF":
                sides, operator = (sides[1], sides[0]), TURNED[operator]
            return _of(sides[0], [(operator, [self._value(sides[1])])])
        if kind == "COMPARE_IN":
            first, *others = part["children"]
            return _of(first, [("=", [self._value(one) for one in others])])
        if kind == "COMPARE_BETWEEN":
            ends = [(">=", [self._value(part["lower"])]), ("<=", [self._value(part["upper"])])]
            return _of(part["input"], ends)
        return None

    def _value(self, node: Node) -> Value | None:
        if node.get("type") == "VALUE_PARAMETER":
            value = self._parameters.get(str(node["identifier"]))
            return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None
        if node.get("type") != "VALUE_CONSTANT":
            return None
        literal = node.get("literal") or {}
        kind, text = literal.get("kind"), str(literal.get("text"))
        if kind == "STRING":
            return text
        if kind == "INTEGER" and INTEGER.fullmatch(text.removeprefix("+")):
            return int(text)
        return float(text) if kind == "NUMERIC" and NUMBER.fullmatch(text) else None

    def _hold_runs(self, part: Node, mentions: list[_Mention], using: Collection[str]) -> None:
        """Note `run_id in (select run_id from runs ...)`: of no other runs can rows matter."""
        if part.get("class") != "SUBQUERY" or part.get("subquery_type") != "ANY":
            return
        child, select = part.get("child") or {}, (part.get("subquery") or {}).get("node") or {}
        source = self._mentions.get(id(select.get("from_table")))
        if source is None or part.get("comparison_type") != "COMPARE_EQUAL" or not _is_run_id(child):
            return
        if len(select["select_list"]) == 1 and _is_run_id(select["select_list"][0]):
            for mention in _owners(_names(child), mentions, self._tables, using):
                mention.runs_of.append(source.table)

    def _bind(self, select: Node, mentions: list[_Mention], joins: list[Node], using: Collection[str]) -> None:
        """Note inner joins by `run_id`: of runs that are not in the one can no rows of the other matter."""
        ons = [part for join in joins for part in _conjuncts(join["condition"])]
        equal = [part for part in (*ons, *_conjuncts(select["where_clause"])) if _is_of_runs(part)]
        bound = [mention for mention in mentions if RUN_ID in self._tables[mention.table]] if RUN_ID in using else []
        for part in equal:
            for side in ("left", "right"):
                bound += _owners(_names(part[side]), mentions, self._tables, ())
        for one in bound:
            one.runs_of += [other.table for other in bound if other.table != one.table]

    def _first(self, select: Node, limit: int | None) -> int | None:
        """Return of how many rows the statement needs the first ones; None: of all."""
        [modifier] = select["modifiers"] or [{}]
        first, skipped = modifier.get("limit"), modifier.get("offset")
        counts = [limit if first is None else self._value(first), 0 if skipped is None else self._value(skipped)]
        return sum(counts) if all(isinstance(count, int) for count in counts) else None  # type: ignore[arg-type]

    def _wanted(self, table: str, mentions: Sequence[_Mention]) -> Wanted:
        stored, aliases = self._tables[table], {mention.alias for mention in mentions} | {table}
        is_whole = bool(self._names.whole & {"", *aliases} or self._names.rows & aliases - set(stored))
        columns = None if is_whole else tuple(name for name in stored if name in self._names.columns)
        if len(mentions) > 1 or table in self._names.views:
            return Wanted(table, columns)
        [mention] = mentions
        runs_of = tuple(other for other in dict.fromkeys(mention.runs_of) if other not in self._names.views)
        return Wanted(table, columns, tuple(mention.conditions), runs_of, mention.limit)


def _nodes(root: object) -> Iterator[Node]:
    """Yield every object of a syntax tree."""
    left = [root]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part


def _tables_in(table: Node) -> Iterator[Node]:
    if table.get("type") == "BASE_TABLE":
        yield table
    for side in ("left", "right"):
        if table.get("type") == "JOIN":
            yield from _tables_in(table[side])


def _joins_in(table: Node) -> Iterator[Node]:
    if table.get("type") == "JOIN":
        yield table
        yield from _joins_in(table["left"])
        yield from _joins_in(table["right"])


def _conjuncts(condition: Node | None) -> Iterator[Node]:
    if condition is not None and condition.get("type") == "CONJUNCTION_AND":
        for child in condition["children"]:
            yield from _conjuncts(child)
    elif condition is not None:
        yield condition


def _names(column: Node) -> list[str]:
    return [str(name).lower() for name in column["column_names"]] if column.get("type") == "COLUMN_REF" else []


def _of(column: Node, compared: list[tuple[str, list[Value | None]]]) -> tuple[list[str], list[Condition]] | None:
    names, values = _names(column), [value for _, some in compared for value in some]
    if not names or None in values or len(values) > IN_MAX:
        return None
    return names, [Condition("", operator, tuple(v for v in some if v is not None)) for operator, some in compared]


def _owners(names: Sequence[str], mentions: list[_Mention], tables: Tables, using: Collection[str]) -> list[_Mention]:
    """Return the mention whose column it is, or those that a join makes one column of; none where it is not sure."""
    if len(names) == 1:
        owners = [mention for mention in mentions if names[0] in tables[mention.table]]
        return owners if len(owners) == 1 or names[0] in using else []
    if len(names) != 2:
        return []
    owners = [mention for mention in mentions if mention.alias == names[0] and names[1] in tables[mention.table]]
    return owners if len(owners) == 1 else []


def _fitting(condition: Condition, dtype: str) -> Condition | None:
    """Return the condition if its values are compared the same way everywhere; texts have orders of their own."""
    kinds = {"int64": int, "uint64": int, "float64": (int, float), "string": str}
    kind = kinds.get(dtype)
    if kind is None or not all(isinstance(value, kind) for value in condition.values):  # type: ignore[arg-type]
        return None
    if dtype == "float64":
        return Condition(condition.column, condition.operator, tuple(map(float, condition.values)))
    return condition if dtype != "string" or condition.operator == "=" else None


def _is_run_id(node: Node) -> bool:
    return _names(node)[-1:] == [RUN_ID]


def _is_of_runs(part: Node) -> bool:
    return part.get("type") == "COMPARE_EQUAL" and _is_run_id(part["left"]) and _is_run_id(part["right"])


def _is_plain(select: Node) -> bool:
    """Return whether a SELECT shows rows as they are: nothing is put together, ordered or left out."""
    shown = all(item.get("type") in ("STAR", "COLUMN_REF") and not item.get("expr") for item in select["select_list"])
    is_limited = [modifier["type"] for modifier in select["modifiers"]] in ([], ["LIMIT_MODIFIER"])
    is_counted = all(modifier.get("limit_type", "ROW_COUNT") == "ROW_COUNT" for modifier in select["modifiers"])
    parts = ("group_expressions", "group_sets", "having", "sample", "qualify")
    is_simple = select["from_table"]["type"] == "BASE_TABLE" and not select["from_table"]["sample"]
    is_standard = select["aggregate_handling"] == "STANDARD_HANDLING"
    return shown and is_limited and is_counted and is_simple and is_standard and not any(select[one] for one in parts)
