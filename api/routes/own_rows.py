"""Own runs and studies: sharing, exporting and deleting them; and the audit trail."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import PrincipalOf, StoreOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import BINARY, Id, Name, RequestBody, View, refuse_unknown_query
from crosswind.client.own_rows import LocalRows
from crosswind.data.schema.answers.fields import rfc3339

PIECE_BYTES = 1 << 20
ZIP = "application/zip"
IN_MEMORY_BYTES = 8 << 20  # of an export; a larger one is in a file meanwhile

router = APIRouter(prefix="/v1", tags=["access"], dependencies=[Depends(refuse_unknown_query)])


async def own_rows_of(store: StoreOf, principal: PrincipalOf) -> LocalRows:
    """Return what whoever asks may do."""
    return LocalRows(store, str(principal))


OwnRowsOf = Annotated[LocalRows, Depends(own_rows_of)]


class ShareRequest(RequestBody):
    """The wish to share it, or no longer."""

    shared: bool = True


class SharedView(View):
    """The state of sharing: whether everybody may see it now."""

    shared: bool


class DeletedRunView(View):
    """The run that is no more, and how many rows it had."""

    deleted: str
    rows: int


class NameView(View):
    """Whose pseudonym it is."""

    pseudonym: str
    name: str


class AuditView(View):
    """One act: by whom, when, what, and on what."""

    entry_id: str
    at: str | None
    at_ns: int
    who: str
    act: str
    subject: str
    details: dict[str, str | int | bool | None]


class AuditPage(Page):
    """Part of the audit trail, newest first."""

    entries: list[AuditView]


class AuditQuery(ListQuery):
    """The entries to return: by whom, of which act, on what."""

    who: Name | None = None
    act: Name | None = None
    subject: Name | None = None


@router.post("/runs/{run_id}:share")
def share_run(run_id: Id, own: OwnRowsOf, body: ShareRequest | None = None) -> SharedView:
    """Let everybody see a run of one's own, or no longer; it is kept in the audit trail."""
    return SharedView(shared=own.share_run(run_id, shared=(body or ShareRequest()).shared))


@router.post("/runs/{run_id}:delete")
def delete_run(run_id: Id, own: OwnRowsOf) -> DeletedRunView:
    """Delete a run of one's own with its rows; models that were fitted with it stay as they are."""
    return DeletedRunView(deleted=run_id, rows=own.delete_run(run_id))


class ZipResponse(StreamingResponse):
    """An answer of a ZIP file."""

    media_type = ZIP


@router.get("/runs/{run_id}/export", response_class=ZipResponse, responses={200: {"content": {ZIP: BINARY}}})
def export_run(run_id: Id, own: OwnRowsOf) -> ZipResponse:
    """Return a ZIP file of everything that is stored of a run: `run.json`, and its rows of each set as Parquet."""
    with ExitStack() as closing:
        packed = closing.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES))
        own.pack_run(run_id, packed)
        packed.seek(0)
        closing.pop_all()  # `_pieces` closes it
    return ZipResponse(_pieces(packed))


@router.post("/studies/{study_id}:share")
def share_study(study_id: Id, own: OwnRowsOf, body: ShareRequest | None = None) -> SharedView:
    """Let everybody see a study of one's own and take part in it, or no longer."""
    return SharedView(shared=own.share_study(study_id, shared=(body or ShareRequest()).shared))


@router.post("/pseudonyms/{pseudonym}:reveal")
def reveal_pseudonym(pseudonym: Id, own: OwnRowsOf) -> NameView:
    """Return whose pseudonym it is; that somebody asked is kept in the audit trail."""
    return NameView(pseudonym=pseudonym, name=own.reveal(pseudonym))


AUDIT = Listing(AuditPage, "entries", ("-entry_id",), ("entry_id",))


@router.get("/audit", **AUDIT.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_audit(query: Annotated[AuditQuery, Query()], request: Request, own: OwnRowsOf) -> Response:
    """Return the audit trail, newest first."""
    asked = AUDIT.asked(query, request)
    wanted = {"who": query.who, "act": query.act, "subject": query.subject}
    entries = own.audit_part(wanted, asked.part)
    return asked.answer([AuditView.from_record(entry, at=rfc3339(entry.at_ns)) for entry in entries])


def _pieces(packed: "tempfile.SpooledTemporaryFile[bytes]") -> Iterator[bytes]:
    with packed:
        while piece := packed.read(PIECE_BYTES):
            yield piece
