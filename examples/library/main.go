// Command intents does what racflow run -var embedder=hashing FILE does.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/plugins"
)

func main() {
	ctx, stages := context.Background(), engine.Serve(plugins.All()) // first of all
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
