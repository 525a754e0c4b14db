package manifest

import (
	"fmt"
	"slices"
)

// Differences names what differs between a run and another that is to go on
// with it.
func (m Manifest) Differences(other Manifest) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if m.Version != other.Version {
		add("racflow is version %s, it was %s", other.Version, m.Version)
	}
	for _, part := range differing(m.Parts, other.Parts) {
		add("%s of the file", part)
	}
	if !m.Input.Same(other.Input) {
		add("the input %s", other.Input.Path)
	}
	if m.Limit != other.Limit {
		add("Options.Limit, which was %d", m.Limit)
	}
	before := map[string]Knowledge{}
	for _, k := range m.Knowledge {
		before[k.Name] = k
	}
	for _, k := range other.Knowledge {
		b, ok := before[k.Name]
		if ok && (b.Embedder == "" || k.Embedder == "") {
			b.Embedder = k.Embedder
		}
		if ok && b != k {
			add("knowledge %q", k.Name)
		}
	}
	stages := map[string]Stage{}
	for _, s := range m.Stages {
		stages[s.Stage] = s
	}
	for _, s := range other.Stages {
		b, ok := stages[s.Stage]
		if !ok || b.Use != s.Use {
			continue // then the part of the file differs
		}
		switch {
		case s.Program != nil && b.Program != nil && s.Program.Hash != b.Program.Hash:
			add("the plugin %s of %s, now version %s", s.Plugin, s.Stage, s.Version)
		case b.Fingerprint != s.Fingerprint:
			add("what %s works with, such as its model or template", s.Stage)
		case b.Learnt != s.Learnt:
			add("what %s has learnt", s.Stage)
		}
	}
	return all
}

// differing returns the keys whose values differ, sorted.
func differing(a, b map[string]string) []string {
	var keys []string
	for k, v := range a {
		if b[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
