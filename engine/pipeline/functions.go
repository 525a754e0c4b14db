package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/redact"
)

// maxFile is the size of the largest file that file() reads.
const maxFile = 1 << 20

// Functions lists the functions that expressions in a file can call.
func Functions() []string { return keys((&loader{}).functions()) }

// functions are what expressions in a file can call: what touches the world
// here, what computes from go-cty.
func (l *loader) functions() map[string]function.Function {
	return map[string]function.Function{
		"env":    l.environment("variable", func(v cty.Value) cty.Value { return v }),
		"secret": l.environment("secret", l.markSecret),
		"file": onPath(func(path string) (string, error) {
			at := absolute(path, l.dir)
			if l.file != nil && !slices.Contains(l.file.Reads, at) {
				l.file.Reads = append(l.file.Reads, at)
			}
			return readText(l.at(at))
		}),
		"path": onPath(func(path string) (string, error) {
			return absolute(path, l.dir), nil
		}),

		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc, "coalesce": stdlib.CoalesceFunc,
		"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc,
		"floor": stdlib.FloorFunc, "format": stdlib.FormatFunc, "indent": stdlib.IndentFunc, "join": stdlib.JoinFunc,
		"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "keys": stdlib.KeysFunc,
		"length": stdlib.LengthFunc, "lookup": stdlib.LookupFunc, "lower": stdlib.LowerFunc, "max": stdlib.MaxFunc,
		"merge": stdlib.MergeFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "regex": stdlib.RegexFunc,
		"replace": stdlib.ReplaceFunc, "reverse": stdlib.ReverseListFunc, "slice": stdlib.SliceFunc,
		"sort": stdlib.SortFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc, "substr": stdlib.SubstrFunc,
		"title": stdlib.TitleFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc,
		"trimspace": stdlib.TrimSpaceFunc, "trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,
		"values": stdlib.ValuesFunc,
	}
}

// environment makes env and secret: name, and a default for where it is not
// set. A stage that is off may miss it: its value is unknown then.
func (l *loader) environment(what string, finish func(cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			value, ok := l.Getenv(name)
			read := Environment{Name: name, Secret: what == "secret", Set: ok, Off: l.off}
			if !ok && len(args) == 2 {
				read.Default = args[1].AsString()
			}
			if l.note(read) && read.Secret && value != "" && len(value) < redact.Shortest {
				l.short = append(l.short, name)
			}
			switch {
			case len(args) > 2:
				return cty.NilVal, errors.New("it takes a name and at most one default")
			case ok:
				return finish(cty.StringVal(value)), nil
			case len(args) == 2:
				return finish(args[1]), nil
			case l.off:
				return finish(cty.UnknownVal(cty.String)), nil
			}
			return cty.NilVal, function.NewArgErrorf(0,
				"the environment has no %s %s; set it, or give a default as the second argument", what, name)
		},
	})
}

// note remembers what of the environment was read, and reports whether that is new.
func (l *loader) note(e Environment) bool {
	if l.file == nil || slices.Contains(l.file.Environment, e) {
		return false
	}
	l.file.Environment = append(l.file.Environment, e)
	return true
}

func (l *loader) markSecret(v cty.Value) cty.Value {
	if !v.IsKnown() || v.AsString() == "" {
		return v.Mark(secret{})
	}
	l.Secrets.Add(v.AsString())
	return v.Mark(secret{v.AsString()})
}

func onPath(f func(path string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func readText(path string) (string, error) {
	b, err := bounded.ReadRegular(path, maxFile)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; a path is relative to this file", err)
	case len(b) > maxFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxFile)
	case !utf8.Valid(b):
		return "", fmt.Errorf("%s is not UTF-8 text", path)
	}
	return string(b), nil
}
