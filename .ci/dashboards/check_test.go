package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/dashboard-linter/lint"
)

const boards = "../../dashboards"

// absent, as a value, removes the field.
type absent struct{}

func TestShippedBoardsPass(t *testing.T) {
	files, err := filepath.Glob(boards + "/*.json")
	if err != nil || len(files) != 9 {
		t.Fatalf("not nine boards in %s: %q, %v", boards, files, err)
	}
	var output, errors strings.Builder
	if status := run(files, &output, &errors); status != 0 || !strings.Contains(output.String(), "9 boards") {
		t.Errorf("status %d, output %q, errors:\n%s", status, &output, &errors)
	}
}

func TestAProblemIsPrintedWithItsFile(t *testing.T) {
	content, place := broken(t, "@timeseries.fieldConfig.defaults.custom.lineWidths", 2)
	file := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var output, errors strings.Builder
	status := run([]string{boards + "/persia-training.json", file}, &output, &errors)
	want := file + ": " + place + ": Grafana has no such field; the value is 2\n"
	if status != 1 || output.String() != "" || errors.String() != want {
		t.Errorf("status %d, output %q, errors:\n%swant:\n%s", status, &output, &errors, want)
	}
}

func TestBoardsThatCannotBeRead(t *testing.T) {
	for _, files := range [][]string{{}, {filepath.Join(t.TempDir(), "missing.json")}} {
		var output, errors strings.Builder
		if status := run(files, &output, &errors); status != 2 || errors.String() == "" {
			t.Errorf("files %q: status %d, errors %q", files, status, &errors)
		}
	}
}

// kinds has a shipped board with each kind of panel.
var kinds = map[string]string{"heatmap": "elastic", "state-timeline": "rank", "table": "fleet"}

// broken returns a shipped board with one value set; an @ in the path stands for the first panel of that kind. It also returns the path as
// it is in the board.
func broken(t *testing.T, path string, value any) (content []byte, place string) {
	t.Helper()
	kind, _, _ := strings.Cut(strings.TrimPrefix(path, "@"), ".")
	name, special := kinds[kind]
	if !special {
		name = "job"
	}
	content, err := os.ReadFile(boards + "/persia-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var board map[string]any
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	if kind, below, found := strings.Cut(strings.TrimPrefix(path, "@"), "."); found && path[0] == '@' {
		at := slices.IndexFunc(board["panels"].([]any), func(panel any) bool { return panel.(map[string]any)["type"] == kind })
		path = fmt.Sprintf("panels[%d].%s", at, below)
	}
	container, last := any(board), path
	if at := strings.LastIndex(path, "."); at >= 0 {
		var found bool
		if container, found = lookUp(board, path[:at]); !found {
			t.Fatalf("the board has nothing at %s", path[:at])
		}
		last = path[at+1:]
	}
	if _, is := value.(absent); is {
		delete(container.(map[string]any), last)
	} else {
		container.(map[string]any)[last] = value
	}
	content, err = json.Marshal(board)
	if err != nil {
		t.Fatal(err)
	}
	return content, path
}

// expect fails the test unless one of the problems has all the words.
func expect(t *testing.T, problems []string, words ...string) {
	t.Helper()
	has := func(problem string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(problem, word) })
	}
	if !slices.ContainsFunc(problems, has) {
		t.Errorf("no problem has all of %q, but found were:\n%s", words, strings.Join(problems, "\n"))
	}
}

func TestUnknownNamesAreFound(t *testing.T) {
	for _, path := range []string{
		"editible",
		"time.until",
		"timepicker.hiden",
		"links[0].keepTimes",
		"annotations.lists",
		"annotations.list[0].tagkeys",
		"annotations.list[0].datasource.id",
		"templating.lists",
		"templating.list[1].includeall",
		"templating.list[1].query.querry",
		"templating.list[2].current.txt",
		"@row.expanded",
		"@timeseries.gridPos.z",
		"@timeseries.desc",
		"@timeseries.targets[0].expression",
		"@timeseries.fieldConfig.default",
		"@timeseries.fieldConfig.defaults.units",
		"@timeseries.fieldConfig.defaults.thresholds.step",
		"@timeseries.fieldConfig.defaults.color.modes",
		"@timeseries.fieldConfig.defaults.custom.lineWidths",
		"@timeseries.fieldConfig.defaults.custom.thresholdsStyle.modes",
		"@timeseries.options.legends",
		"@timeseries.options.legend.position",
		"@stat.options.colormode",
		"@stat.options.reduceOptions.calc",
		"@heatmap.options.colour",
		"@heatmap.options.color.schema",
		"@state-timeline.options.mergeValue",
		"@state-timeline.fieldConfig.defaults.custom.fill",
		"@table.options.showHeaders",
		"@table.fieldConfig.defaults.custom.width2",
		"@table.transformations[0].opts",
		"@table.transformations[1].options.renameByname",
		"@text.options.contents",
	} {
		t.Run(path, func(t *testing.T) {
			content, place := broken(t, path, "misspelt")
			expect(t, check(content), place+": Grafana has no such field", `"misspelt"`)
		})
	}
}

func TestWrongTypesAreFound(t *testing.T) {
	for path, value := range map[string]any{
		"title":                                7,
		"editable":                             "false",
		"tags":                                 "persia",
		"schemaVersion":                        "41",
		"panels":                               "none",
		"graphTooltip":                         true,
		"time.from":                            3600,
		"links[0].tags":                        map[string]any{"persia": true},
		"annotations.list[0].enable":           "yes",
		"annotations.list[0].useValueForTime":  "on",
		"annotations.list[0].step":             10,
		"annotations.list[0].datasource":       "prometheus",
		"templating.list[1].multi":             1,
		"templating.list[1].refresh":           "always",
		"templating.list[1].query":             9,
		"templating.list[1].query.refId":       4,
		"templating.list[2].current.text":      5,
		"@row.collapsed":                       "no",
		"@timeseries.id":                       "first",
		"@timeseries.title":                    []string{"a"},
		"@timeseries.gridPos.w":                "wide",
		"@timeseries.targets[0].expr":          true,
		"@timeseries.targets[0].range":         "true",
		"@timeseries.fieldConfig":              "default",
		"@timeseries.fieldConfig.defaults.min": "0",
		"@timeseries.fieldConfig.defaults.thresholds.steps":   "none",
		"@timeseries.fieldConfig.defaults.custom.fillOpacity": "10",
		"@timeseries.options.legend.showLegend":               "true",
		"@timeseries.options.legend.calcs":                    "mean",
		"@stat.options.wideLayout":                            "yes",
		"@heatmap.options.color.steps":                        "many",
		"@state-timeline.options.rowHeight":                   "0.9",
		"@table.options.showHeader":                           1,
		"@table.transformations[1].options.excludeByName":     []string{"Time"},
		"@text.options.content":                               12,
	} {
		t.Run(path, func(t *testing.T) {
			content, place := broken(t, path, value)
			quoted, _ := json.Marshal(value)
			expect(t, check(content), place+": ", "the value is "+string(quoted))
		})
	}
}

func TestMissingAndUnknownValuesAreFound(t *testing.T) {
	for _, test := range []struct {
		path  string
		value any
		want  string
	}{
		{"templating", absent{}, "required field is missing"},
		{"@table.transformations[1].id", absent{}, "required field is missing"},
		{"@heatmap.fieldConfig.overrides", absent{}, "required field is missing"},
		{"fiscalYearStartMonth", 12, "must be < 12"},
		{"@row.gridPos.w", 25, "must be <= 24"},
		{"@timeseries.gridPos.w", 25, "must be <= 24"},
		{"@heatmap.options.color.steps", 500, "must be <= 128"},
		{"@state-timeline.fieldConfig.defaults.custom.fillOpacity", 200, "must be <= 100"},
		{"title", nil, "null where Grafana has a value"},
		{"@timeseries.description", nil, "null where Grafana has a value"},
		{"@timeseries.type", "graph", "not a kind of panel"},
		{"@timeseries.type", "piechart", "not a kind of panel"},
		{"@timeseries.options.tooltip.mode", "many", "only single, multi, none"},
		{"@timeseries.options.tooltip.mode", "", "only single, multi, none"},
		{"@timeseries.fieldConfig.defaults.color.mode", "rainbow", "Grafana has no such value"},
		{"@timeseries.fieldConfig.defaults.custom.drawStyle", "dots", "Grafana has no such value"},
		{"@timeseries.targets[0].format", "csv", "only time_series, table, heatmap"},
		{"@timeseries.targets[0].editorMode", "vim", "only code, builder"},
		{"templating.list[1].refresh", 5, "only 0, 1, 2"},
		{"templating.list[1].type", "choice", "Grafana has no such value"},
		{"graphTooltip", 7, "only 0, 1, 2"},
		{"@table.transformations[1].id", "reorganize", "not a transformation"},
		{"@stat.fieldConfig.defaults.custom", map[string]any{"lineWidth": 1}, "Grafana's types say nothing of what is here"},
		{"@timeseries.fieldConfig.overrides", []any{map[string]any{
			"matcher":    map[string]any{"id": "byName", "options": "a"},
			"properties": []any{map[string]any{"id": "custom.hideFrom", "value": "s"}},
		}}, "overrides[0].properties[0].id: not a property that this check knows"},
		{"@table.fieldConfig.overrides[0].properties[0].value", []any{map[string]any{"title": "a", "url": 7}}, "cannot unmarshal number"},
		{"@table.fieldConfig.overrides[0].properties[0].value", []any{map[string]any{"href": "/d/a"}}, "unknown field"},
		{"@table.fieldConfig.overrides[1].properties[0].value", "green", "cannot unmarshal string"},
		{"@table.fieldConfig.overrides[0].matcher.options", 7, "cannot unmarshal number"},
		{"@table.options.sortBy[0].descending", true, "Grafana has no such field"},
		{"@timeseries.links[0].href", "/d/a", "Grafana has no such field"},
		{"@row.repeats", "job", "Grafana has no such field"},
		{"@timeseries.targets", []any{map[string]any{
			"datasource": map[string]any{"type": "loki", "uid": "$datasource"}, "expr": "{}",
		}}, "targets[0]: Grafana's types say nothing of what is here"},
	} {
		t.Run(fmt.Sprint(test.path, "=", test.value), func(t *testing.T) {
			content, place := broken(t, test.path, test.value)
			expect(t, check(content), place, test.want)
		})
	}
}

func TestOtherJsonIsFound(t *testing.T) {
	for content, want := range map[string]string{
		``:                               "not a JSON object",
		`null`:                           "not a JSON object",
		`{"annotations": {"list": [7]}}`: "annotations.list[0]: json: cannot unmarshal number",
		`{"panels": [{"type": "row", "panels": [{"type": "graph"}]}]}`: "panels[0].panels[0].type: not a kind of panel",
		`[]`:              "not a JSON object",
		`{"title": "a",}`: "not a JSON object",
		`{}`:              "annotations: required field is missing",
		`{"apiVersion": "dashboard.grafana.app/v2", "spec": {}}`: "spec: Grafana has no such field",
	} {
		t.Run(content, func(t *testing.T) { expect(t, check([]byte(content)), want) })
	}
}

// The two rules for Loki are left out: a query of another data source than Prometheus does not get past the types.
func TestEachRuleOfTheLinterIsApplied(t *testing.T) {
	const filter = `{job=~"$job", instance=~"$instance"}`
	expression := "@timeseries.targets[0].expr"
	broke := map[string]bool{"target-logql-rule": true, "target-logql-auto-rule": true}
	for _, test := range []struct {
		rule  string
		path  string
		value any
		want  string
	}{
		{"template-datasource-rule", "templating.list[0].name", "source", "'source'"},
		{"template-datasource-rule", "templating.list[0].label", "Source", "'Source'"}, // for the linter, a warning
		{"template-job-rule", "templating.list[1].allValue", ".*", "'.*'"},
		{"template-instance-rule", "templating.list[2].multi", false, "instance"},
		{"template-label-promql-rule", "templating.list[2].query.query", "label_values(up{, instance)", "up{"},
		{"template-on-time-change-reload-rule", "templating.list[1].refresh", 1, "'1'"},
		{"panel-datasource-rule", "@timeseries.datasource.uid", "prometheus", "'prometheus'"},
		{"panel-title-description-rule", "@timeseries.description", "", "description"},
		{"panel-units-rule", "@timeseries.fieldConfig.defaults.unit", "parsecs", "'parsecs'"},
		{"panel-no-targets-rule", "@timeseries.targets", absent{}, "has no targets"},
		{"target-promql-rule", expression, "sum(up", "sum(up"},
		{"target-rate-interval-rule", expression, "rate(up" + filter + "[5m])", "[5m]"},
		{"target-job-rule", expression, `up{instance=~"$instance"}`, "job selector not found"},
		{"target-instance-rule", expression, `up{job=~"$job"}`, "instance selector not found"},
		{"target-instance-rule", expression, `ALERTS{job=~"$job"} and on (job) up{job=~"$job"}`, "instance selector not found"},
		{"target-counter-agg-rule", expression, "sum(rpc_total)", "rpc_total"},
		{"uneditable-dashboard", "editable", true, "editable"},
	} {
		broke[test.rule] = true
		t.Run(test.rule, func(t *testing.T) {
			content, place := broken(t, test.path, test.value)
			if panel, _, found := strings.Cut(place, "]"); found && strings.HasPrefix(place, "panels") {
				place = panel + "]"
			} else {
				place = "board"
			}
			expect(t, check(content), place, test.rule, test.want)
		})
	}
	rules := lint.NewRuleSet()
	for _, rule := range rules.Rules() {
		if !broke[rule.Name()] {
			t.Errorf("no board is broken to see %s applied: add one", rule.Name())
		}
	}
}
