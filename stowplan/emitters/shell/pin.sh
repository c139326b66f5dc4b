ACT=no
SECONDS_LEFT=600
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME] [--seconds NUMBER] WAVE|release

Gives the waiting pods of plan $PLAN their nodes. Pods that have the scheduling gate $GATE wait; of those
that the wave has tokens for, each gets a required node affinity for its node and loses the gate, in one step. It ends
when the wave's tokens are used up. "release" takes the gate off all pods that have no token, as after a stop. If the
plan has expired before the wave begins, everything that pinning has put into the cluster is taken off.

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

REQUIRED=.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
# Each line begins with a letter, since lines without one would be lost at the end.
SHAPE="L{.metadata.labels}{\"\\n\"}A{.spec.affinity}{\"\\n\"}N{.spec.affinity.nodeAffinity}{\"\\n\"}R{$REQUIRED}{\"\\n\"}{range $REQUIRED.nodeSelectorTerms[*]}term{.matchFields[*].key}{\"\\n\"}{end}"

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

# token INDEX WAVE NAMESPACE OWNER HASH POD NODE COUNT; - is any
token() {
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

# finish: gives the waiting pods of the wave their nodes until its tokens are used up. A wave that has begun is steered to
# its end even if the plan expires meanwhile.
finish() {
    if [ "$CHOSEN" = release ]; then
        release
        require_removed
        return 0
    fi
    if expired "$EXPIRES"; then
        [ "$ACT" = no ] || remove_pins
        stop "the plan has expired; make a new one${FAILED:+; cannot be removed: $FAILED}"
    fi
    while :; do
        MISSING=0
        tokens
        if [ "$ACT" = no ] || [ "$MISSING" = 0 ]; then
            return 0
        fi
        [ "$(date +%s)" -lt "$DEADLINE" ] || stop "$MISSING pods of wave $CHOSEN have not come; $0 release lets go of those that wait"
        sleep "$INTERVAL"
    done
}
