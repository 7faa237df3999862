"""Disturbance of a trial's run from outside: then it is measured again, not believed."""

from fastapi import APIRouter, Depends

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.studies import Disturbance

router = APIRouter(prefix="/v1/studies/{study_id}", tags=["trials"], dependencies=[Depends(refuse_unknown_query)])


@router.get("/runs/{run_id}/disturbance")
def get_disturbance(study_id: Id, run_id: Id, client: ClientOf) -> Disturbance:
    """Return what known external causes took of a run's time, against the study's other runs; tuning is none."""
    return client.disturbance(study_id, run_id)
