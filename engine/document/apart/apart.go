package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/racflow/racflow/engine/private"
)

// Time is how long one file may take.
const Time = 30 * time.Second

// memory is how many bytes a reader may take, where the system can limit that.
const memory = 1 << 30

// variable is set for a process that reads a file: its kind, the most bytes that its text
// may have, and the nanoseconds that it may take.
const variable = "RACFLOW_READ_DOCUMENT"

// A Reader makes a text of at most about so many bytes of a file's content, with its title
// (empty: it has none), until a time. It may panic, ask for any amount of memory, or never end.
type Reader func(raw []byte, most int64, stop time.Time) (text, title string, err error)

// TooLong is the error of a file of a kind ("PDF") that has too much text, or takes too long.
func TooLong(kind string) error {
	return fmt.Errorf("its %s is too long, or takes longer than %v; split it, raise max_bytes, or leave it out with exclude", kind, Time)
}

func broken(kind string) error {
	return fmt.Errorf("its %s cannot be read: it takes more than %d MB of memory, or breaks the reader; leave it out with exclude", kind, memory>>20)
}

// reply is what the process says that reads a file.
type reply struct{ Text, Title, Error string }

// Read has the reader of a kind read a file in a process of its own.
func Read(ctx context.Context, kind string, raw []byte, most int64, within time.Duration) (text, title string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("find the running program, to read a %s: %w", kind, err)
	}
	folder, remove, err := private.Temp(os.TempDir())
	if err != nil {
		return "", "", fmt.Errorf("make a folder for temporary files, to read a %s: %w", kind, err)
	}
	defer remove()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	reader := exec.CommandContext(limited, program)
	reader.Env = []string{fmt.Sprintf("%s=%s %d %d", variable, kind, most, within), "GOTRACEBACK=none", "TMPDIR=" + folder, "TMP=" + folder}
	reader.Stdin = bytes.NewReader(raw)
	out, err := reader.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case limited.Err() != nil:
		return "", "", TooLong(kind)
	case errors.As(err, &exit):
		return "", "", broken(kind)
	case err != nil:
		return "", "", fmt.Errorf("read a %s: %w", kind, err)
	}
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		return "", "", broken(kind)
	}
	if r.Error != "" {
		return "", "", errors.New(r.Error)
	}
	return r.Text, r.Title, nil
}
