package wire

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// EncodePlugin describes a plugin.
func EncodePlugin(p sdk.Plugin) *stagepb.DescribeReply {
	reply := &stagepb.DescribeReply{Name: Valid(p.Name), Version: Valid(p.Version)}
	for _, s := range p.Stages {
		info := &stagepb.StageInfo{
			Kind: kinds[s.Kind], Name: Valid(s.Name), Doc: Valid(s.Doc),
			Network: s.Network, PreferredBatch: uint32(max(s.Batch, 0)), Filters: s.Filters,
		}
		for c := sdk.ColumnText; c <= sdk.ColumnSamples; c++ {
			if s.Reads.Has(c) {
				info.Reads = append(info.Reads, stagepb.Column(c))
			}
		}
		for _, a := range s.Arguments {
			info.Arguments = append(info.Arguments, &stagepb.Argument{
				Name: Valid(a.Name), Type: argumentTypes[a.Type], Doc: Valid(a.Doc), Required: a.Required,
				DefaultJson: Valid(string(a.Default)), Secret: a.Secret, Neutral: a.Neutral, OneOf: ValidAll(a.OneOf),
			})
		}
		reply.Stages = append(reply.Stages, info)
	}
	return reply
}

// DecodePlugin returns the plugin that a reply describes. Its stages cannot be
// opened: they run in the plugin's process only.
func DecodePlugin(reply *stagepb.DescribeReply) (sdk.Plugin, error) {
	p := sdk.Plugin{Name: reply.GetName(), Version: reply.GetVersion()}
	if !identifier.MatchString(p.Name) {
		return p, fmt.Errorf("the plugin's name is %q; a name has letters, digits, - and _", p.Name)
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
		Filters: info.GetFilters(),
	}
	for _, c := range info.GetReads() {
		column := sdk.Column(c)
		if column < sdk.ColumnText || column > sdk.ColumnSamples || stagepb.Column(column) != c {
			return sdk.Stage{}, fmt.Errorf("it reads column %v, which is unknown; a newer racflow may know it", c)
		}
		s.Reads |= sdk.Of(column)
	}
	for _, in := range info.GetArguments() {
		a, err := decodeArgument(in)
		if err != nil {
			return sdk.Stage{}, fmt.Errorf("argument %q: %w", in.GetName(), err)
		}
		s.Arguments = append(s.Arguments, a)
	}
	return s, nil
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
		Secret: in.GetSecret(), Neutral: in.GetNeutral(), OneOf: in.GetOneOf(),
	}
	if in.GetDefaultJson() != "" {
		a.Default = json.RawMessage(in.GetDefaultJson())
		if err := a.Check(a.Default); err != nil {
			return sdk.Argument{}, fmt.Errorf("default: %w", err)
		}
	}
	return a, nil
}
