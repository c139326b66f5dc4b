"""What kube-scheduler would say, exactly; and the same plugins as rules and terms for an optimizer."""
