"""Promises of every service about studies whose programs name the parameters; a class that inherits them runs them."""

from dataclasses import replace

import pytest
from tests.models.tuner.service.service_contract import ALICE, BOB, NAME, STUDY

from crosswind.data.schema.errors import ConflictError, InvalidInputError
from crosswind.data.schema.trial import Study
from crosswind.models.tuner.service.service import StudyService

GROWING = replace(STUDY, study_id="g1", name="growing", space={"parameters": {}}, define_by_run=True)
LR = {"kind": "float", "low": 0.0, "high": 1.0, "log": False}
LAYERS = {"kind": "int", "low": 1, "high": 4}


class GrowthContract:
    """The promises; a class that inherits them has a fixture `service`."""

    @pytest.fixture
    def growing(self, service: StudyService) -> Study:
        return service.create(GROWING)

    def test_a_study_begins_without_a_parameter_and_gets_those_that_are_named(
        self, service: StudyService, growing: Study
    ) -> None:
        first, second = service.suggest("growing", 2, ALICE)
        assert first.trial.configuration == second.trial.configuration == {}
        named = service.define("growing", first.trial_id, {"lr": 0.5}, {"lr": LR}, owner="alice")
        assert named.trial.configuration == {"lr": 0.5}
        assert service.status("growing").study.space == {"parameters": {"lr": LR}}
        service.complete("growing", first.trial_id, 1.0)
        [third] = service.suggest("growing", 1, BOB)
        assert set(third.trial.configuration) == {"lr"}
        service.define("growing", second.trial_id, {"lr": 0.25, "layers": 2}, {"lr": LR, "layers": LAYERS})
        service.complete("growing", second.trial_id, 2.0)
        assert service.status("growing").study.space == {"parameters": {"layers": LAYERS, "lr": LR}}
        assert service.trial("growing", second.trial_id).trial.configuration == {"lr": 0.25, "layers": 2}

    def test_naming_again_changes_nothing_even_after_the_end(self, service: StudyService, growing: Study) -> None:
        [record] = service.suggest("growing", 1, ALICE)
        for _ in range(2):
            service.define("growing", record.trial_id, {"lr": 0.5}, {"lr": LR}, owner="alice")
            service.complete("growing", record.trial_id, 1.0, owner="alice")
        with pytest.raises(ConflictError, match="is done, expected leased"):
            service.define("growing", record.trial_id, {"lr": 0.75}, {"lr": LR})
        assert service.trial("growing", record.trial_id).trial.configuration == {"lr": 0.5}

    def test_what_cannot_be_is_refused_and_nothing_changes(self, service: StudyService, growing: Study) -> None:
        [record] = service.suggest("growing", 1, ALICE)
        service.define("growing", record.trial_id, {"lr": 0.5}, {"lr": LR})
        before = service.trial("growing", record.trial_id)
        for configuration, parameters, message in (
            ({"lr": 0.5}, {"lr": {**LR, "high": 2.0}}, r"parameter lr is .*'high': 1.0.* in study 'growing', not"),
            ({"lr": 1.5}, {}, "parameter lr is 1.5, expected a number from 0.0 to 1.0"),
            ({"lr": 0.5, "momentum": 0.9}, {}, "parameter momentum is unknown, expected only lr"),
            ({"lr": 0.5, "layers": 5}, {"layers": LAYERS}, "parameter layers is 5, expected a whole number"),
        ):
            with pytest.raises(InvalidInputError, match=message):
                service.define("growing", record.trial_id, configuration, parameters)
        with pytest.raises(ConflictError, match="leased by 'alice', not by 'bob'"):
            service.define("growing", record.trial_id, {"lr": 0.25}, {}, owner="bob")
        assert service.trial("growing", record.trial_id) == before
        assert service.status("growing").study.space == {"parameters": {"lr": LR}}

    def test_a_fixed_space_stays(self, service: StudyService) -> None:
        [record] = service.suggest(NAME, 1, ALICE)
        with pytest.raises(InvalidInputError, match="has a fixed space, expected one that is defined by its runs"):
            service.define(NAME, record.trial_id, {"lr": 0.5}, {"lr": LR})
        with pytest.raises(InvalidInputError):
            service.create(replace(GROWING, study_id="g2", name="fixed", define_by_run=False))
