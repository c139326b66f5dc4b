ACT=no LAST=999999 ELSEWHERE=no
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME] [--last-wave NUMBER] [--elsewhere]

Carries out plan $PLAN with kubectl. Without --yes nothing is changed: the pods are compared with the plan, and what
would be done is printed.

  --yes               evict
  --context NAME      a context of the kubeconfig
  --last-wave NUMBER  end after this wave; run again to go on
  --elsewhere         go on where a replacement came up on another node than planned

What was done is kept in $STATE, so that a run that was ended can be taken up again.
END
}
while [ $# -gt 0 ]; do
    case $1 in
    --yes) ACT=yes ;;
    --elsewhere) ELSEWHERE=yes ;;
    --context | --last-wave)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        if [ "$1" = --context ]; then CONTEXT=$2; else LAST=$2; fi
        shift
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

# wave NUMBER SECONDS: moves follow, then carry_out
wave() {
    [ "$1" -le "$LAST" ] || exit 0
    unexpired "$EXPIRES"
    WAVE=$1 SECONDS_LEFT=$2 MOVES='' TOUCHED=''
}

# move ID KIND NAMESPACE NAME UID SOURCE TARGET OWNER HASH SAME FOLLOWS WHY; - is none
move() {
    MOVES="$MOVES$1|$2|$3|$4|$5|$6|$7|$8|$9"
    shift 9
    MOVES="$MOVES|$1|$2|$3
"
}

# Reads the moves of this wave one by one, and does something with each.
each() {
    while IFS='|' read -r id kind ns name uid source target owner hash same follows why; do
        [ -z "$id" ] || "$1"
    done <<END
$MOVES
END
}

drifted() {
    stop "$id: $ns/$name $1; nothing more is done. Make a new plan"
}

# The pod that a move is about: for one that an earlier wave parked, its replacement.
identify() {
    [ "$follows" != - ] || return 0
    chosen=$(recall "move $id")
    if [ -z "$chosen" ]; then
        line=$(replacement "$ns" "$owner" "$hash" "$source" "$same" "$name") || exit 1
        [ -n "$line" ] || drifted "was parked on $source, and its replacement is not there"
        chosen="$(printf '%s' "$line" | column 1) $(printf '%s' "$line" | column 2)"
        note "move $id $chosen"
        note "chosen ${chosen%% *}"
    fi
    uid=${chosen%% *} name=${chosen#* }
}

compare() {
    if [ "$follows" != - ] && [ "$ACT" = no ]; then return 0; fi
    identify
    line=$(pod "$ns" "$name") || exit 1
    is=$(printf '%s' "$line" | column 1) on=$(printf '%s' "$line" | column 3) leaving=$(printf '%s' "$line" | column 4)
    if noted "begun $uid"; then return 0; fi
    [ -n "$is" ] || drifted "is gone"
    [ "$is" = "$uid" ] || drifted "is another pod now: uid $is instead of $uid"
    [ -z "$leaving" ] || drifted "is being deleted"
    if [ "$kind" = place ]; then
        [ -z "$on" ] || [ "$on" = "$target" ] || [ "$ELSEWHERE" = yes ] || drifted "stands on $on instead of $target"
    else
        [ "$on" = "$source" ] || drifted "stands on ${on:-no node} instead of $source"
    fi
}

show() {
    case $kind in
    evict) say "  $id: would evict $ns/$name from $source, for $target: $why" ;;
    remove) say "  $id: would evict $ns/$name from $source, for good: $why" ;;
    place) say "  $id: would wait for $ns/$name to come up on $target: $why" ;;
    esac
}

# Notes which pods an owner has before the wave: those that come later are the replacements.
take_stock() {
    if [ "$kind" != evict ] || noted "stock $WAVE $ns $owner $hash"; then return 0; fi
    lines=$(replicas "$ns" "$owner" "$hash") || exit 1
    printf '%s\n' "$lines" | column 1 | while read -r known; do
        [ -z "$known" ] || note "before $WAVE $ns $owner $known"
    done
    note "stock $WAVE $ns $owner $hash"
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
            printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},"deleteOptions":{"preconditions":{"uid":"%s"}}}' \
                "$name" "$ns" "$uid" |
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
            [ "$unclear" = yes ] || drifted "was replaced or deleted by somebody else: $refusal"
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

overdue() {
    [ "$(date +%s)" -ge "$DEADLINE" ]
}

await_gone() {
    [ "$kind" != place ] || return 0
    identify
    while line=$(pod "$ns" "$name") || exit 1 && [ "$(printf '%s' "$line" | column 1)" = "$uid" ]; do
        ! overdue || stop "$id: $ns/$name is still there"
        sleep "$INTERVAL"
    done
}

# Waits until as many new pods of an owner are ready as were evicted, and looks where they stand.
await_ready() {
    case $kind in
    evict) await_replacements ;;
    place) await_placed ;;
    esac
}

await_replacements() {
    case $TOUCHED in *"<$ns $owner $hash>"*) return 0 ;; esac
    TOUCHED="$TOUCHED<$ns $owner $hash>"
    wanted=$(printf '%s' "$MOVES" | awk -F '|' -v ns="$ns" -v owner="$owner" -v hash="$hash" \
        '$2 == "evict" && $3 == ns && $8 == owner && $9 == hash { print $7 }' | sort)
    while :; do
        lines=$(replicas "$ns" "$owner" "$hash") || exit 1
        ready=$(printf '%s\n' "$lines" | stranger "$(recall "before $WAVE $ns $owner")" | awk -F '|' '$5 == "True"')
        [ "$(count "$ready")" -lt "$(count "$wanted")" ] || break
        if overdue; then
            stop "$id: $(count "$ready") of $(count "$wanted") replacements of $ns/$name and its like are ready"
        fi
        sleep "$INTERVAL"
    done
    for node in $(printf '%s\n' "$wanted" | uniq); do
        due=$(printf '%s\n' "$wanted" | grep -cxF -- "$node") || :
        there=$(printf '%s\n' "$ready" | column 3 | grep -cxF -- "$node") || :
        if [ "$there" -lt "$due" ]; then
            elsewhere "$there of $due replacements of $ns/$name and its like stand on $node"
        fi
    done
}

await_placed() {
    while :; do
        line=$(pod "$ns" "$name") || exit 1
        [ "$(printf '%s' "$line" | column 1)" = "$uid" ] || drifted "is gone"
        [ "$(printf '%s' "$line" | column 5)" != True ] || break
        ! overdue || stop "$id: $ns/$name is not ready"
        sleep "$INTERVAL"
    done
    on=$(printf '%s' "$line" | column 3)
    [ "$on" = "$target" ] || elsewhere "$ns/$name stands on $on instead of $target"
}

elsewhere() {
    [ "$ELSEWHERE" = yes ] || stop "$id: $1. Make a new plan, or go on with --elsewhere"
    say "  $id: $1"
}

count() {
    printf '%s' "$1" | grep -c . || :
}

# carry_out GONE READY: whether to wait for the old pods to be gone, and for the new ones to be ready
carry_out() {
    if noted "done $WAVE"; then
        say "wave $WAVE: done before"
        return 0
    fi
    say "wave $WAVE:"
    each compare
    if [ "$ACT" = no ]; then
        each show
        return 0
    fi
    DEADLINE=$(($(date +%s) + SECONDS_LEFT))
    each take_stock
    each evict
    [ "$1" = no ] || each await_gone
    [ "$2" = no ] || each await_ready
    note "done $WAVE"
    say "wave $WAVE: done"
}
