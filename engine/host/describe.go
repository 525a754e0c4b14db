package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Describe asks a third party's plugin what it offers. The answer is kept by
// the hash of the program, so that the same one is started only once for it;
// see Known. A program that does not answer in time is ended.
func (h *Host) Describe(ctx context.Context, from program.Program) (sdk.Plugin, error) {
	if p, ok := h.Known(from); ok {
		return p, nil
	}
	var reply *stagepb.DescribeReply
	err := h.ask(ctx, from, "describe itself", func(ctx context.Context, client stagepb.StageClient) (err error) {
		reply, err = client.Describe(ctx, &stagepb.DescribeRequest{})
		return err
	})
	if err != nil {
		return sdk.Plugin{}, err
	}
	p, err := wire.DecodePlugin(reply)
	if err != nil {
		return sdk.Plugin{}, fmt.Errorf("the plugin %s: %w", from.Path, err)
	}
	if path, ok := h.description(from); ok {
		if err := writeDescription(path, reply); err != nil {
			h.options.Log.Warn("a plugin's description could not be kept", "error", err)
		}
	}
	return p, nil
}

// Validate asks a third party's plugin whether one of its stages would take a config,
// which holds the secrets that the stage was given. It returns ArgumentErrors,
// joined, or why the plugin could not be asked.
func (h *Host) Validate(ctx context.Context, from program.Program, kind sdk.Kind, name string, config []byte) error {
	var reply *stagepb.ValidateReply
	err := h.ask(ctx, from, "check its config", func(ctx context.Context, client stagepb.StageClient) (err error) {
		reply, err = client.Validate(ctx, &stagepb.ValidateRequest{Kind: wire.EncodeKind(kind), Name: name, ConfigJson: config})
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range wire.DecodeArgumentErrors(reply.GetErrors()) {
		e.Err = errors.New(h.secrets.Message(e.Err.Error()))
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// ask starts a third party's plugin for one call. A program that does not answer in
// time is ended.
func (h *Host) ask(ctx context.Context, from program.Program, what string, call func(context.Context, stagepb.StageClient) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limits.describe, fmt.Errorf("it did not answer within %v", h.limits.describe))
	defer cancel()
	out := &output{log: h.options.Log.With("plugin", filepath.Base(from.Path)), secrets: &h.secrets}
	c, err := h.spawn(ctx, launch{program: &from, out: out})
	if err != nil {
		return fmt.Errorf("the plugin %s did not start: %w", from.Path, err)
	}
	defer c.stop(h.limits.stop)
	if err := call(ctx, stagepb.NewStageClient(c.conn)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("the plugin %s did not %s: %s%s", from.Path, what, h.secrets.Message(err.Error()), out.tail())
	}
	return nil
}

// Known returns what Describe has learnt of a program before, without starting
// anything.
func (h *Host) Known(from program.Program) (sdk.Plugin, bool) {
	path, ok := h.description(from)
	if !ok {
		return sdk.Plugin{}, false
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return sdk.Plugin{}, false
	}
	reply := &stagepb.DescribeReply{}
	if err := protojson.Unmarshal(raw, reply); err != nil {
		return sdk.Plugin{}, false // it is asked again and written anew
	}
	p, err := wire.DecodePlugin(reply)
	return p, err == nil
}

// description is the file that keeps what a program says of itself.
func (h *Host) description(from program.Program) (string, bool) {
	hash, err := from.Check()
	if h.options.StateDir == "" || err != nil {
		return "", false
	}
	return filepath.Join(h.options.StateDir, "plugins", strings.ReplaceAll(hash, ":", "-")+".json"), true
}

func writeDescription(path string, reply *stagepb.DescribeReply) error {
	raw, err := protojson.MarshalOptions{Multiline: true}.Marshal(reply)
	if err != nil {
		return err
	}
	if err := private.MakeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return private.WriteFile(path, raw, false)
}
