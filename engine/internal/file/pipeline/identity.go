package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// This file knows what a result depends on, in one place: Parts for the
// answers of a run, Block and Output for the entries of a knowledge, Stage for what one
// stage learns or is owed.
//
// Nothing is listed here. Every field of the structs of package pipeline carries a
// tag that says what changes with it:
//
//	`identity:"run"`            the answers of a run
//	`identity:"knowledge"`      the entries of a knowledge
//	`identity:"run,knowledge"`  both
//	`identity:"run,whole"`      the same, with all exported fields of a struct that has no such tags
//	`identity:"-,REASON"`       nothing
//
// and the tags of a stage's config say which of its arguments do not change results or are secret;
// the rest is Config.Identity. A test walks the structs and fails for a field
// that nobody decided on.
//
// In is what changes an answer or an entry: the stages that are on and their order,
// what they use and its arguments, samples and resamples, searches, the store's own
// arguments, rules with the values of the variables that they read, fallbacks,
// on_error, and the columns of the source and of the input. The values of variables
// that arguments read are in those arguments.
//
// Out is what changes how fast, how often or at what price something is asked, and
// where the file says it: batches, workers, retries, timeouts, limits, budgets, prices
// and positions. Out is, too, what is only known when the run begins, such as the
// limits that a service reports. Secrets are out, so that a new key resumes a run.
//
// A zero value counts as absent, so that a new field leaves the digests of files alone
// that do not use it. What a stage depends on beyond its arguments (a model, a
// template, the revision of its code) it says by its fingerprint: see Output. The
// content of files is compared by who reads them: packages journal and knowledge.

// PartDigests returns a digest of each part of a pipeline that its answers depend on, by
// a name that a person finds in the file.
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

// KnowledgeDigest is a digest of what a knowledge block says of its entries. Beside it they
// depend on the source's content and on the Output of the block's stages.
func KnowledgeDigest(k *Knowledge) string {
	read := newReader("knowledge").fields(reflect.ValueOf(k).Elem(), false)
	if all, ok := read["Sources"].([]any); ok { // one alone is digested as ever
		read["Source"] = all[0]
		if delete(read, "Sources"); len(all) > 1 {
			read["Sources"] = all[1:]
		}
	}
	return digest(read)
}

// RunningStage is a stage that runs.
type RunningStage interface{ Fingerprint() string }

// ForeignStage is what the stage of a third party's plugin has beside its own methods. The
// name is empty where the stage is a built-in one.
type ForeignStage interface {
	Plugin() (name, version, hash string)
}

// OutputDigest is what the output of a stage depends on beyond its arguments. A third
// party's stage that does not say so itself may give another output with each
// program; of the built-in ones, a new version of racflow alone changes nothing.
func OutputDigest(stage RunningStage) string {
	print := stage.Fingerprint()
	if f, ok := stage.(ForeignStage); ok && print == "" {
		if name, version, hash := f.Plugin(); name != "" {
			return fmt.Sprintf("plugin %s %s %s", name, version, hash)
		}
	}
	return print
}

// StageDigest is a digest of what a running stage makes of a row: what it uses with which
// arguments, how many samples it gives, and its Output.
func StageDigest(s *Stage, process RunningStage) string {
	return digest([]any{s.Kind, s.Use, s.Config.Identity, s.N, OutputDigest(process)})
}

// WorkDigest is a digest of what a stage is asked to do: Stage without the Output, which only a
// running stage tells.
func WorkDigest(s *Stage) string {
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

// tag is what the identity tag of a field says.
type tag struct {
	scopes []string
	whole  bool   // its type has no tags, and all of it counts
	reason string // why it is out; empty: it is in
}

// tagOf reads a field's tag; ok: there is one, and it means something.
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

// reader makes of values what of them counts in a scope, as JSON can hold it.
type reader struct {
	scope     string
	variables map[string]cty.Value // that the rules it came by read
	searched  map[*Knowledge]bool  // that retrieve blocks name
}

func newReader(scope string) *reader {
	return &reader{scope, map[string]cty.Value{}, map[*Knowledge]bool{}}
}

// value reads a pointer to a struct with tags, or nil.
func (r *reader) value(pointer any) any {
	v := reflect.ValueOf(pointer)
	if v.IsNil() {
		return nil
	}
	return r.fields(v.Elem(), false)
}

// fields reads a struct: an object of the fields that count and are not zero.
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
			continue // only what is out is set
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
	case v.Type() == knowledgeType: // it has parts of its own
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
