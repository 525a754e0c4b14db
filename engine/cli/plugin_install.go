package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/plugin/build"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/terminal"
)

func newPluginInstall() *cobra.Command {
	dev := false
	var source sourceFlags
	c := &cobra.Command{
		Use:   "install FOLDER --dev | SOURCE[@VERSION]",
		Short: "Let your own racflow use a plugin that you are writing, or get one to this machine",
		Long: `With --dev, build the plugin whose project is in FOLDER, and note in your own settings where its
program is. From then on every pipeline file of yours can use its stages, and each run
says that it uses a plugin in development. After a change the plugin is used again
once it was installed again. A project in Go is built by the go command; one in
Python gets a virtual environment in its own folder.

Without it, get a plugin from a SOURCE as a pipeline file names it (see racflow plugin
init), check it, put its program into this machine's store, and print the lines by which a file
requires it. An archive needs --sha256. What a file uses is what its lock has: racflow plugin
init writes that, and installs by itself what is missing.`,
		Example: `  racflow plugin install . --dev
  racflow plugin install 'ghcr.io/acme/racflow-plugin-mine@~> 1.2' --key minisign.pub
  racflow plugin install https://example.com/racflow-plugin-mine_linux_amd64.tar.gz --sha256 HEX`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name the folder of the plugin's project, such as: racflow plugin install . --dev, or a source, such as: racflow plugin install ghcr.io/acme/racflow-plugin-mine")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if !dev {
				return source.install(c, args[0])
			}
			p, err := build.Project(c.Context(), args[0], c.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := program.Link(p); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "The plugin %s is installed for development, from %s.\nPipeline files use its stages as %[1]s/STAGE.\n", p.Name, terminal.Line(p.Project))
			return err
		},
	}
	source.register(c)
	c.Flags().BoolVar(&dev, "dev", false, "the folder holds the project of a plugin in development")
	return c
}
