"""Parts of lists in SQL, found by the place of the last row seen: the cost does not grow with the rows before it."""

import operator
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, tuple_

from crosswind.data.schema.part import Part


def part_of(query: Select[Any], part: Part, by: ColumnElement[Any], *key: ColumnElement[Any]) -> Select[Any]:
    """Return the part of a query in the order of a column, which may be null, and then of the key, which is not."""
    columns = [by, *(column for column in key if column is not by)]
    order = [column.desc() if part.descending else column.asc() for column in columns]
    behind = query if part.after is None else query.where(_is_behind(part, columns))
    nulls_last = [by.is_(None)] if _may_be_null(by) else []
    return behind.order_by(*nulls_last, *order).limit(part.limit)


def place_of(part: Part, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a row lies behind the part's place by columns that are never null."""
    compare = operator.lt if part.descending else operator.gt
    is_behind: ColumnElement[bool] = compare(tuple_(*columns), tuple_(*(part.after or ())))
    return is_behind


def _is_behind(part: Part, columns: list[ColumnElement[Any]]) -> ColumnElement[bool]:
    by, *key = columns
    if not _may_be_null(by):
        return place_of(part, *columns)
    value, *rest = part.after or ()
    is_further = place_of(Part(part.limit, descending=part.descending, after=tuple(rest)), *key)
    if value is None:
        return and_(by.is_(None), is_further)
    compare = operator.lt if part.descending else operator.gt
    return or_(compare(by, value), and_(by == value, is_further), by.is_(None))


def _may_be_null(column: ColumnElement[Any]) -> bool:
    return bool(getattr(column, "nullable", False))
