package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../../config/kubernetes"

func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifest in %s: %v", folder, err)
	}
	return files
}

func TestShippedManifestsPass(t *testing.T) {
	var output, errors strings.Builder
	if status := run(manifests(t), &output, &errors); status != 0 || !strings.HasPrefix(output.String(), "kubernetes: an API server accepts ") {
		t.Errorf("status %d, output %q, errors:\n%s", status, &output, &errors)
	}
}

func TestManifestsThatCannotBeRead(t *testing.T) {
	for _, files := range [][]string{{}, {filepath.Join(t.TempDir(), "missing.yaml")}} {
		var output, errors strings.Builder
		if status := run(files, &output, &errors); status != 2 || errors.String() == "" {
			t.Errorf("files %q: status %d, errors %q", files, status, &errors)
		}
	}
}

// Each case breaks a shipped manifest at one place and expects the line about it.
func TestProblemsAreFound(t *testing.T) {
	for _, broken := range []struct{ file, old, new, want string }{
		// Fields that do not exist, twice, or of a wrong type.
		{"job-sidecar.yaml", "backoffLimit:", "backofLimit:", `Job: unknown field "spec.backofLimit"`},
		{"job-sidecar.yaml", "mountPath:", "path:", `unknown field "spec.template.spec.initContainers[0].volumeMounts[0].path"`},
		{"daemonset.yaml", "  name: persia-metrics-agent\n", "  name: a\n  name: b\n", `"name" already set`},
		{"gateway.yaml", "replicas: 1", "replicas: one", "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"},
		{"gateway.yaml", "kind: Deployment", "kind: Deploymint", `no kind "Deploymint" is registered for version "apps/v1"`},
		{"gateway.yaml", "memory: 512Mi", "memory: 512MB", "quantities must match the regular expression"},
		{"pod-monitor.yaml", "honorLabels:", "honourLabels:", `unknown field "spec.podMetricsEndpoints[0].honourLabels"`},
		{"pod-monitor.yaml", "honorLabels: true", "honorLabels: 1", "cannot unmarshal number into Go struct field PodMetricsEndpoint"},
		// Values.
		{"job-sidecar.yaml", "restartPolicy: Always", "restartPolicy: Alway", `spec.template.spec.initContainers[0].restartPolicy: Unsupported value: "Alway"`},
		{"job-sidecar.yaml", "restartPolicy: Never", "restartPolicy: Always", `spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`},
		{"job-sidecar.yaml", "name: trainer", "name: Trainer", "spec.template.spec.containers[0].name: Invalid value"},
		{"job-sidecar.yaml", "- {name: scratch, mountPath", "- {name: scrtch, mountPath", `volumeMounts[1].name: Not found: "scrtch"`},
		{"job-exec.yaml", "completionMode: Indexed", "completionMode: indexed", `spec.completionMode: Unsupported value: "indexed"`},
		{"job-exec.yaml", "memory: 512Mi", "memory: 2Gi", "must be less than or equal to memory limit of 1Gi"},
		{"daemonset.yaml", "persia-metrics-agent, persia-metrics: agent}", "other, persia-metrics: agent}", "`selector` does not match template `labels`"},
		{"daemonset.yaml", "fieldPath: status.hostIP", "fieldPath: status.hostIp", `fieldPath: Invalid value: "status.hostIp"`},
		{"gateway.yaml", "type: Recreate", "type: Recreated", `spec.strategy: Unsupported value: {"Type":"Recreated"`},
		{"gateway.yaml", "claimName: metrics-gateway", `claimName: ""`, "persistentVolumeClaim.claimName: Required value"},
		{"gateway.yaml", "ReadWriteOnce", "ReadWriteone", `spec.accessModes: Unsupported value: "ReadWriteone"`},
		{"gateway.yaml", "port: 9091, targetPort", "port: 99091, targetPort", "spec.ports[0].port: Invalid value: 99091"},
		{"network-policy.yaml", "protocol: TCP", "protocol: HTTP", `ports[0].protocol: Unsupported value: "HTTP"`},
		{"network-policy.yaml", "policyTypes: [Ingress]", "policyTypes: [In]", `spec.policyTypes[0]: Unsupported value: "In"`},
		{"prometheus-rbac.yaml", "verbs: [get, list, watch]", "verbs: []", "rules[0].verbs: Required value"},
		{"prometheus-rbac.yaml", "name: prometheus, namespace: monitoring}", "name: prometheus}", "subjects[0].namespace: Required value"},
		{"prometheus-rbac.yaml", "kind: ClusterRole, name", "kind: Clusterrole, name", `roleRef.kind: Unsupported value: "Clusterrole"`},
		// Pod security.
		{"job-exec.yaml", "runAsNonRoot: true, ", "", `"restricted" forbids: runAsNonRoot != true`},
		{"job-sidecar.yaml", "capabilities: {drop: [ALL]}", "capabilities: {drop: [CHOWN]}", `"restricted" forbids: unrestricted capabilities`},
		{"daemonset.yaml", "allowPrivilegeEscalation: false, ", "", `"restricted" forbids: allowPrivilegeEscalation != false`},
		{"gateway.yaml", ", seccompProfile: {type: RuntimeDefault}", "", `"restricted" forbids: seccompProfile`},
		// A kind that this check does not have yet.
		{"prometheus-rbac.yaml", "kind: ServiceAccount\nmetadata", "kind: ConfigMap\nmetadata", "ConfigMap: add its strategy to check.go"},
	} {
		t.Run(broken.file+" "+broken.new, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(folder, broken.file))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), broken.old) {
				t.Fatalf("%s has no %q", broken.file, broken.old)
			}
			file := filepath.Join(t.TempDir(), broken.file)
			if err := os.WriteFile(file, []byte(strings.Replace(string(content), broken.old, broken.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			var output, errors strings.Builder
			status := run([]string{file}, &output, &errors)
			if status != 1 || output.String() != "" || !strings.HasPrefix(errors.String(), file+": ") || !strings.Contains(errors.String(), broken.want) {
				t.Errorf("status %d, output %q, errors:\n%swant: %s", status, &output, &errors, broken.want)
			}
		})
	}
}
