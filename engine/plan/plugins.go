package plan

import (
	"runtime"
	"slices"

	"github.com/racflow/racflow/engine/confine"
	"github.com/racflow/racflow/engine/confine/proxy"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/program"
)

// Plugin is a third party's program that the pipeline starts, and what it may touch.
type Plugin struct {
	program.Program
	Hash   string           // that it has now
	Stages []string         // that it does the work of, such as "sample.mine"
	Memory map[string]int64 // bytes that the process of a stage may hold; those without a bound are missing
	Gaps   []string         // what of its confinement this system cannot enforce
}

// plugins are those of a pipeline and its knowledge, each once, in the order in which data meets
// them. None is started.
func plugins(p *pipeline.Pipeline) ([]Plugin, error) {
	var all []Plugin
	for name, s := range p.Processes() {
		if s.Program == nil {
			continue
		}
		at := slices.IndexFunc(all, func(have Plugin) bool { return have.Name == s.Program.Name })
		if at < 0 {
			hash, err := s.Program.Check()
			if err != nil {
				return nil, err
			}
			at = len(all)
			all = append(all, Plugin{Program: *s.Program, Hash: hash, Memory: map[string]int64{}})
			if !s.Program.Allow.Unconfined {
				all[at].Gaps = confine.Probe().Gaps(confine.Policy{Network: len(s.Program.Allow.Hosts) > 0, Local: proxy.Loopback(s.Program.Allow.Hosts)})
			}
		}
		if !slices.Contains(all[at].Stages, name) {
			all[at].Stages = append(all[at].Stages, name)
		}
		if s.Memory > 0 {
			all[at].Memory[name] = max(all[at].Memory[name], s.Memory)
		}
	}
	for i, p := range all {
		if len(p.Memory) > 0 && runtime.GOOS != "linux" {
			all[i].Gaps = append(all[i].Gaps, "its memory is not watched")
		}
	}
	return all, nil
}
