package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// This file parses files in a process of their own, since a few hostile bytes can make a parser ask
// for all memory or never end. The process is this program, started again. It has a time limit, on
// Linux a memory limit (1 GB), next to no environment, and a folder for temporary files that is
// removed with it. A file that breaks its parser fails alone.

// maxTime is how long reading one file may take.
const maxTime = 30 * time.Second

// memory is how many bytes a reader may allocate, where the system can limit that.
const memory = 1 << 30

// variable is set in the environment of a reading process: the kind of the file, the most bytes of
// its text, and the most nanoseconds to take.
const variable = "RACFLOW_READ_DOCUMENT"

// An apartReader returns the text of a file's content, about most bytes at most, and its title (empty: none).
// It should return by stop. It may panic, ask for any amount of memory, or never end.
type apartReader func(raw []byte, most int64, stop time.Time) (text, title string, err error)

// tooLong is the error of a file of a kind ("PDF") that has too much text or takes too long.
func tooLong(kind string) error {
	return fmt.Errorf("its %s is too long, or takes longer than %v; split it, raise max_bytes, or leave it out with exclude", kind, maxTime)
}

func broken(kind string) error {
	return fmt.Errorf("its %s cannot be read: it takes more than %d MB of memory, or breaks the reader; leave it out with exclude", kind, memory>>20)
}

// reply is the answer of the reading process.
type reply struct{ Text, Title, Error string }

// readApart reads a file in a process of its own, with the reader of a kind.
func readApart(ctx context.Context, kind string, raw []byte, most int64, within time.Duration) (text, title string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("find the running program, to read a %s: %w", kind, err)
	}
	folder, err := os.MkdirTemp("", "racflow-")
	if err != nil {
		return "", "", fmt.Errorf("make a folder for temporary files, to read a %s: %w", kind, err)
	}
	defer os.RemoveAll(folder)
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
		return "", "", tooLong(kind)
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

// apartReaders are the readers that a hostile file can break, by the kind of the file.
var apartReaders = map[string]apartReader{"PDF": PDF, "DOCX": DOCX, "PPTX": PPTX, "XLSX": XLSX, "EPUB": EPUB}

// init reads a file and exits if readApart started this process: before any main function runs, so that every
// program that reads documents can be that process, tests too.
func init() {
	var kind string
	var most int64
	var within time.Duration
	if _, err := fmt.Sscanf(os.Getenv(variable), "%s %d %d", &kind, &most, &within); err == nil {
		os.Exit(serve(kind, most, within))
	}
}

// serve reads a file and writes a reply. It exits if that takes too long, since the parent process
// may be gone.
func serve(kind string, most int64, within time.Duration) (code int) {
	limitMemory(memory)
	time.AfterFunc(within, func() { os.Exit(1) })
	raw, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(readSafely(apartReaders[kind], kind, raw, most, time.Now().Add(within)))
	}
	if err != nil {
		return 1
	}
	return 0
}

func readSafely(read apartReader, kind string, raw []byte, most int64, stop time.Time) (r reply) {
	defer func() {
		if why := recover(); why != nil {
			r = reply{Error: fmt.Sprintf("its %s cannot be read: %v; leave it out with exclude", kind, why)}
		}
	}()
	text, title, err := read(raw, most, stop)
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{Text: text, Title: title}
}
