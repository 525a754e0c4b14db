package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/racflow/racflow/engine/pipeline"
)

// Parts returns a digest of each part of a pipeline that its answers depend on, by
// a name that a person finds in the file.
func Parts(p *pipeline.Pipeline) map[string]string {
	r := newReader("run")
	parts := map[string]string{}
	var order []string
	for _, s := range p.Stages {
		if s.Enabled {
			name := s.Block + "." + s.Name
			parts[name] = digest(r.value(s))
			order = append(order, name)
		}
	}
	parts["the order of the stages"] = digest(order)
	if p.Input != nil {
		parts["the columns of the input"] = digest(r.value(p.Input))
	}
	for k := range r.searched {
		parts["the store of knowledge."+k.Name] = digest(r.value(k.Store))
	}
	for name, v := range r.variables {
		parts["var."+name] = digest(plain(v))
	}
	return parts
}

// Block is a digest of what a knowledge block says of its entries. Beside it they
// depend on the source's content and on the Output of the block's stages.
func Block(k *pipeline.Knowledge) string {
	read := newReader("knowledge").fields(reflect.ValueOf(k).Elem(), false)
	if all, ok := read["Sources"].([]any); ok { // one alone is digested as ever
		read["Source"] = all[0]
		if delete(read, "Sources"); len(all) > 1 {
			read["Sources"] = all[1:]
		}
	}
	return digest(read)
}

// Process is a stage that runs.
type Process interface{ Fingerprint() string }

// Foreign is what the stage of a third party's plugin has beside its own methods. The
// name is empty where the stage is a built-in one.
type Foreign interface {
	Plugin() (name, version, hash string)
}

// Output is what the output of a stage depends on beyond its arguments. A third
// party's stage that does not say so itself may give another output with each
// program; of the built-in ones, a new version of racflow alone changes nothing.
func Output(stage Process) string {
	print := stage.Fingerprint()
	if f, ok := stage.(Foreign); ok && print == "" {
		if name, version, hash := f.Plugin(); name != "" {
			return fmt.Sprintf("plugin %s %s %s", name, version, hash)
		}
	}
	return print
}

// Stage is a digest of what a running stage makes of a row: what it uses with which
// arguments, how many samples it gives, and its Output.
func Stage(s *pipeline.Stage, process Process) string {
	return digest([]any{s.Kind, s.Use, s.Config.Identity, s.N, Output(process)})
}

// Work is a digest of what a stage is asked to do: Stage without the Output, which only a
// running stage tells.
func Work(s *pipeline.Stage) string {
	return digest([]any{s.Kind, s.Use, s.Config.Identity, s.N})
}

// plain is a variable's value as JSON can hold it.
func plain(v cty.Value) json.RawMessage {
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		panic(err) // a rule has made it part of itself: it is known, and no secret
	}
	return text
}

// digest is the hash of a value's JSON. Few are compared with each other, so half of
// it tells them apart.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and checked JSON always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
