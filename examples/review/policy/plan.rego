# What a plan must keep to before it is merged: deny refuses it, warn is told. Reads the output of show -o json.
package main

max_moves := 50

max_wave := 10

protected := {"kube-system", "payments"}

moves := [move | some wave in input.waves; some move in wave.moves]

deny contains msg if {
	input.kind != "Plan"
	msg := sprintf("is a %v; must be a Plan", [input.kind])
}

deny contains msg if {
	count(moves) > max_moves
	msg := sprintf("%d moves; at most %d may be applied at once", [count(moves), max_moves])
}

deny contains msg if {
	some wave in input.waves
	count(wave.moves) > max_wave
	msg := sprintf("wave %d has %d moves; at most %d may be under way at once", [wave.number, count(wave.moves), max_wave])
}

deny contains msg if {
	some move in moves
	move.kind != "place"
	move.pod.namespace in protected
	msg := sprintf("%s evicts %s/%s; pods of %s stay", [move.id, move.pod.namespace, move.pod.name, move.pod.namespace])
}

deny contains msg if {
	some move in moves
	some lost in move.loses
	msg := sprintf("%s of %s/%s loses %s", [move.id, move.pod.namespace, move.pod.name, lost])
}

deny contains msg if {
	some move in moves
	move.kind == "remove"
	msg := sprintf("%s takes the node of %s/%s away", [move.id, move.pod.namespace, move.pod.name])
}

deny contains "was made from an incomplete dump" if input.partial

deny contains msg if {
	some tier in input.tiers
	tier.name == "constraint violations"
	tier.after > tier.before
	msg := sprintf("constraint violations rise from %v to %v", [tier.before, tier.after])
}

warn contains "is not proven optimal" if input.status != "OPTIMAL"

warn contains msg if {
	count(input.cordon) > 0
	msg := sprintf("%d nodes stay cordoned", [count(input.cordon)])
}
