package modelserver

import (
	"fmt"
	"slices"
	"strings"
)

// Behaviour is something that a service of language models does, by name.
type Behaviour struct {
	Name   string
	Server string // what it does, in a sentence
	set    func(*Options)
}

// Behaviours returns all behaviours, as the documents list them.
func Behaviours() []Behaviour {
	return slices.Concat(asking, answering, embedding, failing, refusing)
}

// Find returns the behaviour of a name.
func Find(name string) (Behaviour, error) {
	all := Behaviours()
	if i := slices.IndexFunc(all, func(b Behaviour) bool { return b.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return Behaviour{}, fmt.Errorf("there is no behaviour %q; there are %s", name, strings.Join(names, ", "))
}

// Named are Options with the behaviours of these names.
func Named(names ...string) Options { return Options{}.With(names...) }

// With adds the behaviours of these names; where two of them set the same, the later one
// has its way. It panics at a name that Find does not know.
func (o Options) With(names ...string) Options {
	o.Unsupported, o.Forms, o.Faults = slices.Clone(o.Unsupported), slices.Clone(o.Forms), slices.Clone(o.Faults)
	for _, name := range names {
		b, err := Find(name)
		if err != nil {
			panic(err)
		}
		b.set(&o)
	}
	return o
}

// unsupported is a behaviour that refuses a field.
func unsupported(name, field, server string) Behaviour {
	return Behaviour{Name: name, Server: server, set: func(o *Options) { o.Unsupported = append(o.Unsupported, field) }}
}

// written is a behaviour that writes answers in a form of its own.
func written(name, server string, form Form) Behaviour {
	return Behaviour{Name: name, Server: server, set: func(o *Options) { o.Forms = append(o.Forms, form) }}
}

// faulty is a behaviour that is a fault.
func faulty(name, server string, f Fault) Behaviour {
	return Behaviour{Name: name, Server: server, set: func(o *Options) { o.Faults = append(o.Faults, f) }}
}
