LAST=999999
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME] [--serve URL] [--last-wave NUMBER] [--elsewhere]

Carries out plan $PLAN with kubectl. Without --yes nothing is changed: the pods are compared with the plan, and what
would be done is printed.

  --yes               evict
  --context NAME      a context of the kubeconfig
  --serve URL         where stowplan serve is asked, such as http://127.0.0.1:8888/v1: it is told which wave begins
  --last-wave NUMBER  end after this wave; run again to go on
  --elsewhere         go on where a replacement came up on another node than planned

What was done is kept in $STATE, so that a run that was ended can be taken up again.
END
}
while [ $# -gt 0 ]; do
    case $1 in
    --yes) ACT=yes ;;
    --elsewhere) ELSEWHERE=yes ;;
    --context | --last-wave | --serve)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        case $1 in
        --context) CONTEXT=$2 ;;
        --serve) SERVE=$2 ;;
        *) LAST=$2 ;;
        esac
        shift
        case $LAST in '' | *[!0-9]*) usage >&2; exit 2 ;; esac
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

# However it ends, nodes do not stay cordoned for a wave, this one or one that was cut short in an earlier run; what could
# not be undone is undone by the next run.
if [ "$ACT" = yes ]; then
    trap reopen_all EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi

reopen_all() {
    for WAVE in $(recall cordoned | cut -d ' ' -f 1 | sort -u); do
        [ "$WAVE" = 0 ] || (reopen) || failed=yes
    done
    [ -z "${failed:-}" ] || exit 1
}

# wave NUMBER SECONDS: moves follow, then carry_out
wave() {
    [ "$1" -le "$LAST" ] || exit 0
    begin "$1" "$2"
}

# closed NODE...: nodes that are cordoned for good, before the first wave
closed() {
    WAVE=0
    if [ "$ACT" = no ]; then
        say "would cordon $*, and leave that so"
    elif ! noted "closed"; then
        unexpired "$EXPIRES"
        shut "$@"
        note "closed"
    fi
}

show() {
    case $kind in
    evict) say "  $id: would evict $ns/$name from $source, for $target: $why" ;;
    remove) say "  $id: would evict $ns/$name from $source, for good: $why" ;;
    place) say "  $id: would wait for $ns/$name to come up on $target: $why" ;;
    esac
}

evict() {
    [ "$kind" != place ] || return 0
    identify
    if noted "evicted $uid"; then return 0; fi
    note "begun $uid"
    tried=0 pause=$PAUSE unclear=no
    while :; do
        # An attempt of an earlier run may have got through, and so may one that failed without a word from the server.
        if [ "$unclear" = yes ] || [ "$tried" = 0 ]; then
            line=$(pod "$ns" "$name") || exit 1
            if [ "$(printf '%s' "$line" | column 1)" != "$uid" ] || [ -n "$(printf '%s' "$line" | column 4)" ]; then
                break
            fi
        fi
        tried=$((tried + 1))
        if refusal=$(
            printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s","annotations":{"%s":"%s","%s":"%s"}},"deleteOptions":{"preconditions":{"uid":"%s"}}}' \
                "$name" "$ns" "$PLAN_ANNOTATION" "$PLAN" "$MOVE_ANNOTATION" "$id" "$uid" |
                kube create --raw "/api/v1/namespaces/$ns/pods/$name/eviction" -f - 2>&1 >/dev/null
        ); then
            break
        fi
        case $refusal in
        *TooManyRequests* | *'disruption budget'*)
            [ "$(date +%s)" -lt "$DEADLINE" ] || stop "$id: $ns/$name is held by its disruption budget: $refusal"
            sleep "$pause"
            pause=$((pause * 2))
            [ "$pause" -le 30 ] || pause=30
            ;;
        *Conflict* | *NotFound*)
            [ "$unclear" = yes ] || drifted "was replaced or deleted by another client: $refusal"
            ;;
        *)
            unclear=yes
            [ "$tried" -lt 5 ] || stop "$id: $ns/$name cannot be evicted: $refusal"
            sleep "$pause"
            ;;
        esac
    done
    note "evicted $uid"
    say "  $id: evicted $ns/$name from $source"
}

# carry_out GONE READY: whether to wait for the old pods to be gone, and for the new ones to be ready
carry_out() {
    if noted "done $WAVE"; then
        say "wave $WAVE: done before"
        return 0
    fi
    unexpired "$EXPIRES"
    say "wave $WAVE:"
    each compare
    if [ "$ACT" = no ]; then
        [ -z "$CORDON" ] || say "  would cordon $CORDON while the wave lasts"
        each show
        return 0
    fi
    DEADLINE=$(($(date +%s) + SECONDS_LEFT))
    announce
    # shellcheck disable=SC2086 # one word a node
    shut $CORDON
    each take_stock
    each evict
    [ "$1" = no ] || each await_gone
    [ "$2" = no ] || each await_ready
    reopen
    note "done $WAVE"
    say "wave $WAVE: done"
}
