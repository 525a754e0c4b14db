package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// This file decides in one place what a result depends on. PartDigests covers the answers of a run.
// KnowledgeDigest and OutputDigest cover the entries of a knowledge. StageDigest and WorkDigest
// cover what one stage learns or waits for.
//
// This file contains no list of fields. Every field of the structs of package pipeline has a tag
// that says which results change with the field:
//
//	`identity:"run"`            the answers of a run
//	`identity:"knowledge"`      the entries of a knowledge
//	`identity:"run,knowledge"`  both
//	`identity:"run,whole"`      the answers; of a struct without such tags, all exported fields count
//	`identity:"-,REASON"`       nothing
//
// The tags of a stage's config say which of its arguments are secret or do not change results. The
// other arguments form Config.Identity. A test walks the structs and fails for a field without a
// tag.
//
// A digest includes everything that changes an answer or an entry: the enabled stages and their
// order, their plugin stages and arguments, samples and resamples, searches, the store's own
// arguments, rules with the values of the variables that they read, fallbacks, on_error, and the
// columns of the source and of the input. Arguments contain the values of the variables that they
// read.
//
// A digest omits what only affects the speed, number or price of calls: batches, workers, retries,
// timeouts, limits, budgets and prices. It omits positions in the file. It also omits what is known
// only when the run begins, such as the limits that a service reports. It omits secrets, so that a
// run can be resumed with a new key.
//
// A zero value counts as absent, so that a new field does not change the digests of files that do
// not use it. A stage's fingerprint says what the stage depends on beyond its arguments (a model, a
// template, the revision of its code): see OutputDigest. Packages journal and knowledge read files
// and compare their content.

// PartDigests returns a digest of each part of a pipeline that affects its answers. Each key is a
// name that people find in the file.
func PartDigests(p *Pipeline) map[string]string {
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

// KnowledgeDigest returns a digest of everything in a knowledge block that changes its entries. The
// entries also depend on the source's content and on the OutputDigest of the block's stages.
func KnowledgeDigest(k *Knowledge) string {
	near := *k
	near.Sources = slices.Clone(k.Sources)
	for i := range near.Sources {
		s := &near.Sources[i]
		if s.Path = k.near(s.Path); s.Documents != nil {
			documents := *s.Documents
			documents.Path, s.Documents = k.near(documents.Path), &documents
		}
	}
	read := newReader("knowledge").fields(reflect.ValueOf(&near).Elem(), false)
	if all, ok := read["Sources"].([]any); ok { // a single source is digested as before
		read["Source"] = all[0]
		if delete(read, "Sources"); len(all) > 1 {
			read["Sources"] = all[1:]
		}
	}
	return digest(read)
}

// near returns a path as digests contain it: relative to Home if it is below Home.
func (k *Knowledge) near(path string) string {
	if k.Home != "" && filepath.IsAbs(path) {
		if rel, err := filepath.Rel(k.Home, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// RunningStage is a running stage as OutputDigest sees it.
type RunningStage interface{ Fingerprint() string }

// ForeignStage adds the methods of a third party's plugin stage. The name is empty for a built-in
// stage.
type ForeignStage interface {
	Plugin() (name, version, hash string)
}

// OutputDigest describes what a stage's output depends on beyond its arguments. A third party's
// stage without a fingerprint may have another output with each program. The output of a built-in
// stage does not change with a new version of racflow alone.
func OutputDigest(stage RunningStage) string {
	print := stage.Fingerprint()
	if f, ok := stage.(ForeignStage); ok && print == "" {
		if name, version, hash := f.Plugin(); name != "" {
			return fmt.Sprintf("plugin %s %s %s", name, version, hash)
		}
	}
	return print
}

// StageDigest returns a digest of what affects a running stage's results: its plugin stage and
// arguments, its number of samples, and its OutputDigest.
func StageDigest(s *Stage, process RunningStage) string {
	return digest([]any{s.Kind, s.Use, s.Config.Identity, s.N, OutputDigest(process)})
}

// WorkDigest returns a digest of a stage's task: StageDigest without OutputDigest, which needs a
// running stage.
func WorkDigest(s *Stage) string {
	return digest([]any{s.Kind, s.Use, s.Config.Identity, s.N})
}

// plain encodes a variable's value as JSON.
func plain(v cty.Value) json.RawMessage {
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		panic(err) // a compiled rule contains it, so it is known and not secret
	}
	return text
}

// digest hashes a value's JSON. Few digests are compared with each other, so half a hash
// distinguishes them.
func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and checked JSON always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// expression is a rule or a filter.
type expression interface {
	Text() string
	Variables() map[string]cty.Value
}

var (
	expressionType = reflect.TypeFor[expression]()
	rawType        = reflect.TypeFor[json.RawMessage]()
	stageType      = reflect.TypeFor[*Stage]()
	knowledgeType  = reflect.TypeFor[*Knowledge]()
)

// tag is the parsed identity tag of a field.
type tag struct {
	scopes []string
	whole  bool   // the field's type has no tags, and all of it counts
	reason string // why the field does not count; empty: the field counts
}

// tagOf parses a field's tag. ok reports whether the tag exists and is valid.
func tagOf(f reflect.StructField) (t tag, ok bool) {
	text, ok := f.Tag.Lookup("identity")
	if !ok {
		return t, false
	}
	if reason, out := strings.CutPrefix(text, "-,"); out {
		t.reason = strings.TrimSpace(reason)
		return t, t.reason != ""
	}
	for option := range strings.SplitSeq(text, ",") {
		switch option {
		case "run", "knowledge":
			t.scopes = append(t.scopes, option)
		case "whole":
			t.whole = true
		default:
			return t, false
		}
	}
	return t, len(t.scopes) > 0
}

// reader extracts the parts of values that count in a scope, in a form that JSON can hold.
type reader struct {
	scope     string
	variables map[string]cty.Value // variables of the rules read so far
	searched  map[*Knowledge]bool  // knowledge that retrieve blocks name
}

func newReader(scope string) *reader {
	return &reader{scope, map[string]cty.Value{}, map[*Knowledge]bool{}}
}

// value reads a pointer to a struct with tags; nil stays nil.
func (r *reader) value(pointer any) any {
	v := reflect.ValueOf(pointer)
	if v.IsNil() {
		return nil
	}
	return r.fields(v.Elem(), false)
}

// fields reads a struct into an object of the fields that count and are not zero.
func (r *reader) fields(v reflect.Value, whole bool) map[string]any {
	object := map[string]any{}
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		t, ok := tagOf(f)
		switch {
		case whole && f.IsExported():
			t.whole = true
		case !ok:
			panic(fmt.Sprintf("identity: %s.%s has no tag that says whether results depend on it", v.Type(), f.Name))
		case !slices.Contains(t.scopes, r.scope):
			continue
		}
		if value.IsZero() {
			continue
		}
		read := r.read(value, t.whole)
		if inside, ok := read.(map[string]any); ok && value.Kind() == reflect.Struct && len(inside) == 0 {
			continue // only fields that do not count are set
		}
		object[f.Name] = read
	}
	return object
}

func (r *reader) read(v reflect.Value, whole bool) any {
	switch {
	case v.Type().Implements(expressionType):
		e := v.Interface().(expression)
		for name, value := range e.Variables() {
			r.variables[name] = value
		}
		return e.Text()
	case v.Type() == rawType:
		return v.Interface()
	case v.Type() == knowledgeType: // PartDigests digests its store separately
		k := v.Interface().(*Knowledge)
		r.searched[k] = true
		return k.Name
	}
	switch v.Kind() {
	case reflect.Pointer:
		return r.read(v.Elem(), whole)
	case reflect.Struct:
		return r.fields(v, whole)
	case reflect.Slice, reflect.Array:
		list := []any{}
		for i := range v.Len() {
			if v.Type().Elem() == stageType && !v.Index(i).Interface().(*Stage).Enabled {
				continue
			}
			list = append(list, r.read(v.Index(i), whole))
		}
		return list
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return v.Interface()
	}
	panic(fmt.Sprintf("identity: results cannot depend on a %s: it has no digest", v.Type()))
}
