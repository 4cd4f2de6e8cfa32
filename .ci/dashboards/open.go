package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// shape says which fields an object may have, each with a value of its type.
type shape map[string]any

// What the SDK has no types for. Fields of any type that are not here may not be used.
var (
	// Prometheus's own fields of an annotation, beside those that all data sources have.
	annotationExtras = shape{"step": "", "tagKeys": "", "textFormat": "", "titleFormat": "", "useValueForTime": false}

	variableQuery = shape{"query": "", "refId": ""}

	transformations = map[string]shape{
		"merge":    {},
		"organize": {"excludeByName": map[string]bool{}, "indexByName": map[string]int{}, "renameByName": map[string]string{}},
	}

	// Values of the properties that an override gives to a field.
	properties = map[string]any{
		"unit":               "",
		"decimals":           0,
		"custom.fillBelowTo": "",
		"custom.lineWidth":   0,
		"custom.cellOptions": cellOptions{},
		"links":              []cellLink{},
		"mappings":           []valueMapping{},
	}
)

type cellOptions struct {
	Type string `json:"type"`
}

type cellLink struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	TargetBlank bool   `json:"targetBlank"`
}

type valueMapping struct {
	Type    string                `json:"type"`
	Options map[string]valueTexts `json:"options"`
}

type valueTexts struct {
	Color string `json:"color"`
	Index int    `json:"index"`
	Text  string `json:"text"`
}

// checkOpen checks a value for which the SDK has no type.
func (c *typeChecker) checkOpen(path string) {
	switch withoutIndexes(path) {
	case "templating.list[].query":
		c.checkShape(path, variableQuery)
	case "panels[].transformations[].options":
		id, _ := lookUp(c.document, parent(path)+".id")
		allowed, known := transformations[fmt.Sprint(id)]
		if !known {
			c.add(parent(path)+".id", "not a transformation that this check knows: add it to open.go")
			return
		}
		c.checkShape(path, allowed)
	case "panels[].fieldConfig.overrides[].matcher.options":
		c.checkField(path, "") // of byName, the only matcher that the boards use
	case "panels[].fieldConfig.overrides[].properties[].value":
		id, _ := lookUp(c.document, parent(path)+".id")
		example, known := properties[fmt.Sprint(id)]
		if !known {
			c.add(parent(path)+".id", "not a property that this check knows: add it to open.go")
			return
		}
		c.checkStrictly(path, example)
	default:
		below := func(problem string) bool { return strings.HasPrefix(problem, path+".") }
		if slices.ContainsFunc(c.problems, below) {
			return // because of that problem, the SDK did not give it its type
		}
		c.add(path, "Grafana's types say nothing of what is here: add its type to open.go")
	}
}

func (c *typeChecker) checkShape(path string, allowed shape) {
	value, _ := lookUp(c.document, path)
	object, is := value.(map[string]any)
	if !is {
		c.add(path, "not an object")
		return
	}
	for name := range object {
		if _, known := allowed[name]; known {
			c.checkField(join(path, name), allowed[name])
		} else {
			c.add(join(path, name), "Grafana has no such field")
		}
	}
}

func (c *typeChecker) checkField(path string, example any) {
	value, _ := lookUp(c.document, path)
	if err := json.Unmarshal(encode(value), reflect.New(reflect.TypeOf(example)).Interface()); err != nil {
		c.add(path, err.Error())
	}
}

// checkStrictly is checkField for a type whose fields are all that there may be.
func (c *typeChecker) checkStrictly(path string, example any) {
	value, _ := lookUp(c.document, path)
	decoder := json.NewDecoder(bytes.NewReader(encode(value)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(reflect.New(reflect.TypeOf(example)).Interface()); err != nil {
		c.add(path, err.Error())
	}
}

// withoutAnnotationExtras checks what annotations have of annotationExtras, and returns the annotations without it, as the SDK knows them.
func (c *typeChecker) withoutAnnotationExtras(container any) any {
	annotations, _ := container.(map[string]any)
	list, is := annotations["list"].([]any)
	if !is {
		return container
	}
	cleaned := make([]any, len(list))
	for at, annotation := range list {
		fields, is := annotation.(map[string]any)
		if !is {
			cleaned[at] = annotation
			continue
		}
		fields = maps.Clone(fields)
		for name, example := range annotationExtras {
			if _, found := fields[name]; found {
				c.checkField(fmt.Sprintf("annotations.list[%d].%s", at, name), example)
				delete(fields, name)
			}
		}
		cleaned[at] = fields
	}
	annotations = maps.Clone(annotations)
	annotations["list"] = cleaned
	return annotations
}
