package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/sdk"
)

// pluginsVariable lists folders of third-party plugins, as PATH lists
// programs.
const pluginsVariable = "RACFLOW_PLUGINS"

// Kinds are all kinds of stages, in the order in which data meets them.
var Kinds = []sdk.Kind{
	sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore, sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect,
}

// Catalog knows the built-in stages and asks third-party plugins for theirs
// when a file uses one.
type Catalog struct {
	ctx     context.Context
	host    *host.Host
	builtin []sdk.Stage
	dirs    []string // that may hold plugins
	found   []program.Plugin
	failed  map[string]error // by plugin: why it could not be asked
}

// Folders are the folders in which racflow looks for third-party plugins:
// those given, those of RACFLOW_PLUGINS, and the user's own.
func Folders(given []string) []string {
	dirs := slices.Concat(given, filepath.SplitList(os.Getenv(pluginsVariable)))
	if config, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(config, "racflow", "plugins"))
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// New looks for plugins in folders. Until ctx ends, h asks them for their
// stages; it may be nil where there are no folders.
func New(ctx context.Context, h *host.Host, builtin []sdk.Stage, dirs []string) (*Catalog, error) {
	found, err := program.Find(dirs)
	if err != nil {
		return nil, err
	}
	return &Catalog{ctx: ctx, host: h, builtin: builtin, dirs: dirs, found: found, failed: map[string]error{}}, nil
}

// Stage implements pipeline.Catalog. A third party's stage is PLUGIN/STAGE.
func (c *Catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	stages := c.builtin
	plugin, name, third := strings.Cut(use, "/")
	if !third {
		name = use
	} else if stages = nil; c.Command(use) != nil && c.failed[plugin] == nil {
		p, err := c.host.Describe(c.ctx, c.Command(use))
		if err != nil {
			c.failed[plugin] = err
		}
		stages = p.Stages
	}
	i := slices.IndexFunc(stages, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == name })
	if i < 0 {
		return sdk.Stage{}, false
	}
	return stages[i], true
}

// Uses implements pipeline.Catalog.
func (c *Catalog) Uses(kind sdk.Kind) []string {
	var uses []string
	for _, s := range c.builtin {
		if s.Kind == kind {
			uses = append(uses, s.Name)
		}
	}
	for _, f := range c.found {
		p, _ := c.host.Known([]string{f.Path}) // of the others nothing is known yet
		for _, s := range p.Stages {
			if s.Kind == kind {
				uses = append(uses, f.Name+"/"+s.Name)
			}
		}
	}
	return uses
}

// Validate implements pipeline.Validator. A third party's program is started for it only
// where the stage says that it has more to check than its arguments say.
func (c *Catalog) Validate(kind sdk.Kind, use string, config []byte) error {
	stage, ok := c.Stage(kind, use)
	if command := c.Command(use); ok && command != nil && stage.Validates {
		return c.host.Validate(c.ctx, command, kind, stage.Name, config)
	}
	return stage.Validate(config)
}

// Command returns the program of a third party's stage; nil for a built-in
// one, and where there is no such program.
func (c *Catalog) Command(use string) []string {
	plugin, _, _ := strings.Cut(use, "/")
	for _, f := range c.found {
		if f.Name == plugin && plugin != use {
			return []string{f.Path}
		}
	}
	return nil
}

// Explain implements pipeline.Explainer.
func (c *Catalog) Explain(use string) error {
	plugin, _, third := strings.Cut(use, "/")
	switch {
	case !third:
		return nil
	case c.failed[plugin] != nil:
		return c.failed[plugin]
	case c.Command(use) != nil:
		return nil // it has other stages
	}
	file := program.Prefix + plugin
	for _, dir := range c.dirs {
		path := filepath.Join(dir, file)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return fmt.Errorf("%s may not be executed; try: chmod +x %s", path, path)
		}
	}
	return fmt.Errorf("there is no plugin %q: no folder of %s holds a program named %s; "+
		"name the folder that does with Options.Plugins or in %s", plugin, strings.Join(c.dirs, ", "), file, pluginsVariable)
}

// Describe describes one stage, those of a kind where use is empty, or all where kind
// is empty, too.
func (c *Catalog) Describe(kind sdk.Kind, use string) ([]schema.Stage, error) {
	if use != "" {
		stage, ok := c.Stage(kind, use)
		if ok {
			return []schema.Stage{schema.Of(use, stage)}, nil
		}
		if err := c.Explain(use); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no plugin offers the %s stage %q.%s", kind, use, pipeline.OrList(use, c.Uses(kind)))
	}
	all := []schema.Stage{}
	for _, k := range Kinds {
		if kind != "" && k != kind {
			continue
		}
		for _, use := range c.Uses(k) {
			if stage, ok := c.Stage(k, use); ok {
				all = append(all, schema.Of(use, stage))
			}
		}
	}
	return all, nil
}
