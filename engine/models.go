package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/profile"
	"github.com/racflow/racflow/sdk"
)

// Profiles are what is known of the models that were asked with the state folder.
func (w *Workspace) Profiles() ([]profile.Known, error) { return w.profiles().List() }

func (w *Workspace) profiles() *profile.Store {
	return profile.New(filepath.Join(w.state, ProfilesFolder))
}

// Probe finds out anew, by some short calls, what the models take that the pipeline's
// stages ask, and keeps it for later runs. A name such as "sample.llm" chooses one stage;
// empty: all of them. A model that several stages ask is probed once.
func (p *Pipeline) Probe(ctx context.Context, stage string) ([]plan.Model, error) {
	var chosen []plan.Asking
	for _, a := range plan.Askings(p.chosen) {
		if (stage == "" || a.Name == stage) && a.Stage.Program == nil {
			chosen = append(chosen, a)
		}
	}
	if len(chosen) == 0 && stage != "" {
		return nil, fmt.Errorf("no stage %s is on that asks a language model and comes with racflow", stage)
	}
	all, err := p.probe(ctx, chosen)
	return all, p.explain(err)
}

// ProbeModel is Pipeline.Probe for a model that no file names, by the config, a JSON object,
// of the voter that would ask it.
func (w *Workspace) ProbeModel(ctx context.Context, use string, config []byte) ([]plan.Model, error) {
	info, ok := w.catalog.Stage(sdk.KindSample, use)
	if !ok {
		return nil, fmt.Errorf("there is no sample stage %q", use)
	}
	stage := &pipeline.Stage{Block: "sample", Name: "model", Kind: sdk.KindSample, Use: use, Info: info, Config: pipeline.Config{Open: config}}
	p := &Pipeline{workspace: w, file: &pipeline.File{}}
	return p.probe(ctx, []plan.Asking{{Stage: stage}})
}

func (p *Pipeline) probe(ctx context.Context, all []plan.Asking) (found []plan.Model, err error) {
	seen := map[string]bool{}
	for _, a := range all {
		shared, err := p.share(a.Stage, a.Stage.Name)
		if err != nil {
			return found, err
		}
		err = p.models(ctx, a, shared, func(m sdk.Model) error {
			key := m.Endpoint() + "\x00" + m.Name()
			if seen[key] {
				return nil
			}
			seen[key] = true
			raw, err := m.Probe(ctx)
			if err != nil {
				return fmt.Errorf("%s at %s cannot be probed: %w", m.Name(), m.Endpoint(), err)
			}
			found = append(found, plan.Model{Stage: a.Name, Endpoint: m.Endpoint(), Name: m.Name(), Profile: raw})
			return nil
		})
		if err != nil {
			return found, err
		}
	}
	kept, err := p.workspace.Profiles()
	for i, f := range found {
		for _, k := range kept {
			if k.Endpoint == f.Endpoint && k.Model == f.Name {
				found[i].File = k.File
			}
		}
	}
	return found, err
}

// known returns what is known of the models that the pipeline's stages ask. It calls nobody.
func (p *Pipeline) known(ctx context.Context) (all []plan.Model, err error) {
	looker := governor.New(p.workspace.ctx, governor.Options{Profiles: p.workspace.profiles(), Mode: governor.Offline, Log: p.workspace.log})
	for _, a := range plan.Askings(p.chosen) {
		if a.Stage.Program != nil {
			continue
		}
		err := p.models(ctx, a, looker.Stage(governor.Stage{Name: a.Name}), func(m sdk.Model) error {
			raw, err := m.Profile(ctx)
			all = append(all, plan.Model{Stage: a.Name, Endpoint: m.Endpoint(), Name: m.Name(), Profile: raw})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// models opens a built-in stage in this process and calls do with each model that it asks.
func (p *Pipeline) models(ctx context.Context, a plan.Asking, h sdk.Host, do func(sdk.Model) error) error {
	s := a.Stage
	opened, err := s.Info.Open(ctx, sdk.Setup{Block: s.Name, Samples: s.N, Host: h, Log: slog.New(slog.DiscardHandler)}, s.Config.Open)
	if err != nil {
		return &host.ConfigError{Kind: s.Kind, Block: s.Name, Errors: sdk.ArgumentErrors(err)}
	}
	if c, ok := opened.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // of idle connections
	}
	prober, ok := opened.(sdk.Prober)
	if !ok {
		return nil
	}
	for _, m := range prober.Models() {
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}
