"""The weather of a system: the time of runs that begin in the next hours over their usual time, by workload."""

from dataclasses import dataclass
from typing import ClassVar

from crosswind.dashboards.figure import Figure
from crosswind.dashboards.figures.chart import Table, along_time, label, paper
from crosswind.dashboards.palette import BLUE, MUTED, ORANGE, PURPLE, VERMILION, translucent
from crosswind.dashboards.wording import count, moment, times
from crosswind.data.schema.answers.weather import HourForecast, Pace, SystemWeather, WorkloadWeather

DRAWN = 4  # workloads, each with a colour, a symbol and a dash of its own
LINES = (
    *((BLUE, "circle", "solid"), (VERMILION, "triangle-up", "dash")),
    *((ORANGE, "square", "dot"), (PURPLE, "diamond", "dashdot")),
)
EVERY = 6  # hours of a row of the table
NS = 1_000_000  # of a millisecond, plotly's unit of time


@dataclass(frozen=True)
class WeatherPlot:
    """The workloads of a system with enough runs, those furthest from their usual time first."""

    name: ClassVar[str] = "weather"
    system: str
    workloads: tuple[WorkloadWeather, ...]
    others: int  # workloads that are not drawn

    @property
    def title(self) -> str:
        """The finding."""
        first = self.workloads[0]
        if first.standing == Pace.USUAL:
            return f"On {self.system} the usual pace is expected for the next {self._hours} hours"
        until = "" if first.usual_from_ns is None else f" until {moment(first.usual_from_ns):%Y-%m-%d %H:%M} UTC"
        ratio = times(first.hours[0].ratio)
        return f"{first.workload} on {self.system} is {first.standing}{until}: {ratio} its usual time"

    @property
    def _hours(self) -> int:
        return len(self.workloads[0].hours) - 1

    @property
    def sentence(self) -> str:
        """The figure in words, for those who do not see it."""
        rest = f"; {count(self.others, 'further workload')} not drawn" if self.others else ""
        return (
            f"Time of runs that begin in the next {self._hours} hours over their usual time, median and 90 % interval, "
            f"of {count(len(self.workloads), 'workload')}{rest}."
        )

    @property
    def table(self) -> Table:
        """The numbers drawn."""
        rows = (
            (one.workload, f"{moment(hour.at_ns):%Y-%m-%d %H:%M}", str(hour.standing), *map(times, _band(hour)))
            for one in self.workloads
            for hour in one.hours[::EVERY]
        )
        return Table(("workload", "begins, UTC", "pace", "of its usual time", "90 % from", "to"), tuple(rows))

    def draw(self) -> Figure:
        """The plotly figure, with the interval of the first workload."""
        figure = paper(self.title, height=320, x="begin of the run, UTC", y="time / usual time")
        first = self.workloads[0].hours
        at, low, high = [h.at_ns // NS for h in first], [h.low_ratio for h in first], [h.high_ratio for h in first]
        figure.add_scatter(
            x=[*at, *at[::-1]],
            y=[*high, *low[::-1]],
            fill="toself",
            fillcolor=translucent(BLUE, 0.15),
            line={"width": 0},
            mode="lines",
            name=label(f"90 % interval of {self.workloads[0].workload}"),
            hoverinfo="skip",
        )
        for one, (colour, symbol, dash) in zip(self.workloads, LINES, strict=False):
            figure.add_scatter(
                x=[hour.at_ns // NS for hour in one.hours],
                y=[hour.ratio for hour in one.hours],
                mode="lines+markers",
                name=label(one.workload),
                line={"color": colour, "dash": dash, "width": 1.75},
                marker={"color": colour, "symbol": symbol, "size": 7},
                hovertemplate="%{fullData.name}<br>%{x|%H:%M} UTC: %{y:.3~g}x<extra></extra>",
            )
        figure.add_hline(1, line={"color": MUTED, "width": 1, "dash": "dash"}, layer="below")
        return along_time(figure.update_layout(showlegend=True))


def _band(hour: HourForecast) -> tuple[float, float, float]:
    return hour.ratio, hour.low_ratio, hour.high_ratio


def weather_plot(weather: SystemWeather) -> WeatherPlot | None:
    """Return the figure, or None where no workload has enough runs."""
    of_known = [one for one in weather.workloads if one.standing != Pace.UNKNOWN and len(one.hours) > 1]
    of_known.sort(key=lambda one: (one.standing == Pace.USUAL, -abs(one.hours[0].ratio - 1)))
    drawn = tuple(of_known[:DRAWN])
    return WeatherPlot(weather.system, drawn, len(weather.workloads) - len(drawn)) if drawn else None
