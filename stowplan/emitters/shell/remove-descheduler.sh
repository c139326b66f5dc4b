ACT=no
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME]

Takes off what the descheduler's recipe has put into the cluster for plan $PLAN: Jobs and ConfigMaps in
$NAMESPACE, labels and annotations of pods, and, if no other plan has a Job there, the descheduler's account and rights.

  --yes           do it; without it, what would be done is printed
  --context NAME  a context of the kubeconfig
END
}
while [ $# -gt 0 ]; do
    case $1 in
    --yes) ACT=yes ;;
    --context)
        [ $# -gt 1 ] || { usage >&2; exit 2; }
        CONTEXT=$2
        shift
        ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
    shift
done

# objects KIND SELECTOR: the names of the plans' objects in the namespace of the Jobs
objects() {
    ask get "$1" --namespace "$NAMESPACE" --selector "$2" --output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'
}

jobs=$(objects jobs "$PLAN_LABEL=$PLAN") || exit 1
maps=$(objects configmaps "$PLAN_LABEL=$PLAN") || exit 1
others=$(objects jobs "$PLAN_LABEL,$PLAN_LABEL!=$PLAN") || exit 1
for job in $jobs; do drop jobs "$job" "$NAMESPACE"; done
for map in $maps; do drop configmaps "$map" "$NAMESPACE"; done
if [ "$ACT" = yes ]; then
    unlabel "$PLAN_LABEL=$PLAN"
else
    labeled "$PLAN_LABEL=$PLAN" | while read -r space called value; do
        [ -z "$called" ] || say "would take the labels of the plan off $space/$called"
    done
fi
if [ -n "$others" ]; then
    say "$ACCOUNT stays: other plans have Jobs in $NAMESPACE"
else
    drop clusterrolebindings "$ACCOUNT"
    drop clusterroles "$ACCOUNT"
    drop serviceaccounts "$ACCOUNT" "$NAMESPACE"
fi
require_removed
