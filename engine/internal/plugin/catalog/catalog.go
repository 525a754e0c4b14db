package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
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
	locked   *plugin.Lock
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
	store       *registry.Store

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
		if s.store, err = registry.OpenStore(""); err != nil {
			s.store = nil // a user without a home: nothing is installed
		}
	}
	return &Catalog{shared: s, locked: &plugin.Lock{}, resolved: map[string]*resolved{}}, nil
}

// Require implements pipeline.Requiring.
func (c *Catalog) Require(dir string, required []plugin.Requirement) pipeline.Catalog {
	return c.For(dir, required)
}

// For returns the catalog for a file in a folder that requires plugins.
func (c *Catalog) For(dir string, required []plugin.Requirement) *Catalog {
	own := &Catalog{shared: c.shared, required: required, locked: &plugin.Lock{}, resolved: map[string]*resolved{}}
	if slices.ContainsFunc(required, func(r plugin.Requirement) bool { return r.Source != "" }) {
		locked, diags := plugin.ReadLock(filepath.Join(dir, plugin.LockName))
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
func (c *Catalog) Describe(kind sdk.Kind, use string) ([]StageInfo, error) {
	if use != "" {
		stage, ok := c.Stage(kind, use)
		if ok {
			return []StageInfo{Explain(use, stage)}, nil
		}
		if err := c.Explain(use); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("no plugin offers the %s stage %q.%s", kind, use, pipeline.OrList(use, c.Uses(kind)))
	}
	all := []StageInfo{}
	for _, k := range Kinds {
		if kind != "" && k != kind {
			continue
		}
		for _, use := range c.Uses(k) {
			if stage, ok := c.Stage(k, use); ok {
				all = append(all, Explain(use, stage))
			}
		}
	}
	return all, nil
}

// Plugin is what is known of a plugin without starting it.
type Plugin struct {
	Name    string
	Version string         // as locked or installed, or as a plugin that is being developed said of itself; empty: not known
	Origin  program.Origin // empty: nobody says what it is
	Source  string         // as the file has it; empty: the file does not require it, or does not say
	Signer  string         // as locked
	Path    string         // of the program; empty: there is none
	Hash    string         // that it has, or has to have; empty: not known
	Err     error          // why it may not be started; nil: it may
}

// Plugins lists the plugins that are being developed and those that the file requires. It
// starts nothing.
func (c *Catalog) Plugins() []Plugin {
	var all []Plugin
	for _, name := range c.names() {
		r := c.resolve(name)
		one := Plugin{Name: name, Version: r.program.Version, Origin: r.program.Origin, Path: r.program.Path, Err: r.err}
		for _, required := range c.required {
			if required.Name == name {
				one.Source = required.Source
			}
		}
		if locked := c.locked.Plugin(name); locked != nil && (one.Origin == "" || one.Origin == program.Locked) {
			one.Origin, one.Version, one.Signer, one.Hash = program.Locked, locked.Version, locked.Signer, locked.Program()
		}
		if one.Err == nil {
			one.Hash, one.Err = r.program.Check()
			one.Version = cmp.Or(one.Version, c.describe(name, false).Version)
		}
		all = append(all, one)
	}
	return all
}

// Installed lists what is installed, whoever requires it, without a word on whether any file
// locks it.
func (c *Catalog) Installed() ([]Plugin, error) {
	if c.store == nil {
		return nil, nil
	}
	installed, err := c.store.List()
	var all []Plugin
	for _, i := range installed {
		one := Plugin{Name: i.Name, Version: i.Version, Hash: i.Hash}
		var p program.Program
		p, one.Err = c.store.Program(i.Name, i.Hash)
		one.Path = p.Path
		all = append(all, one)
	}
	return all, err
}

// resolved is what stands for a plugin's name.
type resolved struct {
	program program.Program
	hash    string     // that it has
	offered sdk.Plugin // of a locked one
	err     error      // why there is no program that may be started
}

// resolve finds the program of a plugin, once for each file: one that is being developed goes
// before what is locked. Whatever it returns without an error was checked, by its hash too where
// one is known, and nothing was started for that.
func (c *Catalog) resolve(name string) *resolved {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.resolved[name]
	if !ok {
		r = &resolved{}
		r.err = c.find(name, r)
		c.resolved[name] = r
	}
	return r
}

func (c *Catalog) find(name string, r *resolved) error {
	i := slices.IndexFunc(c.required, func(r plugin.Requirement) bool { return r.Name == name })
	for _, origin := range []program.Origin{program.Given, program.Linked} {
		var found []program.Program
		for _, p := range c.development {
			if p.Name == name && p.Origin == origin {
				found = append(found, p)
			}
		}
		switch {
		case len(found) > 1:
			return fmt.Errorf("there are several programs of the plugin %q, %s and %s: leave one folder out of Options.Plugins and %s, or rename one of them", name, found[0].Path, found[1].Path, pluginsVariable)
		case len(found) == 1:
			r.program = found[0]
			if i >= 0 {
				r.program.Allow = c.required[i].Allow
			}
			var err error
			r.hash, err = r.program.Check()
			return err
		}
	}
	if i < 0 {
		return c.unknown(name)
	}
	return c.fromLock(c.required[i], r)
}

// unknown says that nothing is known of a plugin.
func (c *Catalog) unknown(name string) error {
	looked := ""
	if len(c.dirs) > 0 {
		looked = fmt.Sprintf(", and no folder of %s holds a program named %s%s", strings.Join(c.dirs, ", "), program.Prefix, name)
	}
	return fmt.Errorf("there is no plugin %q: the file does not require it%s. Write required_plugins { %s = { source = \"REGISTRY/REPOSITORY\", version = \"~> 1.0\" } } into the file and run racflow plugin init, or, while it is being developed, "+
		"name its folder with Options.Plugins or in %s, or install it with racflow plugin install FOLDER --dev", name, looked, name, pluginsVariable)
}

// fromLock takes what the lock names for a requirement.
func (c *Catalog) fromLock(required plugin.Requirement, r *resolved) error {
	const again = "run racflow plugin init with this file"
	name := required.Name
	locked := c.locked.Plugin(name)
	another := func(protocol int) error {
		return fmt.Errorf("the plugin %q, version %s, speaks version %d of racflow's protocol, and this racflow speaks version %d: use another version of the plugin or of racflow", name, locked.Version, protocol, wire.ProtocolVersion)
	}
	switch {
	case required.Source == "":
		return fmt.Errorf("the file requires the plugin %q without saying where it comes from, so it has to be one that is being developed: name its folder with Options.Plugins or in %s, install it with racflow plugin install FOLDER --dev, or give the entry a source", name, pluginsVariable)
	case c.unlocked != nil:
		return c.unlocked
	case locked == nil:
		return fmt.Errorf("the plugin %q is not locked: %s, which chooses a version, installs it and notes it in %s", name, again, plugin.LockName)
	case locked.Source != required.Source:
		return fmt.Errorf("the plugin %q is locked from %s, and the file now has the source %s: %s", name, locked.Source, required.Source, again)
	case locked.Constraint != required.Version:
		return fmt.Errorf("the plugin %q is locked at version %s, which was chosen by %q, and the file now has %q: %s", name, locked.Version, locked.Constraint, required.Version, again)
	case locked.Protocol != wire.ProtocolVersion:
		return another(locked.Protocol)
	case locked.Program() == "":
		return fmt.Errorf("the plugin %q, version %s, has no program for %s/%s: take another version, or ask its author for one", name, locked.Version, runtime.GOOS, runtime.GOARCH)
	case c.store == nil:
		return fmt.Errorf("the plugin %q is not installed, since there is no folder for that: name one in %s, and %s", name, registry.StoreVariable, again)
	}
	p, err := c.store.Program(name, locked.Program())
	if errors.Is(err, registry.ErrMissing) {
		return fmt.Errorf("the plugin %q, version %s, is not installed on this machine: %s", name, locked.Version, again)
	}
	if err != nil {
		return err
	}
	offered, protocol, err := c.store.Description(p.Hash)
	switch {
	case errors.Is(err, registry.ErrMissing):
		return fmt.Errorf("the plugin %q is installed without its description: remove it with racflow plugin remove %s, and %s", name, name, again)
	case err != nil:
		return err
	case protocol != wire.ProtocolVersion:
		return another(protocol)
	}
	p.Version, p.Allow = locked.Version, required.Allow
	r.program, r.offered = p, offered
	return nil
}

// describe is what a plugin offers, nothing where that is not known. Only a plugin that is being
// developed is started to say it, once for as long as it is the same, and only if it may be.
func (c *Catalog) describe(name string, start bool) sdk.Plugin {
	r := c.resolve(name)
	switch {
	case r.err != nil || r.program.Origin == program.Locked:
		return r.offered
	case !start:
		p, _ := c.host.Known(r.program)
		return p
	case c.failure(r) != nil:
		return sdk.Plugin{}
	}
	p, err := c.host.Describe(c.ctx, r.program)
	if err != nil {
		c.shared.mu.Lock()
		c.failed[r.key()] = err
		c.shared.mu.Unlock()
	}
	return p
}

// key names a program as it is: one that was changed may be asked again.
func (r *resolved) key() string { return r.program.Path + " " + r.hash }

// failure is why a program could not be asked; nil: it could, or was not.
func (c *Catalog) failure(r *resolved) error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	return c.failed[r.key()]
}
