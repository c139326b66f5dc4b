ACT=no
usage() {
    cat <<END
usage: $0 [--yes] [--context NAME]

Takes off what pinning has put into the cluster for plan $PLAN: the admission policy and its binding, the
scheduling gate $GATE of pods that wait, and the label $TOKEN of pods that were pinned.

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

remove_pins
require_removed
