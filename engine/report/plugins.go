package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/host/memory"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/engine/terminal"
)

// pluginJSON is the JSON form of what a third party's plugin may touch.
type pluginJSON struct {
	Name        string           `json:"name"`
	Version     string           `json:"version,omitempty"`
	Origin      program.Origin   `json:"origin"`
	Program     string           `json:"program"`
	Hash        string           `json:"hash"`
	Stages      []string         `json:"stages"`
	Confined    bool             `json:"confined"`
	Read        []string         `json:"read,omitempty"`    // beside its own folders and the system's
	Write       []string         `json:"write,omitempty"`   // beside its own folders
	Network     []string         `json:"network,omitempty"` // hosts with ports
	Memory      map[string]int64 `json:"memory,omitempty"`  // bytes, by stage
	NotEnforced []string         `json:"not_enforced,omitempty"`
}

func pluginOf(p plan.Plugin) pluginJSON {
	return pluginJSON{
		Name: p.Name, Version: p.Version, Origin: p.Origin, Program: p.Path, Hash: p.Hash, Stages: p.Stages, Confined: !p.Allow.Unconfined,
		Read: p.Allow.Read, Write: p.Allow.Write, Network: p.Allow.Hosts, Memory: p.Memory, NotEnforced: p.Gaps,
	}
}

// writePlugins says of each third party's plugin what it may touch.
func (p planned) writePlugins(w io.Writer) error {
	for _, one := range p.Plugins {
		table := terminal.NewTable(w)
		line := func(what, text string) { fmt.Fprintf(table, "  %s\t%s\n", what, terminal.Sanitize(text)) }
		fmt.Fprintf(table, "\nPLUGIN %s\t%s\n", one.Name, strings.Join(one.Stages, ", "))
		line("program", one.Path)
		origin := map[program.Origin]string{
			program.Locked: "locked with the file", program.Linked: "in development, linked from " + one.Project, program.Given: "in development, given by a folder",
		}[one.Origin]
		line("origin", strings.TrimPrefix(one.Version+", "+origin, ", "))
		line("hash", one.Hash)
		if one.Allow.Unconfined {
			line("not confined", "it reads, changes and reaches whatever you can")
		} else {
			line("reads", strings.Join(append([]string{"the system's programs and libraries", "its own folders"}, one.Allow.Read...), ", "))
			line("writes", strings.Join(append([]string{"its own folders"}, one.Allow.Write...), ", "))
			line("network", cmp.Or(strings.Join(one.Allow.Hosts, ", "), "none"))
		}
		var bounds []string
		for _, stage := range one.Stages {
			if most := one.Memory[stage]; most > 0 {
				bounds = append(bounds, memory.Size(most)+" of "+stage)
			}
		}
		line("memory", cmp.Or(strings.Join(bounds, ", "), "any"))
		for _, gap := range one.Gaps {
			line("not enforced", gap+": this system cannot keep it from that")
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if most := p.Pipeline.Memory; most > 0 {
		if _, err := fmt.Fprintf(w, "\nAll processes together may hold %s.\n", memory.Size(most)); err != nil {
			return err
		}
	}
	return nil
}
