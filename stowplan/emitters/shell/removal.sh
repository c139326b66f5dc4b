# Taking off what a plan has put into a cluster; what fails is told at the end.
FAILED=''

failed() {
    FAILED="${FAILED:+$FAILED, }$*"
}

# drop KIND NAME [NAMESPACE]: deletes an object if it is there
drop() {
    found=$(ask get "$1" "$2" ${3:+--namespace "$3"} --ignore-not-found --output name) || exit 1
    [ -n "$found" ] || return 0
    if [ "$ACT" = no ]; then
        say "would delete $found"
    elif kube delete "$1" "$2" ${3:+--namespace "$3"} --ignore-not-found --wait=false </dev/null >/dev/null; then
        say "deleted $found"
    else
        failed "$found"
    fi
}

# require_removed: ends with an error if anything is left
require_removed() {
    [ -z "$FAILED" ] || stop "cannot be removed: $FAILED; kubectl says why above. Run $0 again once it can"
}
