package main

import (
	"regexp"
	"strconv"
	"strings"
)

// A path names a place in a board's JSON: panels[1].options.legend.

var (
	index = regexp.MustCompile(`\[\d+\]`)
	step  = regexp.MustCompile(`[^.\[\]]+`)
)

func join(path, name string) string {
	return strings.TrimPrefix(path+"."+name, ".")
}

func parent(path string) string {
	return path[:strings.LastIndex(path, ".")]
}

func withoutIndexes(path string) string {
	return index.ReplaceAllString(path, "[]")
}

// lookUp returns the value at the path.
func lookUp(value any, path string) (any, bool) {
	for _, name := range step.FindAllString(path, -1) {
		switch inside := value.(type) {
		case map[string]any:
			inner, found := inside[name]
			if !found {
				return nil, false
			}
			value = inner
		case []any:
			at, err := strconv.Atoi(name)
			if err != nil || at >= len(inside) {
				return nil, false
			}
			value = inside[at]
		default:
			return nil, false
		}
	}
	return value, true
}
