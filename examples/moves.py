"""Print one JSON object for each pod that changes its node."""

import json
import sys

import stowplan

snapshot = stowplan.load(sys.argv[1:])
solution = stowplan.solve(snapshot, stowplan.Settings(objective="balance"), stowplan.Options(time_limit=5))
for move in solution.moves:
    print(json.dumps({"pod": move.pod.key, "from": move.source or None, "to": move.target or None}))
print(f"{solution.status}, {len(solution.moves)} moves", file=sys.stderr)
