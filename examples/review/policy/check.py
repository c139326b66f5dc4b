"""Evaluates a policy on a plan: ``python check.py plan.rego plan.json``; exits with 1 if the policy denies the plan."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from regopy import Interpreter


def check(policy: str, plan: str) -> int:
    """Print what a policy says of a plan, and return 1 if it denies the plan."""
    engine = Interpreter()
    engine.add_module("policy", Path(policy).read_text(encoding="utf-8"))
    engine.set_input(json.loads(Path(plan).read_text(encoding="utf-8")))
    denied = 0
    for rule in ("deny", "warn"):
        messages = json.loads(str(engine.query(f"data.main.{rule}")))["expressions"][0]
        print(*(f"{rule}: {message}" for message in sorted(messages)), sep="\n", end="\n" if messages else "")
        denied += rule == "deny" and bool(messages)
    return denied


if __name__ == "__main__":
    sys.exit(check(*sys.argv[1:]))
