"""The table of policies, and the `[policy]` table of a scenario: `kind` names the class, other keys are its fields."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import create_model

from distsim.errors import shown
from distsim.policies.asynchronous import Asynchronous
from distsim.policies.backup import Backup
from distsim.policies.ddp import Ddp
from distsim.policies.flexrr import FlexRR
from distsim.policies.local_sgd import LocalSgd
from distsim.policies.mesh import Mesh
from distsim.policies.pipeline import Pipeline
from distsim.policies.policy import Policy
from distsim.policies.sharded import Sharded
from distsim.policies.stale_synchronous import StaleSynchronous
from distsim.policies.synchronous import Synchronous
from distsim.policies.tensor import Tensor
from distsim.scenario_errors import missing_key, unknown_key
from distsim.validated_table import ValidatedTable

POLICIES: dict[str, type[Policy]] = {
    policy.kind: policy
    for policy in (
        Synchronous,
        Backup,
        Asynchronous,
        StaleSynchronous,
        FlexRR,
        LocalSgd,
        Ddp,
        Sharded,
        Tensor,
        Mesh,
        Pipeline,
    )
}


@cache
def _validator(kind: str) -> type[ValidatedTable]:
    policy = POLICIES[kind]
    hints = get_type_hints(policy, include_extras=True)
    described: Any = {
        field.name: (hints[field.name], ... if field.default is MISSING else field.default) for field in fields(policy)
    }
    return create_model(policy.__name__, __base__=ValidatedTable, **described)


def smallest_table(kind: str) -> dict[str, Any]:
    """The `[policy]` table of a kind with nothing but the keys that it needs, each with its first example.

    >>> smallest_table("backup"), smallest_table("asynchronous")
    ({'kind': 'backup', 'backups': 1}, {'kind': 'asynchronous'})
    """
    described = _validator(kind).model_fields.items()
    needed = {field.alias or name: field for name, field in described if field.is_required()}
    return {"kind": kind} | {key: (field.examples or [None])[0] for key, field in needed.items()}


def read_policy(table: object) -> Policy:
    """The policy of a `[policy]` table, or `table` itself where that is a policy already.

    Raises ValueError for an unknown kind, and pydantic's ValidationError for its fields.

    >>> read_policy({"kind": "backup", "backups": 1})
    Backup(backups=1, cancel=False)
    """
    if isinstance(table, Policy):
        return table
    known = ", ".join(POLICIES)
    if not isinstance(table, dict) or "kind" not in table:
        raise ValueError(f'needs a kind, one of {known}. Cure: write kind = "synchronous"')
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in POLICIES:
        raise ValueError(f"kind = {shown(kind)} is not a policy. Cure: take one of {known}")
    given = {key: value for key, value in table.items() if key != "kind"}
    validator = _validator(kind)
    keys = {field.alias or name: field for name, field in validator.model_fields.items()}
    for key in given:
        if key not in keys:
            raise ValueError(unknown_key(key, given[key], f"[policy] with kind = {kind!r}", list(keys)))
    for key, field in keys.items():
        if field.is_required() and key not in given:
            raise ValueError(missing_key(f"policy.{key}", field))
    model = validator.model_validate(given)
    return POLICIES[kind](**{name: getattr(model, name) for name in type(model).model_fields})


def write_policy(policy: Policy) -> dict[str, Any]:
    """The `[policy]` table that `read_policy` turns back into `policy`; defaults are left out.

    >>> write_policy(Backup(backups=1))
    {'kind': 'backup', 'backups': 1}
    """
    return {"kind": policy.kind} | _model(policy).model_dump(by_alias=True, exclude_defaults=True, exclude_none=True)


def whole_policy(policy: Policy) -> dict[str, Any]:
    """The same table with defaults.

    >>> whole_policy(Backup(backups=1))
    {'kind': 'backup', 'backups': 1, 'cancel': False}
    """
    return {"kind": policy.kind} | _model(policy).model_dump(by_alias=True)


def _model(policy: Policy) -> ValidatedTable:
    given = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return _validator(policy.kind).model_construct(**given)
