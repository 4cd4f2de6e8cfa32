// Package syntax has the names of Loki's LogQL parser that the linter's source mentions, so that it compiles without Loki. It refuses every
// query: a board that queries Loki fails.
package syntax

import (
	"errors"
	"time"
)

type Expr any

func ParseExpr(string) (Expr, error) {
	return nil, errors.New("this check has no LogQL parser: remove the stand-in of Loki from go.mod")
}

type (
	BinOpExpr             struct{ SampleExpr, RHS Expr }
	RangeAggregationExpr  struct{ Left Expr }
	VectorAggregationExpr struct{ Left Expr }
	LabelReplaceExpr      struct{ Left Expr }
	LogRangeExpr          struct {
		Left     Expr
		Interval time.Duration
	}
	PipelineExpr struct {
		Left        Expr
		MultiStages []Expr
	}
)
