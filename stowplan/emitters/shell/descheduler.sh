CHOSEN=0
usage() {
    cat <<END
usage: $0 label|apply|check|run|unlabel WAVE [--context NAME] [--serve URL] [--elsewhere]

Carries out a wave of plan $PLAN with the descheduler. One wave after the other:

  label WAVE    compare the pods of the wave with the plan, and label them
  apply WAVE    create the wave's policy and Job, and wait for the Job; rbac.yaml has to be applied before
  check WAVE    see that no labeled pod is left, and wait for the replacements
  run WAVE      all three
  unlabel WAVE  take labels and annotations off again, where pods were refused

  --context NAME  a context of the kubeconfig
  --serve URL     where stowplan serve is asked, such as http://127.0.0.1:8888/v1: it is told which wave begins
  --elsewhere     go on where a replacement came up on another node than planned

What was done is kept in $STATE, so that a wave that was ended can be taken up again.
END
}
STEPS=''
while [ $# -gt 0 ]; do
    case $1 in
    label | apply | check | unlabel) STEPS=$1 ;;
    run) STEPS='label apply check' ;;
    --elsewhere) ELSEWHERE=yes ;;
    --context | --serve)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        if [ "$1" = --context ]; then CONTEXT=$2; else SERVE=$2; fi
        shift
        ;;
    -h | --help) usage; exit 0 ;;
    '' | *[!0-9]*) usage >&2; exit 2 ;;
    *) CHOSEN=$1 ;;
    esac
    shift
done
[ -n "$STEPS" ] && [ "$CHOSEN" -ge 1 ] && [ "$CHOSEN" -le "$WAVES" ] || { usage >&2; exit 2; }
HERE=$(dirname -- "$0")
ACT=yes

wave() {
    begin "$1" "$2"
}

# closed NODE...: nodes that are cordoned for good, before the first wave
closed() {
    case $CHOSEN.$STEPS in
    1.label*)
        WAVE=0
        noted closed || { shut "$@" && note closed; }
        ;;
    esac
}

# mark NAMESPACE NAME UID WORD...: labels (or annotates) this very pod: it must have the uid, and must not change between
# the look at it and the label.
mark() {
    space=$1 called=$2 known=$3
    shift 3
    tries=0
    while :; do
        seen=$(ask get pod --namespace "$space" "$called" --ignore-not-found \
            --output 'jsonpath={.metadata.uid} {.metadata.resourceVersion}') || exit 1
        [ "${seen% *}" = "$known" ] || drifted "is another pod now, or gone"
        if refusal=$(kube "$1" pod --namespace "$space" "$called" --overwrite --resource-version="${seen#* }" "$2" \
            ${3:+"$3"} 2>&1 </dev/null); then
            return 0
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 5 ] || stop "$id: $space/$called cannot be labeled: $refusal"
        sleep 1
    done
}

label() {
    [ "$kind" != place ] || return 0
    identify
    if noted "begun $uid"; then
        line=$(pod "$ns" "$name") || exit 1
        if [ "$(printf '%s' "$line" | column 1)" != "$uid" ] || [ -n "$(printf '%s' "$line" | column 4)" ]; then
            return 0 # gone already, since the label was there before
        fi
    fi
    # The label first: by it unlabel finds what has to be taken off again.
    mark "$ns" "$name" "$uid" label "$PLAN_LABEL=$PLAN" "$WAVE_LABEL=$WAVE"
    case " $PROTECTED " in
    *" $id "*) mark "$ns" "$name" "$uid" annotate "$EVICT_ANNOTATION=plan $PLAN wave $WAVE" ;;
    esac
    note "begun $uid"
    say "  $id: labeled $ns/$name"
}

SELECTED="$PLAN_LABEL=$PLAN,$WAVE_LABEL"

# Whoever still has the label and is not on the way out was refused: by a budget, or as protected.
refused() {
    left=$(ask get pods --all-namespaces --selector "$SELECTED=$WAVE" \
        --output 'jsonpath={range .items[*]}{.metadata.deletionTimestamp}|{.metadata.namespace}/{.metadata.name}{"\n"}{end}') ||
        exit 1
    printf '%s\n' "$left" | awk -F '|' '$1 == "" && $2 != "" { print $2 }' | tr '\n' ' '
}

# await_job NAME: until it is complete; kubectl wait would not see that it has failed
await_job() {
    DEADLINE=$(($(date +%s) + SECONDS_LEFT))
    while :; do
        conditions=$(ask get job --namespace "$NAMESPACE" "$1" \
            --output 'jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {end}') || exit 1
        case " $conditions " in
        *' Complete '*) return 0 ;;
        *' Failed '*) stop "the descheduler's Job has failed: $KUBECTL logs --namespace $NAMESPACE job/$1" ;;
        esac
        ! overdue || stop "the descheduler's Job did not complete"
        sleep "$INTERVAL"
    done
}

carry_out() {
    [ "$WAVE" = "$CHOSEN" ] || return 0
    for step in $STEPS; do
        case $step in
        label)
            unexpired "$EXPIRES"
            before=$((WAVE - 1))
            [ "$before" = 0 ] || noted "done $before" || stop "wave $before has not been checked: $0 check $before"
            say "wave $WAVE: labeling"
            each compare
            announce
            # shellcheck disable=SC2086 # one word a node
            shut $CORDON
            each take_stock
            each label
            ;;
        apply)
            file=$HERE/wave-$WAVE.yaml
            if [ -f "$file" ]; then
                # A Job runs once; what an earlier one left over is for a new one.
                kube delete job --namespace "$NAMESPACE" --ignore-not-found "$PLAN-wave-$WAVE"
                kube apply --filename "$file"
                await_job "$PLAN-wave-$WAVE"
            fi
            ;;
        check)
            left=$(refused) || exit 1
            [ -z "$left" ] || stop "not evicted: $left; look at the Job's log, and apply again or unlabel"
            DEADLINE=$(($(date +%s) + SECONDS_LEFT))
            [ "$1" = no ] || each await_gone
            [ "$2" = no ] || each await_ready
            reopen
            note "done $WAVE"
            say "wave $WAVE: done"
            ;;
        unlabel)
            reopen
            unlabel "$SELECTED=$WAVE"
            ;;
        esac
    done
}
