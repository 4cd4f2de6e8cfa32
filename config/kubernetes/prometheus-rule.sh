#!/bin/sh
# Prints the recording rules and alerts of config/prometheus as a PrometheusRule, for the Prometheus Operator:
#
#   config/kubernetes/prometheus-rule.sh | kubectl apply -f -
#
# The operator selects PrometheusRules by labels: add those that yours requires.
set -eu
rules=$(dirname "$0")/../prometheus/rules
cat <<'YAML'
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: persia-metrics
  labels: {app.kubernetes.io/name: persia-metrics}
spec:
  groups:
YAML
for file in "$rules"/*.yml; do
  sed '1,/^groups:$/d; s/^./  &/' "$file"
done
