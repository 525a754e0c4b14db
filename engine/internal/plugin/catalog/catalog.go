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
	"github.com/racflow/racflow/engine/internal/file/require"
	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/plugin/registry"
	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// pluginsVariable lists folders of plugins under development, as PATH lists programs.
const pluginsVariable = "RACFLOW_PLUGINS"

// Kinds lists all kinds of stages, in the order of the data flow.
var Kinds = []sdk.Kind{
	sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore, sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect,
}

// Catalog describes the built-in stages and the stages of third-party plugins. The plugins are under development, or
// required by the file for which Require was called.
type Catalog struct {
	*shared
	required []require.Plugin
	locked   *plugin.Lock
	unlocked error // why the lock cannot be read

	mu       sync.Mutex
	resolved map[string]*resolved // by the plugin's name
}

// shared is the part that the catalogs of all files share.
type shared struct {
	ctx         context.Context
	host        *host.Host
	builtin     []sdk.Stage
	dirs        []string // folders of plugins under development
	development []program.Program
	store       *registry.Store

	mu     sync.Mutex
	failed map[string]error // why a program failed to describe itself, by its path and hash
}

// Folders returns the folders of plugins under development: the given ones, and the folders in RACFLOW_PLUGINS.
func Folders(given []string) []string {
	dirs := slices.Concat(given, filepath.SplitList(os.Getenv(pluginsVariable)))
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// New finds plugins under development: in folders, and as installed by their author. Until ctx ends, h asks them for
// their stages. Without a host, the catalog has only built-in stages.
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
			s.store = nil // a user without a home has nothing installed
		}
	}
	return &Catalog{shared: s, locked: &plugin.Lock{}, resolved: map[string]*resolved{}}, nil
}

// Require implements pipeline.Requiring.
func (c *Catalog) Require(dir string, required []require.Plugin) pipeline.Catalog {
	return c.For(dir, required)
}

// For returns the catalog for a file in a folder that requires plugins.
func (c *Catalog) For(dir string, required []require.Plugin) *Catalog {
	own := &Catalog{shared: c.shared, required: required, locked: &plugin.Lock{}, resolved: map[string]*resolved{}}
	if slices.ContainsFunc(required, func(r require.Plugin) bool { return r.Source != "" }) {
		locked, diags := plugin.ReadLock(filepath.Join(dir, plugin.LockName))
		own.locked = locked
		if diags.HasErrors() {
			own.unlocked = fmt.Errorf("the lock cannot be read: %w", diags)
		}
	}
	return own
}

// aliases maps the field's names of built-in stages to the stages' own names. A file may use either name; digests,
// caches and messages use the stage's own name. The voter linear is a support vector machine, not logistic
// regression.
var aliases = map[string]string{"knn": "neighbours", "centroid": "prototype", "svm": "linear", "stacking": "learned"}

// aliasOf returns the other name of a built-in stage; empty: none.
func aliasOf(name string) string {
	for alias, of := range aliases {
		if of == name {
			return alias
		}
	}
	return ""
}

// Stage implements pipeline.Catalog. A third party's stage is PLUGIN/STAGE. It starts a plugin
// under development once to learn its stages; it does not start a locked one.
func (c *Catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	stages, name := c.builtin, use
	if plugin, stage, third := strings.Cut(use, "/"); third {
		stages, name = c.describe(plugin, true).Stages, stage
	}
	for _, name := range []string{name, aliases[use]} {
		if i := slices.IndexFunc(stages, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == name }); i >= 0 {
			return stages[i], true
		}
	}
	return sdk.Stage{}, false
}

// Uses implements pipeline.Catalog. It starts nothing: it lists stages of a plugin under development only if the
// plugin has been asked before.
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

// names returns the names of all plugins, in the order in which they are found.
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

// Program implements pipeline.Programs: it returns the program of a third party's stage. It returns nil for a
// built-in stage, and if no program may be started.
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

// Validate implements pipeline.Validator. It starts a third party's program only if the stage declares more checks
// than those of its arguments.
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

// Describe describes one stage. If use is empty, it describes all stages of a kind; if kind is empty, too, all
// stages.
func (c *Catalog) Describe(kind sdk.Kind, use string) ([]StageInfo, error) {
	if use != "" {
		stage, ok := c.Stage(kind, use)
		if ok {
			return []StageInfo{Explain(pipeline.NameOf(use, stage), stage)}, nil
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

// Plugin describes a plugin without starting it.
type Plugin struct {
	Name    string
	Version string         // as locked or installed, or as a plugin under development reports it; empty: unknown
	Origin  program.Origin // empty: unknown
	Source  string         // as in the file; empty: not required, or without a source
	Signer  string         // as locked
	Path    string         // of the program; empty: there is none
	Hash    string         // actual or required hash of the program; empty: unknown
	Err     error          // why the plugin may not be started; else nil
}

// Plugins lists the plugins under development and those that the file requires. It starts nothing.
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

// Installed lists all installed plugins, whichever file requires them. It does not say whether a
// file locks them.
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

// resolved is the outcome of resolving a plugin's name.
type resolved struct {
	program program.Program
	hash    string     // of the program
	offered sdk.Plugin // for a locked plugin, its description
	err     error      // why there is no program to start
}

// resolve finds the program of a plugin, once for each file. A plugin under development takes precedence over a
// locked one. resolve checks a program that it returns without an error, also by its hash if that is known. It
// starts nothing.
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
	i := slices.IndexFunc(c.required, func(r require.Plugin) bool { return r.Name == name })
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

// unknown returns the error about an unknown plugin.
func (c *Catalog) unknown(name string) error {
	looked := ""
	if len(c.dirs) > 0 {
		looked = fmt.Sprintf(", and no folder of %s holds a program named %s%s", strings.Join(c.dirs, ", "), program.Prefix, name)
	}
	return fmt.Errorf("there is no plugin %q: the file does not require it%s. Write required_plugins { %s = { source = \"REGISTRY/REPOSITORY\", version = \"~> 1.0\" } } into the file and run racflow plugin init, or, while it is being developed, "+
		"name its folder with Options.Plugins or in %s, or install it with racflow plugin install FOLDER --dev", name, looked, name, pluginsVariable)
}

// fromLock sets r to the locked program for a requirement.
func (c *Catalog) fromLock(required require.Plugin, r *resolved) error {
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
	if !c.store.Vouched(*locked, p.Hash) {
		return fmt.Errorf("the plugin %q is locked as signed by %s, and this machine has not checked that: if somebody has changed its entry in %s, restore it; if not, %s", name, cmp.Or(locked.Signer, "nobody"), plugin.LockName, again)
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

// describe returns what a plugin offers; nothing if unknown. It starts only a plugin under development, once until
// its program changes, and only with start.
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
	bare := r.program // without the access that the file allows: it is not granted yet
	bare.Allow = program.Allow{}
	p, err := c.host.Describe(c.ctx, bare)
	if err != nil {
		c.shared.mu.Lock()
		c.failed[r.key()] = err
		c.shared.mu.Unlock()
	}
	return p
}

// key identifies a program's content: a changed program may be asked again.
func (r *resolved) key() string { return r.program.Path + " " + r.hash }

// failure returns why a program failed to describe itself; nil: it did not fail, or was not asked.
func (c *Catalog) failure(r *resolved) error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	return c.failed[r.key()]
}
