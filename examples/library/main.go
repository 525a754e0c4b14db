// Command intents does the same as racflow run -var embedder=hashing FILE.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/plugins"
)

func main() {
	ctx, stages := context.Background(), engine.Serve(plugins.All()) // first of all
	if problem := wrong(os.Args[1:]); problem != "" {
		fmt.Fprintf(os.Stderr, "%s\nusage: intents FILE\nFILE is a pipeline file, such as pipelines/intent.hcl\n", problem)
		os.Exit(2)
	}
	p, err := engine.Open(ctx, os.Args[1], engine.Options{Builtin: stages, Vars: map[string]string{"embedder": "hashing"}})
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range p.Run(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(r)
	}
	p.Close()
}

// wrong says what is wrong with the arguments; empty: nothing.
func wrong(args []string) string {
	if len(args) == 0 {
		return "the argument FILE is missing"
	}
	if len(args) > 1 {
		return fmt.Sprintf("the argument %q is one too many", args[1])
	}
	if info, err := os.Stat(args[0]); err != nil {
		return fmt.Sprintf("the argument FILE is wrong: %v", err)
	} else if info.IsDir() {
		return fmt.Sprintf("the argument FILE is wrong: %s is a folder", args[0])
	}
	return ""
}
