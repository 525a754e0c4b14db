package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Prefix begins the name of every third party's plugin binary.
const Prefix = "racflow-plugin-"

// Found is a third party's plugin. A pipeline file uses its stages as
// NAME/STAGE.
type Found struct {
	Name string
	Path string // absolute
}

// Find lists the plugins in folders: programs named racflow-plugin-NAME. Where
// two have the same name, the one in the earlier folder counts. Folders that do
// not exist have none.
func Find(dirs []string) ([]Found, error) {
	var all []Found
	seen := map[string]bool{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("look for plugins: %s is not a folder", dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), Prefix)
			if !ok || name == "" || seen[name] {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			seen[name] = true
			all = append(all, Found{Name: name, Path: path})
		}
	}
	return all, nil
}

// Describe asks a third party's plugin what it offers. The answer is kept by
// the hash of the program, so that the same one is started only once for it;
// see Known. A program that does not answer in time is ended.
func (h *Host) Describe(ctx context.Context, command []string) (sdk.Plugin, error) {
	if p, ok := h.Known(command); ok {
		return p, nil
	}
	var reply *stagepb.DescribeReply
	err := h.ask(ctx, command, "describe itself", func(ctx context.Context, client stagepb.StageClient) (err error) {
		reply, err = client.Describe(ctx, &stagepb.DescribeRequest{})
		return err
	})
	if err != nil {
		return sdk.Plugin{}, err
	}
	p, err := wire.DecodePlugin(reply)
	if err != nil {
		return sdk.Plugin{}, fmt.Errorf("the plugin %s: %w", command[0], err)
	}
	if path, ok := h.description(command); ok {
		if err := writeDescription(path, reply); err != nil {
			h.options.Log.Warn("a plugin's description could not be kept", "error", err)
		}
	}
	return p, nil
}

// Validate asks a third party's plugin whether one of its stages would take a config,
// which holds the secrets that the stage was given. It returns ArgumentErrors,
// joined, or why the plugin could not be asked.
func (h *Host) Validate(ctx context.Context, command []string, kind sdk.Kind, name string, config []byte) error {
	var reply *stagepb.ValidateReply
	err := h.ask(ctx, command, "check its config", func(ctx context.Context, client stagepb.StageClient) (err error) {
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
func (h *Host) ask(ctx context.Context, command []string, what string, call func(context.Context, stagepb.StageClient) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limits.describe, fmt.Errorf("it did not answer within %v", h.limits.describe))
	defer cancel()
	out := &output{log: h.options.Log.With("plugin", filepath.Base(command[0])), secrets: &h.secrets}
	c, err := h.spawn(ctx, launch{command: command, out: out})
	if err != nil {
		return fmt.Errorf("the plugin %s did not start: %w", command[0], err)
	}
	defer c.stop(h.limits.stop)
	if err := call(ctx, stagepb.NewStageClient(c.conn)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("the plugin %s did not %s: %s%s", command[0], what, h.secrets.Message(err.Error()), out.tail())
	}
	return nil
}

// Known returns what Describe has learnt of a program before, without starting
// anything.
func (h *Host) Known(command []string) (sdk.Plugin, bool) {
	path, ok := h.description(command)
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

// description is the file that keeps what a program says of itself. With
// arguments, the program may be an interpreter, whose hash says nothing.
func (h *Host) description(command []string) (string, bool) {
	if h.options.StateDir == "" || len(command) != 1 {
		return "", false
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return "", false
	}
	hash, err := hashFile(path)
	if err != nil {
		return "", false
	}
	return filepath.Join(h.options.StateDir, "plugins", hash+".json"), true
}

func writeDescription(path string, reply *stagepb.DescribeReply) error {
	raw, err := protojson.MarshalOptions{Multiline: true}.Marshal(reply)
	if err != nil {
		return err
	}
	if err := private.MakeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// checkHash compares a program with the hash that it was pinned to. It is read
// anew for each launch.
func checkHash(path, want string) error {
	got, err := hashFile(path)
	if err != nil {
		return err
	}
	if !strings.EqualFold(got, want) {
		return fmt.Errorf("%s is not the program that was pinned: its sha256 is %s, not %s; "+
			"if it was updated on purpose, pin it anew", path, got, want)
	}
	return nil
}

// hashCommand returns the sha256 of a program, or, where its command line names other
// files, such as an interpreter's script, one of the hashes of all of them; empty for
// no command. It does not cover what these load in turn.
func hashCommand(command []string) (string, error) {
	var hashes []string
	for i, part := range command {
		if i == 0 {
			path, err := exec.LookPath(part)
			if err != nil && !errors.Is(err, exec.ErrDot) {
				return "", nil // spawn says it better
			}
			part = path
		} else if info, err := os.Stat(part); err != nil || !info.Mode().IsRegular() {
			continue
		}
		hash, err := hashFile(part)
		if errors.Is(err, fs.ErrPermission) {
			continue // it may be executed and not read: its version has to do
		}
		if err != nil {
			return "", fmt.Errorf("read the plugin %s, to know it again: %w", part, err)
		}
		hashes = append(hashes, hash)
	}
	if len(hashes) < 2 {
		return strings.Join(hashes, ""), nil
	}
	sum := sha256.Sum256([]byte(strings.Join(hashes, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// hashFile returns the sha256 of a file in hex.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
