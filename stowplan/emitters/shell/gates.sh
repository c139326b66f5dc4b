# What pinning leaves in a cluster, and how it is taken off again: the policy, the gates, and the labels.
# One line for a pod: uid|name|node|deleted at|version|template hashes|owner uids|gates|token
WAITING='{.metadata.uid}|{.metadata.name}|{.spec.nodeName}|{.metadata.deletionTimestamp}|{.metadata.resourceVersion}|{.metadata.labels.pod-template-hash} {.metadata.labels.controller-revision-hash}|{.metadata.ownerReferences[*].uid}|{.spec.schedulingGates[*].name}|{.metadata.labels.stowplan\.io/token}'

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

# change NAMESPACE LINE OPERATIONS: patches this very pod, as it was seen
change() {
    same=$(printf '%s' "$2" | awk -F '|' '{
        printf "{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"%s\"},{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%s\"}", $1, $5
    }')
    kube patch pod --namespace "$1" "$(printf '%s' "$2" | column 2)" --type=json --patch="[$same,$3]" </dev/null >/dev/null
}

# release: takes our gate off every pod in the namespaces of the plan that waits behind it
release() {
    for space in $SPACES; do
        lines=$(waiting "$space") || exit 1
        while read -r line; do
            [ -n "$line" ] || continue
            called=$(printf '%s' "$line" | column 2)
            if [ "$ACT" = no ]; then
                say "would release $space/$called"
            elif change "$space" "$line" "$(ungate "$(printf '%s' "$line" | column 8)")"; then
                say "released $space/$called"
            else
                failed "the gate of $space/$called"
            fi
        done <<END
$(printf '%s\n' "$lines" | fitting - '' -)
END
    done
}

# unlabel_pinned: takes our label off every pod that this plan pinned. The affinity of a pod that has its node cannot be
# changed, and that of one that waits cannot be loosened; an annotation says instead whose the pin is, so that stowplan
# does not take it for what the owner wants. Nothing selects pods by annotations.
unlabel_pinned() {
    for space in $SPACES; do
        lines=$(waiting "$space") || exit 1
        while read -r line; do
            [ -n "$line" ] || continue
            called=$(printf '%s' "$line" | column 2)
            if [ "$ACT" = no ]; then
                say "would take the label $TOKEN off $space/$called"
            else
                patch=$(printf '%s' "$line" | awk -F '|' -v token="$TOKEN" -v mark="$PINNED_BY" -v plan="$PLAN" '{
                    printf "{\"metadata\":{\"resourceVersion\":\"%s\",\"labels\":{\"%s\":null},\"annotations\":{\"%s\":\"%s\"}}}", $5, token, mark, plan
                }')
                if kube patch pod --namespace "$space" "$called" --type=merge --patch="$patch" </dev/null >/dev/null; then
                    say "took the label $TOKEN off $space/$called"
                else
                    failed "the label of $space/$called"
                fi
            fi
            if [ -z "$(printf '%s' "$line" | column 3)" ]; then
                say "$space/$called still waits for its node; to let it go elsewhere, delete it: its controller makes another"
            fi
        done <<END
$(printf '%s\n' "$lines" | awk -F '|' -v plan="$PLAN." 'index($9, plan) == 1')
END
    done
}

# remove_pins: takes everything off; the policy first, so that no pod gets a gate afterward
remove_pins() {
    groups=$(ask get --raw /apis) || exit 1
    case $groups in
    *"\"$GROUP\""*)
        kinds=$(ask get --raw "/apis/$GROUP/v1") || exit 1
        case $kinds in
        *'"mutatingadmissionpolicies"'*)
            drop "mutatingadmissionpolicybindings.$GROUP" "$PLAN-pin"
            drop "mutatingadmissionpolicies.$GROUP" "$PLAN-pin"
            ;;
        esac
        ;;
    esac
    release
    unlabel_pinned
}
