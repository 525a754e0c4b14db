package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// launch starts the process of a stage.
func (p *Pipeline) launch(ctx context.Context, l launch.Request) (any, error) {
	w := p.workspace
	block, dir := l.Knowledge, filepath.Join(w.state, "knowledge", l.Knowledge)
	switch {
	case l.StateDir != "":
		block, dir = l.Stage.Name, l.StateDir
	case l.Knowledge == "":
		block, dir = l.Stage.Name, filepath.Join(w.state, "stages", p.chosen.Name, l.Stage.Name)
	case l.Stage.Kind == sdk.KindEmbed: // the folder above is the store's
		dir = filepath.Join(w.state, "stages", l.Knowledge, "embed")
	case l.Stage.Kind == sdk.KindEnrich:
		block, dir = l.Stage.Name, filepath.Join(w.state, "stages", l.Knowledge, "enrich", l.Stage.Name)
	}
	shared, err := p.share(l.Stage, block)
	if err != nil {
		return nil, err
	}
	config, err := p.configOf(l.Stage)
	if err != nil {
		return nil, err
	}
	return w.host.Start(ctx, host.Spec{
		Kind: l.Stage.Kind, Use: l.Stage.Use, Block: block, Config: config,
		StateDir: dir, Fits: l.Stage.Kind == sdk.KindEmbed && l.Stage.Info.Fits, State: l.State, Samples: l.Stage.N, Quiet: l.HeldOut, Network: l.Stage.Info.Network, Host: shared,
		Program: l.Stage.Program, Secrets: l.Stage.Config.Secrets, Memory: l.Stage.Memory, Debug: w.options.Debug == string(l.Stage.Kind)+"."+block,
		Paths: pathsIn(l.Stage.Info.Arguments, config),
	})
}

// pathsIn are the values of a config's arguments that are paths.
func pathsIn(arguments []sdk.Argument, config []byte) (paths []string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(config, &values) != nil {
		return nil // the stage will say why it does not open
	}
	for _, a := range arguments {
		var path string
		if a.Type == sdk.TypePath && json.Unmarshal(values[a.Name], &path) == nil && filepath.IsAbs(path) {
			paths = append(paths, path)
		}
		paths = append(paths, pathsIn(a.Fields, values[a.Name])...) // of a block
	}
	return paths
}

// forecaster opens a stage to ask it what it would send; nil: it does not say. Only a
// built-in one is asked: it calls nobody meanwhile.
func (p *Pipeline) forecaster(ctx context.Context, s *pipeline.Stage, by knowing) (any, error) {
	if s.Program != nil {
		return nil, nil
	}
	looker, err := p.workspace.looker(s, by)
	if err != nil {
		return nil, err
	}
	opened, err := s.Info.Open(ctx, sdk.Setup{Block: s.Name, Samples: s.N, Host: looker, Log: slog.New(slog.DiscardHandler)}, s.Config.Open)
	if err != nil {
		return nil, &host.ConfigError{Kind: s.Kind, Block: s.Name, Errors: sdk.ArgumentErrors(err)}
	}
	return opened, nil
}

// voterForecaster is forecaster for voters.
func (p *Pipeline) voterForecaster(by knowing) func(context.Context, *pipeline.Stage) (sdk.Forecaster, error) {
	return func(ctx context.Context, s *pipeline.Stage) (sdk.Forecaster, error) {
		opened, err := p.forecaster(ctx, s, by)
		asked, _ := opened.(sdk.Forecaster)
		return asked, err
	}
}

// enrichForecaster is forecaster for enrichers.
func (p *Pipeline) enrichForecaster(ctx context.Context, s *pipeline.Stage) (sdk.EnrichForecaster, error) {
	opened, err := p.forecaster(ctx, s, knowing{models: true, cache: true})
	asked, _ := opened.(sdk.EnrichForecaster)
	return asked, err
}

// launchHere opens a built-in election in this process, where it is the same
// code: many are needed, each for a moment. One that learns from a knowledge gets a
// process, as in a run.
func (p *Pipeline) launchHere(ctx context.Context, l launch.Request) (any, error) {
	if l.Stage.Info.Fits {
		return p.launch(ctx, l)
	}
	return p.openHere(ctx, l)
}

// openHere is launchHere for an election that is given its weights, or learns them from
// rows that are at hand.
func (p *Pipeline) openHere(ctx context.Context, l launch.Request) (any, error) {
	if l.Stage.Kind != sdk.KindElect || l.Stage.Program != nil {
		return p.launch(ctx, l)
	}
	return l.Stage.Info.Open(ctx, sdk.Setup{Block: l.Stage.Name, StateDir: l.StateDir}, l.Stage.Config.Open)
}
