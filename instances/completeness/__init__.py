"""What a dump does not hold although the cluster has it: absent is not none."""

from stowplan.instances.completeness.gap import Gap
from stowplan.instances.completeness.gaps import gaps, require_whole
from stowplan.instances.completeness.listings import ASKED, PRUNED, RESOURCES, Listing, listing, statement, statement_of

__all__ = [
    "ASKED",
    "PRUNED",
    "RESOURCES",
    "Gap",
    "Listing",
    "gaps",
    "listing",
    "require_whole",
    "statement",
    "statement_of",
]
