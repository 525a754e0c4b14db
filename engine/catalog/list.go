package catalog

import (
	"cmp"

	"github.com/racflow/racflow/engine/program"
)

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
