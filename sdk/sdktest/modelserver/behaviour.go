package modelserver

import (
	"fmt"
	"slices"
	"strings"
)

// Behaviour is something that a service of language models does, by name.
type Behaviour struct {
	Name    string
	Server  string // what it does
	Racflow string // what racflow does about that
	Exit    int    // exit code of `racflow run`, where another voter answers, too
	Says    string // what the user sees of it, literally, in the report or in the results; empty: nothing but the answers
	Lost    bool   // answers of the model do not count
	Try     Try    // what a pipeline has to ask for
	set     func(*Options)
}

// Try is what a pipeline asks for, for a behaviour to show.
type Try uint8

// What it asks for.
const (
	AsLabel     Try = iota // a label as plain text
	AsObject               // a JSON object with a label
	AsEmbedding            // embeddings
	AsMessages             // a label, with api = "anthropic"
	AsBatch                // a label, with batch = true
)

// Behaviours returns all behaviours, as the documents list them.
func Behaviours() []Behaviour {
	return slices.Concat(asking, answering, speaking, embedding, failing, refusing)
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

// field refuses fields of requests.
func field(names ...string) func(*Options) {
	return func(o *Options) { o.Unsupported = append(o.Unsupported, names...) }
}

// form writes answers in a form of its own.
func form(f Form) func(*Options) {
	return func(o *Options) { o.Forms = append(o.Forms, f) }
}

// plain does that with answers that are no JSON objects.
func plain(f func(string) string) func(*Options) {
	return form(func(answer string, object bool) string {
		if object {
			return answer
		}
		return f(answer)
	})
}

func fault(f Fault) func(*Options) {
	return func(o *Options) { o.Faults = append(o.Faults, f) }
}
