# What every script of a plan needs: to ask kubectl, to know pods by uid, to remember what was done.

KUBECTL=${KUBECTL:-kubectl}
CONTEXT=''
INTERVAL=${STOWPLAN_INTERVAL:-2} # seconds between two looks at the cluster
PAUSE=${STOWPLAN_PAUSE:-2} # whole seconds before an eviction is tried again; doubled each time

say() {
    printf '%s\n' "$*"
}

stop() {
    printf 'stopped: %s\n' "$*" >&2
    exit 1
}

kube() {
    "$KUBECTL" ${CONTEXT:+--context "$CONTEXT"} "$@"
}

# Asks up to five times, since a connection may be cut; prints what was asked for.
ask() {
    asked=1
    until answer=$(kube "$@" </dev/null); do
        [ "$asked" -lt 5 ] || stop "kubectl $1 $2 fails"
        sleep "$asked"
        asked=$((asked + 1))
    done
    printf '%s' "$answer"
}

# One line for a pod: uid|name|node|deleted at|ready|template hashes|owner uids
# shellcheck disable=SC2016
FIELDS='{.metadata.uid}|{.metadata.name}|{.spec.nodeName}|{.metadata.deletionTimestamp}|{.status.conditions[?(@.type=="Ready")].status}|{.metadata.labels.pod-template-hash} {.metadata.labels.controller-revision-hash}|{.metadata.ownerReferences[*].uid}'

# pod NAMESPACE NAME: its line, or nothing
pod() {
    ask get pod --namespace "$1" "$2" --ignore-not-found --output "jsonpath=$FIELDS"
}

# replicas NAMESPACE OWNER HASH: the lines of an owner's pods that are not on their way out
replicas() {
    lines=$(ask get pods --namespace "$1" --output "jsonpath={range .items[*]}$FIELDS{\"\\n\"}{end}") || exit 1
    printf '%s\n' "$lines" | awk -F '|' -v owner="$2" -v hash="$3" '
        function among(word, text, n, words, i) {
            n = split(text, words, " ")
            for (i = 1; i <= n; i++) if (words[i] == word) return 1
            return 0
        }
        $1 != "" && $4 == "" && among(owner, $7) && (hash == "" || among(hash, $6))'
}

# column NUMBER: of lines as above
column() {
    cut -d '|' -f "$1"
}

# What was done is remembered line by line, so that a script that was ended can be run again.
note() {
    printf '%s\n' "$*" >>"$STATE"
}

noted() {
    [ -f "$STATE" ] && grep -qxF -- "$*" "$STATE"
}

forget() {
    grep -vxF -- "$*" "$STATE" >"$STATE.new" || :
    mv -- "$STATE.new" "$STATE"
}

# recall WORD...: what follows these words in a line that was noted, one a line
recall() {
    [ -f "$STATE" ] || return 0
    awk -v words="$* " 'index($0, words) == 1 { print substr($0, length(words) + 1) }' "$STATE"
}

# stranger LIST: passes the lines of pods whose uid is not in a list, one a line
stranger() {
    KNOWN=$1 awk -F '|' '
        BEGIN { n = split(ENVIRON["KNOWN"], uids, "\n"); for (i = 1; i <= n; i++) known[uids[i]] = 1 }
        !($1 in known)'
}

# replacement NAMESPACE OWNER HASH NODE SAME NAME: the line of a pod that an earlier wave parked on a node. Pods of one
# owner and template are interchangeable, so any one there will do that no other move has chosen, and that has no move
# of its own.
replacement() {
    found=$(replicas "$1" "$2" "$3") || exit 1
    taken=$(recall chosen && printf '%s' "$NAMED" | tr ' ' '\n')
    printf '%s\n' "$found" | stranger "$taken" |
        awk -F '|' -v node="$4" -v same="$5" -v name="$6" '$3 == node && (same == "no" || $2 == name)' | head -n 1
}

# expired FOURTEEN-DIGITS
expired() {
    [ "$(date -u +%Y%m%d%H%M%S)" -ge "$1" ]
}

unexpired() {
    ! expired "$1" || stop "the plan has expired; make a new one"
}
