package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/schema"
	"github.com/racflow/racflow/sdk"
)

// pluginsVariable lists folders of plugins that are being developed, as PATH lists programs.
const pluginsVariable = "RACFLOW_PLUGINS"

// Kinds are all kinds of stages, in the order in which data meets them.
var Kinds = []sdk.Kind{
	sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore, sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect,
}

// Catalog knows the built-in stages, and those of third parties' plugins: of the ones that are
// being developed, and of those that a file requires, for the file that Require was called for.
type Catalog struct {
	*shared
	required []plugin.Requirement
	locked   *lock.File
	unlocked error // why there is no lock

	mu       sync.Mutex
	resolved map[string]*resolved // by the plugin's name
}

// shared is what the catalogs of all files have.
type shared struct {
	ctx         context.Context
	host        *host.Host
	builtin     []sdk.Stage
	dirs        []string // that may hold plugins which are being developed
	development []program.Program
	store       *store.Store

	mu     sync.Mutex
	failed map[string]error // by the program's path and hash: why it could not be asked
}

// Folders are the folders in which racflow looks for plugins that are being developed: those
// given, and those of RACFLOW_PLUGINS.
func Folders(given []string) []string {
	dirs := slices.Concat(given, filepath.SplitList(os.Getenv(pluginsVariable)))
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// New looks for plugins that are being developed: in folders, and those that their author
// installed. Until ctx ends, h asks them for their stages. Without a host there are only
// built-in stages.
func New(ctx context.Context, h *host.Host, builtin []sdk.Stage, dirs []string) (*Catalog, error) {
	s := &shared{ctx: ctx, host: h, builtin: builtin, dirs: dirs, failed: map[string]error{}}
	if h != nil {
		given, err := program.Find(dirs)
		if err != nil {
			return nil, err
		}
		linked, err := program.Links()
		if err != nil {
			return nil, err
		}
		s.development = append(given, linked...)
		if s.store, err = store.Open(""); err != nil {
			s.store = nil // a user without a home: nothing is installed
		}
	}
	return &Catalog{shared: s, locked: &lock.File{}, resolved: map[string]*resolved{}}, nil
}

// Require implements pipeline.Requiring.
func (c *Catalog) Require(dir string, required []plugin.Requirement) pipeline.Catalog {
	return c.For(dir, required)
}

// For returns the catalog for a file in a folder that requires plugins.
func (c *Catalog) For(dir string, required []plugin.Requirement) *Catalog {
	own := &Catalog{shared: c.shared, required: required, locked: &lock.File{}, resolved: map[string]*resolved{}}
	if slices.ContainsFunc(required, func(r plugin.Requirement) bool { return r.Source != "" }) {
		locked, diags := lock.Read(filepath.Join(dir, lock.FileName))
		own.locked = locked
		if diags.HasErrors() {
			own.unlocked = fmt.Errorf("the lock cannot be read: %w", diags)
		}
	}
	return own
}

// Stage implements pipeline.Catalog. A third party's stage is PLUGIN/STAGE. A plugin that is
// being developed is started once to say what it offers; a locked one is not started.
func (c *Catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	stages, name := c.builtin, use
	if plugin, stage, third := strings.Cut(use, "/"); third {
		stages, name = c.describe(plugin, true).Stages, stage
	}
	i := slices.IndexFunc(stages, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == name })
	if i < 0 {
		return sdk.Stage{}, false
	}
	return stages[i], true
}

// Uses implements pipeline.Catalog. It starts nothing: of plugins that are being developed it
// lists the stages of those that have been asked before.
func (c *Catalog) Uses(kind sdk.Kind) []string {
	var uses []string
	for _, s := range c.builtin {
		if s.Kind == kind {
			uses = append(uses, s.Name)
		}
	}
	for _, name := range c.names() {
		for _, s := range c.describe(name, false).Stages {
			if s.Kind == kind {
				uses = append(uses, name+"/"+s.Name)
			}
		}
	}
	return uses
}

// names are the plugins that there are, in the order in which they are found.
func (c *Catalog) names() []string {
	var all []string
	add := func(name string) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, p := range c.development {
		add(p.Name)
	}
	for _, r := range c.required {
		add(r.Name)
	}
	return all
}

// Program implements pipeline.Programs: it returns the program of a third party's stage; nil
// for a built-in one, and where there is no program that may be started.
func (c *Catalog) Program(use string) *program.Program {
	name, _, third := strings.Cut(use, "/")
	if !third {
		return nil
	}
	r := c.resolve(name)
	if r.err != nil {
		return nil
	}
	p := r.program
	return &p
}

// Validate implements pipeline.Validator. A third party's program is started for it only
// where the stage says that it has more to check than its arguments say.
func (c *Catalog) Validate(kind sdk.Kind, use string, config []byte) error {
	stage, ok := c.Stage(kind, use)
	if p := c.Program(use); ok && p != nil && stage.Validates {
		return c.host.Validate(c.ctx, *p, kind, stage.Name, config)
	}
	return stage.Validate(config)
}

// Explain implements pipeline.Explainer.
func (c *Catalog) Explain(use string) error {
	name, _, third := strings.Cut(use, "/")
	if !third {
		return nil
	}
	r := c.resolve(name)
	if r.err != nil {
		return r.err
	}
	return c.failure(r)
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
