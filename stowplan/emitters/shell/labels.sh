# The labels by which the descheduler finds the pods of a plan, and the annotations beside them.

# labeled SELECTOR: namespace, name, and the annotation of pods, one a line
labeled() {
    key=$(printf '%s' "$EVICT_ANNOTATION" | sed 's/\./\\./g')
    ask get pods --all-namespaces --selector "$1" \
        --output "jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.metadata.annotations.$key}{\"\\n\"}{end}"
}

# unlabel SELECTOR: takes labels off, and the annotations of this plan before, since pods are found by the labels
unlabel() {
    left=$(labeled "$1") || exit 1
    printf '%s\n' "$left" | while read -r space called value; do
        case $value in
        "plan $PLAN wave "*) kube annotate pod --namespace "$space" "$called" "$EVICT_ANNOTATION-" </dev/null ;;
        esac
        [ -z "$called" ] ||
            kube label pod --namespace "$space" "$called" "$PLAN_LABEL-" "$WAVE_LABEL-" </dev/null
    done
}
