# A wave: its moves, whether the cluster is as they say, and waiting until it is over.

ACT=no       # whether anything may be changed
ELSEWHERE=no # whether a replacement may come up on another node than planned
SERVE=''     # where stowplan serve is told which wave begins

# begin NUMBER SECONDS: a wave; its moves follow
begin() {
    WAVE=$1 SECONDS_LEFT=$2 MOVES='' TOUCHED='' CORDON=''
}

# cordon NODE...: nodes that nothing may come to while the wave lasts
cordon() {
    CORDON=$*
}

# schedulable NODE yes|no: opens or cordons a node. kubectl cordon does the same, but exits 0 where the server refuses.
schedulable() {
    case $2 in yes) closed=false ;; *) closed=true ;; esac
    kube patch node "$1" --type=merge --patch "{\"spec\":{\"unschedulable\":$closed}}" >/dev/null </dev/null
}

# shut NODE...: cordons those that are not cordoned already, and remembers which
shut() {
    for node in "$@"; do
        shut=$(ask get node "$node" --output 'jsonpath={.spec.unschedulable}') || exit 1
        [ "$shut" != true ] || continue
        note "cordoned $WAVE $node"
        schedulable "$node" no || stop "node $node cannot be cordoned"
        say "  cordoned $node"
    done
}

# Uncordons what shut cordoned for this wave; may be called again.
reopen() {
    shut=''
    for node in $(recall "cordoned $WAVE" | sort -u); do
        if schedulable "$node" yes; then
            forget "cordoned $WAVE $node"
            say "  uncordoned $node"
        else
            shut="${shut:+$shut, }$node"
        fi
    done
    [ -z "$shut" ] || stop "cannot be uncordoned: $shut"
}

# Tells stowplan serve that the wave begins, so that its tokens are handed out whatever became of the waves before. The
# plan is named: a server of another one refuses.
announce() {
    [ -n "$SERVE" ] || return 0
    answer=$(curl --silent --show-error --max-time 10 --request POST --header 'Content-Type: application/json' --get \
        --data-urlencode "plan=$PLAN" --data-urlencode "createdAt=$CREATED" --write-out 'HTTP %{http_code}' "${SERVE%/}/waves/$WAVE") ||
        stop "$SERVE does not answer; nothing steers the replacements"
    case $answer in *'HTTP 200') ;; *) stop "$SERVE does not open wave $WAVE: $(printf '%s' "$answer" | tr '\n' ' ')" ;; esac
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

# Whether the pod that is there is the one of the plan; a pod that only waits for a node may have had no uid yet.
same_pod() {
    [ -n "$is" ] || return 1
    [ "$is" = "$uid" ] || { [ -z "$uid" ] && [ "$kind" = place ]; }
}

compare() {
    if [ "$follows" != - ] && [ "$ACT" = no ]; then return 0; fi
    identify
    line=$(pod "$ns" "$name") || exit 1
    is=$(printf '%s' "$line" | column 1) on=$(printf '%s' "$line" | column 3) leaving=$(printf '%s' "$line" | column 4)
    if noted "begun $uid"; then return 0; fi
    [ -n "$is" ] || drifted "is gone"
    same_pod || drifted "is another pod now: uid $is instead of $uid"
    [ -z "$leaving" ] || drifted "is being deleted"
    if [ "$kind" = place ]; then
        [ -z "$on" ] || [ "$on" = "$target" ] || [ "$ELSEWHERE" = yes ] || drifted "stands on $on instead of $target"
    else
        [ "$on" = "$source" ] || drifted "stands on ${on:-no node} instead of $source"
    fi
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
        is=$(printf '%s' "$line" | column 1)
        same_pod || drifted "is gone"
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
