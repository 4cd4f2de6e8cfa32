// Checks Kubernetes manifests as an API server does when it creates their objects, and by the Pod Security Standards.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run checks the objects in the files. It returns 1 if one of them has a problem, and 2 if they cannot be checked.
func run(files []string, output, errors io.Writer) int {
	if len(files) == 0 {
		fmt.Fprintln(errors, "usage: go run . MANIFEST.yaml...")
		return 2
	}
	status, objects := 0, 0
	for _, file := range files {
		documents, err := readDocuments(file)
		if err != nil {
			fmt.Fprintln(errors, err)
			return 2
		}
		for _, document := range documents {
			objects++
			for _, problem := range check(document) {
				fmt.Fprintf(errors, "%s: %s\n", file, problem)
				status = 1
			}
		}
	}
	if status == 0 {
		fmt.Fprintf(output, "kubernetes: an API server accepts %d objects of %d files\n", objects, len(files))
	}
	return status
}
