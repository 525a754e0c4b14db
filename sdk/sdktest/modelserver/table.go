package modelserver

import (
	"fmt"
	"strings"
)

// Table is a page about all behaviours, in Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString(`# Behaviours of the model server

What services of language models do differently, and what racflow does about it. A test in
Go takes behaviours by their names, ` + "`modelserver.Named(\"busy\", \"thinks-in-tags\")`" + `; the command
[examples/modelserver](../../../examples/modelserver/README.md) serves them to a program in any language.

Each row is tested (TestBehaviours): ` + "`racflow run`" + ` asks a server with this one behaviour for labels,
with a second voter beside the model. The exit code and what the user sees are what came;
where nothing is said, all answers of the model count and nothing is reported. What a model
refuses shows among its calls as one that failed: it is the probe's, before the first item.

`)
	b.WriteString("| name | the server | racflow | exit code | the user sees |\n|---|---|---|---|---|\n")
	for _, of := range Behaviours() {
		says := ""
		if of.Says != "" {
			says = "`" + strings.ReplaceAll(of.Says, "|", `\|`) + "`"
		}
		server := strings.NewReplacer("|", `\|`, "<think>", "`<think>`", "<thinking>", "`<thinking>`").Replace(of.Server)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", of.Name, server, of.Racflow, of.Exit, says)
	}
	b.WriteString("\nThis page is generated: `make generate` writes it.\n")
	return b.String()
}
