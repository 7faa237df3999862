"""Principals and the rows that they may see."""

import pytest

from crosswind.data.schema.access import OWNER, Principal, PrincipalKind, Role, RowRule, Scope


@pytest.mark.parametrize("role", [Role.SUPPORT, Role.ADMIN])
def test_support_and_admins_see_all_rows(role):
    rule = Principal(PrincipalKind.PERSON, "ann", role, user="ann").row_rule
    assert (rule.sees_all, rule.user) == (True, "ann")


def test_a_user_sees_rows_of_their_own_and_of_their_accounts():
    ann = Principal(PrincipalKind.PERSON, "ann", user="ann", accounts=frozenset({"physics"}))
    assert ann.row_rule == RowRule(users=frozenset({"ann"}), accounts=frozenset({"physics"}))


def test_a_job_sees_its_rows_and_those_of_its_user():
    job = Principal(PrincipalKind.JOB, "17", user="ann", system="alps")
    assert job.row_rule == RowRule(users=frozenset({"ann"}), jobs=frozenset({("alps", "17")}))


def test_a_service_without_a_user_sees_shared_rows_alone():
    assert Principal(PrincipalKind.SERVICE, "grafana").row_rule == RowRule()


def test_a_scope_allows_itself_and_admin_allows_all():
    reader = Principal(PrincipalKind.SERVICE, "grafana", scopes=frozenset({Scope.READ}))
    assert [reader.allows(scope) for scope in Scope] == [True, False, False, False]
    assert all(OWNER.allows(scope) for scope in Scope)
