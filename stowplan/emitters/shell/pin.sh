ACT=no
SECONDS_LEFT=600
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME] [--seconds NUMBER] WAVE|release

Gives the waiting pods of plan $PLAN their nodes. Pods that have the scheduling gate $GATE wait; of those
that the wave has tokens for, each gets a required node affinity for its node and loses the gate, in one step. It ends
when the wave's tokens are used up. "release" takes the gate off all pods that have no token, as after a stop.

  --yes             patch; without it, what would be done is printed once
  --context NAME    a context of the kubeconfig
  --seconds NUMBER  how long to wait for the pods of the wave ($SECONDS_LEFT)
END
}
CHOSEN=''
while [ $# -gt 0 ]; do
    case $1 in
    --yes) ACT=yes ;;
    --context | --seconds)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        if [ "$1" = --context ]; then CONTEXT=$2; else SECONDS_LEFT=$2; fi
        shift
        case $SECONDS_LEFT in '' | *[!0-9]*) usage >&2; exit 2 ;; esac
        ;;
    -h | --help) usage; exit 0 ;;
    release) CHOSEN=release ;;
    '' | *[!0-9]*) usage >&2; exit 2 ;;
    *) CHOSEN=$1 ;;
    esac
    shift
done
[ -n "$CHOSEN" ] || { usage >&2; exit 2; }
DEADLINE=$(($(date +%s) + SECONDS_LEFT))

# One line for a pod: uid|name|node|deleted at|version|template hashes|owner uids|gates|token
WAITING='{.metadata.uid}|{.metadata.name}|{.spec.nodeName}|{.metadata.deletionTimestamp}|{.metadata.resourceVersion}|{.metadata.labels.pod-template-hash} {.metadata.labels.controller-revision-hash}|{.metadata.ownerReferences[*].uid}|{.spec.schedulingGates[*].name}|{.metadata.labels.stowplan\.io/token}'
REQUIRED=.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
# Each line begins with a letter, since lines without one would be lost at the end.
SHAPE="L{.metadata.labels}{\"\\n\"}A{.spec.affinity}{\"\\n\"}N{.spec.affinity.nodeAffinity}{\"\\n\"}R{$REQUIRED}{\"\\n\"}{range $REQUIRED.nodeSelectorTerms[*]}term{.matchFields[*].key}{\"\\n\"}{end}"

# waiting NAMESPACE: the pods that are not on their way out
waiting() {
    lines=$(ask get pods --namespace "$1" --output "jsonpath={range .items[*]}$WAITING{\"\\n\"}{end}") || exit 1
    printf '%s\n' "$lines" | awk -F '|' '$1 != "" && $4 == ""'
}

# fitting OWNER HASH POD: passes the pods that wait behind our gate and that a token is for
fitting() {
    awk -F '|' -v owner="$1" -v hash="$2" -v pod="$3" -v gate="$GATE" '
        function among(word, text, n, words, i) {
            n = split(text, words, " ")
            for (i = 1; i <= n; i++) if (words[i] == word) return 1
            return 0
        }
        $3 == "" && $9 == "" && among(gate, $8) && (owner == "-" || among(owner, $7)) &&
            (hash == "" || among(hash, $6)) && (pod == "-" || pod == $2)'
}

# ungate GATES: the operations that take our gate off
ungate() {
    printf '%s' "$1" | awk -v gate="$GATE" '{
        n = split($0, gates, " ")
        for (i = 1; i <= n; i++) if (gates[i] == gate)
            printf "{\"op\":\"test\",\"path\":\"/spec/schedulingGates/%d/name\",\"value\":\"%s\"},{\"op\":\"remove\",\"path\":\"/spec/schedulingGates/%d\"}", i - 1, gate, i - 1
    }'
}

# affinity NODE TOKEN: reads the shape of a pod, prints the operations that pin it. A gated pod may only be made
# pickier: a term that is there gets a requirement more, and terms are added only where there are none.
affinity() {
    awk -v node="$1" -v token="$2" '
        function add(path, value) { printf "{\"op\":\"add\",\"path\":\"%s\",\"value\":%s},", path, value }
        BEGIN {
            field = "{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"" node "\"]}"
            terms = "{\"nodeSelectorTerms\":[{\"matchFields\":[" field "]}]}"
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            at = "/spec/affinity/nodeAffinity/" required
        }
        NR == 1 { if ($0 == "L") add("/metadata/labels", "{}"); add("/metadata/labels/stowplan.io~1token", "\"" token "\"") }
        NR == 2 { none = ($0 == "A"); if (none) add("/spec/affinity", "{\"nodeAffinity\":{\"" required "\":" terms "}}") }
        NR == 3 && !none { none = ($0 == "N"); if (none) add("/spec/affinity/nodeAffinity", "{\"" required "\":" terms "}") }
        NR == 4 && !none { if ($0 == "R") add(at, terms) }
        NR > 4 && /^term/ {
            if ($0 == "term") add(at "/nodeSelectorTerms/" (NR - 5) "/matchFields", "[" field "]")
            else add(at "/nodeSelectorTerms/" (NR - 5) "/matchFields/-", field)
        }'
}

# change NAMESPACE LINE OPERATIONS: patches this very pod, as it was seen
change() {
    same=$(printf '%s' "$2" | awk -F '|' '{
        printf "{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"%s\"},{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%s\"}", $1, $5
    }')
    kube patch pod --namespace "$1" "$(printf '%s' "$2" | column 2)" --type=json --patch="[$same,$3]" </dev/null >/dev/null
}

# token INDEX WAVE NAMESPACE OWNER HASH POD NODE COUNT; - is any
token() {
    case " $SPACES " in *" $3 "*) ;; *) SPACES="$SPACES $3" ;; esac
    [ "$CHOSEN" = "$2" ] || return 0
    lines=$(waiting "$3") || exit 1
    used=$(printf '%s\n' "$lines" | awk -F '|' -v token="$PLAN.$1" '$9 == token { n++ } END { print n + 0 }')
    fit=$(printf '%s\n' "$lines" | fitting "$4" "$5" "$6" | head -n "$(($8 > used ? $8 - used : 0))")
    while read -r line; do
        [ -n "$line" ] || continue
        called=$(printf '%s' "$line" | column 2)
        if [ "$ACT" = no ]; then
            say "would pin $3/$called to $7"
        else
            shape=$(ask get pod --namespace "$3" "$called" --output "jsonpath=$SHAPE") || exit 1
            pins=$(printf '%s\n' "$shape" | affinity "$7" "$PLAN.$1")
            if change "$3" "$line" "$pins$(ungate "$(printf '%s' "$line" | column 8)")"; then
                say "pinned $3/$called to $7"
                used=$((used + 1))
            fi
        fi
    done <<END
$fit
END
    [ "$used" -ge "$8" ] || MISSING=$((MISSING + $8 - used))
}

release() {
    for space in $SPACES; do
        lines=$(waiting "$space") || exit 1
        printf '%s\n' "$lines" | fitting - '' - | while read -r line; do
            called=$(printf '%s' "$line" | column 2)
            if [ "$ACT" = no ]; then
                say "would release $space/$called"
            elif change "$space" "$line" "$(ungate "$(printf '%s' "$line" | column 8)")"; then
                say "released $space/$called"
            fi
        done
    done
}

finish() {
    while :; do
        [ "$CHOSEN" = release ] || unexpired "$EXPIRES"
        SPACES='' MISSING=0
        tokens
        if [ "$CHOSEN" = release ]; then
            release
            return 0
        fi
        if [ "$ACT" = no ] || [ "$MISSING" = 0 ]; then
            return 0
        fi
        [ "$(date +%s)" -lt "$DEADLINE" ] || stop "$MISSING pods of wave $CHOSEN have not come; $0 release lets go of those that wait"
        sleep "$INTERVAL"
    done
}
