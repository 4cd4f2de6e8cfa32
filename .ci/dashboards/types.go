package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Only these kinds of panels and queries may be used: the SDK accepts anything in a kind that is not registered.
func init() {
	runtime := cog.NewRuntime()
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(statetimeline.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(text.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
}

// typeChecker collects the problems of one board.
type typeChecker struct {
	document map[string]any
	problems []string
}

// typeProblems checks a board against Grafana's types, and what those leave open against ours (open.go).
func typeProblems(content []byte) []string {
	var document map[string]any
	if err := json.Unmarshal(content, &document); err != nil {
		return []string{fmt.Sprintf("board: not a JSON object: %v", err)}
	}
	if document == nil {
		return []string{"board: not a JSON object: null"}
	}
	checker := typeChecker{document: document}
	checker.refuseNulls("", document)
	checker.checkBoard()
	checker.checkPanels("panels", document["panels"])
	slices.Sort(checker.problems)
	return slices.Compact(checker.problems)
}

// encode returns what was decoded from JSON as JSON.
func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// add notes a problem with the value at the path, which is cut where it is long.
func (c *typeChecker) add(path, message string) {
	value, found := lookUp(c.document, path)
	if path == "" {
		path = "board"
	}
	if !found {
		c.problems = append(c.problems, fmt.Sprintf("%s: %s", path, message))
		return
	}
	quoted := encode(value)
	if len(quoted) > 80 {
		quoted = append(quoted[:80], "..."...)
	}
	c.problems = append(c.problems, fmt.Sprintf("%s: %s; the value is %s", path, message, quoted))
}

var (
	// The SDK's paths also name its Go types, as in "panels[1].options.Options".
	typeInPath      = regexp.MustCompile(`(^|\.)[A-Z]\w*`)
	unexpectedField = regexp.MustCompile(`^unexpected field '(.*)'$`)
)

// addErrors notes the SDK's errors, each at its place below the path.
func (c *typeChecker) addErrors(path string, err error) {
	var list cog.BuildErrors
	if err != nil && !errors.As(err, &list) {
		list = cog.BuildErrors{{Message: err.Error()}}
	}
	for _, one := range list {
		at := strings.Trim(path+"."+typeInPath.ReplaceAllString(one.Path, ""), ".")
		if field := unexpectedField.FindStringSubmatch(one.Message); field != nil {
			c.add(strings.Trim(at+"."+field[1], "."), "Grafana has no such field")
		} else {
			c.add(at, strings.ReplaceAll(one.Message, "\n", "; "))
		}
	}
}

// refuseNulls allows null only where Grafana itself writes it: the SDK takes null for any optional value.
func (c *typeChecker) refuseNulls(path string, value any) {
	switch value := value.(type) {
	case nil:
		if path != "id" && !strings.HasSuffix(withoutIndexes(path), "thresholds.steps[].value") {
			c.add(path, "null where Grafana has a value")
		}
	case map[string]any:
		for name, inner := range value {
			c.refuseNulls(join(path, name), inner)
		}
	case []any:
		for at, inner := range value {
			c.refuseNulls(fmt.Sprintf("%s[%d]", path, at), inner)
		}
	}
}

// checkBoard checks everything but the panels.
func (c *typeChecker) checkBoard() {
	document := maps.Clone(c.document)
	delete(document, "panels")
	if annotations, found := document["annotations"]; found {
		document["annotations"] = c.withoutAnnotationExtras(annotations)
	}
	var board dashboard.Dashboard
	c.addErrors("", board.UnmarshalJSONStrict(encode(document)))
	c.addErrors("", board.Validate())
	c.walk("", reflect.ValueOf(board))
}

// checkPanels checks each panel by itself, as the SDK forgets what it has read of a panel with an error.
func (c *typeChecker) checkPanels(path string, panels any) {
	list, is := panels.([]any)
	if !is {
		c.add(path, "not a list of panels")
	}
	for at, panel := range list {
		here := fmt.Sprintf("%s[%d]", path, at)
		if fields, _ := panel.(map[string]any); fields["type"] == "row" {
			c.checkRow(here, fields)
		} else {
			c.checkPanel(here, panel, fields["fieldConfig"])
		}
	}
}

func (c *typeChecker) checkRow(path string, fields map[string]any) {
	if panels, found := fields["panels"]; found {
		c.checkPanels(path+".panels", panels)
		fields = maps.Clone(fields)
		fields["panels"] = []any{}
	}
	var row dashboard.RowPanel
	c.addErrors(path, row.UnmarshalJSONStrict(encode(fields)))
	c.addErrors(path, row.Validate())
	c.walk(path, reflect.ValueOf(row))
}

func (c *typeChecker) checkPanel(path string, content, fieldConfig any) {
	var panel dashboard.Panel
	c.addErrors(path, panel.UnmarshalJSONStrict(encode(content)))
	c.addErrors(path, panel.Validate())
	// The SDK's panel leaves out what depends on its kind.
	c.validate(path+".options", panel.Options)
	if panel.FieldConfig != nil {
		c.validate(path+".fieldConfig.defaults.custom", panel.FieldConfig.Defaults.Custom)
	}
	if fieldConfig != nil {
		// Of it, the SDK's panel reads strictly only what is in defaults.custom.
		c.addErrors(path+".fieldConfig", new(dashboard.FieldConfigSource).UnmarshalJSONStrict(encode(fieldConfig)))
	}
	if _, known := cog.ConfigForPanelcfgVariant(panel.Type); !known {
		c.add(path+".type", "not a kind of panel that this check knows: register it in types.go")
	}
	c.walk(path, reflect.ValueOf(panel))
}

// validate checks the limits that the SDK has for numbers.
func (c *typeChecker) validate(path string, value any) {
	if limited, is := value.(interface{ Validate() error }); is {
		c.addErrors(path, limited.Validate())
	}
}

// walk looks at the values that the SDK has read for what it does not check: kinds of panels, enums, and fields of any type.
func (c *typeChecker) walk(path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			c.walk(path, value.Elem())
		}
	case reflect.Interface:
		if value.IsNil() {
			return
		}
		if kind := value.Elem().Kind(); kind == reflect.Pointer || kind == reflect.Struct {
			c.walk(path, value.Elem())
		} else {
			c.checkOpen(path)
		}
	case reflect.Map:
		if value.Type().Elem().Kind() == reflect.Interface {
			if !value.IsNil() {
				c.checkOpen(path)
			}
			return
		}
		for _, name := range value.MapKeys() {
			c.walk(join(path, name.String()), value.MapIndex(name))
		}
	case reflect.Slice:
		if found, inBoard := lookUp(c.document, path); inBoard && reflect.TypeOf(found) != reflect.TypeFor[[]any]() {
			c.add(path, "not a list") // of which the SDK tells only where its parent is
		}
		for at := range value.Len() {
			c.walk(fmt.Sprintf("%s[%d]", path, at), value.Index(at))
		}
	case reflect.Struct:
		c.walkStruct(path, value)
	case reflect.String, reflect.Int64:
		c.checkEnum(path, value)
	}
}

func (c *typeChecker) walkStruct(path string, value reflect.Value) {
	for at := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(at).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		if !unicode.IsUpper(rune(name[0])) {
			c.walk(join(path, name), value.Field(at))
		} else if !value.Field(at).IsZero() {
			c.walk(path, value.Field(at)) // the type that a union has: JSON shows nothing of it
		}
	}
}
