package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

const packLong = `The folder holds the file, its lock, the files that it reads, its knowledge, what its voters have learnt, its locked
plugins and its models. On another machine with racflow, nothing has to be built or downloaded there. What a server
keeps, such as Milvus, stays there.

Values of variables, secrets and the keys of connections are not packed: give them where it answers, as here. Look into
the folder before you give it away: it has your examples in it, and what the file reads.`

func newPack() *cobra.Command {
	var flags fileFlags
	var to string
	c := &cobra.Command{
		Use:   "pack FILE",
		Short: "Copy a pipeline into a folder that answers on other machines",
		Long:  packLong,
		Example: `  racflow pack --output intent pipelines/intent.hcl
  tar czf intent.tgz intent`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			return flags.pipelineOf(c, args[0], c.InOrStdin(), func(a *app, p *workspace.Pipeline) error {
				packed, err := p.Pack(c.Context(), to)
				if err != nil {
					return err
				}
				reportPack(a.print, to, packed)
				return nil
			})
		},
	}
	flags.register(c)
	flags.registerCalls(c)
	c.Flags().StringVarP(&to, "output", "o", "packed", "write to `DIR`, which is new or empty")
	return c
}

// maxListed is the number of files that reportPack names.
const maxListed = 10

// reportPack reports the contents of the folder, and how to use it.
func reportPack(print func(string, ...any), to string, p workspace.Packed) {
	names, more := p.Files, ""
	if n := len(names) - maxListed; n > 0 {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	print("%s has %s: %s%s", to, terminal.Bytes(p.Bytes), strings.Join(names, ", "), more)
	var variables string
	for _, part := range []struct {
		names                []string
		is, folder, variable string
	}{
		{p.Models, "model", workspace.PackedModels, sdk.ModelsVariable},
		{p.Plugins, "plugin", workspace.PackedPlugins, registry.StoreVariable},
	} {
		if len(part.names) > 0 {
			print("%s: %s", terminal.Plural(len(part.names), part.is), strings.Join(part.names, ", "))
			variables += " " + part.variable + "=$PWD/" + part.folder
		}
	}
	for _, path := range p.Left {
		print("not packed, because it is of a connection: %s", path)
	}
	print("Where %s has been copied to:", filepath.Base(to))
	print("  cd %s", filepath.Join(filepath.Base(to), p.Dir))
	if variables != "" {
		print("  export%s", variables)
	}
	print("  racflow run %s", p.File)
}
