// Command racflow runs pipelines of retrieval-augmented classification and contextual retrieval,
// written in HCL files. A racflow with your own stages linked in is this file with additional stages.
package main

import (
	"os"

	"github.com/racflow/racflow/engine/cli"
	"github.com/racflow/racflow/plugins"
)

func main() { os.Exit(cli.Run(plugins.All(), plugins.Commands()...)) }
