package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const sdk = "github.com/grafana/grafana-foundation-sdk/go/"

// checkEnum checks that a value of one of the SDK's enums is one of its constants, which the SDK does not.
func (c *typeChecker) checkEnum(path string, value reflect.Value) {
	if _, inBoard := lookUp(c.document, path); !inBoard || !strings.HasPrefix(value.Type().PkgPath(), sdk) {
		return
	}
	allowed := constants(value.Type().PkgPath())[value.Type().Name()]
	if got := fmt.Sprint(value.Interface()); !slices.Contains(allowed, got) {
		c.add(path, "Grafana has no such value, only "+strings.Join(allowed, ", "))
	}
}

var parsedPackages = map[string]map[string][]string{}

// constants returns the values of a package's constants by the names of their types. They are read from its source, as reflection sees no
// constants.
func constants(importPath string) map[string][]string {
	if known := parsedPackages[importPath]; known != nil {
		return known
	}
	found, err := build.Import(importPath, ".", build.FindOnly)
	if err != nil {
		panic(fmt.Sprintf("cannot find the source of %s: %v; run this in .ci/dashboards", importPath, err))
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(found.Dir, "types_gen.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		panic(err)
	}
	values := map[string][]string{}
	for _, declaration := range file.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			constant := spec.(*ast.ValueSpec)
			if name, is := constant.Type.(*ast.Ident); is {
				values[name.Name] = append(values[name.Name], literal(constant.Values[0]))
			}
		}
	}
	parsedPackages[importPath] = values
	return values
}

func literal(expression ast.Expr) string {
	text := types.ExprString(expression) // a literal, or one with a sign
	if unquoted, err := strconv.Unquote(text); err == nil {
		return unquoted
	}
	return text
}
