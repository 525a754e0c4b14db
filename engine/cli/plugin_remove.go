package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
)

func newPluginRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME[@VERSION]...",
		Short: "Remove plugins from this machine",
		Long: `Remove installed plugins from this machine, all versions or one, and forget one that was
installed with --dev, whose project stays. Pipeline files and locks stay as they are:
racflow plugin init installs again what they require.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := store.Open("")
			if err != nil {
				return err
			}
			for _, arg := range args {
				name, version, _ := strings.Cut(arg, "@")
				removed, err := removePlugin(s, name, version)
				for _, what := range removed {
					fmt.Fprintln(c.OutOrStdout(), what)
				}
				if err == nil && len(removed) == 0 {
					err = fmt.Errorf("no plugin %s is installed; racflow plugin list shows those that are", arg)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// removePlugin says what it removed, also where it could not remove all.
func removePlugin(s *store.Store, name, version string) (removed []string, err error) {
	installed, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, i := range installed {
		if i.Name != name || version != "" && i.Version != version {
			continue
		}
		if err := s.Remove(i.Hash); err != nil {
			return removed, err
		}
		removed = append(removed, fmt.Sprintf("removed %s %s (%s)", i.Name, i.Version, i.Hash))
	}
	if version != "" {
		return removed, nil
	}
	switch err := program.Unlink(name); {
	case err == nil:
		return append(removed, fmt.Sprintf("forgot %s, which was installed for development", name)), nil
	case !errors.Is(err, fs.ErrNotExist):
		return removed, err
	}
	return removed, nil
}
