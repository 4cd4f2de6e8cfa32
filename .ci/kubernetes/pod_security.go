package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Objects whose pods need more than the standard "restricted" allows, each with the only check that may fail.
var exempt = map[string]string{"DaemonSet persia-metrics-agent": "restricted volume types"}

// checkPodSecurity applies the Pod Security Standard "restricted" to the pods that the object creates.
func checkPodSecurity(name string, document []byte) []string {
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	var template corev1.PodTemplateSpec
	switch object := object.(type) {
	case *appsv1.DaemonSet:
		template = object.Spec.Template
	case *appsv1.Deployment:
		template = object.Spec.Template
	case *batchv1.Job:
		template = object.Spec.Template
	default:
		return nil
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var problems []string
	for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed && result.ForbiddenReason != exempt[name] {
			problems = append(problems, name+": the Pod Security Standard \"restricted\" forbids: "+result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return problems
}
