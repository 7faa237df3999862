"""The weather of the store at hand in the words of the API, whose modules take their time to import."""

from collections.abc import Mapping
from typing import Any

from crosswind.api.routes.weather import WeatherView
from crosswind.data.store.store import Store
from crosswind.models.forecast.weather_service import WeatherService
from crosswind.settings import Settings


def weather(settings: Settings, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """As GET /v1/weather."""
    with Store.open(settings.home, database=settings.database) as store:
        answer = WeatherService(store).answer(asked["system"], asked["workload"], hours=asked["hours"])
        return WeatherView.model_validate(answer).model_dump(mode="json")
