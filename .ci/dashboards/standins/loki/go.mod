module github.com/grafana/loki/v3

go 1.26.3
