package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

func encodeArguments(all []sdk.Argument) []*stagepb.Argument {
	out := make([]*stagepb.Argument, len(all))
	for i, a := range all {
		out[i] = &stagepb.Argument{
			Name: Valid(a.Name), Type: argumentTypes[a.Type], Doc: Valid(a.Doc), Required: a.Required,
			DefaultJson: Valid(string(a.Default)), Secret: a.Secret, OutputUnaffected: a.OutputUnaffected, OneOf: ValidAll(a.OneOf),
			Min: a.Range.Min, Max: a.Range.Max, MinExcluded: a.Range.MinExcluded, MaxExcluded: a.Range.MaxExcluded,
			MinLength: uint32(a.Length.Min), MaxLength: uint32(a.Length.Max), Pattern: Valid(a.Pattern), Example: Valid(a.Example),
			Conflicts: ValidAll(a.Conflicts), Requires: ValidAll(a.Requires), Since: Valid(a.Since), Fields: encodeArguments(a.Fields),
		}
	}
	return out
}

func decodeArguments(all []*stagepb.Argument) ([]sdk.Argument, error) {
	var out []sdk.Argument
	for _, in := range all {
		a, err := decodeArgument(in)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", in.GetName(), err)
		}
		out = append(out, a)
	}
	for _, a := range out {
		for _, other := range slices.Concat(a.Conflicts, a.Requires) {
			if !slices.ContainsFunc(out, func(a sdk.Argument) bool { return a.Name == other }) {
				return nil, fmt.Errorf("argument %q names %q, which is no argument", a.Name, other)
			}
		}
	}
	return out, nil
}

func decodeArgument(in *stagepb.Argument) (sdk.Argument, error) {
	typ, ok := key(argumentTypes, in.GetType())
	if !ok {
		return sdk.Argument{}, fmt.Errorf("type %v is unknown; a newer racflow may know it", in.GetType())
	}
	if !identifier.MatchString(in.GetName()) {
		return sdk.Argument{}, fmt.Errorf("a name has letters, digits, - and _")
	}
	a := sdk.Argument{
		Name: in.GetName(), Type: typ, Doc: in.GetDoc(), Required: in.GetRequired(),
		Secret: in.GetSecret(), OutputUnaffected: in.GetOutputUnaffected(), OneOf: in.GetOneOf(),
		Range:  sdk.Range{Min: in.Min, Max: in.Max, MinExcluded: in.GetMinExcluded(), MaxExcluded: in.GetMaxExcluded()},
		Length: sdk.Length{Min: int(in.GetMinLength()), Max: int(in.GetMaxLength())}, Pattern: in.GetPattern(), Example: in.GetExample(),
		Conflicts: in.GetConflicts(), Requires: in.GetRequires(), Since: in.GetSince(),
	}
	var err error
	if a.Fields, err = decodeArguments(in.GetFields()); err != nil {
		return a, err
	}
	if err := a.Valid(); err != nil {
		return a, err
	}
	if in.GetDefaultJson() != "" {
		a.Default = json.RawMessage(in.GetDefaultJson())
		if err := a.Check(a.Default); err != nil {
			return a, fmt.Errorf("default: %w", err)
		}
	}
	return a, nil
}
