package plan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

func TestPlugins(t *testing.T) {
	make := func(name, content string) *program.Program {
		path := filepath.Join(t.TempDir(), "racflow-plugin-"+name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+content), 0o700); err != nil {
			t.Fatal(err)
		}
		p, err := program.At(path)
		if err != nil {
			t.Fatal(err)
		}
		return &p
	}
	mark := filepath.Join(t.TempDir(), "started")
	mine, free := make("mine", "touch "+mark), make("free", "touch "+mark)
	mine.Allow.Hosts, free.Allow.Unconfined = []string{"a.example.com:443", "localhost:11434"}, true
	stage := func(kind sdk.Kind, name string, p *program.Program, memory int64) *pipeline.Stage {
		return &pipeline.Stage{Block: string(kind), Kind: kind, Name: name, Program: p, Memory: memory, Enabled: true}
	}
	off := stage(sdk.KindSample, "off", free, 0)
	off.Enabled = false
	voter := stage(sdk.KindSample, "s", mine, 1<<30)
	voter.Fallbacks = []pipeline.Fallback{{Stage: stage(sdk.KindSample, "s", free, 0)}}
	knowledge := &pipeline.Knowledge{Name: "k", Embed: stage(sdk.KindEmbed, "embed", mine, 0), Store: stage(sdk.KindStore, "store", nil, 1)}
	p := &pipeline.Pipeline{Stages: []*pipeline.Stage{
		{Block: "retrieve", Enabled: true, Retrieve: &pipeline.Retrieve{From: knowledge}}, voter, off, stage(sdk.KindElect, "e", nil, 0),
	}}
	all, err := plugins(p)
	if err != nil || len(all) != 2 || all[0].Name != "mine" || all[1].Name != "free" {
		t.Fatalf("%+v, %v", all, err)
	}
	if !slices.Equal(all[0].Stages, []string{"embed.k", "sample.s"}) || len(all[0].Memory) != 1 || all[0].Memory["sample.s"] != 1<<30 || !slices.Equal(all[1].Stages, []string{"sample.s"}) {
		t.Errorf("%+v", all)
	}
	if want := confine.Probe().Gaps(confine.Policy{Network: true, Local: []string{"localhost:11434"}}); !slices.Equal(all[0].Gaps[:len(want)], want) || len(all[1].Gaps) > 0 {
		t.Errorf("not enforced of %q: %q", all[0].Gaps, all[1].Gaps)
	}
	if hash, err := program.HashFile(mine.Path); err != nil || all[0].Hash != "sha256:"+hash {
		t.Errorf("the hash is %s, want sha256:%s, %v", all[0].Hash, hash, err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program was started")
	}
	mine.Hash = "sha256:00"
	if _, err := plugins(p); err == nil {
		t.Error("a program that has changed is planned with")
	}
}
