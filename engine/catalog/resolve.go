package catalog

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/plugin"
	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/plugin/store"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

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
		return fmt.Errorf("the plugin %q is not locked: %s, which chooses a version, installs it and notes it in %s", name, again, lock.FileName)
	case locked.Source != required.Source:
		return fmt.Errorf("the plugin %q is locked from %s, and the file now has the source %s: %s", name, locked.Source, required.Source, again)
	case locked.Constraint != required.Version:
		return fmt.Errorf("the plugin %q is locked at version %s, which was chosen by %q, and the file now has %q: %s", name, locked.Version, locked.Constraint, required.Version, again)
	case locked.Protocol != wire.ProtocolVersion:
		return another(locked.Protocol)
	case locked.Program() == "":
		return fmt.Errorf("the plugin %q, version %s, has no program for %s/%s: take another version, or ask its author for one", name, locked.Version, runtime.GOOS, runtime.GOARCH)
	case c.store == nil:
		return fmt.Errorf("the plugin %q is not installed, since there is no folder for that: name one in %s, and %s", name, store.Variable, again)
	}
	p, err := c.store.Program(name, locked.Program())
	if errors.Is(err, store.ErrMissing) {
		return fmt.Errorf("the plugin %q, version %s, is not installed on this machine: %s", name, locked.Version, again)
	}
	if err != nil {
		return err
	}
	offered, protocol, err := c.store.Description(p.Hash)
	switch {
	case errors.Is(err, store.ErrMissing):
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
