#!/bin/sh
# Prints the recording rules and alerts of config/prometheus as a PrometheusRule, for the Prometheus Operator:
#
#   config/kubernetes/prometheus-rule.sh | kubectl apply -f -
#
# The operator selects PrometheusRules by labels: add those that yours requires. PERSIA_RUNBOOKS and PERSIA_GRAFANA are the addresses at which
# the alerts find this project and Grafana, for example https://git.our.site/persia-metrics and https://grafana.our.site.
set -eu
runbooks=${PERSIA_RUNBOOKS:-https://runbooks.example}
grafana=${PERSIA_GRAFANA:-http://localhost:3000}
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
  sed "1,/^groups:\$/d; s|https://runbooks.example/|${runbooks%/}/|; s|http://localhost:3000/|${grafana%/}/|; s/^./  &/" "$file"
done
