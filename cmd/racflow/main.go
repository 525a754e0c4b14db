// Command racflow runs pipelines of retrieval-augmented classification and contextual retrieval that are written in HCL
// files. A racflow with stages of your own linked in is this file with more of them.
package main

import (
	"os"

	"github.com/racflow/racflow/engine/cli"
	"github.com/racflow/racflow/plugins"
)

func main() { os.Exit(cli.Run(plugins.All(), plugins.Commands()...)) }
