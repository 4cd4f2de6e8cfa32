// Checks dashboards against Grafana's own types and by the rules of Grafana's dashboard-linter.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run checks the boards in the files. It returns 1 if one of them has a problem, and 2 if they cannot be checked.
func run(files []string, output, errors io.Writer) int {
	if len(files) == 0 {
		fmt.Fprintln(errors, "usage: go run . BOARD.json...")
		return 2
	}
	status := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(errors, err)
			return 2
		}
		for _, problem := range check(content) {
			fmt.Fprintf(errors, "%s: %s\n", file, problem)
			status = 1
		}
	}
	if status == 0 {
		fmt.Fprintf(output, "dashboards: %d boards match Grafana's types and pass its linter\n", len(files))
	}
	return status
}

// check returns a line for each problem of a board: the path in its JSON, what is wrong there, and the value.
func check(content []byte) []string {
	if problems := typeProblems(content); len(problems) > 0 {
		return problems // the linter panics on some values of a wrong type
	}
	return lintProblems(content)
}
