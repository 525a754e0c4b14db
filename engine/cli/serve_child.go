package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/serve"
	"github.com/racflow/racflow/engine/internal/serve/live"
)

// child is the message of serve --child once the pipelines answer.
type child struct {
	Socket    string   `json:"socket"`
	Pipelines []string `json:"pipelines"`
}

// serveChild serves on its own socket until standard input ends.
func serveChild(c *cobra.Command, set *live.Set, server *serve.Server) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, c.InOrStdin()) // an error also means that nobody holds the other end
		cancel()
	}()
	if err := set.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was ended
		}
		return err
	}
	dir, err := os.MkdirTemp(disk.SocketRoot(), "racflow-")
	if err != nil {
		return fmt.Errorf("no folder for the socket: %w", err)
	}
	defer os.RemoveAll(dir)
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "unix", filepath.Join(dir, "socket"))
	if err != nil {
		return err
	}
	ready := child{l.Addr().String(), set.Names()}
	if err := json.NewEncoder(c.OutOrStdout()).Encode(ready); err != nil {
		return errors.Join(err, l.Close())
	}
	err = server.Serve(ctx, l)
	if ctx.Err() != nil {
		err = nil // requests were cut off, but their program has ended or does not want the answers
	}
	return err
}
