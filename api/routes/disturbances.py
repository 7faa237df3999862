"""Disturbance of a trial's run from outside: then it is measured again, not believed."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.stored import StoreOf, StudyServiceOf
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.models.tuner.evidence.disturbance import Basis, Disturbance

router = APIRouter(prefix="/v1/studies/{study_id}", tags=["trials"], dependencies=[Depends(refuse_unknown_query)])


class LostView(View):
    """The share of the run's time that one external cause took, with the ends of its interval."""

    cause: str
    ratio: float
    low: float
    high: float


class DisturbanceView(View):
    """The verdict whether the trial is to be measured again, and why; the largest share first."""

    run_id: str
    basis: Annotated[Basis, Field(description="what it rests on, the surest first")]
    lost: tuple[LostView, ...]
    is_disturbed: bool
    sentence: str

    @classmethod
    def of(cls, disturbance: Disturbance) -> Self:
        """The verdict as it looks on the wire."""
        return cls.model_validate(disturbance)


@router.get("/runs/{run_id}/disturbance")
def get_disturbance(study_id: Id, run_id: Id, service: StudyServiceOf, store: StoreOf) -> DisturbanceView:
    """Return what known external causes took of a run's time, beside the study's other runs; tuning is none of them."""
    from crosswind.models.tuner.evidence.disturbed import disturbance_in  # noqa: PLC0415 - heavy

    study = service.status(study_id).study
    return DisturbanceView.of(disturbance_in(store, study, service.trials(study_id), run_id))
