"""How a route reaches the store, and the desk that hands out its trials."""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.data.store import Store
from crosswind.models.tuner.desk import StudyDesk


def store_of(request: Request) -> Store:
    """The store that this application serves."""
    store: Store = request.app.state.store
    return store


StoreOf = Annotated[Store, Depends(store_of)]


def desk_of(store: StoreOf) -> StudyDesk:
    """The desk over the store's catalog."""
    return StudyDesk(store.catalog)


DeskOf = Annotated[StudyDesk, Depends(desk_of)]
