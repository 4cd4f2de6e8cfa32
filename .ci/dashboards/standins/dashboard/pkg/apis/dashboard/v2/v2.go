// Package v2 has the names of Grafana's v2 boards that the linter's source mentions, so that it compiles without Grafana's own package and
// what that brings in. Nothing is ever read into them: a v2 board fails the check of types before it is linted.
package v2

type DashboardSpec struct {
	Title       string
	Editable    *bool
	Elements    map[string]DashboardElement
	Variables   []DashboardVariableKind
	Annotations []DashboardAnnotationQueryKind
}

type DashboardElement struct {
	PanelKind *struct{ Spec DashboardPanelSpec }
}

type DashboardPanelSpec struct {
	Id                 float64
	Title, Description string
	Data               struct {
		Spec struct{ Queries []DashboardPanelQueryKind }
	}
	VizConfig struct {
		Group string
		Spec  struct{ FieldConfig, Options any }
	}
}

type DashboardPanelQueryKind struct {
	Spec struct {
		RefId  string
		Hidden bool
		Query  DashboardDataQueryKind
	}
}

type DashboardDataQueryKind struct {
	Group      string
	Datasource *struct{ Name *string }
	Spec       map[string]any
}

type DashboardAnnotationQueryKind struct {
	Spec struct {
		Name  string
		Query DashboardDataQueryKind
	}
}

type DashboardVariableKind struct {
	QueryVariableKind      *variable[DashboardDataQueryKind]
	DatasourceVariableKind *variable[string]
	CustomVariableKind     *variable[string]
	IntervalVariableKind   *variable[string]
	ConstantVariableKind   *variable[string]
	TextVariableKind       *variable[string]
	AdhocVariableKind      *variable[string]
	GroupByVariableKind    *variable[string]
	SwitchVariableKind     *variable[string]
}

type variable[Query any] struct {
	Spec struct {
		Name, PluginId  string
		Label, AllValue *string
		Multi           bool
		Refresh         DashboardVariableRefresh
		Query           Query
	}
}

type DashboardVariableRefresh string

const (
	DashboardVariableRefreshOnTimeRangeChanged DashboardVariableRefresh = "onTimeRangeChanged"
	DashboardVariableRefreshOnDashboardLoad    DashboardVariableRefresh = "onDashboardLoad"
)
