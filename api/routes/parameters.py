"""Parameters of studies that are defined by their runs."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.dependencies import StudyServiceOf
from crosswind.api.routes.studies import DomainBody
from crosswind.api.routes.trials import TrialView
from crosswind.api.wire import Id, Name, RequestBody, Value, refuse_unknown_query
from crosswind.models.tuner.service.rules import PARAMETERS_MAX

router = APIRouter(prefix="/v1/studies/{study_id}", tags=["trials"], dependencies=[Depends(refuse_unknown_query)])


class DefineRequest(RequestBody):
    """The values that a trial's program asked for, and the parameters that the study does not have yet."""

    configuration: Annotated[dict[Name, Value], Field(max_length=PARAMETERS_MAX)]
    parameters: Annotated[dict[Name, DomainBody], Field(max_length=PARAMETERS_MAX)] = {}  # noqa: RUF012 - it is copied
    owner: Name | None = None


@router.post("/trials/{trial_id}:define")
def define_trial(study_id: Id, trial_id: Id, body: DefineRequest, service: StudyServiceOf) -> TrialView:
    """Stores what the trial's program asked for; the parameters are part of the study from then on."""
    parameters = {name: domain.model_dump(exclude_none=True) for name, domain in body.parameters.items()}
    return TrialView.of(service.define(study_id, trial_id, body.configuration, parameters, owner=body.owner))
