#!/bin/sh
# Prints the recording rules and alerts of config/prometheus as a PrometheusRule, for the Prometheus Operator:
#
#   config/kubernetes/prometheus-rule.sh | kubectl apply -f -
#   config/kubernetes/prometheus-rule.sh embeddings machine exporter | kubectl apply -f -      with the optional files of these names
#
# The operator selects PrometheusRules by labels: add those that yours requires. PERSIA_RUNBOOKS and PERSIA_GRAFANA are the addresses at which
# the alerts find this project and Grafana, for example https://git.our.site/persia-metrics and https://grafana.our.site.
set -eu
runbooks=${PERSIA_RUNBOOKS:-https://runbooks.example}
grafana=${PERSIA_GRAFANA:-http://localhost:3000}
rules=$(dirname "$0")/../prometheus/rules
for name; do
  if [ ! -f "$rules/optional/$name.yml" ]; then
    echo "prometheus-rule.sh: unknown file \"$name\" (embeddings, exporter, machine)" >&2
    exit 2
  fi
done
cat <<'YAML'
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: persia-metrics
  labels: {app.kubernetes.io/name: persia-metrics}
spec:
  groups:
YAML
print() {
  sed "1,/^groups:\$/d; s|https://runbooks.example/|${runbooks%/}/|; s|http://localhost:3000/|${grafana%/}/|; s/^./  &/" "$1"
}
for file in "$rules"/*.yml; do
  print "$file"
done
for name; do
  print "$rules/optional/$name.yml"
done
