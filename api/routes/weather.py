"""Slowness of a system now, and in the next hours."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.weather import SystemWeather
from crosswind.data.schema.question import HOURS_MAX

router = APIRouter(prefix="/v1/weather", tags=["weather"], dependencies=[Depends(refuse_unknown_query)])


class WeatherQuery(BaseModel):
    """The system (null: that of most completed runs), workload (null: all of the last 28 days), and how far ahead."""

    system: Name | None = None
    workload: Name | None = None
    hours: Annotated[int, Field(ge=1, le=HOURS_MAX, description="whole hours to look ahead")] = HOURS_MAX


@router.get("")
def get_weather(query: Annotated[WeatherQuery, Query()], client: ClientOf) -> SystemWeather:
    """The slowdown of each workload now and hour by hour, with 90 % bands; stores nothing."""
    return client.weather(query.system, query.workload, hours=query.hours)
