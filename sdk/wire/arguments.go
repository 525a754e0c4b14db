package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

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

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// EncodePlugin describes a plugin.
func EncodePlugin(p sdk.Plugin) *stagepb.DescribeReply {
	reply := &stagepb.DescribeReply{Name: Valid(p.Name), Version: Valid(p.Version), Minor: Minor, LeastMinor: LeastMinor}
	for _, s := range p.Stages {
		info := &stagepb.StageInfo{
			Kind: EncodeKind(s.Kind), Name: Valid(s.Name), Doc: Valid(s.Doc),
			Network: s.Network, PreferredBatch: uint32(max(s.Batch, 0)), Filters: s.Filters, Validates: s.Validates, Example: Valid(s.Example),
			Reads: encodeColumns(s.Reads), Fits: s.Fits, FitReads: encodeColumns(s.FitReads), Pends: s.Pends, PendsIf: Valid(s.PendsIf),
			Attaches: Valid(s.Attaches), Arguments: encodeArguments(s.Arguments),
		}
		reply.Stages = append(reply.Stages, info)
	}
	return reply
}

func encodeColumns(set sdk.Columns) (all []stagepb.Column) {
	for c := sdk.ColumnText; c <= sdk.ColumnSamples; c++ {
		if set.Has(c) {
			all = append(all, stagepb.Column(c))
		}
	}
	return all
}

func decodeColumns(all []stagepb.Column) (set sdk.Columns, err error) {
	for _, c := range all {
		column := sdk.Column(c)
		if column < sdk.ColumnText || column > sdk.ColumnSamples || stagepb.Column(column) != c {
			return 0, fmt.Errorf("it reads column %v, which is unknown; a newer racflow may know it", c)
		}
		set |= sdk.Of(column)
	}
	return set, nil
}

// DecodePlugin returns the plugin that a reply describes. Its stages cannot be opened: they run only
// in the plugin's process.
func DecodePlugin(reply *stagepb.DescribeReply) (sdk.Plugin, error) {
	p := sdk.Plugin{Name: reply.GetName(), Version: reply.GetVersion()}
	if !identifier.MatchString(p.Name) {
		return p, fmt.Errorf("the plugin's name is %q; a name has letters, digits, - and _", p.Name)
	}
	if least := reply.GetLeastMinor(); least > Minor {
		return p, fmt.Errorf("plugin %s %s needs version %d.%d of the protocol, and this racflow speaks %d.%d: update racflow, or take an older release of the plugin",
			p.Name, p.Version, ProtocolVersion, least, ProtocolVersion, Minor)
	}
	for _, info := range reply.GetStages() {
		s, err := decodeStage(info)
		if err != nil {
			return p, fmt.Errorf("stage %q: %w", info.GetName(), err)
		}
		p.Stages = append(p.Stages, s)
	}
	return p, nil
}

func decodeStage(info *stagepb.StageInfo) (sdk.Stage, error) {
	kind, ok := DecodeKind(info.GetKind())
	if !ok {
		return sdk.Stage{}, fmt.Errorf("kind %v is unknown; a newer racflow may know it", info.GetKind())
	}
	if !identifier.MatchString(info.GetName()) {
		return sdk.Stage{}, fmt.Errorf("a name has letters, digits, - and _")
	}
	s := sdk.Stage{
		Kind: kind, Name: info.GetName(), Doc: info.GetDoc(), Network: info.GetNetwork(), Batch: int(info.GetPreferredBatch()),
		Filters: info.GetFilters(), Validates: info.GetValidates(), Example: info.GetExample(), Fits: info.GetFits(),
		Pends: info.GetPends(), PendsIf: info.GetPendsIf(), Attaches: info.GetAttaches(),
	}
	var err error
	if s.Reads, err = decodeColumns(info.GetReads()); err != nil {
		return sdk.Stage{}, err
	}
	if s.FitReads, err = decodeColumns(info.GetFitReads()); err != nil {
		return sdk.Stage{}, err
	}
	s.Arguments, err = decodeArguments(info.GetArguments())
	return s, err
}

// The names of the SDK and their numbers on the wire.
var (
	argumentTypes = map[sdk.ArgumentType]stagepb.ArgumentType{
		sdk.TypeString:     stagepb.ArgumentType_ARGUMENT_TYPE_STRING,
		sdk.TypeInt:        stagepb.ArgumentType_ARGUMENT_TYPE_INT,
		sdk.TypeFloat:      stagepb.ArgumentType_ARGUMENT_TYPE_FLOAT,
		sdk.TypeBool:       stagepb.ArgumentType_ARGUMENT_TYPE_BOOL,
		sdk.TypeDuration:   stagepb.ArgumentType_ARGUMENT_TYPE_DURATION,
		sdk.TypePath:       stagepb.ArgumentType_ARGUMENT_TYPE_PATH,
		sdk.TypeStringList: stagepb.ArgumentType_ARGUMENT_TYPE_STRING_LIST,
		sdk.TypeStringMap:  stagepb.ArgumentType_ARGUMENT_TYPE_STRING_MAP,
		sdk.TypeNumberList: stagepb.ArgumentType_ARGUMENT_TYPE_NUMBER_LIST,
		sdk.TypeNumberMap:  stagepb.ArgumentType_ARGUMENT_TYPE_NUMBER_MAP,
		sdk.TypeListMap:    stagepb.ArgumentType_ARGUMENT_TYPE_LIST_MAP,
		sdk.TypeBlock:      stagepb.ArgumentType_ARGUMENT_TYPE_BLOCK,
	}
	errorCodes = map[sdk.Code]stagepb.Code{
		sdk.CodeInternal:  stagepb.Code_CODE_INTERNAL,
		sdk.CodeInvalid:   stagepb.Code_CODE_INVALID,
		sdk.CodeTransient: stagepb.Code_CODE_TRANSIENT,
		sdk.CodeCancelled: stagepb.Code_CODE_CANCELLED,
		sdk.CodeDeadline:  stagepb.Code_CODE_DEADLINE,

		sdk.CodeUnavailable: stagepb.Code_CODE_UNAVAILABLE,
		sdk.CodeStopped:     stagepb.Code_CODE_STOPPED,
		sdk.CodeRefused:     stagepb.Code_CODE_REFUSED,
	}
)

// key finds the name of a number; an unspecified number has none.
func key[K, V comparable](names map[K]V, number V) (K, bool) {
	for k, v := range names {
		if v == number {
			return k, true
		}
	}
	var none K
	return none, false
}

// named returns the number of the enum value whose name is a prefix and a name of the SDK: KIND_EMBED
// for "embed".
func named[T ~string](values map[string]int32, prefix string, name T) int32 {
	return values[prefix+strings.ToUpper(string(name))]
}

// nameOf is the inverse of named. It returns false for a value that is unknown or unspecified.
func nameOf[T ~string](value fmt.Stringer, prefix string) (T, bool) {
	name, ok := strings.CutPrefix(value.String(), prefix)
	return T(strings.ToLower(name)), ok && name != "UNSPECIFIED"
}

// EncodeKind returns the number of a kind.
func EncodeKind(k sdk.Kind) stagepb.Kind { return stagepb.Kind(named(stagepb.Kind_value, "KIND_", k)) }

// DecodeKind returns the kind of a number, or false for an unknown number.
func DecodeKind(k stagepb.Kind) (sdk.Kind, bool) { return nameOf[sdk.Kind](k, "KIND_") }
