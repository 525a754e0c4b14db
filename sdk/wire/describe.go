package wire

import (
	"fmt"
	"regexp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// EncodePlugin describes a plugin.
func EncodePlugin(p sdk.Plugin) *stagepb.DescribeReply {
	reply := &stagepb.DescribeReply{Name: Valid(p.Name), Version: Valid(p.Version), Minor: Minor, LeastMinor: LeastMinor}
	for _, s := range p.Stages {
		info := &stagepb.StageInfo{
			Kind: kinds[s.Kind], Name: Valid(s.Name), Doc: Valid(s.Doc),
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

// DecodePlugin returns the plugin that a reply describes. Its stages cannot be
// opened: they run in the plugin's process only.
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
