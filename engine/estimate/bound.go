package estimate

import (
	"fmt"

	"github.com/racflow/racflow/engine/pipeline"
)

// Unknown is why nobody knows what a voter of the pipeline takes at most, whatever
// it says of the items that reached it in a dry run; empty: it is known.
func Unknown(p *pipeline.Pipeline, s *pipeline.Stage) string {
	for _, f := range s.Fallbacks {
		if f.Stage.Info.Network {
			return fmt.Sprintf("its fallback %q calls a service, too", f.Name)
		}
	}
	voter := "" // the first that calls a service: its votes are missing here
	for i, above := range p.Stages {
		switch {
		case !above.Enabled || !p.Used(i):
		case voter != "" && (above.When != nil || above.Keep != nil || above.Retrieve != nil && above.Retrieve.Filter != nil):
			return fmt.Sprintf("what it is asked may depend on the answers of sample.%s", voter)
		case above == s:
			return ""
		case voter == "" && above.Block == "sample" && above.Info.Network:
			voter = above.Name
		}
	}
	return ""
}
