#!/bin/bash
# Asks the agent whether it is healthy: persia-metrics-healthcheck [HOST:PORT], by default 127.0.0.1:19091. For an agent that runs alone in its
# container. Where unhealthy containers are restarted, a job that runs under `exec` must not depend on it. Pages behind a password (401) count as
# healthy. It speaks plain HTTP: remove the check if the pages are served by TLS.
set -euo pipefail
address=${1:-127.0.0.1:19091}
host=${address%:*}
host=${host#[}
exec 3<>"/dev/tcp/${host%]}/${address##*:}"
printf 'GET /-/healthy HTTP/1.0\r\n\r\n' >&3
read -r _ code _ <&3
[[ $code == 200 || $code == 401 ]]
