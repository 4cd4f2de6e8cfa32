package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/dashboard-linter/lint"
)

// Of an alert about a whole job, Prometheus's own series have no instance.
var aboutAlerts = regexp.MustCompile(`\bALERTS(_FOR_STATE)?\{[^}]*\}`)

// isAboutAlerts says whether all selectors of a query without the board's instance are of alerts. The linter tells only of the first.
func isAboutAlerts(expr string) bool {
	others := aboutAlerts.ReplaceAllString(expr, "")
	return others != expr && strings.Count(others, "{") == strings.Count(others, `instance=~"$instance"`)
}

// lintProblems applies all rules of the linter; a warning counts as an error. One thing is excluded: queries of alerts need no instance.
func lintProblems(content []byte) []string {
	board, err := lint.NewDashboard(content)
	if err != nil {
		return []string{fmt.Sprintf("the linter cannot read the board: %v", err)}
	}
	rules := lint.NewRuleSet()
	results, err := rules.Lint([]lint.Dashboard{board})
	if err != nil {
		return []string{fmt.Sprintf("the linter failed: %v", err)}
	}
	var problems []string
	for rule, contexts := range results.ByRule() {
		for _, context := range contexts {
			if rule == "target-instance-rule" && context.Target != nil && isAboutAlerts(context.Target.Expr) {
				continue
			}
			for _, result := range context.Result.Results {
				if result.Severity != lint.Success {
					problems = append(problems, fmt.Sprintf("%s: %s: %s", placeOf(board, context), rule, result.Message))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// placeOf returns the path of what a rule was applied to. The linter itself tells only the panel's title.
func placeOf(board lint.Dashboard, context lint.ResultContext) string {
	if context.Panel == nil {
		return "board"
	}
	path := panelPath("panels", board.Panels, context.Panel.Id)
	if context.Target != nil {
		path += fmt.Sprintf(".targets[%d]", context.Target.Idx)
	}
	return path
}

// panelPath finds a panel by its id, also inside collapsed rows. dashboard_rules.py keeps ids unique.
func panelPath(path string, panels []lint.Panel, id int) string {
	for at, panel := range panels {
		here := fmt.Sprintf("%s[%d]", path, at)
		if panel.Id == id {
			return here
		}
		if inside := panelPath(here+".panels", panel.Panels, id); inside != "" {
			return inside
		}
	}
	return ""
}
