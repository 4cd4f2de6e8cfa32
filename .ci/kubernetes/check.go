package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
)

// What an API server validates of a new object of each kind.
var strategies = map[string]rest.RESTCreateStrategy{
	"ClusterRole":           clusterrole.Strategy,
	"ClusterRoleBinding":    clusterrolebinding.Strategy,
	"DaemonSet":             daemonset.Strategy,
	"Deployment":            deployment.Strategy,
	"Job":                   job.Strategy,
	"NetworkPolicy":         networkpolicy.Strategy,
	"PersistentVolumeClaim": persistentvolumeclaim.Strategy,
	"Service":               service.Strategy,
	"ServiceAccount":        serviceaccount.Strategy,
}

// readDocuments returns the documents of a YAML file.
func readDocuments(file string) ([][]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		documents = append(documents, document)
	}
}

// check returns a line for each problem of a manifest: the object, the path of the field, and what is wrong there.
func check(document []byte) []string {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return []string{err.Error()}
	}
	if kind.GroupVersionKind().Group == monitoringv1.SchemeGroupVersion.Group {
		return checkOperators(document)
	}
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDecoder().Decode(document, nil, nil)
	if err != nil {
		return problemsOf(kind.Kind, err)
	}
	strategy, known := strategies[kind.Kind]
	if !known {
		return []string{kind.Kind + ": add its strategy to check.go"}
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return []string{err.Error()}
	}
	name := kind.Kind + " " + metadata.GetName()
	if strategy.NamespaceScoped() && metadata.GetNamespace() == "" {
		metadata.SetNamespace(metav1.NamespaceDefault)
	}
	rest.FillObjectMetaSystemFields(metadata)
	var warnings recorder
	ctx := request.WithNamespace(context.Background(), metadata.GetNamespace())
	version := kind.GroupVersionKind()
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: version.Group, APIVersion: version.Version})
	ctx = warning.WithWarningRecorder(ctx, &warnings)
	if err := rest.BeforeCreate(strategy, ctx, object); err != nil {
		return problemsOf(name, err)
	}
	for _, text := range warnings {
		return []string{name + ": " + text}
	}
	return checkPodSecurity(name, document)
}

// recorder collects the warnings that an API server returns for an object that it accepts.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

// checkOperators checks a PodMonitor or PrometheusRule: names and types of its fields.
func checkOperators(document []byte) []string {
	scheme := runtime.NewScheme()
	if err := monitoringv1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := decoder.Decode(document, nil, nil); err != nil {
		return problemsOf("operator", err)
	}
	return nil
}

// problemsOf returns a line for each cause of an error.
func problemsOf(name string, err error) []string {
	if strict, is := runtime.AsStrictDecodingError(err); is {
		var problems []string
		for _, cause := range strict.Errors() {
			problems = append(problems, name+": "+cause.Error())
		}
		return problems
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) > 0 {
		var problems []string
		for _, cause := range status.ErrStatus.Details.Causes {
			problems = append(problems, fmt.Sprintf("%s: %s: %s", name, cause.Field, cause.Message))
		}
		return problems
	}
	return []string{name + ": " + err.Error()}
}
